//! Names of the elements of associative lists.

use serde_json::Value;

use crate::fieldpath::PathElement;
use crate::goformat;
use crate::schema::{List, Schema};

/// The path element by which an element of an associative list is known.
pub(super) fn list_element(
    schema: &Schema,
    list: &List,
    child: &Value,
) -> Result<PathElement, String> {
    check_element(schema, list, child)?;
    if list.keys.is_empty() {
        return Ok(PathElement::Value(child.clone()));
    }
    let mut keys = Vec::with_capacity(list.keys.len());
    for name in &list.keys {
        // An element without a key is another one than those that have it.
        let default = || key_default(schema, list, name).ok().flatten();
        if let Some(value) = child.get(name).or_else(default) {
            keys.push((name.clone(), value.clone()));
        }
    }
    keys.sort_by(|(left, _), (right, _)| left.cmp(right));
    Ok(PathElement::Key(keys))
}

/// Says why an element has no name, without making one.
pub(super) fn check_element(schema: &Schema, list: &List, child: &Value) -> Result<(), String> {
    if !list.associative {
        return Err("invalid indexing of non-associative list".to_owned());
    }
    if list.keys.is_empty() { check_in_set(child) } else { check_keyed(schema, list, child) }
}

fn check_keyed(schema: &Schema, list: &List, child: &Value) -> Result<(), String> {
    let fields = match child {
        Value::Object(fields) => fields,
        Value::Null => {
            return Err("associative list with keys may not have a null element".to_owned());
        }
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    let mut has_key = false;
    for name in &list.keys {
        has_key |= fields.contains_key(name)
            || key_default(schema, list, name)
                .map_err(|error| format!("couldn't find default value for {name}: {error}"))?
                .is_some();
    }
    if has_key {
        return Ok(());
    }
    let names = goformat::quote_all(&list.keys);
    Err(format!(
        "associative list with keys has an element that omits all key fields {names} \
         (and doesn't have default values for any key fields)"
    ))
}

fn key_default<'s>(
    schema: &'s Schema,
    list: &List,
    name: &str,
) -> Result<Option<&'s Value>, &'static str> {
    let atom = schema.atom(list.element).ok_or("invalid elementType for list")?;
    let map = atom.map.as_ref().ok_or("associative list may not have non-map types")?;
    Ok(map.fields.get(name).and_then(|field| field.default.as_ref()))
}

fn check_in_set(child: &Value) -> Result<(), String> {
    let problem = match child {
        Value::Object(_) => "associative list without keys has an element that's a map type",
        Value::Array(_) => "not supported: associative list with lists as elements",
        Value::Null => "associative list without keys has an element that's an explicit null",
        Value::Bool(_) | Value::Number(_) | Value::String(_) => return Ok(()),
    };
    Err(problem.to_owned())
}
