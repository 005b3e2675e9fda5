//! From the JSON of a schema to its parsed form.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use thiserror::Error;

use super::{Additional, Pattern, Rule, Schema, Types, Unsupported};
use crate::field::Path;
use crate::formats::Format;

/// Deeper schemas are refused: they could not be met by a JSON document that our parser takes.
const MAX_DEPTH: usize = 100;

/// Why a schema cannot be used.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum SchemaError {
    /// A keyword has a value of a wrong type.
    #[error("{path}: expected {expected}")]
    WrongType {
        /// Where.
        path: Path,
        /// What was expected.
        expected: &'static str,
    },
    /// The schema nests too deeply.
    #[error("{path}: schema nests deeper than {MAX_DEPTH} levels")]
    TooDeep {
        /// Where.
        path: Path,
    },
}

impl Schema {
    /// Parses the JSON of a schema. Keywords that are not known are ignored; whether the schema
    /// is one that may be used is not checked here.
    pub fn parse(value: &Value) -> Result<Self, SchemaError> {
        Self::parse_at(value, &Path::root(), 0)
    }

    fn parse_at(value: &Value, path: &Path, depth: usize) -> Result<Self, SchemaError> {
        if depth > MAX_DEPTH {
            return Err(SchemaError::TooDeep { path: path.clone() });
        }
        let Value::Object(fields) = value else {
            return Err(wrong(path, "an object"));
        };
        let node = Node { fields, path, depth };
        let type_name = node.text("type")?;
        let int_or_string = node.flag("x-kubernetes-int-or-string")?;
        let types = if int_or_string {
            Types::INTEGER.and(Types::STRING)
        } else {
            Types::named(&type_name)
        };
        let format = node.text("format")?;
        let (items, items_list) = node.items()?;
        Ok(Self {
            unsupported: Unsupported {
                id: node.text("id")?,
                schema: node.text("$schema")?,
                reference: node.get("$ref").and_then(Value::as_str).map(str::to_owned),
                definitions: node.is_filled("definitions"),
                dependencies: node.is_filled("dependencies"),
                pattern_properties: node.is_filled("patternProperties"),
                additional_items: node.get("additionalItems").is_some(),
                items_list,
            },
            checked_format: Format::checked(&format, types),
            types,
            type_name,
            format,
            description: node.text("description")?,
            title: node.text("title")?,
            nullable: node.flag("nullable")?,
            default: node.get("default").cloned(),
            example: node.get("example").cloned(),
            external_docs: node.get("externalDocs").cloned(),
            maximum: node.number("maximum")?,
            exclusive_maximum: node.flag("exclusiveMaximum")?,
            minimum: node.number("minimum")?,
            exclusive_minimum: node.flag("exclusiveMinimum")?,
            max_length: node.integer("maxLength")?,
            min_length: node.integer("minLength")?,
            pattern: match node.text("pattern")?.as_str() {
                "" => None,
                pattern => Some(Pattern::new(pattern)),
            },
            max_items: node.integer("maxItems")?,
            min_items: node.integer("minItems")?,
            unique_items: node.flag("uniqueItems")?,
            multiple_of: node.number("multipleOf")?,
            enum_values: node.list("enum")?.to_vec(),
            max_properties: node.integer("maxProperties")?,
            min_properties: node.integer("minProperties")?,
            required: node.texts("required")?,
            items,
            all_of: node.schemas("allOf")?,
            one_of: node.schemas("oneOf")?,
            any_of: node.schemas("anyOf")?,
            not: node.child("not")?,
            properties: node.properties()?,
            additional_properties: node.additional()?,
            preserve_unknown_fields: node
                .get("x-kubernetes-preserve-unknown-fields")
                .and_then(Value::as_bool),
            embedded_resource: node.flag("x-kubernetes-embedded-resource")?,
            int_or_string,
            list_map_keys: node.texts("x-kubernetes-list-map-keys")?,
            list_type: node.optional_text("x-kubernetes-list-type")?,
            map_type: node.optional_text("x-kubernetes-map-type")?,
            validations: node.rules()?,
        })
    }
}

fn wrong(path: &Path, expected: &'static str) -> SchemaError {
    SchemaError::WrongType { path: path.clone(), expected }
}

/// One JSON object of a schema.
struct Node<'a> {
    fields: &'a Map<String, Value>,
    path: &'a Path,
    depth: usize,
}

impl<'a> Node<'a> {
    /// The value of a keyword; null counts as absent.
    fn get(&self, name: &str) -> Option<&'a Value> {
        self.fields.get(name).filter(|value| !value.is_null())
    }

    fn expect<T>(
        &self,
        name: &str,
        expected: &'static str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, SchemaError> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => {
                read(value).map(Some).ok_or_else(|| wrong(&self.path.child(name), expected))
            }
        }
    }

    fn optional_text(&self, name: &str) -> Result<Option<String>, SchemaError> {
        self.expect(name, "a string", |v| v.as_str().map(str::to_owned))
    }

    fn text(&self, name: &str) -> Result<String, SchemaError> {
        Ok(self.optional_text(name)?.unwrap_or_default())
    }

    fn flag(&self, name: &str) -> Result<bool, SchemaError> {
        Ok(self.expect(name, "a boolean", Value::as_bool)?.unwrap_or_default())
    }

    fn number(&self, name: &str) -> Result<Option<f64>, SchemaError> {
        self.expect(name, "a number", Value::as_f64)
    }

    fn integer(&self, name: &str) -> Result<Option<i64>, SchemaError> {
        self.expect(name, "an integer", Value::as_i64)
    }

    fn list(&self, name: &str) -> Result<&'a [Value], SchemaError> {
        Ok(self.expect(name, "a list", Value::as_array)?.map_or(&[], Vec::as_slice))
    }

    fn texts(&self, name: &str) -> Result<Vec<String>, SchemaError> {
        self.list(name)?
            .iter()
            .map(|v| v.as_str().map(str::to_owned))
            .collect::<Option<_>>()
            .ok_or_else(|| wrong(&self.path.child(name), "a list of strings"))
    }

    fn is_filled(&self, name: &str) -> bool {
        self.get(name).is_some_and(|v| v.as_object().is_none_or(|o| !o.is_empty()))
    }

    fn sub(&self, value: &Value, path: &Path) -> Result<Schema, SchemaError> {
        Schema::parse_at(value, path, self.depth + 1)
    }

    fn child(&self, name: &str) -> Result<Option<Box<Schema>>, SchemaError> {
        self.get(name)
            .map(|value| self.sub(value, &self.path.child(name)).map(Box::new))
            .transpose()
    }

    fn schemas(&self, name: &str) -> Result<Vec<Schema>, SchemaError> {
        let path = self.path.child(name);
        self.list(name)?.iter().enumerate().map(|(i, v)| self.sub(v, &path.index(i))).collect()
    }

    fn items(&self) -> Result<(Option<Box<Schema>>, bool), SchemaError> {
        match self.get("items") {
            Some(Value::Array(_)) => Ok((None, true)),
            _ => Ok((self.child("items")?, false)),
        }
    }

    fn properties(&self) -> Result<BTreeMap<String, Schema>, SchemaError> {
        let path = self.path.child("properties");
        let Some(fields) = self.expect("properties", "an object", Value::as_object)? else {
            return Ok(BTreeMap::new());
        };
        fields
            .iter()
            .map(|(name, value)| Ok((name.clone(), self.sub(value, &path.key(name))?)))
            .collect()
    }

    fn additional(&self) -> Result<Option<Additional>, SchemaError> {
        match self.get("additionalProperties") {
            None => Ok(None),
            Some(Value::Bool(allowed)) => Ok(Some(Additional::Allowed(*allowed))),
            Some(_) => Ok(self.child("additionalProperties")?.map(Additional::Schema)),
        }
    }

    fn rules(&self) -> Result<Vec<Rule>, SchemaError> {
        let path = self.path.child("x-kubernetes-validations");
        let rule = |(i, value): (usize, &Value)| {
            let path = path.index(i);
            let Value::Object(fields) = value else { return Err(wrong(&path, "an object")) };
            let node = Node { fields, path: &path, depth: self.depth };
            Ok(Rule {
                rule: node.text("rule")?,
                message: node.text("message")?,
                message_expression: node.text("messageExpression")?,
                reason: node.optional_text("reason")?,
                field_path: node.text("fieldPath")?,
                optional_old_self: node.get("optionalOldSelf").and_then(Value::as_bool),
            })
        };
        self.list("x-kubernetes-validations")?.iter().enumerate().map(rule).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schemas_parse() {
        let schema = Schema::parse(&json!({
            "type": "object",
            "required": ["spec"],
            "properties": {"spec": {
                "type": "object",
                "properties": {"port": {"x-kubernetes-int-or-string": true}},
                "additionalProperties": {"type": "string", "maxLength": 3},
            }},
            "x-kubernetes-validations": [{"rule": "true", "message": "m"}],
        }))
        .unwrap();
        let spec = schema.property("spec").unwrap();
        assert_eq!(spec.property("port").unwrap().type_names(), "integer,string");
        assert_eq!(spec.property("other").unwrap().max_length, Some(3));
        assert_eq!(schema.validations[0].failure(), "m");
    }

    #[test]
    fn wrong_types_are_told() {
        let cases = [
            (json!([]), "<nil>: expected an object"),
            (json!({"type": 1}), "type: expected a string"),
            (
                json!({"properties": {"a": {"maxLength": "x"}}}),
                "properties[a].maxLength: expected an integer",
            ),
            (json!({"allOf": [{}, 1]}), "allOf[1]: expected an object"),
        ];
        for (value, expected) in cases {
            assert_eq!(Schema::parse(&value).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn depth_is_bounded() {
        let mut value = json!({});
        for _ in 0..200 {
            value = json!({ "items": value });
        }
        assert!(matches!(Schema::parse(&value), Err(SchemaError::TooDeep { .. })));
    }
}
