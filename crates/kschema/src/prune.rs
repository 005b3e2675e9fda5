//! Removing fields that the schema does not know.

use serde_json::Value;

use crate::schema::Schema;

/// Fields of every object that schemas do not have to list.
const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

fn is_meta(name: &str) -> bool {
    META_FIELDS.contains(&name)
}

/// Removes what the schema does not know from a whole object, whose own metadata stays.
/// Returns the removed fields, sorted, if `track` asks for them.
pub(crate) fn prune(object: &mut Value, schema: &Schema, track: bool) -> Vec<String> {
    let mut unknown = Unknown { track, path: String::new(), found: Vec::new() };
    prune_value(object, Some(schema), true, &mut unknown);
    unknown.found.sort();
    unknown.found
}

/// As [`prune`], for a value inside an object; `is_object` tells that it is an object of its own.
pub(crate) fn prune_default(value: &mut Value, schema: &Schema, is_object: bool) {
    let mut unknown = Unknown { track: false, path: String::new(), found: Vec::new() };
    prune_value(value, Some(schema), is_object, &mut unknown);
}

/// The fields found to be unknown, and where the walk is.
pub(crate) struct Unknown {
    pub(crate) track: bool,
    pub(crate) path: String,
    pub(crate) found: Vec<String>,
}

impl Unknown {
    /// Enters a field and returns how to leave it.
    pub(crate) fn enter(&mut self, name: &str) -> usize {
        let before = self.path.len();
        if self.track {
            if before > 0 {
                self.path.push('.');
            }
            self.path.push_str(name);
        }
        before
    }

    /// Enters an item and returns how to leave it.
    pub(crate) fn enter_item(&mut self, index: usize) -> usize {
        let before = self.path.len();
        if self.track {
            self.path.push('[');
            self.path.push_str(&index.to_string());
            self.path.push(']');
        }
        before
    }

    /// Goes back to where [`Self::enter`] was called.
    pub(crate) fn leave(&mut self, before: usize) {
        self.path.truncate(before);
    }

    fn record(&mut self, name: &str) {
        if self.track {
            let before = self.enter(name);
            self.found.push(self.path.clone());
            self.leave(before);
        }
    }
}

/// `force_resource` treats the value as an object with metadata whatever its schema says.
fn prune_value(
    value: &mut Value,
    schema: Option<&Schema>,
    force_resource: bool,
    unknown: &mut Unknown,
) {
    let Some(schema) = schema else {
        remove_all(value, unknown);
        return;
    };
    if schema.preserves_unknown_fields() {
        skip(value, schema, force_resource, unknown);
        return;
    }
    let is_resource = force_resource || schema.embedded_resource;
    match value {
        Value::Object(fields) => fields.retain(|name, field| {
            if is_resource && is_meta(name) {
                return true;
            }
            if let Some(property) = schema.properties.get(name) {
                let before = unknown.enter(name);
                prune_value(field, Some(property), false, unknown);
                unknown.leave(before);
                return true;
            }
            if let Some(additional) = &schema.additional_properties {
                let before = unknown.enter(name);
                prune_value(field, additional.schema(), false, unknown);
                unknown.leave(before);
                return true;
            }
            if !is_meta(name) || !unknown.path.is_empty() {
                unknown.record(name);
            }
            false
        }),
        Value::Array(items) => {
            for (i, item) in items.iter_mut().enumerate() {
                let before = unknown.enter_item(i);
                prune_value(item, schema.items.as_deref(), false, unknown);
                unknown.leave(before);
            }
        }
        _ => {}
    }
}

/// Where nothing is known, objects lose all their fields.
fn remove_all(value: &mut Value, unknown: &mut Unknown) {
    match value {
        Value::Object(fields) => {
            for name in fields.keys() {
                unknown.record(name);
            }
            fields.clear();
        }
        Value::Array(items) => {
            for (i, item) in items.iter_mut().enumerate() {
                let before = unknown.enter_item(i);
                remove_all(item, unknown);
                unknown.leave(before);
            }
        }
        _ => {}
    }
}

/// Below preserved fields, only what the schema lists is pruned again.
fn skip(value: &mut Value, schema: &Schema, force_resource: bool, unknown: &mut Unknown) {
    let is_resource = force_resource || schema.embedded_resource;
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                if is_resource && is_meta(name) {
                    continue;
                }
                let before = unknown.enter(name);
                if let Some(property) = schema.properties.get(name) {
                    prune_value(field, Some(property), false, unknown);
                } else if let Some(additional) = &schema.additional_properties {
                    prune_value(field, additional.schema(), false, unknown);
                }
                unknown.leave(before);
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.items.as_deref() else { return };
            for (i, item) in items.iter_mut().enumerate() {
                let before = unknown.enter_item(i);
                skip(item, schema, false, unknown);
                unknown.leave(before);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Schema {
        Schema::parse(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "a": {"type": "string"},
            "list": {"type": "array", "items": {"type": "object", "properties": {
                "x": {"type": "integer"}}}},
            "map": {"type": "object", "additionalProperties": {"type": "object",
                "properties": {"y": {"type": "integer"}}}},
            "any": {"type": "object", "additionalProperties": true},
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"closed": {"type": "object",
                    "properties": {"z": {"type": "integer"}}}}},
            "embedded": {"type": "object", "x-kubernetes-embedded-resource": true,
                "properties": {"spec": {"type": "object"}}},
        }}}}))
        .unwrap()
    }

    #[test]
    fn unknown_fields_go_and_are_listed() {
        let mut object = json!({
            "apiVersion": "g/v1", "kind": "K", "metadata": {"name": "n"}, "extra": 1,
            "spec": {
                "a": {"deep": 1},
                "b": 2,
                "list": [{"x": 1, "bad": 2}, 7],
                "map": {"k": {"y": 1, "bad": 2}},
                "any": {"k": {"gone": 1}, "s": 1},
                "open": {"kept": {"also": 1}, "closed": {"z": 1, "bad": 2}},
                "embedded": {"kind": "E", "metadata": {"any": 1}, "spec": {"bad": 1}, "bad": 2},
            },
        });
        let unknown = prune(&mut object, &schema(), true);
        assert_eq!(
            unknown,
            [
                "extra",
                "spec.a.deep",
                "spec.any.k.gone",
                "spec.b",
                "spec.embedded.bad",
                "spec.embedded.spec.bad",
                "spec.list[0].bad",
                "spec.map.k.bad",
                "spec.open.closed.bad",
            ]
        );
        assert_eq!(
            object,
            json!({
                "apiVersion": "g/v1", "kind": "K", "metadata": {"name": "n"},
                "spec": {
                    "a": {},
                    "list": [{"x": 1}, 7],
                    "map": {"k": {"y": 1}},
                    "any": {"k": {}, "s": 1},
                    "open": {"kept": {"also": 1}, "closed": {"z": 1}},
                    "embedded": {"kind": "E", "metadata": {"any": 1}, "spec": {}},
                },
            })
        );
        assert_eq!(prune(&mut object, &schema(), false), Vec::<String>::new());
    }

    #[test]
    fn a_root_that_preserves_keeps_everything_unlisted() {
        let schema = Schema::parse(&json!({"type": "object",
            "x-kubernetes-preserve-unknown-fields": true}))
        .unwrap();
        let mut object = json!({"a": {"b": [1, {"c": 2}]}});
        let before = object.clone();
        assert!(prune(&mut object, &schema, true).is_empty());
        assert_eq!(object, before);
    }
}
