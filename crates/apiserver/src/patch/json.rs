//! JSON patch (RFC 6902), as the library of kube-apiserver applies it.

use fleetwright_kschema::builtin::gojson::{self, Node};
use serde_json::Value;

use super::{PatchError, Patched, parse};

/// The most operations that a patch may have.
pub const MAX_OPERATIONS: usize = 10_000;

/// The most bytes of JSON that the copies of a patch may add up to: without it a short patch
/// could double a document again and again.
pub const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;

/// Applies a JSON patch. Fields of the patch itself are checked where asked for.
pub fn json_patch(
    document: &Value,
    body: &[u8],
    check_fields: bool,
) -> Result<Patched, PatchError> {
    let body = parse(body)?;
    let strict = if check_fields { check(&body)? } else { Vec::new() };
    let operations = match &body {
        Node::Null => &[][..],
        Node::Array(operations) => operations.as_slice(),
        other => return Err(wrong_type(other, "jsonpatch.Patch")),
    };
    if let Some(other) = operations.iter().find(|op| !matches!(op, Node::Object(_) | Node::Null)) {
        return Err(wrong_type(other, "jsonpatch.Operation"));
    }
    if operations.len() > MAX_OPERATIONS {
        let count = operations.len();
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {count}"
        )));
    }
    let mut patching = Patching { object: document.clone(), copied: 0 };
    for operation in operations {
        patching.apply(operation).map_err(PatchError::DoesNotApply)?;
    }
    Ok(Patched { object: patching.object, strict, quoted: None })
}

fn wrong_type(node: &Node, go_type: &str) -> PatchError {
    let kind = node.go_kind();
    PatchError::Malformed(format!("json: cannot unmarshal {kind} into Go value of type {go_type}"))
}

/// Finds unknown and duplicate fields of the operations, and fields of the wrong type.
fn check(body: &Node) -> Result<Vec<String>, PatchError> {
    let malformed = |node: &Node, place: &str, go_type: &str| {
        let kind = node.go_kind();
        PatchError::Malformed(format!(
            "error decoding patch: json: cannot unmarshal {kind} into {place} of type {go_type}"
        ))
    };
    let operations = match body {
        Node::Null => return Ok(Vec::new()),
        Node::Array(operations) => operations,
        other => return Err(malformed(other, "Go value", "[]handlers.jsonPatchOp")),
    };
    let mut strict = Vec::new();
    for (index, operation) in operations.iter().enumerate() {
        let fields = match operation {
            Node::Object(fields) => fields,
            Node::Null => continue,
            other => return Err(malformed(other, "Go value", "handlers.jsonPatchOp")),
        };
        for (position, (name, value)) in fields.iter().enumerate() {
            let path = gojson::quote(&format!("[{index}].{name}"));
            match (name.as_str(), value) {
                ("op" | "path" | "from", Node::String(_) | Node::Null) => {}
                ("op" | "path" | "from", other) => {
                    let place = format!("Go struct field jsonPatchOp.{name}");
                    return Err(malformed(other, &place, "string"));
                }
                ("value", value) => strict.extend(value_duplicates(index, value)),
                _ => {
                    strict.push(format!("json patch unknown field {path}"));
                    continue;
                }
            }
            if fields.iter().take(position).any(|(before, _)| before == name) {
                strict.push(format!("json patch duplicate field {path}"));
            }
        }
    }
    Ok(strict)
}

/// Duplicates inside a value, with the path from the top of the patch.
fn value_duplicates(index: usize, value: &Node) -> Vec<String> {
    let wrapped = Node::Object(vec![(
        format!("[{index}]"),
        Node::Object(vec![("value".into(), value.clone())]),
    )]);
    wrapped.duplicates().into_iter().map(|message| format!("json patch {message}")).collect()
}

struct Patching {
    object: Value,
    copied: usize,
}

impl Patching {
    fn apply(&mut self, operation: &Node) -> Result<(), String> {
        let text = |field: &str| match operation.get(field) {
            Some(Node::String(text)) => Ok(text.as_str()),
            _ => Err(format!("operation has no {field}")),
        };
        // A value of null and no value are the same to the library.
        let value = || operation.get("value").map_or(Value::Null, Node::to_value);
        match text("op").unwrap_or("unknown") {
            "add" => self.add(text("path")?, value()),
            "remove" => self.remove(text("path")?).map(drop),
            "replace" => self.replace(text("path")?, value()),
            "move" => {
                let value = self.remove(text("from")?)?;
                self.add(text("path")?, value)
            }
            "copy" => {
                let (from, path) = (text("from")?, text("path")?);
                let value = self.get(from)?.cloned().unwrap_or(Value::Null);
                self.copied += value.to_string().len();
                if self.copied > MAX_COPIED_BYTES {
                    return Err("copies exceed the limit".to_owned());
                }
                self.add(path, value)
            }
            "test" => {
                let (path, expected) = (text("path")?, value());
                let found = if path.is_empty() { Some(&self.object) } else { self.get(path)? };
                if *found.unwrap_or(&Value::Null) == expected {
                    Ok(())
                } else {
                    Err(format!("testing value {path} failed"))
                }
            }
            other => Err(format!("unexpected kind: {other}")),
        }
    }

    /// The container that a path leads into, and the key in it.
    fn container(&mut self, path: &str) -> Result<(&mut Value, String), String> {
        let missing = || format!("missing path: {path}");
        let mut parts: Vec<String> = path.split('/').skip(1).map(decode_key).collect();
        let key = parts.pop().ok_or_else(missing)?;
        let mut container = &mut self.object;
        for part in parts {
            container = match container {
                Value::Object(map) => map.get_mut(&part),
                Value::Array(list) => position(&part, list.len())
                    .filter(|index| *index < list.len())
                    .and_then(|index| list.get_mut(index)),
                _ => None,
            }
            .ok_or_else(missing)?;
        }
        match container {
            Value::Object(_) | Value::Array(_) => Ok((container, key)),
            _ => Err(missing()),
        }
    }

    /// The value at a path; a field that is not there is no error.
    fn get(&mut self, path: &str) -> Result<Option<&Value>, String> {
        let (container, key) = self.container(path)?;
        match container {
            Value::Object(map) => Ok(map.get(&key)),
            Value::Array(list) => position(&key, list.len())
                .and_then(|index| list.get(index))
                .map(Some)
                .ok_or_else(|| format!("invalid index: {path}")),
            _ => Ok(None),
        }
    }

    fn add(&mut self, path: &str, value: Value) -> Result<(), String> {
        let (container, key) = self.container(path)?;
        match container {
            Value::Object(map) => {
                map.insert(key, value);
            }
            Value::Array(list) if key == "-" => list.push(value),
            Value::Array(list) => {
                // One more place than there are elements: the one after the last.
                let index = position(&key, list.len() + 1)
                    .filter(|index| *index <= list.len())
                    .ok_or_else(|| format!("invalid index: {path}"))?;
                list.insert(index, value);
            }
            _ => {}
        }
        Ok(())
    }

    fn remove(&mut self, path: &str) -> Result<Value, String> {
        let (container, key) = self.container(path)?;
        let removed = match container {
            Value::Object(map) => map.remove(&key),
            Value::Array(list) => position(&key, list.len())
                .filter(|index| *index < list.len())
                .map(|index| list.remove(index)),
            _ => None,
        };
        removed.ok_or_else(|| format!("nothing to remove at {path}"))
    }

    /// Unlike the standard, replacing a field that is not there adds it.
    fn replace(&mut self, path: &str, value: Value) -> Result<(), String> {
        if path.is_empty() {
            return match value {
                Value::Object(_) | Value::Array(_) => {
                    self.object = value;
                    Ok(())
                }
                _ => Err("replace operation value must be object or array".to_owned()),
            };
        }
        let (container, key) = self.container(path)?;
        match container {
            Value::Object(map) => {
                map.insert(key, value);
            }
            Value::Array(list) => {
                let place = position(&key, list.len()).and_then(|index| list.get_mut(index));
                *place.ok_or_else(|| format!("missing key: {path}"))? = value;
            }
            _ => {}
        }
        Ok(())
    }
}

/// A list position; negative ones count from the end. It may lie past the end.
fn position(key: &str, length: usize) -> Option<usize> {
    let index: i64 = key.parse().ok()?;
    let length = i64::try_from(length).ok()?;
    usize::try_from(if index < 0 { index + length } else { index }).ok()
}

/// `~1` is a slash and `~0` a tilde; both in one pass, so that `~01` stays `~1`.
fn decode_key(key: &str) -> String {
    let mut decoded = String::with_capacity(key.len());
    let mut rest = key;
    while let Some((before, after)) = rest.split_once('~') {
        decoded.push_str(before);
        rest = if let Some(after) = after.strip_prefix('1') {
            decoded.push('/');
            after
        } else if let Some(after) = after.strip_prefix('0') {
            decoded.push('~');
            after
        } else {
            decoded.push('~');
            after
        };
    }
    decoded.push_str(rest);
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn patched(document: &Value, patch: &Value) -> Result<Value, PatchError> {
        json_patch(document, patch.to_string().as_bytes(), true).map(|patched| patched.object)
    }

    #[test]
    fn operations_apply_as_in_the_library() {
        let document = json!({"a": {"b": 1}, "l": [1, 2, 3], "s/t~u": 5});
        for (patch, expected) in [
            (
                json!([{"op": "add", "path": "/a/c", "value": 2}]),
                json!({"a": {"b": 1, "c": 2}, "l": [1, 2, 3], "s/t~u": 5}),
            ),
            (
                json!([{"op": "add", "path": "/l/1", "value": 9}]),
                json!({"a": {"b": 1}, "l": [1, 9, 2, 3], "s/t~u": 5}),
            ),
            (
                json!([{"op": "add", "path": "/l/-", "value": 9}]),
                json!({"a": {"b": 1}, "l": [1, 2, 3, 9], "s/t~u": 5}),
            ),
            (
                json!([{"op": "add", "path": "/l/-1", "value": 9}]),
                json!({"a": {"b": 1}, "l": [1, 2, 3, 9], "s/t~u": 5}),
            ),
            (
                json!([{"op": "remove", "path": "/l/-1"}]),
                json!({"a": {"b": 1}, "l": [1, 2], "s/t~u": 5}),
            ),
            (
                json!([{"op": "replace", "path": "/a/new", "value": 1}]),
                json!({"a": {"b": 1, "new": 1}, "l": [1, 2, 3], "s/t~u": 5}),
            ),
            (
                json!([{"op": "move", "from": "/a/b", "path": "/l/0"}]),
                json!({"a": {}, "l": [1, 1, 2, 3], "s/t~u": 5}),
            ),
            (
                json!([{"op": "copy", "from": "/a/none", "path": "/a/c"}]),
                json!({"a": {"b": 1, "c": null}, "l": [1, 2, 3], "s/t~u": 5}),
            ),
            (json!([{"op": "remove", "path": "/s~1t~0u"}]), json!({"a": {"b": 1}, "l": [1, 2, 3]})),
            (
                json!([{"op": "test", "path": "/a", "value": {"b": 1}}, {"op": "test", "path": "/x"}]),
                document.clone(),
            ),
            (json!([{"op": "replace", "path": "", "value": []}]), json!([])),
        ] {
            assert_eq!(patched(&document, &patch), Ok(expected), "{patch}");
        }
    }

    #[test]
    fn what_does_not_apply_is_refused() {
        let document = json!({"a": {"b": 1}, "l": [1, 2, 3]});
        for operation in [
            json!({"op": "remove", "path": "/a/none"}),
            json!({"op": "remove", "path": "/l/3"}),
            json!({"op": "remove", "path": "/l/-4"}),
            json!({"op": "add", "path": "/l/4", "value": 1}),
            json!({"op": "add", "path": "/l/x", "value": 1}),
            json!({"op": "add", "path": "/a/b/c", "value": 1}),
            json!({"op": "add", "path": "a", "value": 1}),
            json!({"op": "add", "value": 1}),
            json!({"op": "replace", "path": "/l/3", "value": 1}),
            json!({"op": "replace", "path": "", "value": 1}),
            json!({"op": "move", "from": "/a/none", "path": "/a/c"}),
            json!({"op": "copy", "from": "/l/9", "path": "/a/c"}),
            json!({"op": "test", "path": "/a/b", "value": 2}),
            json!({"op": "test", "path": "/l/9", "value": null}),
            json!({"op": "nothing", "path": "/a"}),
            json!(null),
        ] {
            let error = patched(&document, &json!([operation])).unwrap_err();
            assert_eq!(error.to_string(), super::super::REJECTED, "{operation}");
        }
    }

    #[test]
    fn copies_are_bounded() {
        let copy = json!({"op": "copy", "from": "/a", "path": "/a/-"});
        let patch = Value::Array(vec![copy; 60]);
        let document = json!({"a": ["some text that doubles with every copy"]});
        assert!(matches!(patched(&document, &patch), Err(PatchError::DoesNotApply(_))));
    }

    #[test]
    fn the_fields_of_a_patch_are_checked() {
        let body = br#"[{"op":"add","path":"/a","path":"/b","value":{"x":1,"x":2},"foo":1}]"#;
        let patched = json_patch(&json!({}), body, true).unwrap();
        assert_eq!(patched.object, json!({"b": {"x": 2}}));
        assert_eq!(
            patched.strict,
            [
                "json patch duplicate field \"[0].path\"",
                "json patch duplicate field \"[0].value.x\"",
                "json patch unknown field \"[0].foo\"",
            ]
        );
        assert_eq!(json_patch(&json!({}), body, false).unwrap().strict, Vec::<String>::new());
    }
}
