//! Why the patch of a webhook does not apply, in upstream's words.
//!
//! The patches of clients are refused without a reason, so that applying them finds none; those
//! of webhooks are refused with one.

use fleetwright_kschema::gotext::quote;
use serde_json::Value;

use crate::{object, patch};

/// What is wrong with the first operation that does not apply to `document`.
pub(super) fn describe_failure(document: &Value, body: &[u8]) -> String {
    let operations: Vec<Value> = serde_json::from_slice(body).unwrap_or_default();
    let mut current = document.clone();
    for operation in operations {
        let alone = Value::from(vec![operation.clone()]).to_string();
        match patch::json_patch(&current, alone.as_bytes(), false) {
            Ok(patched) => current = patched.object,
            Err(_) => return describe(&operation, &current),
        }
    }
    "the patch does not apply".to_owned()
}

fn describe(operation: &Value, object: &Value) -> String {
    let kind = object::text(operation, &["op"]);
    let Some(path) = operation.get("path").and_then(Value::as_str) else {
        return format!("{kind} operation failed to decode path: missing value");
    };
    let parent = parent(object, path);
    match (kind, parent) {
        ("add", Some((Value::Array(items), key))) => {
            format!("error in add for path: '{path}': {}", bad_index(items, key))
        }
        ("remove", Some((Value::Array(items), key))) => {
            format!("error in remove for path: '{path}': {}", bad_index(items, key))
        }
        ("remove", Some((Value::Object(_), key))) => format!(
            "error in remove for path: '{path}': Unable to remove nonexistent key: {key}: missing value"
        ),
        ("add" | "remove", _) => format!(
            "{kind} operation does not apply: doc is missing path: \"{path}\": missing value"
        ),
        ("replace", Some((Value::Array(_) | Value::Object(_), _))) => {
            format!("replace operation does not apply: doc is missing key: {path}: missing value")
        }
        ("replace", _) => {
            format!("replace operation does not apply: doc is missing path: {path}: missing value")
        }
        ("test", _) => format!("testing value {path} failed: test failed"),
        ("move" | "copy", _) => {
            let from = object::text(operation, &["from"]);
            if object.pointer(from).is_none() {
                format!(
                    "{kind} operation does not apply: doc is missing from path: {from}: missing value"
                )
            } else {
                format!(
                    "{kind} operation does not apply: doc is missing destination path: {path}: missing value"
                )
            }
        }
        _ => format!("Unexpected kind: {kind}"),
    }
}

fn parent<'o, 'p>(object: &'o Value, path: &'p str) -> Option<(&'o Value, &'p str)> {
    let (parent, key) = path.rsplit_once('/')?;
    Some((object.pointer(parent)?, key))
}

fn bad_index(items: &[Value], key: &str) -> String {
    match key.parse::<i64>() {
        Ok(index) => format!("Unable to access invalid index: {index}: invalid index referenced"),
        Err(_) if items.is_empty() && key == "-" => {
            "Unable to access invalid index: -1: invalid index referenced".to_owned()
        }
        Err(_) => format!(
            "value was not a proper array index: '{key}': strconv.Atoi: parsing {}: invalid syntax",
            quote(key)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn failures_read_as_upstream() {
        let cases = [
            (
                r#"{"op":"replace","path":"/a/b/c","value":1}"#,
                "replace operation does not apply: doc is missing path: /a/b/c: missing value",
            ),
            (
                r#"{"op":"remove","path":"/nope"}"#,
                "error in remove for path: '/nope': Unable to remove nonexistent key: nope: missing value",
            ),
            (
                r#"{"op":"remove","path":"/l/7"}"#,
                "error in remove for path: '/l/7': Unable to access invalid index: 7: invalid index referenced",
            ),
            (
                r#"{"op":"add","path":"/x/y","value":1}"#,
                "add operation does not apply: doc is missing path: \"/x/y\": missing value",
            ),
            (
                r#"{"op":"test","path":"/kind","value":"x"}"#,
                "testing value /kind failed: test failed",
            ),
            (
                r#"{"op":"move","from":"/no/no","path":"/y"}"#,
                "move operation does not apply: doc is missing from path: /no/no: missing value",
            ),
            (r#"{"op":"frob","path":"/y"}"#, "Unexpected kind: frob"),
        ];
        for (operation, expected) in cases {
            let body = format!(r#"[{{"op":"add","path":"/ok","value":1}},{operation}]"#);
            let object = json!({"kind": "K", "l": [1]});
            assert_eq!(describe_failure(&object, body.as_bytes()), expected, "{operation}");
        }
    }
}
