//! A schema, put together from its parts.

use serde_json::{Map, Value, json};

/// A part of a schema.
#[derive(Debug, Clone)]
pub(super) struct Schema(Map<String, Value>);

impl Schema {
    fn of(type_: &str) -> Self {
        Self(Map::from_iter([("type".to_owned(), json!(type_))]))
    }

    /// A text.
    pub(super) fn string(text: &str) -> Self {
        Self::of("string").describe(text)
    }

    /// A moment, RFC 3339.
    pub(super) fn time(text: &str) -> Self {
        Self::string(text).set("format", json!("date-time"))
    }

    /// A truth value.
    pub(super) fn boolean(text: &str) -> Self {
        Self::of("boolean").describe(text)
    }

    /// A number without a format.
    pub(super) fn integer(text: &str) -> Self {
        Self::of("integer").describe(text)
    }

    /// A number of 32 bits.
    pub(super) fn int32(text: &str) -> Self {
        Self::integer(text).set("format", json!("int32"))
    }

    /// A number of 64 bits.
    pub(super) fn int64(text: &str) -> Self {
        Self::integer(text).set("format", json!("int64"))
    }

    /// A number or a text.
    pub(super) fn int_or_string(text: &str) -> Self {
        Self(Map::new())
            .describe(text)
            .set("anyOf", json!([{"type": "integer"}, {"type": "string"}]))
            .set("x-kubernetes-int-or-string", json!(true))
    }

    /// An object with these fields.
    pub(super) fn object<const N: usize>(text: &str, fields: [(&str, Schema); N]) -> Self {
        let fields: Map<String, Value> =
            fields.into_iter().map(|(name, field)| (name.to_owned(), field.into())).collect();
        Self::of("object").describe(text).set("properties", fields.into())
    }

    /// An object about whose fields nothing is said, and none is dropped.
    pub(super) fn raw(text: &str) -> Self {
        Self::of("object").describe(text).set("x-kubernetes-preserve-unknown-fields", json!(true))
    }

    /// An object without known fields; unknown ones are dropped.
    pub(super) fn empty(text: &str) -> Self {
        Self::of("object").describe(text)
    }

    /// A map from text to text.
    pub(super) fn texts(text: &str) -> Self {
        Self::of("object").describe(text).set("additionalProperties", json!({"type": "string"}))
    }

    /// A list.
    pub(super) fn list(text: &str, item: Schema) -> Self {
        Self::of("array").describe(text).set("items", item.into())
    }

    /// A list that server-side apply takes as one value.
    pub(super) fn atomic_list(text: &str, item: Schema) -> Self {
        Self::list(text, item).set("x-kubernetes-list-type", json!("atomic"))
    }

    /// A list whose items are known by one field.
    pub(super) fn list_by(key: &str, text: &str, item: Schema) -> Self {
        Self::list(text, item)
            .set("x-kubernetes-list-type", json!("map"))
            .set("x-kubernetes-list-map-keys", json!([key]))
    }

    fn describe(self, text: &str) -> Self {
        if text.is_empty() { self } else { self.set("description", json!(text)) }
    }

    /// Sets one key.
    pub(super) fn set(mut self, key: &str, value: Value) -> Self {
        self.0.insert(key.to_owned(), value);
        self
    }

    /// These fields must be there.
    pub(super) fn required(self, fields: &[&str]) -> Self {
        self.set("required", json!(fields))
    }

    /// Server-side apply takes the object as one value.
    pub(super) fn atomic(self) -> Self {
        self.set("x-kubernetes-map-type", json!("atomic"))
    }

    /// The value where none is given.
    pub(super) fn default(self, value: impl Into<Value>) -> Self {
        self.set("default", value.into())
    }

    /// The words that are allowed.
    pub(super) fn one_of(self, words: &[&str]) -> Self {
        self.set("enum", json!(words))
    }

    /// The pattern that a text matches.
    pub(super) fn pattern(self, pattern: &str) -> Self {
        self.set("pattern", json!(pattern))
    }

    /// The length of a text.
    pub(super) fn length(self, least: u32, most: u32) -> Self {
        self.set("minLength", json!(least)).set("maxLength", json!(most))
    }

    /// The least value.
    pub(super) fn at_least(self, least: i32) -> Self {
        self.set("minimum", json!(least))
    }

    /// The greatest value.
    pub(super) fn at_most(self, most: i32) -> Self {
        self.set("maximum", json!(most))
    }

    /// A rule in CEL, and what to say when it does not hold.
    pub(super) fn rule(mut self, rule: &str, message: &str) -> Self {
        let entry = json!({"rule": rule, "message": message});
        match self.0.get_mut("x-kubernetes-validations") {
            Some(Value::Array(rules)) => rules.push(entry),
            _ => {
                self.0.insert("x-kubernetes-validations".to_owned(), json!([entry]));
            }
        }
        self
    }
}

impl From<Schema> for Value {
    fn from(schema: Schema) -> Self {
        Value::Object(schema.0)
    }
}
