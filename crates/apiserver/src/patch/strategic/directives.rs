//! The directives of a patch: fields and values that say how to merge.

use serde_json::{Map, Value};

use super::lists::{elements_are_maps, find_by_key, merge_list, no_merge_key};
use super::order::ordered;
use super::schema::Schema;
use super::{PatchError, expected, go_print, unexpected};

/// Says what to do with the map that holds it.
pub(super) const PATCH: &str = "$patch";
/// Starts the name of a field that lists scalars to delete.
pub(super) const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
/// Starts the name of a field that gives the order of a list.
const SET_ORDER: &str = "$setElementOrder";
/// Lists the fields that are kept.
const RETAIN_KEYS: &str = "$retainKeys";

/// The directive that replaces, and the strategy of fields that are replaced.
pub(super) const REPLACE: &str = "replace";
/// The directive that deletes.
pub(super) const DELETE: &str = "delete";

/// Clears the fields that `$retainKeys` does not list.
pub(super) fn retain_keys(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
) -> Result<(), PatchError> {
    let Some(directive) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let malformed = || PatchError::Malformed("invalid patch format of retainKeys".to_owned());
    let Value::Array(kept) = directive else { return Err(malformed()) };
    let kept = |name: &str| kept.iter().any(|value| value.as_str() == Some(name));
    let stray = patch.iter().any(|(name, value)| {
        !value.is_null()
            && !name.starts_with(DELETE_FROM_LIST)
            && !name.starts_with(SET_ORDER)
            && !kept(name)
    });
    if stray {
        return Err(malformed());
    }
    original.retain(|name, _| kept(name));
    Ok(())
}

/// Carries out `$setElementOrder` together with the list it orders, and takes both off the patch.
pub(super) fn apply_order_directives(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    schema: Schema,
) -> Result<(), PatchError> {
    let names: Vec<String> =
        patch.keys().filter(|name| name.starts_with(SET_ORDER)).cloned().collect();
    for name in names {
        let Some(order) = patch.remove(&name) else { continue };
        let Value::Array(order) = order else { return Err(expected("[]interface {}", &order)) };
        let field = name.strip_prefix(SET_ORDER).and_then(|rest| rest.strip_prefix('/'));
        let field = field.ok_or_else(|| {
            PatchError::Malformed("invalid patch format of setElementOrder list".to_owned())
        })?;
        if let Some(list) =
            order_list(original.get(field), patch.get_mut(field), &order, field, schema)?
        {
            original.insert(field.to_owned(), Value::Array(list));
            patch.remove(field);
        }
    }
    Ok(())
}

/// The list in its new order, or none where there is no list.
fn order_list(
    original: Option<&Value>,
    patch: Option<&mut Value>,
    order: &[Value],
    field: &str,
    schema: Schema,
) -> Result<Option<Vec<Value>>, PatchError> {
    let before = original.map(as_list).transpose()?;
    let mut patch = match patch {
        None => None,
        Some(Value::Array(list)) => Some(list),
        Some(other) => return Err(expected("[]interface {}", other)),
    };
    let (inner, meta) = schema.list_field(field).map_err(unexpected)?;
    let strategy = meta.strategy().map_err(unexpected)?;
    let key = meta.merge_key.as_str();
    let patched = patch.as_ref().map(|list| (*list).clone()).unwrap_or_default();
    check_order(&patched, order, key)?;
    let merged = match (before, &mut patch) {
        (Some(before), None) => before.to_vec(),
        (None, Some(added)) => added.iter_mut().filter_map(without_directives).collect(),
        (Some(before), Some(patch)) if strategy == super::lists::MERGE => {
            merge_list(before.to_vec(), patch, inner, key, false)?
        }
        (Some(_), Some(patch)) => (*patch).clone(),
        (None, None) => return Ok(None),
    };
    let before = before.unwrap_or_default();
    let mut listed = Vec::new();
    let mut others = Vec::new();
    for item in merged {
        let found = if key.is_empty() {
            order.contains(&item)
        } else {
            let Value::Object(map) = &item else {
                return Err(expected("map[string]interface {}", &item));
            };
            let value = map.get(key).ok_or_else(|| no_merge_key(map, key))?;
            find_by_key(order, key, value)?.is_some()
        };
        if found { listed.push(item) } else { others.push(item) }
    }
    let maps = elements_are_maps(before, &patched)?;
    ordered(listed, others, order, before, key, maps).map(Some)
}

fn as_list(value: &Value) -> Result<&[Value], PatchError> {
    match value {
        Value::Array(list) => Ok(list),
        other => Err(expected("[]interface {}", other)),
    }
}

/// The elements of a patch must come in the order that the directive gives.
fn check_order(patch: &[Value], order: &[Value], key: &str) -> Result<(), PatchError> {
    if order.is_empty() || patch.is_empty() {
        return Ok(());
    }
    let mut kept = Vec::new();
    for item in patch {
        if key.is_empty() {
            kept.push(item);
            continue;
        }
        let Value::Object(map) = item else {
            return Err(expected("map[string]interface {}", item));
        };
        if map.get(PATCH).and_then(Value::as_str) != Some(DELETE) {
            kept.push(item);
        }
    }
    let (mut at, mut in_order) = (0, 0);
    while let (Some(item), Some(place)) = (kept.get(at), order.get(in_order)) {
        if item.get(PATCH).is_some() {
            at += 1;
            continue;
        }
        if same_key(item, place, key)? {
            at += 1;
        }
        in_order += 1;
    }
    if at < kept.len() && in_order >= order.len() {
        let show = |list: &[Value]| go_print(&Value::Array(list.to_vec()));
        return Err(unexpected(format!(
            "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
            show(patch),
            show(order)
        )));
    }
    Ok(())
}

fn same_key(left: &Value, right: &Value, key: &str) -> Result<bool, PatchError> {
    if key.is_empty() {
        return Ok(left == right);
    }
    let value = |item: &Value| match item {
        Value::Object(map) => map.get(key).cloned().ok_or_else(|| no_merge_key(map, key)),
        other => Err(expected("map[string]interface {}", other)),
    };
    Ok(value(left)? == value(right)?)
}

/// Removes null fields, at any depth.
pub(super) fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(discard_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

/// A new value without what is only a directive; none if it is one itself.
pub(super) fn without_directives(value: &mut Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(PATCH) => None,
        Value::Object(map) => {
            map.retain(|_, value| match without_directives(value) {
                Some(kept) => {
                    *value = kept;
                    true
                }
                None => false,
            });
            Some(Value::Object(map.clone()))
        }
        Value::Array(list) => Some(list.iter_mut().filter_map(without_directives).collect()),
        other => Some(other.clone()),
    }
}
