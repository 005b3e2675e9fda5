//! Lists that are merged: objects by a key, scalars as a set.

use serde_json::{Map, Value};

use super::directives::{DELETE, PATCH, REPLACE};
use super::order::ordered;
use super::schema::Schema;
use super::{PatchError, expected, go_print, go_type, merge_map, unexpected, unknown_directive};

/// The strategy of lists that are merged, and a directive that lists refuse.
pub(super) const MERGE: &str = "merge";

/// Merges a patch into a list, or deletes what the patch lists.
pub(super) fn merge_list(
    mut original: Vec<Value>,
    patch: &[Value],
    schema: Schema,
    key: &str,
    deletes: bool,
) -> Result<Vec<Value>, PatchError> {
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    let maps = elements_are_maps(&original, patch)?;
    if !maps {
        if deletes {
            original.retain(|item| !patch.contains(item));
            return Ok(original);
        }
        let mut merged = original.clone();
        merged.extend(patch.iter().cloned());
        deduplicate(&mut merged);
        let (listed, others) = merged.into_iter().partition(|item| patch.contains(item));
        return ordered(listed, others, patch, &original, key, maps);
    }
    if key.is_empty() {
        let kind = schema.kind();
        return Err(unexpected(format!("cannot merge lists without merge key for {kind}")));
    }
    let mut plain = take_directives(&mut original, patch, key)?;
    let mut merged = original.clone();
    for item in &mut plain {
        let Value::Object(map) = item else {
            return Err(expected("map[string]interface {}", item));
        };
        let value = map.get(key).cloned().ok_or_else(|| no_merge_key(map, key))?;
        match find_by_key(&merged, key, &value)? {
            Some(index) => {
                if let Some(Value::Object(before)) = merged.get_mut(index) {
                    let before = std::mem::take(before);
                    let after = Value::Object(merge_map(before, map, schema)?);
                    if let Some(place) = merged.get_mut(index) {
                        *place = after;
                    }
                }
            }
            None => merged.push(Value::Object(map.clone())),
        }
    }
    let mut listed = Vec::new();
    let mut others = Vec::new();
    for item in merged {
        let Value::Object(map) = &item else {
            return Err(expected("map[string]interface {}", &item));
        };
        let value = map.get(key).ok_or_else(|| no_merge_key(map, key))?;
        let found = find_by_key(&plain, key, value)?.is_some();
        if found { listed.push(item) } else { others.push(item) }
    }
    ordered(listed, others, &plain, &original, key, maps)
}

/// Carries out the directives among the elements of a patch and gives the other elements.
fn take_directives(
    original: &mut Vec<Value>,
    patch: &[Value],
    key: &str,
) -> Result<Vec<Value>, PatchError> {
    let mut plain = Vec::new();
    let mut replace = false;
    for item in patch {
        let Value::Object(map) = item else {
            return Err(expected("map[string]interface {}", item));
        };
        let Some(directive) = map.get(PATCH) else {
            plain.push(item.clone());
            continue;
        };
        match directive.as_str() {
            Some(DELETE) => {
                let value = map.get(key).ok_or_else(|| no_merge_key(map, key))?;
                while let Some(index) = find_by_key(original, key, value)? {
                    original.remove(index);
                }
            }
            Some(REPLACE) => replace = true,
            Some(MERGE) => {
                return Err(unexpected("merging lists cannot yet be specified in the patch"));
            }
            _ => return Err(unknown_directive(directive, map)),
        }
    }
    if replace {
        *original = std::mem::take(&mut plain);
    }
    Ok(plain)
}

/// The position of the element whose key has a value.
pub(super) fn find_by_key(
    list: &[Value],
    key: &str,
    value: &Value,
) -> Result<Option<usize>, PatchError> {
    for (index, item) in list.iter().enumerate() {
        let Value::Object(map) = item else {
            return Err(unexpected(format!("value for key {index} is not a map")));
        };
        if map.get(key) == Some(value) {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

pub(super) fn no_merge_key(map: &Map<String, Value>, key: &str) -> PatchError {
    let shown = go_print(&Value::Object(map.clone()));
    unexpected(format!("map: {shown} does not contain declared merge key: {key}"))
}

/// Whether the elements of two lists are maps; they must all be of one type.
pub(super) fn elements_are_maps(original: &[Value], patch: &[Value]) -> Result<bool, PatchError> {
    let mut common = None;
    for item in original.iter().chain(patch) {
        let this = go_type(item);
        match common {
            None if item.is_array() => {
                let message = "lists of lists are not supported".to_owned();
                return Err(PatchError::DoesNotApply(message));
            }
            None => common = Some(this),
            Some(common) if common == this => {}
            Some(_) => {
                let lists = [original, patch].map(|list| Value::Array(list.to_vec()));
                let shown = go_print(&Value::Array(lists.to_vec()));
                return Err(unexpected(format!("list element types are not identical: {shown}")));
            }
        }
    }
    match common {
        None => Err(unexpected("no elements in any of the given slices")),
        Some(common) => Ok(common == "map[string]interface {}"),
    }
}

/// Removes repeated scalars. As in the original, the last element takes a freed place.
fn deduplicate(list: &mut Vec<Value>) {
    let mut at = 0;
    while at < list.len() {
        let mut other = at + 1;
        while other < list.len() {
            if list.get(at) == list.get(other) {
                list.swap_remove(other);
            } else {
                other += 1;
            }
        }
        at += 1;
    }
}
