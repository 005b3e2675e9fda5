//! Which part of an old object corresponds to a part of the new one.
//!
//! Errors in parts that did not change are forgiven on update, and transition rules compare a
//! part with what it was. Only fields of objects and items of keyed lists have an old
//! counterpart; items of other lists do not.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::gotext;
use crate::schema::Schema;

/// A value, its schema, and the old value in its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Correlation<'a> {
    pub(crate) new: &'a Value,
    pub(crate) old: Option<&'a Value>,
    pub(crate) schema: &'a Schema,
}

impl<'a> Correlation<'a> {
    /// The correlation of a field that both values have and the schema knows.
    pub(crate) fn field(&self, name: &str) -> Option<Self> {
        Some(Self {
            old: Some(self.old?.as_object()?.get(name)?),
            new: self.new.as_object()?.get(name)?,
            schema: self.schema.property(name)?,
        })
    }

    /// The old items of a keyed list by their key; `None` if this is not such a list.
    pub(crate) fn keyed_items(&self) -> Option<KeyedItems<'a>> {
        match (self.old, self.schema.list_type.as_deref()) {
            (Some(Value::Array(old)), Some("map")) => Some(KeyedItems::new(old, self.schema)),
            _ => None,
        }
    }

    /// The correlation of an item of a keyed list.
    pub(crate) fn item(&self, item: &'a Value, old_items: &KeyedItems<'a>) -> Option<Self> {
        Some(Self {
            new: item,
            old: Some(old_items.get(item)?),
            schema: self.schema.items.as_deref()?,
        })
    }

    /// Whether nothing changed. Parts that cannot be correlated count as changed, except for
    /// lists without keys, which are compared as a whole.
    pub(crate) fn is_unchanged(&self) -> bool {
        match (self.old, self.new) {
            (None, _) => false,
            (Some(Value::Array(old)), Value::Array(new)) => {
                if old.len() != new.len() {
                    return false;
                }
                match self.keyed_items() {
                    None => old == new,
                    Some(items) => new.iter().all(|item| {
                        self.item(item, &items).is_some_and(|item| item.is_unchanged())
                    }),
                }
            }
            (Some(Value::Object(old)), Value::Object(new)) => {
                old.len() == new.len()
                    && new
                        .keys()
                        .all(|name| self.field(name).is_some_and(|field| field.is_unchanged()))
            }
            (Some(old), new) => old == new,
        }
    }
}

/// Items of a keyed list by their key.
#[derive(Debug)]
pub(crate) struct KeyedItems<'a> {
    keys: &'a [String],
    items: BTreeMap<String, &'a Value>,
}

impl<'a> KeyedItems<'a> {
    /// Indexes the items of a list with this schema; the first item of a key counts.
    pub(crate) fn new(items: &'a [Value], schema: &'a Schema) -> Self {
        let is_keyed = schema.type_name == "array"
            && schema.list_type.as_deref() == Some("map")
            && !schema.list_map_keys.is_empty();
        let keys = if is_keyed { schema.list_map_keys.as_slice() } else { &[] };
        let mut by_key = BTreeMap::new();
        for item in items {
            if let Some(key) = item.as_object().and_then(|fields| key_of(fields, keys)) {
                by_key.entry(key).or_insert(item);
            }
        }
        Self { keys, items: by_key }
    }

    /// The item with the same key.
    pub(crate) fn get(&self, item: &Value) -> Option<&'a Value> {
        let key = key_of(item.as_object()?, self.keys)?;
        self.items.get(&key).copied()
    }
}

/// The key of an item as text; `None` if a part of it is missing or not a scalar.
fn key_of(fields: &Map<String, Value>, keys: &[String]) -> Option<String> {
    if keys.is_empty() {
        return None;
    }
    let mut text = String::new();
    for key in keys {
        let part = fields.get(key)?;
        if part.is_null() || part.is_array() || part.is_object() {
            return None;
        }
        if part.as_f64().is_some() && part.as_i64().is_none() {
            text.push('f');
        }
        text.push_str(&gotext::json(part));
        text.push('\0');
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unchanged_parts() {
        let schema = Schema::parse(&json!({"type": "object", "properties": {
            "a": {"type": "string"},
            "set": {"type": "array", "items": {"type": "string"}},
            "map": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "properties": {"k": {"type": "string"},
                    "v": {"type": "integer"}}}},
        }}))
        .unwrap();
        let cases = [
            (json!({"a": "x"}), json!({"a": "x"}), true),
            (json!({"a": "x"}), json!({"a": "y"}), false),
            (json!({"unknown": 1}), json!({"unknown": 1}), false),
            (json!({"set": ["a"]}), json!({"set": ["a"]}), true),
            (
                json!({"map": [{"k": "a", "v": 1}, {"k": "b"}]}),
                json!({"map": [{"k": "b"}, {"k": "a", "v": 1}]}),
                true,
            ),
            (json!({"map": [{"k": "a", "v": 1}]}), json!({"map": [{"k": "a", "v": 2}]}), false),
            (json!({"map": [{"v": 1}]}), json!({"map": [{"v": 1}]}), false),
        ];
        for (new, old, expected) in cases {
            let correlation = Correlation { new: &new, old: Some(&old), schema: &schema };
            assert_eq!(correlation.is_unchanged(), expected, "{new} against {old}");
        }
    }
}
