//! Strategic merge patch: merging by what the Go types say about their lists and maps.
//!
//! - Maps merge, unless `$patch: replace` or `$patch: delete` says otherwise; a null deletes.
//! - Lists are replaced, unless their field is merged by a key (objects) or as a set (scalars).
//! - `$deleteFromPrimitiveList/<field>` deletes scalars, `$patch: delete` objects of a list.
//! - `$setElementOrder/<field>` orders a list, `$retainKeys` clears all other fields of a map.

mod directives;
mod lists;
mod order;
mod schema;

use fleetwright_kschema::builtin::gojson::Node;
use fleetwright_kschema::builtin::unstructured;
use serde_json::{Map, Value};

use super::goprint::go_print;
use super::{PatchError, Patched, not_a_map, parse};
use directives::{
    DELETE, DELETE_FROM_LIST, PATCH, REPLACE, apply_order_directives, discard_nulls, retain_keys,
    without_directives,
};
use lists::merge_list;
use schema::Schema;

/// Applies a strategic merge patch to an object of a built-in kind and decodes the result.
pub fn apply_strategic(
    document: &Value,
    body: &[u8],
    api_version: &str,
    kind: &str,
    check_fields: bool,
) -> Result<Patched, PatchError> {
    let mut patched = strategic_merge(document, body, api_version, kind, check_fields)?;
    match unstructured::convert(api_version, kind, patched.object.take()) {
        Ok(decoded) => {
            if check_fields {
                patched.strict.extend(decoded.strict);
            }
            patched.object = decoded.object;
            Ok(patched)
        }
        Err(error) => Err(patched.invalid(error.to_string())),
    }
}

/// Merges a strategic patch into a document. The result is not decoded.
pub fn strategic_merge(
    document: &Value,
    body: &[u8],
    api_version: &str,
    kind: &str,
    check_fields: bool,
) -> Result<Patched, PatchError> {
    let body = parse(body)?;
    let mut patch = match body.to_value() {
        Value::Object(patch) => patch,
        Value::Null => Map::new(),
        _ => return Err(PatchError::Malformed(not_a_map(&body))),
    };
    let schema = Schema::of_kind(api_version, kind).ok_or_else(unsupported)?;
    let strict = if check_fields { body.duplicates() } else { Vec::new() };
    let original = document.as_object().cloned().unwrap_or_default();
    let object = Value::Object(merge_map(original, &mut patch, schema)?);
    // Messages show the patch without the directives that were carried out.
    Ok(Patched { object, strict, quoted: Some(go_print(&Value::Object(patch))) })
}

/// Custom resources have no Go type.
fn unsupported() -> PatchError {
    PatchError::Malformed("strategic merge patch format is not supported".to_owned())
}

fn unexpected(message: impl Into<String>) -> PatchError {
    PatchError::Unexpected(message.into())
}

fn merge_map(
    mut original: Map<String, Value>,
    patch: &mut Map<String, Value>,
    schema: Schema,
) -> Result<Map<String, Value>, PatchError> {
    if let Some(directive) = patch.get(PATCH) {
        return match directive.as_str() {
            Some(REPLACE) => {
                patch.remove(PATCH);
                Ok(patch.clone())
            }
            Some(DELETE) => Ok(Map::new()),
            _ => Err(unknown_directive(directive, patch)),
        };
    }
    retain_keys(&mut original, patch)?;
    apply_order_directives(&mut original, patch, schema)?;
    for (name, value) in patch.iter_mut() {
        let list = match name.strip_prefix(DELETE_FROM_LIST) {
            None => None,
            Some(rest) => Some(rest.strip_prefix('/').ok_or_else(|| {
                PatchError::Malformed("invalid patch format of primitive list".to_owned())
            })?),
        };
        let (field, deletes) = (list.unwrap_or(name), list.is_some());
        merge_field(&mut original, field, value, deletes, schema)?;
    }
    Ok(original)
}

/// Merges one field of a patch; `deletes` says that it lists scalars to delete.
fn merge_field(
    original: &mut Map<String, Value>,
    name: &str,
    value: &mut Value,
    deletes: bool,
    schema: Schema,
) -> Result<(), PatchError> {
    if value.is_null() {
        original.remove(name);
        return Ok(());
    }
    let merged = match (original.get_mut(name), value) {
        (Some(Value::Object(before)), Value::Object(patch)) => {
            let (inner, meta) = schema.field(name).map_err(unexpected)?;
            if meta.strategy().map_err(unexpected)? == REPLACE {
                Value::Object(patch.clone())
            } else {
                Value::Object(merge_map(std::mem::take(before), patch, inner)?)
            }
        }
        (Some(Value::Array(before)), Value::Array(patch)) => {
            let (inner, meta) = schema.list_field(name).map_err(unexpected)?;
            if deletes || meta.strategy().map_err(unexpected)? == lists::MERGE {
                let before = std::mem::take(before);
                Value::Array(merge_list(before, patch, inner, &meta.merge_key, deletes)?)
            } else {
                Value::Array(patch.clone())
            }
        }
        // Nothing to delete from.
        _ if deletes => return Ok(()),
        (_, value) => {
            discard_nulls(value);
            let Some(value) = without_directives(value) else {
                original.remove(name);
                return Ok(());
            };
            value
        }
    };
    original.insert(name.to_owned(), merged);
    Ok(())
}

fn unknown_directive(directive: &Value, patch: &Map<String, Value>) -> PatchError {
    let directive = match directive {
        Value::String(text) => text.clone(),
        other => go_print(other),
    };
    let shown = go_print(&Value::Object(patch.clone()));
    unexpected(format!("unknown patch type: {directive} in map: {shown}"))
}

/// A value's Go type in messages.
fn go_type(value: &Value) -> &'static str {
    match Node::from(value) {
        Node::Null => "%!s(<nil>)",
        Node::Bool(_) => "bool",
        Node::Number(text) if text.parse::<i64>().is_ok() => "int64",
        Node::Number(_) => "float64",
        Node::String(_) => "string",
        Node::Array(_) => "[]interface {}",
        Node::Object(_) => "map[string]interface {}",
    }
}

fn expected(go: &str, value: &Value) -> PatchError {
    unexpected(format!("expected a {go}, but received a {}", go_type(value)))
}

#[cfg(test)]
mod tests;
