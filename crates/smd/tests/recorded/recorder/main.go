// Recorder fills in what the Go library makes of the scenarios in a folder.
//
//	go run . ..
//
// It reads schemas.json (OpenAPI definitions by name of the schema) and the "ops" of each line
// of scenarios.jsonl, and rewrites "results". A scenario is a sequence of writes to one
// object; "schema" may differ from write to write to play an upgrade of the definition.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

const group = "example.com"

// The time of the first write; each later one is a second after the one before.
var epoch = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

type write struct {
	Op          string         `json:"op"`
	Schema      string         `json:"schema"`
	Manager     string         `json:"manager"`
	Version     string         `json:"version"`
	Subresource string         `json:"subresource"`
	Force       bool           `json:"force"`
	Object      map[string]any `json:"object"`
	Patch       map[string]any `json:"patch"`
}

type result struct {
	Object map[string]any `json:"object,omitempty"`
	Error  string         `json:"error,omitempty"`
	Reason string         `json:"reason,omitempty"`
	Causes [][2]string    `json:"causes,omitempty"`
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: recorder FOLDER")
	}
	if err := record(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func record(folder string) error {
	converters, err := readSchemas(filepath.Join(folder, "schemas.json"))
	if err != nil {
		return err
	}
	path := filepath.Join(folder, "scenarios.jsonl")
	lines, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	for i, line := range bytes.Split(bytes.TrimSpace(lines), []byte("\n")) {
		// Kept as it is, so that recording again changes nothing but the results.
		var scenario map[string]any
		if err := utiljson.Unmarshal(line, &scenario); err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
		var parsed struct {
			Schema string  `json:"schema"`
			Ops    []write `json:"ops"`
		}
		if err := utiljson.Unmarshal(line, &parsed); err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
		scenario["results"] = play(converters, parsed.Schema, parsed.Ops)
		if err := encoder.Encode(scenario); err != nil {
			return err
		}
	}
	return os.WriteFile(path, out.Bytes(), 0o644)
}

func readSchemas(path string) (map[string]managedfields.TypeConverter, error) {
	document, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var schemas map[string]map[string]*spec.Schema
	if err := json.Unmarshal(document, &schemas); err != nil {
		return nil, err
	}
	converters := map[string]managedfields.TypeConverter{
		"deduced": managedfields.NewDeducedTypeConverter(),
	}
	for name, models := range schemas {
		if converters[name], err = managedfields.NewTypeConverter(models, false); err != nil {
			return nil, err
		}
	}
	return converters, nil
}

// play runs the writes of a scenario one after the other. The object is stored as v1.
func play(converters map[string]managedfields.TypeConverter, schemaName string, writes []write) []result {
	var stored *unstructured.Unstructured
	results := []result{}
	for i, w := range writes {
		if w.Schema == "" {
			w.Schema = schemaName
		}
		object, err := perform(converters[w.Schema], stored, w)
		if err != nil {
			results = append(results, failure(err))
			continue
		}
		setTimes(object, epoch.Add(time.Duration(i)*time.Second))
		results = append(results, result{Object: object.DeepCopy().Object})
		stored = convert(object, "v1")
		stored.SetUID("1")
	}
	return results
}

func perform(converter managedfields.TypeConverter, stored *unstructured.Unstructured, w write) (*unstructured.Unstructured, error) {
	kind := schema.GroupVersionKind{Group: group, Version: w.Version, Kind: "Thing"}
	resets := []fieldpath.Path{fieldpath.MakePathOrDie("status")}
	if w.Subresource == "status" {
		resets = []fieldpath.Path{fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata")}
	}
	filters := map[fieldpath.APIVersion]fieldpath.Filter{}
	for _, version := range []string{"v1", "v2"} {
		filters[fieldpath.APIVersion(group+"/"+version)] = fieldpath.NewExcludeSetFilter(fieldpath.NewSet(resets...))
	}
	manager, err := managedfields.NewDefaultCRDFieldManager(
		converter, versions{}, versions{}, versions{}, kind, kind.GroupVersion(), w.Subresource, filters)
	if err != nil {
		return nil, err
	}
	live := empty(kind)
	if stored != nil {
		live = convert(stored, w.Version)
	}
	var object runtime.Object
	switch w.Op {
	case "apply":
		object, err = manager.Apply(live, &unstructured.Unstructured{Object: w.Object}, w.Manager, w.Force)
	case "update":
		object = manager.UpdateNoErrors(live, &unstructured.Unstructured{Object: w.Object}, w.Manager)
	case "patch":
		patched := mergePatch(live.DeepCopy().Object, w.Patch).(map[string]any)
		object = manager.UpdateNoErrors(live, &unstructured.Unstructured{Object: patched}, w.Manager)
	default:
		err = fmt.Errorf("unknown op %q", w.Op)
	}
	if err != nil {
		return nil, err
	}
	return object.(*unstructured.Unstructured), nil
}

func failure(err error) result {
	out := result{Error: strings.TrimSpace(err.Error())}
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		out.Reason = string(status.ErrStatus.Reason)
		if status.ErrStatus.Details != nil {
			for _, cause := range status.ErrStatus.Details.Causes {
				out.Causes = append(out.Causes, [2]string{cause.Message, cause.Field})
			}
		}
	}
	// Go reports them in the random order of a map.
	sort.Slice(out.Causes, func(i, j int) bool {
		return fmt.Sprint(out.Causes[i]) < fmt.Sprint(out.Causes[j])
	})
	return out
}

// setTimes replaces the times that the write has set, which are those of today.
func setTimes(object *unstructured.Unstructured, now time.Time) {
	entries := object.GetManagedFields()
	for i := range entries {
		if entries[i].Time != nil && entries[i].Time.Year() > epoch.Year() {
			entries[i].Time = &metav1.Time{Time: now}
		}
	}
	if entries != nil {
		object.SetManagedFields(entries)
	}
}

func mergePatch(base, patch any) any {
	fields, ok := patch.(map[string]any)
	if !ok {
		return runtime.DeepCopyJSONValue(patch)
	}
	out, ok := base.(map[string]any)
	if !ok {
		out = map[string]any{}
	}
	for name, value := range fields {
		if value == nil {
			delete(out, name)
		} else {
			out[name] = mergePatch(out[name], value)
		}
	}
	return out
}

func empty(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(kind)
	return object
}

// convert renames the one field that differs between the versions.
func convert(object *unstructured.Unstructured, version string) *unstructured.Unstructured {
	out := object.DeepCopy()
	if out.GroupVersionKind().Version == version {
		return out
	}
	out.SetAPIVersion(group + "/" + version)
	from, to := "text", "words"
	if version == "v1" {
		from, to = to, from
	}
	if spec, ok := out.Object["spec"].(map[string]any); ok {
		if value, ok := spec[from]; ok {
			delete(spec, from)
			spec[to] = value
		}
	}
	return out
}

// versions makes, converts and defaults objects of the one kind.
type versions struct{}

func (versions) New(kind schema.GroupVersionKind) (runtime.Object, error) { return empty(kind), nil }

func (versions) Default(runtime.Object) {}

func (versions) Convert(_, _, _ any) error { return errors.New("not used") }

func (versions) ConvertFieldLabel(schema.GroupVersionKind, string, string) (string, string, error) {
	return "", "", errors.New("not used")
}

func (versions) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	version := target.(schema.GroupVersion)
	if version.Group != group || (version.Version != "v1" && version.Version != "v2") {
		return nil, runtime.NewNotRegisteredErrForTarget("versions", reflect.TypeOf(in), target)
	}
	return convert(in.(*unstructured.Unstructured), version.Version), nil
}
