//! Filling in defaults, and removing nulls that mean nothing.

use serde_json::Value;

use crate::schema::Schema;

/// Fills in the defaults of properties that are absent, or null where null is not allowed.
pub(crate) fn fill(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(fields) => {
            for (name, property) in &schema.properties {
                let Some(default) = &property.default else { continue };
                match fields.get_mut(name) {
                    None => {
                        fields.insert(name.clone(), default.clone());
                    }
                    Some(field) if field.is_null() && !property.nullable => {
                        *field = default.clone();
                    }
                    Some(_) => {}
                }
            }
            for (name, field) in fields.iter_mut() {
                if let Some(property) = schema.properties.get(name) {
                    fill(field, property);
                } else if let Some(additional) = schema.additional_schema() {
                    fill_null(field, additional);
                    fill(field, additional);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = &schema.items else { return };
            for item in items {
                fill_null(item, schema);
                fill(item, schema);
            }
        }
        _ => {}
    }
}

fn fill_null(value: &mut Value, schema: &Schema) {
    if value.is_null()
        && !schema.nullable
        && let Some(default) = &schema.default
    {
        *value = default.clone();
    }
}

/// Removes fields that are null although their schema neither allows null nor has a default.
pub(crate) fn drop_nulls(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(fields) => fields.retain(|name, field| {
            let Some(property) = schema.property(name) else { return true };
            if field.is_null() {
                return property.nullable || property.default.is_some();
            }
            drop_nulls(field, property);
            true
        }),
        Value::Array(items) => {
            let Some(schema) = &schema.items else { return };
            for item in items {
                drop_nulls(item, schema);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn defaults_fill_absent_and_forbidden_null_fields() {
        let schema = Schema::parse(&json!({"type": "object", "properties": {
            "a": {"type": "integer", "default": 1},
            "nullable": {"type": "string", "nullable": true, "default": "d"},
            "nested": {"type": "object", "default": {}, "properties": {
                "b": {"type": "string", "default": "x"}}},
            "bare": {"type": "object", "properties": {"c": {"type": "string", "default": "y"}}},
            "list": {"type": "array", "items": {"type": "object", "properties": {
                "d": {"type": "integer", "default": 2}}}},
            "strings": {"type": "array", "items": {"type": "string", "default": "s"}},
            "map": {"type": "object", "additionalProperties": {"type": "object", "default": {},
                "properties": {"e": {"type": "integer", "default": 3}}}},
        }}))
        .unwrap();
        let cases = [
            (json!({}), json!({"a": 1, "nullable": "d", "nested": {"b": "x"}})),
            (
                json!({"a": null, "nullable": null, "nested": null, "bare": {}}),
                json!({"a": 1, "nullable": null, "nested": {"b": "x"}, "bare": {"c": "y"}}),
            ),
            (
                json!({"a": 5, "nullable": "n", "nested": {"b": "z"},
                    "list": [{}, {"d": 9}, 7], "strings": [null, "t"], "map": {"k": null, "l": {}}}),
                json!({"a": 5, "nullable": "n", "nested": {"b": "z"},
                    "list": [{"d": 2}, {"d": 9}, 7], "strings": ["s", "t"],
                    "map": {"k": {"e": 3}, "l": {"e": 3}}}),
            ),
        ];
        for (mut value, expected) in cases {
            fill(&mut value, &schema);
            assert_eq!(value, expected);
        }
    }

    #[test]
    fn meaningless_nulls_go() {
        let schema = Schema::parse(&json!({"type": "object", "properties": {
            "a": {"type": "string"},
            "b": {"type": "string", "nullable": true},
            "c": {"type": "string", "default": "x"},
            "m": {"type": "object", "additionalProperties": {"type": "string"}},
            "l": {"type": "array", "items": {"type": "object", "properties": {
                "a": {"type": "string"}}}},
        }}))
        .unwrap();
        let mut value = json!({"a": null, "b": null, "c": null, "unknown": null,
            "m": {"k": null}, "l": [null, {"a": null}]});
        drop_nulls(&mut value, &schema);
        assert_eq!(value, json!({"b": null, "c": null, "unknown": null, "m": {}, "l": [null, {}]}));
    }
}
