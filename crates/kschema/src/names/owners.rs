//! References from an object to its owners.

use serde_json::{Map, Value};

use crate::field::{BadValue, FieldError, Path};
use crate::gotext;

/// Splits `group/version` or `version`; `None` if there is more than one slash.
pub(crate) fn parse_group_version(text: &str) -> Option<(&str, &str)> {
    if text.is_empty() || text == "/" {
        return Some(("", ""));
    }
    match text.split_once('/') {
        None => Some(("", text)),
        Some((_, rest)) if rest.contains('/') => None,
        Some((group, version)) => Some((group, version)),
    }
}

/// The rules of `metadata.ownerReferences`: complete references, and one controller at most.
pub fn validate_owner_references(references: &[Value], path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut first_controller: Option<String> = None;
    for (i, reference) in references.iter().enumerate() {
        owner_reference(reference, &path.index(i), &mut errors);
        if reference.get("controller").and_then(Value::as_bool) != Some(true) {
            continue;
        }
        let controller = format!("{}/{}", text(reference, "kind"), text(reference, "name"));
        match &first_controller {
            None => first_controller = Some(controller),
            Some(first) => errors.push(FieldError::invalid(
                path,
                rendered_list(references),
                format!(
                    "Only one reference can have Controller set to true. Found \"true\" in \
                     references for {first} and {controller}"
                ),
            )),
        }
    }
    errors
}

fn text<'a>(reference: &'a Value, field: &str) -> &'a str {
    reference.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn owner_reference(reference: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let api_version = text(reference, "apiVersion");
    let parsed = parse_group_version(api_version);
    if api_version.is_empty() {
        errors.push(FieldError::required(&path.child("apiVersion"), "must not be empty"));
    } else if parsed.is_none_or(|(_, version)| version.is_empty()) {
        errors.push(FieldError::invalid(
            &path.child("apiVersion"),
            api_version,
            "must be <group>/<version> or <version>",
        ));
    }
    for field in ["kind", "name", "uid"] {
        if text(reference, field).is_empty() {
            errors.push(FieldError::required(&path.child(field), "must not be empty"));
        }
    }
    if parsed == Some(("", "v1")) && text(reference, "kind") == "Event" {
        errors.push(FieldError::invalid(
            path,
            BadValue::Rendered(rendered(reference)),
            "/v1, Kind=Event is disallowed from being an owner",
        ));
    }
}

fn rendered_list(references: &[Value]) -> BadValue {
    let references: Vec<String> = references.iter().map(rendered).collect();
    BadValue::Rendered(format!("[{}]", references.join(",")))
}

/// A reference with its fields in the order that messages have them.
fn rendered(reference: &Value) -> String {
    let none = Map::new();
    let fields = reference.as_object().unwrap_or(&none);
    let mut parts = Vec::new();
    for field in ["apiVersion", "kind", "name", "uid"] {
        let value = Value::from(text(reference, field));
        parts.push(format!("\"{field}\":{}", gotext::json(&value)));
    }
    for field in ["controller", "blockOwnerDeletion"] {
        if let Some(Value::Bool(value)) = fields.get(field) {
            parts.push(format!("\"{field}\":{value}"));
        }
    }
    format!("{{{}}}", parts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn references() {
        let path = Path::new("metadata").child("ownerReferences");
        let owner = |kind: &str, api: &str| json!({"apiVersion": api, "kind": kind, "name": "n", "uid": "u", "controller": true});
        assert!(validate_owner_references(&[owner("A", "v1")], &path).is_empty());
        let errors = validate_owner_references(
            &[owner("A", "v1"), owner("Event", "v1"), json!({"apiVersion": "a/b/c"})],
            &path,
        );
        let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "metadata.ownerReferences[1]: Invalid value: {\"apiVersion\":\"v1\",\
                 \"kind\":\"Event\",\"name\":\"n\",\"uid\":\"u\",\"controller\":true}: /v1, \
                 Kind=Event is disallowed from being an owner",
                "metadata.ownerReferences: Invalid value: [{\"apiVersion\":\"v1\",\"kind\":\"A\",\
                 \"name\":\"n\",\"uid\":\"u\",\"controller\":true},{\"apiVersion\":\"v1\",\
                 \"kind\":\"Event\",\"name\":\"n\",\"uid\":\"u\",\"controller\":true},\
                 {\"apiVersion\":\"a/b/c\",\"kind\":\"\",\"name\":\"\",\"uid\":\"\"}]: Only one \
                 reference can have Controller set to true. Found \"true\" in references for A/n \
                 and Event/n",
                "metadata.ownerReferences[2].apiVersion: Invalid value: \"a/b/c\": must be \
                 <group>/<version> or <version>",
                "metadata.ownerReferences[2].kind: Required value: must not be empty",
                "metadata.ownerReferences[2].name: Required value: must not be empty",
                "metadata.ownerReferences[2].uid: Required value: must not be empty",
            ]
        );
    }
}
