//! The schema of a version of a CustomResourceDefinition, parsed once and used by everything
//! else here.

mod parse;
mod pattern;
mod rules;

use std::collections::BTreeMap;

use serde_json::Value;

pub use parse::SchemaError;
pub use pattern::Pattern;
pub use rules::Rule;

use crate::formats::Format;

/// One node of a schema: a `JSONSchemaProps` of apiextensions/v1.
///
/// Texts that are absent are empty, as upstream makes no difference between the two.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the type of the API has them")]
pub struct Schema {
    /// Keywords that no schema may use; kept to say so.
    pub unsupported: Unsupported,
    /// `type`: one name, or empty.
    pub type_name: String,
    /// The types that values may have; empty means any.
    pub types: Types,
    /// `format` as written.
    pub format: String,
    /// What `format` means for values of this type; `None` if nothing is checked.
    pub checked_format: Option<Format>,
    /// `description`.
    pub description: String,
    /// `title`.
    pub title: String,
    /// `nullable`.
    pub nullable: bool,
    /// `default`; an explicit null counts as absent.
    pub default: Option<Value>,
    /// `example`.
    pub example: Option<Value>,
    /// `externalDocs`.
    pub external_docs: Option<Value>,
    /// `maximum`.
    pub maximum: Option<f64>,
    /// `exclusiveMaximum`.
    pub exclusive_maximum: bool,
    /// `minimum`.
    pub minimum: Option<f64>,
    /// `exclusiveMinimum`.
    pub exclusive_minimum: bool,
    /// `maxLength`.
    pub max_length: Option<i64>,
    /// `minLength`.
    pub min_length: Option<i64>,
    /// `pattern`.
    pub pattern: Option<Pattern>,
    /// `maxItems`.
    pub max_items: Option<i64>,
    /// `minItems`.
    pub min_items: Option<i64>,
    /// `uniqueItems`.
    pub unique_items: bool,
    /// `multipleOf`.
    pub multiple_of: Option<f64>,
    /// `enum`.
    pub enum_values: Vec<Value>,
    /// `maxProperties`.
    pub max_properties: Option<i64>,
    /// `minProperties`.
    pub min_properties: Option<i64>,
    /// `required`.
    pub required: Vec<String>,
    /// `items`.
    pub items: Option<Box<Schema>>,
    /// `allOf`.
    pub all_of: Vec<Schema>,
    /// `oneOf`.
    pub one_of: Vec<Schema>,
    /// `anyOf`.
    pub any_of: Vec<Schema>,
    /// `not`.
    pub not: Option<Box<Schema>>,
    /// `properties`.
    pub properties: BTreeMap<String, Schema>,
    /// `additionalProperties`.
    pub additional_properties: Option<Additional>,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown_fields: Option<bool>,
    /// `x-kubernetes-embedded-resource`.
    pub embedded_resource: bool,
    /// `x-kubernetes-int-or-string`.
    pub int_or_string: bool,
    /// `x-kubernetes-list-map-keys`.
    pub list_map_keys: Vec<String>,
    /// `x-kubernetes-list-type`.
    pub list_type: Option<String>,
    /// `x-kubernetes-map-type`.
    pub map_type: Option<String>,
    /// `x-kubernetes-validations`.
    pub validations: Vec<Rule>,
}

/// What `additionalProperties` says about properties that are not listed.
#[derive(Clone, Debug)]
pub enum Additional {
    /// All are allowed, or none.
    Allowed(bool),
    /// Allowed if they match.
    Schema(Box<Schema>),
}

impl Additional {
    /// The schema of additional properties, if there is one.
    pub fn schema(&self) -> Option<&Schema> {
        match self {
            Self::Schema(schema) => Some(schema),
            Self::Allowed(_) => None,
        }
    }

    /// Whether there may be additional properties at all.
    pub fn allows(&self) -> bool {
        !matches!(self, Self::Allowed(false))
    }
}

/// Keywords of JSON Schema that are refused.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "one per keyword")]
pub struct Unsupported {
    /// `id`.
    pub id: String,
    /// `$schema`.
    pub schema: String,
    /// `$ref`.
    pub reference: Option<String>,
    /// `definitions` is present and not empty.
    pub definitions: bool,
    /// `dependencies` is present and not empty.
    pub dependencies: bool,
    /// `patternProperties` is present and not empty.
    pub pattern_properties: bool,
    /// `additionalItems` is present.
    pub additional_items: bool,
    /// `items` is a list.
    pub items_list: bool,
}

/// A set of JSON types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Types(u8);

impl Types {
    /// `object`.
    pub const OBJECT: Self = Self(1);
    /// `array`.
    pub const ARRAY: Self = Self(2);
    /// `string`.
    pub const STRING: Self = Self(4);
    /// `integer`.
    pub const INTEGER: Self = Self(8);
    /// `number`.
    pub const NUMBER: Self = Self(16);
    /// `boolean`.
    pub const BOOLEAN: Self = Self(32);
    /// A name that is no type; no value has it.
    pub const OTHER: Self = Self(64);
    /// `null`.
    pub const NULL: Self = Self(128);

    /// The set with the one type of this name; empty for an empty name.
    pub fn named(name: &str) -> Self {
        match name {
            "" => Self(0),
            "object" => Self::OBJECT,
            "array" => Self::ARRAY,
            "string" => Self::STRING,
            "integer" => Self::INTEGER,
            "number" => Self::NUMBER,
            "boolean" => Self::BOOLEAN,
            "null" => Self::NULL,
            _ => Self::OTHER,
        }
    }

    /// Whether no type is named.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether all of `other` is in this set, and `other` is not empty.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0 && other.0 != 0
    }

    /// Both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Schema {
    /// The schema of the property `name`: its own, or that of additional properties.
    pub fn property(&self, name: &str) -> Option<&Schema> {
        self.properties
            .get(name)
            .or_else(|| self.additional_properties.as_ref().and_then(Additional::schema))
    }

    /// Whether unknown fields are kept here and below.
    pub fn preserves_unknown_fields(&self) -> bool {
        self.preserve_unknown_fields == Some(true)
    }

    /// The schema of a property that is not listed, if there is one.
    pub fn additional_schema(&self) -> Option<&Schema> {
        self.additional_properties.as_ref().and_then(Additional::schema)
    }

    /// Whether a node of the structure satisfies a condition.
    pub(crate) fn has(&self, condition: &dyn Fn(&Self) -> bool) -> bool {
        condition(self)
            || self.items.as_deref().is_some_and(|items| items.has(condition))
            || self.properties.values().any(|property| property.has(condition))
            || self.additional_schema().is_some_and(|additional| additional.has(condition))
    }

    /// The names of the allowed types, as messages list them.
    pub fn type_names(&self) -> &str {
        if self.int_or_string { "integer,string" } else { &self.type_name }
    }
}
