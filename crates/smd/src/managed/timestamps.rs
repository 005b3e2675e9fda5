//! Writes that change nothing must not change the times of the book either.

use serde_json::Value;

use crate::values;

/// Puts back the times of `managedFields` if they are all that differs from the stored
/// object, so that the write is seen to change nothing.
pub fn ignore_changed_timestamps(new: &mut Value, stored: &Value) {
    let entries = |object: &Value| -> Option<Vec<Value>> {
        object.get("metadata")?.get("managedFields")?.as_array().cloned()
    };
    let (Some(new_entries), Some(stored_entries)) = (entries(new), entries(stored)) else {
        return;
    };
    if new_entries.is_empty()
        || new_entries == stored_entries
        || new_entries.len() != stored_entries.len()
        || !new_entries.iter().zip(&stored_entries).all(|(l, r)| equal_without(l, r, "time", None))
        || !equal_without(new, stored, "metadata", Some("managedFields"))
    {
        return;
    }
    if let Some(field) = new.get_mut("metadata").and_then(|m| m.get_mut("managedFields")) {
        *field = Value::Array(stored_entries);
    }
}

/// Whether two maps are equal but for one field, or for one field below that field.
fn equal_without(left: &Value, right: &Value, name: &str, below: Option<&str>) -> bool {
    let (Some(left), Some(right)) = (left.as_object(), right.as_object()) else { return false };
    let others =
        |map: &serde_json::Map<String, Value>| map.len() - usize::from(map.contains_key(name));
    others(left) == others(right)
        && left
            .iter()
            .filter(|(key, _)| *key != name)
            .all(|(key, value)| right.get(key).is_some_and(|other| values::equal(value, other)))
        && match (below, left.get(name), right.get(name)) {
            (None, _, _) | (Some(_), None, None) => true,
            (Some(below), Some(left), Some(right)) => equal_without(left, right, below, None),
            _ => false,
        }
}
