//! The rules of `metadata`, for new objects and for changes.
//!
//! The metadata is expected to be decoded already: fields of a wrong type count as absent.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::labels::invalid_each;
use super::{
    NameValidator, name_is_dns_label, qualified_name, validate_labels, validate_owner_references,
};
use crate::field::{FieldError, Path};
use crate::gotext;

const ANNOTATIONS_MAX: usize = 256 * 1024;
const FIELD_MANAGER_MAX: usize = 128;
const SUBRESOURCE_MAX: usize = 256;
const IMMUTABLE: &str = "field is immutable";

/// The finalizer of an object whose dependents stay.
pub const ORPHAN: &str = "orphan";
/// The finalizer of an object whose dependents go first.
pub const FOREGROUND: &str = "foregroundDeletion";

fn text<'a>(meta: &'a Value, field: &str) -> &'a str {
    meta.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(meta: &'a Value, field: &str) -> &'a [Value] {
    meta.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn map<'a>(meta: &'a Value, field: &str) -> Option<&'a Map<String, Value>> {
    meta.get(field).and_then(Value::as_object)
}

fn generation(meta: &Value) -> i64 {
    meta.get("generation").and_then(Value::as_i64).unwrap_or_default()
}

/// Checks the metadata of a new object, whose name has been generated if it was to be.
pub fn validate_object_meta(
    meta: &Value,
    namespaced: bool,
    name_kind: NameValidator,
    path: &Path,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let prefix = text(meta, "generateName");
    if !prefix.is_empty() {
        let reasons = name_kind(prefix, true);
        errors.extend(invalid_each(&path.child("generateName"), prefix, reasons));
    }
    let name = text(meta, "name");
    if name.is_empty() {
        let detail = "name or generateName is required";
        errors.push(FieldError::required(&path.child("name"), detail));
    } else {
        errors.extend(invalid_each(&path.child("name"), name, name_kind(name, false)));
    }
    let namespace = text(meta, "namespace");
    let namespace_path = path.child("namespace");
    match (namespaced, namespace.is_empty()) {
        (true, true) => errors.push(FieldError::required(&namespace_path, "")),
        (true, false) => {
            let reasons = name_is_dns_label(namespace, false);
            errors.extend(invalid_each(&namespace_path, namespace, reasons));
        }
        (false, false) => {
            errors.push(FieldError::forbidden(&namespace_path, "not allowed on this type"));
        }
        (false, true) => {}
    }
    nonnegative_generation(meta, path, &mut errors);
    labels_to_owners(meta, path, &mut errors);
    errors.extend(validate_finalizers(list(meta, "finalizers"), &path.child("finalizers")));
    managed_fields(meta, path, &mut errors);
    errors
}

/// Checks the metadata of an object that replaces another.
pub fn validate_object_meta_update(new: &Value, old: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if old.get("deletionTimestamp").is_some_and(|t| !t.is_null()) {
        no_new_finalizers(new, old, &path.child("finalizers"), &mut errors);
    }
    if text(new, "resourceVersion").is_empty() {
        errors.push(FieldError::invalid(
            &path.child("resourceVersion"),
            "",
            "must be specified for an update",
        ));
    }
    nonnegative_generation(new, path, &mut errors);
    if generation(new) < generation(old) {
        errors.push(FieldError::invalid(
            &path.child("generation"),
            generation(new),
            "must not be decremented",
        ));
    }
    for field in ["name", "namespace", "uid"] {
        if text(new, field) != text(old, field) {
            errors.push(FieldError::invalid(&path.child(field), text(new, field), IMMUTABLE));
        }
    }
    for field in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let value = new.get(field).unwrap_or(&Value::Null);
        if value != old.get(field).unwrap_or(&Value::Null) {
            errors.push(FieldError::invalid(&path.child(field), value.clone(), IMMUTABLE));
        }
    }
    labels_to_owners(new, path, &mut errors);
    managed_fields(new, path, &mut errors);
    errors
}

fn nonnegative_generation(meta: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let generation = generation(meta);
    if generation < 0 {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(&path.child("generation"), generation, detail));
    }
}

fn labels_to_owners(meta: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    if let Some(labels) = map(meta, "labels") {
        errors.extend(validate_labels(labels, &path.child("labels")));
    }
    if let Some(annotations) = map(meta, "annotations") {
        errors.extend(validate_annotations(annotations, &path.child("annotations")));
    }
    let owners = list(meta, "ownerReferences");
    errors.extend(validate_owner_references(owners, &path.child("ownerReferences")));
}

/// The keys of annotations, and their size in total.
pub fn validate_annotations(annotations: &Map<String, Value>, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut size = 0;
    for (key, value) in annotations {
        errors.extend(invalid_each(path, key, qualified_name(&key.to_lowercase())));
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > ANNOTATIONS_MAX {
        errors.push(FieldError::too_long(path, ANNOTATIONS_MAX));
    }
    errors
}

/// The names of finalizers, and that not both garbage collection policies are asked for.
pub fn validate_finalizers(finalizers: &[Value], path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for finalizer in finalizers.iter().filter_map(Value::as_str) {
        errors.extend(invalid_each(path, finalizer, qualified_name(finalizer)));
    }
    let has = |name: &str| finalizers.iter().any(|f| f.as_str() == Some(name));
    if has(ORPHAN) && has(FOREGROUND) {
        errors.push(FieldError::invalid(
            path,
            finalizers.to_vec(),
            format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set"),
        ));
    }
    errors
}

/// Warnings about finalizers of a custom object that are new and could be mistaken for those of
/// others.
pub fn finalizer_warnings(meta: &Value, old: Option<&Value>) -> Vec<String> {
    let names = |meta| -> BTreeSet<&str> {
        list(meta, "finalizers").iter().filter_map(Value::as_str).collect()
    };
    let known = old.map(names).unwrap_or_default();
    let mut warnings = Vec::new();
    for name in names(meta).difference(&known) {
        let quoted = gotext::quote(name);
        let reasons = qualified_name(name);
        warnings.extend(reasons.iter().map(|r| format!("metadata.finalizers: {quoted}: {r}")));
        let is_standard = matches!(*name, ORPHAN | FOREGROUND | "kubernetes");
        if !name.contains('/') && !is_standard {
            let form = if name.contains('.') { " including a path (/)" } else { "" };
            warnings.push(format!(
                "metadata.finalizers: {quoted}: prefer a domain-qualified finalizer name{form} to \
                 avoid accidental conflicts with other finalizer writers"
            ));
        }
    }
    warnings
}

fn no_new_finalizers(new: &Value, old: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let names = |meta| -> BTreeSet<&str> {
        list(meta, "finalizers").iter().filter_map(Value::as_str).collect()
    };
    let old_names = names(old);
    let extra: Vec<&str> = names(new).difference(&old_names).copied().collect();
    if !extra.is_empty() {
        errors.push(FieldError::forbidden(
            path,
            format!(
                "no new finalizers can be added if the object is being deleted, found new \
                 finalizers []string{{{}}}",
                gotext::quote_list(extra)
            ),
        ));
    }
}

fn managed_fields(meta: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let path = path.child("managedFields");
    for (i, entry) in list(meta, "managedFields").iter().enumerate() {
        let path = path.index(i);
        match text(entry, "operation") {
            "" => {
                errors.push(FieldError::required(&path.child("operation"), "must not be empty"));
            }
            "Apply" | "Update" => {}
            other => errors.push(FieldError::not_supported(
                &path.child("operation"),
                other,
                &["Apply", "Update"],
            )),
        }
        let fields_type = text(entry, "fieldsType");
        if !matches!(fields_type, "" | "FieldsV1") {
            let detail = "must be `FieldsV1`";
            errors.push(FieldError::invalid(&path.child("fieldsType"), fields_type, detail));
        }
        errors.extend(validate_field_manager(text(entry, "manager"), &path.child("manager")));
        if text(entry, "subresource").len() > SUBRESOURCE_MAX {
            errors.push(FieldError::too_long(&path.child("subresource"), SUBRESOURCE_MAX));
        }
    }
}

/// The name of a field manager: short and printable.
pub fn validate_field_manager(manager: &str, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if manager.len() > FIELD_MANAGER_MAX {
        errors.push(FieldError::too_long(path, FIELD_MANAGER_MAX));
    }
    for (position, c) in manager.char_indices() {
        if !gotext::is_printable(c) {
            let detail =
                format!("invalid character U+{:04X} (at position {position})", u32::from(c));
            errors.push(FieldError::invalid(path, manager, detail));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::name_is_dns_subdomain;
    use serde_json::json;

    fn create(meta: &Value, namespaced: bool) -> Vec<String> {
        validate_object_meta(meta, namespaced, name_is_dns_subdomain, &Path::new("metadata"))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    fn update(new: &Value, old: &Value) -> Vec<String> {
        validate_object_meta_update(new, old, &Path::new("metadata"))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn new_objects() {
        assert!(create(&json!({"name": "a", "namespace": "b"}), true).is_empty());
        assert_eq!(
            create(&json!({}), true),
            [
                "metadata.name: Required value: name or generateName is required",
                "metadata.namespace: Required value",
            ]
        );
        assert_eq!(
            create(&json!({"name": "a", "namespace": "b", "generation": -1}), false),
            [
                "metadata.namespace: Forbidden: not allowed on this type",
                "metadata.generation: Invalid value: -1: must be greater than or equal to 0",
            ]
        );
        assert_eq!(
            create(&json!({"name": "a", "finalizers": ["orphan", "foregroundDeletion"]}), false),
            ["metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer \
              orphan and foregroundDeletion cannot be both set"]
        );
        let big = "x".repeat(ANNOTATIONS_MAX);
        assert_eq!(
            create(&json!({"name": "a", "annotations": {"K": big}}), false),
            ["metadata.annotations: Too long: may not be more than 262144 bytes"]
        );
        assert_eq!(
            create(
                &json!({"name": "a", "managedFields": [
                    {"manager": "a\u{7}", "operation": "Do", "fieldsType": "X"}, {}]}),
                false
            ),
            [
                "metadata.managedFields[0].operation: Unsupported value: \"Do\": supported \
                 values: \"Apply\", \"Update\"",
                "metadata.managedFields[0].fieldsType: Invalid value: \"X\": must be `FieldsV1`",
                "metadata.managedFields[0].manager: Invalid value: \"a\\a\": invalid character \
                 U+0007 (at position 1)",
                "metadata.managedFields[1].operation: Required value: must not be empty",
            ]
        );
    }

    #[test]
    fn changed_objects() {
        let old = json!({"name": "a", "uid": "u", "resourceVersion": "1", "generation": 2,
            "creationTimestamp": "2026-01-01T00:00:00Z"});
        assert!(update(&old, &old).is_empty());
        let new = json!({"name": "b", "uid": "v", "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:01Z", "deletionGracePeriodSeconds": 3});
        assert_eq!(
            update(&new, &old),
            [
                "metadata.resourceVersion: Invalid value: \"\": must be specified for an update",
                "metadata.generation: Invalid value: 1: must not be decremented",
                "metadata.name: Invalid value: \"b\": field is immutable",
                "metadata.uid: Invalid value: \"v\": field is immutable",
                "metadata.creationTimestamp: Invalid value: \"2026-01-01T00:00:01Z\": field is \
                 immutable",
                "metadata.deletionGracePeriodSeconds: Invalid value: 3: field is immutable",
            ]
        );
    }

    /// Compared as sets: labels come in the random order of the server's maps, and updates are
    /// checked by several layers of it.
    #[test]
    fn metadata_is_answered_as_by_the_real_server() {
        let recorded: Value =
            serde_json::from_str(include_str!("../../testdata/meta.json")).unwrap();
        let sorted = |mut values: Vec<Value>| {
            values.sort_by_key(ToString::to_string);
            values.dedup();
            values
        };
        for case in recorded.as_array().unwrap() {
            let (new, old) = (&case["new"], &case["old"]);
            let path = Path::new("metadata");
            let errors = if old.is_null() {
                validate_object_meta(new, false, name_is_dns_subdomain, &path)
            } else {
                validate_object_meta_update(new, old, &path)
            };
            let causes = sorted(crate::field::invalid_causes(&errors));
            let expected = sorted(case["causes"].as_array().cloned().unwrap_or_default());
            assert_eq!(Value::from(causes), Value::from(expected), "{}", case["label"]);
            if errors.is_empty() {
                let warnings = finalizer_warnings(new, Some(old)).len();
                assert_eq!(warnings, case["warnings"].as_array().unwrap().len());
            }
        }
    }

    #[test]
    fn finalizers_without_a_path_are_warned_about() {
        let meta = json!({"finalizers": ["a", "b.c", "d.e/f", "orphan", "old"]});
        let old = json!({"finalizers": ["old"]});
        assert_eq!(
            finalizer_warnings(&meta, Some(&old)),
            [
                "metadata.finalizers: \"a\": prefer a domain-qualified finalizer name to avoid \
                 accidental conflicts with other finalizer writers",
                "metadata.finalizers: \"b.c\": prefer a domain-qualified finalizer name including \
                 a path (/) to avoid accidental conflicts with other finalizer writers",
            ]
        );
    }

    #[test]
    fn deleted_objects_take_no_new_finalizers() {
        let old = json!({"resourceVersion": "1", "deletionTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["a/b"]});
        let mut new = old.clone();
        new["finalizers"] = json!(["a/d", "a/c"]);
        assert_eq!(
            update(&new, &old),
            ["metadata.finalizers: Forbidden: no new finalizers can be added if the object is \
              being deleted, found new finalizers []string{\"a/c\", \"a/d\"}"]
        );
    }
}
