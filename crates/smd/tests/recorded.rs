//! Scenarios recorded from the Go library that the real API server uses.
//!
//! Each line of `recorded/scenarios.jsonl` is a sequence of writes to one object with what
//! `k8s.io/apimachinery/pkg/util/managedfields` made of them, errors included. The recorder
//! in `recorded/recorder` writes them; it sets every new time to the second of the write's
//! position.
//!
//! Set `SMD_RECORDED` to a folder with the same two files to check other recordings.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::borrow::Cow;
use std::path::PathBuf;

use fleetwright_smd::fieldpath::FieldFilter;
use fleetwright_smd::managed::{ApplyError, FieldManager, conflict_causes};
use fleetwright_smd::merge::Versions;
use fleetwright_smd::schema::Schema;
use serde_json::{Value, json};

/// The two versions of the recorded kind: one field has another name in the second.
struct TwoVersions {
    v1: Schema,
    v2: Schema,
    filter: FieldFilter,
}

impl Versions for TwoVersions {
    fn schema(&self, api_version: &str) -> Option<&Schema> {
        match api_version {
            "example.com/v1" => Some(&self.v1),
            "example.com/v2" => Some(&self.v2),
            _ => None,
        }
    }

    fn filter(&self, _: &str) -> &FieldFilter {
        &self.filter
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, String> {
        Ok(convert(object.clone(), api_version))
    }
}

fn convert(mut object: Value, api_version: &str) -> Value {
    if object["apiVersion"] == api_version {
        return object;
    }
    object["apiVersion"] = api_version.into();
    let (from, to) =
        if api_version == "example.com/v1" { ("words", "text") } else { ("text", "words") };
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
        && let Some(value) = spec.remove(from)
    {
        spec.insert(to.to_owned(), value);
    }
    object
}

fn merge_patch(base: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *base = patch.clone();
        return;
    };
    if !base.is_object() {
        *base = json!({});
    }
    for (name, value) in patch {
        if value.is_null() {
            base.as_object_mut().unwrap().remove(name);
        } else {
            merge_patch(&mut base[name], value);
        }
    }
}

fn schemas(documents: &Value, name: &str) -> [Schema; 2] {
    if name == "deduced" {
        return [Schema::deduced(), Schema::deduced()];
    }
    let models = &documents[name];
    let resolve = |target: &str| models.get(target.rsplit('/').next().unwrap()).map(Cow::Borrowed);
    ["Thing1", "Thing2"].map(|root| Schema::from_openapi(&models[root], &resolve, false).unwrap())
}

/// One write, in the words of the recording.
fn write(live: &Value, step: usize, write: &Value, documents: &Value, schema: &str) -> Value {
    let text = |name: &str| write[name].as_str().unwrap_or_default();
    let subresource = text("subresource");
    let filter = if subresource == "status" {
        FieldFilter::except(["spec", "metadata"])
    } else {
        FieldFilter::except(["status"])
    };
    let [v1, v2] = schemas(documents, schema);
    let versions = TwoVersions { v1, v2, filter: filter.clone() };
    let api_version = format!("example.com/{}", text("version"));
    let empty = json!({"apiVersion": api_version, "kind": "Thing"});
    let manager = FieldManager {
        schema: versions.schema(&api_version).unwrap(),
        api_version: &api_version,
        kind: "Thing",
        subresource,
        filter: &filter,
        empty: &empty,
        versions: Some(&versions),
    };
    let now = format!("2024-01-01T00:00:{step:02}Z");
    let live = if live.is_null() { Value::Null } else { convert(live.clone(), &api_version) };
    let outcome = match text("op") {
        "apply" => {
            let force = write["force"] == true;
            manager.apply(&live, &write["object"], text("manager"), force, &now)
        }
        "update" => Ok(manager.update(&live, write["object"].clone(), text("manager"), &now)),
        _ => {
            let mut new = if live.is_null() { empty.clone() } else { live.clone() };
            merge_patch(&mut new, &write["patch"]);
            Ok(manager.update(&live, new, text("manager"), &now))
        }
    };
    match outcome {
        Ok(object) => json!({"object": object}),
        Err(ApplyError::Conflicts(conflicts)) => {
            let mut causes: Vec<_> = conflict_causes(&conflicts)
                .into_iter()
                .map(|cause| (cause.message, cause.field))
                .collect();
            causes.sort_by_key(|(message, field)| format!("[{message} {field}]"));
            let error = ApplyError::Conflicts(conflicts).to_string();
            json!({"error": error, "reason": "Conflict", "causes": causes})
        }
        Err(ApplyError::BadRequest(error)) => json!({"error": error, "reason": "BadRequest"}),
        Err(ApplyError::Failed(error)) => json!({"error": error.trim()}),
    }
}

/// Go reports the problems of a map in random order, and stops at the first undeclared
/// field, so where there are several the recording shows one outcome of many.
fn same(got: &Value, expected: &Value) -> bool {
    let error = |result: &Value| result["error"].as_str().map(str::to_owned);
    match (error(got), error(expected)) {
        (Some(got), Some(expected)) if (got.clone() + &expected).contains("errors:") => true,
        _ => got == expected,
    }
}

#[test]
fn recorded_scenarios() {
    let folder = std::env::var_os("SMD_RECORDED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/recorded"),
        PathBuf::from,
    );
    let documents: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("schemas.json")).unwrap())
            .unwrap();
    let scenarios = std::fs::read_to_string(folder.join("scenarios.jsonl")).unwrap();
    let mut wrong = 0;
    for (line, scenario) in scenarios.lines().enumerate() {
        let scenario: Value = serde_json::from_str(scenario).unwrap();
        let mut live = Value::Null;
        let writes = scenario["ops"].as_array().unwrap();
        let results = scenario["results"].as_array().unwrap();
        for (step, (op, expected)) in writes.iter().zip(results).enumerate() {
            let schema = op.get("schema").unwrap_or(&scenario["schema"]).as_str().unwrap();
            let got = write(&live, step, op, &documents, schema);
            if !same(&got, expected) {
                wrong += 1;
                println!(
                    "line {} step {step}: {op}\nlive     {live}\nexpected {expected}\ngot      {got}\n",
                    line + 1
                );
                break;
            }
            if let Some(object) = expected.get("object") {
                live = convert(object.clone(), "example.com/v1");
                live["metadata"]["uid"] = "1".into();
            }
        }
    }
    assert_eq!(wrong, 0, "scenarios that differ from the recording");
}
