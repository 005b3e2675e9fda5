//! Lists that are sets or maps: their items must be unique.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::field::{FieldError, Path};
use crate::gotext;
use crate::schema::Schema;

/// Checks every list of the object whose schema makes it a set or a map.
pub(crate) fn validate(object: &Value, schema: &Schema) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Value::Object(fields) = object {
        check_fields(fields, schema, &Path::root(), &mut errors);
    }
    errors
}

fn check(value: &Value, schema: &Schema, path: &Path, errors: &mut Vec<FieldError>) {
    match value {
        Value::Array(items) => check_list(items, schema, path, errors),
        Value::Object(fields) => check_fields(fields, schema, path, errors),
        _ => {}
    }
}

fn check_fields(
    fields: &Map<String, Value>,
    schema: &Schema,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    if let Some(additional) = schema.additional_schema() {
        for (name, field) in fields.iter().filter(|(_, field)| is_compound(field)) {
            check(field, additional, &path.key(name), errors);
        }
    }
    for (name, field) in fields.iter().filter(|(_, field)| is_compound(field)) {
        if let Some(property) = schema.properties.get(name) {
            check(field, property, &path.child(name), errors);
        }
    }
}

fn is_compound(value: &Value) -> bool {
    value.is_array() || value.is_object()
}

fn check_list(items: &[Value], schema: &Schema, path: &Path, errors: &mut Vec<FieldError>) {
    match schema.list_type.as_deref() {
        Some("set") => {
            for i in repeated(items.iter().map(identity)) {
                if let Some(item) = items.get(i) {
                    errors.push(FieldError::duplicate(&path.index(i), item.clone()));
                }
            }
        }
        Some("map") => check_map(items, schema, path, errors),
        _ => {}
    }
    if let Some(schema) = &schema.items {
        for (i, item) in items.iter().enumerate().filter(|(_, item)| is_compound(item)) {
            check(item, schema, &path.index(i), errors);
        }
    }
}

fn check_map(items: &[Value], schema: &Schema, path: &Path, errors: &mut Vec<FieldError>) {
    if let Some((i, item)) =
        items.iter().enumerate().find(|(_, item)| !item.is_null() && !item.is_object())
    {
        let detail = "must be an object for an array of list-type map";
        errors.push(FieldError::invalid(&path.index(i), item.clone(), detail));
        return;
    }
    let keys: Vec<Map<String, Value>> = items
        .iter()
        .map(|item| {
            let key = |name: &String| Some((name.clone(), item.get(name)?.clone()));
            schema.list_map_keys.iter().filter_map(key).collect()
        })
        .collect();
    for i in repeated(keys.iter().map(|key| gotext::json(&Value::Object(key.clone())))) {
        if let Some(key) = keys.get(i) {
            errors.push(FieldError::duplicate(&path.index(i), key.clone()));
        }
    }
}

/// A text that is the same for values that count as equal. Integers and floats differ.
fn identity(value: &Value) -> String {
    match value {
        Value::Number(n) if n.as_i64().is_none() => format!("float {}", gotext::json(value)),
        _ => gotext::json(value),
    }
}

/// The positions where something occurs for the second time; further ones do not count.
fn repeated(identities: impl Iterator<Item = String>) -> Vec<usize> {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let mut repeated = Vec::new();
    for (i, identity) in identities.enumerate() {
        let times = seen.entry(identity).or_insert(0);
        *times += 1;
        if *times == 2 {
            repeated.push(i);
        }
    }
    repeated
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn repeated_items_are_errors() {
        let schema = Schema::parse(&json!({"type": "object", "properties": {
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "map": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["a"], "items": {"type": "object"}},
            "two": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["b", "a"], "items": {"type": "object"}},
            "deep": {"type": "object", "additionalProperties": {"type": "array", "items": {
                "type": "array", "x-kubernetes-list-type": "set", "items": {}}}},
        }}))
        .unwrap();
        let value = json!({
            "set": ["a", "b", "a", "a"],
            "map": [{"a": 1}, {"a": 2, "x": 1}, {"a": 2}, {}, null],
            "two": [{"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 2}, {"a": 1}],
            "deep": {"k": [[{"x": 1}, {"x": 1}], [1, 1.0]]},
        });
        let shown: Vec<String> =
            validate(&value, &schema).iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "deep[k][0][1]: Duplicate value: {\"x\":1}",
                "map[2]: Duplicate value: {\"a\":2}",
                "map[4]: Duplicate value: {}",
                "set[2]: Duplicate value: \"a\"",
                "two[1]: Duplicate value: {\"a\":1,\"b\":2}",
            ]
        );
        assert_eq!(
            validate(&json!({"map": [{}, 1]}), &schema)[0].to_string(),
            "map[1]: Invalid value: 1: must be an object for an array of list-type map"
        );
    }
}
