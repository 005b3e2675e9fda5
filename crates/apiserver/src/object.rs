//! Reading and writing the parts that every object has.

use serde_json::{Map, Value};

/// The value at a path of keys.
pub fn get<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, key| value.get(key))
}

/// The string at a path of keys, or `""`.
pub fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    get(object, path).and_then(Value::as_str).unwrap_or_default()
}

/// The integer at a path of keys.
pub fn integer(object: &Value, path: &[&str]) -> Option<i64> {
    get(object, path).and_then(Value::as_i64)
}

/// The list at a path of keys, or an empty one.
pub fn list<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    get(object, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The value at `path`; objects on the way, and at its end, are made.
pub fn ensure_value<'a>(object: &'a mut Value, path: &[&str]) -> &'a mut Value {
    let mut current = object;
    for key in path {
        current = as_map(current).entry(*key).or_insert_with(|| Value::Object(Map::new()));
    }
    current
}

/// The object at `path`, made if it is not there. Anything else in the way is replaced.
pub fn ensure_map<'a>(object: &'a mut Value, path: &[&str]) -> &'a mut Map<String, Value> {
    let mut current = object;
    for key in path {
        current = as_map(current).entry(*key).or_insert(Value::Null);
    }
    as_map(current)
}

fn as_map(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("made an object just now"),
    }
}

/// Puts `value` at `path`, making the objects on the way.
pub fn set(object: &mut Value, path: &[&str], value: impl Into<Value>) {
    if let Some((last, parents)) = path.split_last() {
        ensure_map(object, parents).insert((*last).to_owned(), value.into());
    }
}

/// Puts `value` at `path` unless something is there.
pub fn default(object: &mut Value, path: &[&str], value: impl Into<Value>) {
    if get(object, path).is_none_or(Value::is_null) {
        set(object, path, value);
    }
}

/// Takes away what is at `path`.
pub fn remove(object: &mut Value, path: &[&str]) -> Option<Value> {
    let (last, parents) = path.split_last()?;
    let mut current = object;
    for key in parents {
        current = current.get_mut(key)?;
    }
    current.as_object_mut()?.remove(*last)
}

/// `metadata.name`.
pub fn name(object: &Value) -> &str {
    text(object, &["metadata", "name"])
}

/// `metadata.namespace`.
pub fn namespace(object: &Value) -> &str {
    text(object, &["metadata", "namespace"])
}

/// `metadata.uid`.
pub fn uid(object: &Value) -> &str {
    text(object, &["metadata", "uid"])
}

/// `metadata.resourceVersion`.
pub fn resource_version(object: &Value) -> &str {
    text(object, &["metadata", "resourceVersion"])
}

/// `metadata.generation`, or 0.
pub fn generation(object: &Value) -> i64 {
    integer(object, &["metadata", "generation"]).unwrap_or_default()
}

/// Whether deletion was asked for.
pub fn is_terminating(object: &Value) -> bool {
    get(object, &["metadata", "deletionTimestamp"]).is_some_and(|t| !t.is_null())
}

/// The finalizers.
pub fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    list(object, &["metadata", "finalizers"]).iter().filter_map(Value::as_str)
}
