//! The metadata of objects and of objects inside objects.
//!
//! Schemas do not describe `metadata`; the API has one type for it. Here it is decoded to that
//! type - unknown fields go, wrong types are errors, empty fields disappear - and checked.

mod decode;
mod time;

use serde_json::{Map, Value};

use crate::field::{FieldError, Path};
use crate::gotext;
use crate::names;
use crate::prune::Unknown;
use crate::schema::Schema;

/// Decodes the metadata of an object to the form that is stored. Unknown fields are removed and
/// returned with their paths. With `drop_malformed` fields of a wrong type are removed as well;
/// otherwise the first one is an error.
pub fn coerce_metadata(object: &mut Value, drop_malformed: bool) -> Result<Vec<String>, String> {
    let Some(fields) = object.as_object_mut() else { return Ok(Vec::new()) };
    coerce_field(fields, "metadata", drop_malformed)
}

fn coerce_field(
    fields: &mut Map<String, Value>,
    prefix: &str,
    drop_malformed: bool,
) -> Result<Vec<String>, String> {
    let Some(metadata) = fields.get("metadata") else { return Ok(Vec::new()) };
    let decoded = decode::object_meta(metadata, drop_malformed)?;
    let unknown = decoded.unknown.iter().map(|path| format!("{prefix}.{path}")).collect();
    fields.insert("metadata".to_owned(), decoded.value);
    Ok(unknown)
}

/// Decodes the metadata of the objects inside an object, as [`coerce_metadata`] does for the
/// object itself, and checks that their `apiVersion` and `kind` are texts.
pub(crate) fn coerce_embedded(
    object: &mut Value,
    schema: &Schema,
    drop_malformed: bool,
) -> Result<Vec<String>, FieldError> {
    let mut coercer = Coercer {
        drop_malformed,
        unknown: Unknown { track: true, path: String::new(), found: Vec::new() },
    };
    coercer.coerce(object, schema, &Path::root(), false)?;
    coercer.unknown.found.sort();
    Ok(coercer.unknown.found)
}

/// As [`coerce_embedded`], for a default value at `path`.
pub(crate) fn coerce_default(
    value: &mut Value,
    schema: &Schema,
    path: &Path,
    is_object: bool,
) -> Result<(), FieldError> {
    let mut coercer = Coercer {
        drop_malformed: false,
        unknown: Unknown { track: false, path: String::new(), found: Vec::new() },
    };
    coercer.coerce(value, schema, path, is_object)
}

struct Coercer {
    drop_malformed: bool,
    unknown: Unknown,
}

impl Coercer {
    fn coerce(
        &mut self,
        value: &mut Value,
        schema: &Schema,
        path: &Path,
        force_resource: bool,
    ) -> Result<(), FieldError> {
        match value {
            Value::Object(fields) => {
                if force_resource || schema.embedded_resource {
                    self.coerce_resource(fields, path)?;
                }
                for (name, field) in fields.iter_mut() {
                    let (property, child) = match schema.properties.get(name) {
                        Some(property) => (property, path.child(name)),
                        None => match schema.additional_schema() {
                            Some(additional) => (additional, path.key(name)),
                            None => continue,
                        },
                    };
                    self.coerce(field, property, &child, false)?;
                }
                Ok(())
            }
            Value::Array(items) => {
                let Some(schema) = &schema.items else { return Ok(()) };
                for (i, item) in items.iter_mut().enumerate() {
                    self.coerce(item, schema, &path.index(i), false)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn coerce_resource(
        &mut self,
        fields: &mut Map<String, Value>,
        path: &Path,
    ) -> Result<(), FieldError> {
        for name in ["apiVersion", "kind"] {
            match fields.get(name) {
                None | Some(Value::String(_)) => {}
                Some(_) if self.drop_malformed => {
                    fields.remove(name);
                }
                Some(other) => {
                    let value = other.clone();
                    return Err(FieldError::invalid(&path.child(name), value, "must be a string"));
                }
            }
        }
        let metadata_path = path.child("metadata");
        match coerce_field(fields, metadata_path.as_str(), self.drop_malformed) {
            Ok(unknown) => {
                if self.unknown.track {
                    self.unknown.found.extend(unknown);
                }
                Ok(())
            }
            Err(_) if self.drop_malformed => Ok(()),
            Err(reason) => {
                let value = fields.get("metadata").cloned().unwrap_or_default();
                Err(FieldError::invalid(&metadata_path, value, reason))
            }
        }
    }
}

/// Checks the objects inside an object: their type, and the rules of their metadata.
pub(crate) fn validate(
    object: &Value,
    schema: &Schema,
    path: &Path,
    is_object: bool,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(object, schema, path, is_object, &mut errors);
    errors
}

fn walk(
    value: &Value,
    schema: &Schema,
    path: &Path,
    force_resource: bool,
    errors: &mut Vec<FieldError>,
) {
    match value {
        Value::Object(fields) => {
            if force_resource || schema.embedded_resource {
                validate_resource(fields, path, errors);
            }
            for (name, field) in fields.iter().filter(|(_, f)| f.is_object() || f.is_array()) {
                if let Some(property) = schema.properties.get(name) {
                    walk(field, property, &path.child(name), false, errors);
                } else if let Some(additional) = schema.additional_schema() {
                    walk(field, additional, &path.key(name), false, errors);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = &schema.items else { return };
            for (i, item) in items.iter().enumerate() {
                walk(item, schema, &path.index(i), false, errors);
            }
        }
        _ => {}
    }
}

fn validate_resource(fields: &Map<String, Value>, path: &Path, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        if !fields.contains_key(name) {
            errors.push(FieldError::required(&path.child(name), ""));
        }
    }
    if let Some(value) = fields.get("apiVersion") {
        let path = path.child("apiVersion");
        match value.as_str() {
            None => errors.push(FieldError::invalid(&path, value.clone(), "must be a string")),
            Some("") => errors.push(FieldError::invalid(&path, "", "must not be empty")),
            Some(text) if names::parse_group_version(text).is_none() => {
                let detail = format!("unexpected GroupVersion string: {text}");
                errors.push(FieldError::invalid(&path, text, detail));
            }
            Some(_) => {}
        }
    }
    if let Some(value) = fields.get("kind") {
        validate_kind(value, &path.child("kind"), errors);
    }
    if let Some(metadata) = fields.get("metadata") {
        validate_metadata(metadata, &path.child("metadata"), errors);
    }
}

fn validate_kind(value: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    match value.as_str() {
        None => errors.push(FieldError::invalid(path, value.clone(), "must be a string")),
        Some("") => errors.push(FieldError::invalid(path, "", "must not be empty")),
        Some(kind) => {
            let reasons = names::dns_1035_label(&kind.to_lowercase());
            if !reasons.is_empty() {
                let detail = format!(
                    "may have mixed case, but should otherwise match: {}",
                    reasons.join(",")
                );
                errors.push(FieldError::invalid(path, kind, detail));
            }
        }
    }
}

fn validate_metadata(metadata: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    match decode::object_meta(metadata, false) {
        Err(reason) => errors.push(FieldError::invalid(path, metadata.clone(), reason)),
        Ok(decoded) => {
            let mut meta = decoded.value;
            let namespaced = meta.get("namespace").is_some();
            if meta.get("name").is_none()
                && let Some(fields) = meta.as_object_mut()
            {
                // Embedded objects need no name; any valid one avoids the error.
                fields.insert("name".to_owned(), Value::from("fakename"));
            }
            let check = names::name_is_path_segment;
            errors.extend(names::validate_object_meta(&meta, namespaced, check, path));
        }
    }
}

/// The value of a field as Go names the kind of JSON it is.
fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// How a number prints in an error of the JSON decoder.
fn number_text(value: &Value) -> String {
    gotext::json(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn metadata_is_decoded() {
        let mut object = json!({"metadata": {
            "name": "a", "generateName": "", "bogus": 1, "labels": {"a": null}, "annotations": {},
            "creationTimestamp": null, "generation": 0, "deletionGracePeriodSeconds": 0,
            "deletionTimestamp": "2026-01-01T01:30:00.5+01:00",
            "ownerReferences": [{"name": "o", "zz": 1, "controller": true}],
            "managedFields": [{"manager": "m", "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:a": {}}}],
            "finalizers": [],
        }});
        let unknown = coerce_metadata(&mut object, false).unwrap();
        assert_eq!(unknown, ["metadata.bogus", "metadata.ownerReferences[0].zz"]);
        assert_eq!(
            object["metadata"],
            json!({
                "name": "a", "labels": {"a": ""}, "deletionGracePeriodSeconds": 0,
                "deletionTimestamp": "2026-01-01T00:30:00Z",
                "ownerReferences": [{"apiVersion": "", "kind": "", "name": "o", "uid": "",
                    "controller": true}],
                "managedFields": [{"manager": "m", "time": "2026-01-01T00:00:00Z",
                    "fieldsV1": {"f:a": {}}}],
            })
        );
    }

    #[test]
    fn malformed_metadata_is_told_or_dropped() {
        let cases = [
            (json!(3), "json: cannot unmarshal number into Go value of type v1.ObjectMeta"),
            (
                json!({"labels": {"a": 1}}),
                "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
            ),
            (
                json!({"ownerReferences": [{"name": 1}]}),
                "json: cannot unmarshal number into Go struct field \
                 OwnerReference.ownerReferences.name of type string",
            ),
            (
                json!({"generation": 1.5}),
                "json: cannot unmarshal number 1.5 into Go struct field ObjectMeta.generation of \
                 type int64",
            ),
            (
                json!({"finalizers": "x"}),
                "json: cannot unmarshal string into Go struct field ObjectMeta.finalizers of type \
                 []string",
            ),
            (
                json!({"creationTimestamp": "x"}),
                "parsing time \"x\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"x\" as \"2006\"",
            ),
        ];
        for (metadata, expected) in cases {
            let mut object = json!({ "metadata": metadata });
            assert_eq!(coerce_metadata(&mut object, false).unwrap_err(), expected);
        }
        let mut object = json!({"metadata": {"name": "a", "labels": 1, "generation": "x"}});
        assert_eq!(coerce_metadata(&mut object, true), Ok(vec![]));
        assert_eq!(object, json!({"metadata": {"name": "a"}}));
    }

    #[test]
    fn embedded_objects() {
        let schema = Schema::parse(&json!({"type": "object", "properties": {
            "emb": {"type": "object", "x-kubernetes-embedded-resource": true,
                "x-kubernetes-preserve-unknown-fields": true}}}))
        .unwrap();
        let mut object = json!({"emb": {"kind": "A", "apiVersion": "v1", "metadata": {"b": 1}}});
        assert_eq!(coerce_embedded(&mut object, &schema, false).unwrap(), ["emb.metadata.b"]);
        assert!(validate(&object, &schema, &Path::root(), false).is_empty());

        let mut object = json!({"emb": {"kind": 1, "apiVersion": "v1"}});
        assert_eq!(
            coerce_embedded(&mut object, &schema, false).unwrap_err().to_string(),
            "emb.kind: Invalid value: 1: must be a string"
        );
        let object = json!({"emb": {"kind": "x y", "apiVersion": "a/b/c", "metadata":
            {"name": "A/"}}});
        let shown: Vec<String> = validate(&object, &schema, &Path::root(), false)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            shown,
            [
                "emb.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c",
                "emb.kind: Invalid value: \"x y\": may have mixed case, but should otherwise \
                 match: a DNS-1035 label must consist of lower case alphanumeric characters or \
                 '-', start with an alphabetic character, and end with an alphanumeric character \
                 (e.g. 'my-name',  or 'abc-123', regex used for validation is \
                 '[a-z]([-a-z0-9]*[a-z0-9])?')",
                "emb.metadata.name: Invalid value: \"A/\": may not contain '/'",
            ]
        );
        let shown: Vec<String> = validate(&json!({"emb": {}}), &schema, &Path::root(), false)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(shown, ["emb.apiVersion: Required value", "emb.kind: Required value"]);
    }
}
