//! Values of expressions.
//!
//! Data of the object stays JSON and is read through its schema when it is used, so that an
//! expression costs what it touches and not the size of the object.

use std::collections::BTreeMap;
use std::rc::Rc;

use kube_cel::cel;
use serde_json::Value;

use super::escape::unescape;
use super::library;
use crate::schema::{Additional, Schema};

/// A value during evaluation.
#[derive(Clone, Debug)]
pub(super) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Rc<str>),
    Bytes(Rc<[u8]>),
    List(Rc<Vec<Val<'a>>>),
    Map(Rc<BTreeMap<Key, Val<'a>>>),
    /// A list of the object.
    JsonList(&'a [Value], &'a Schema),
    /// A structure or map of the object; the flag tells that it is an object with metadata.
    JsonMap(&'a serde_json::Map<String, Value>, &'a Schema, bool),
    Optional(Option<Rc<Val<'a>>>),
    /// The type of a value.
    Type(&'static str),
    Url(Rc<str>),
    /// Times, durations, and what the libraries make: IPs, quantities.
    Library(cel::Value),
}

/// The key of a map.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Bool(bool),
    Int(i64),
    Uint(u64),
    Text(Rc<str>),
}

/// Schemas of the fields that every object has.
fn text_schema() -> &'static Schema {
    static TEXT: std::sync::LazyLock<Schema> =
        std::sync::LazyLock::new(|| Schema { type_name: "string".to_owned(), ..Schema::default() });
    &TEXT
}

fn metadata_schema() -> &'static Schema {
    static METADATA: std::sync::LazyLock<Schema> = std::sync::LazyLock::new(|| {
        let text = || Schema { type_name: "string".to_owned(), ..Schema::default() };
        Schema {
            type_name: "object".to_owned(),
            properties: [("name".to_owned(), text()), ("generateName".to_owned(), text())].into(),
            ..Schema::default()
        }
    });
    &METADATA
}

/// The schema of a field of an object as expressions see it.
pub(super) fn field_schema<'a>(
    schema: &'a Schema,
    is_resource: bool,
    name: &str,
) -> Option<&'a Schema> {
    match name {
        "apiVersion" | "kind" if is_resource => Some(text_schema()),
        "metadata" if is_resource => Some(metadata_schema()),
        _ => schema.properties.get(name),
    }
}

/// Whether the schema is that of a map with arbitrary keys, and not of a structure.
pub(super) fn is_map(schema: &Schema) -> bool {
    matches!(schema.additional_properties, Some(Additional::Schema(_)))
}

impl<'a> Val<'a> {
    pub(super) fn text(text: &str) -> Self {
        Self::Text(Rc::from(text))
    }

    pub(super) fn list(items: Vec<Self>) -> Self {
        Self::List(Rc::new(items))
    }

    /// A JSON value as its schema types it.
    pub(super) fn of_json(value: &'a Value, schema: &'a Schema, is_resource: bool) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Number(number) => {
                let float = number.as_f64().unwrap_or(f64::NAN);
                match (schema.type_name.as_str(), number.as_i64()) {
                    ("number", _) | (_, None) if schema.type_name != "integer" => {
                        Self::Double(float)
                    }
                    (_, Some(integer)) => Self::Int(integer),
                    #[expect(clippy::cast_possible_truncation, reason = "whole by validation")]
                    (_, None) => Self::Int(float as i64),
                }
            }
            Value::String(text) => {
                library::formatted(text, schema).unwrap_or_else(|| Self::text(text))
            }
            Value::Array(items) => Self::JsonList(items, schema),
            Value::Object(fields) => {
                Self::JsonMap(fields, schema, is_resource || schema.embedded_resource)
            }
        }
    }

    /// The items of a list, or `None` if this is none.
    pub(super) fn items(&self) -> Option<Vec<Self>> {
        match self {
            Self::List(items) => Some(items.to_vec()),
            Self::JsonList(items, schema) => {
                let schema = schema.items.as_deref()?;
                Some(items.iter().map(|item| Self::of_json(item, schema, false)).collect())
            }
            _ => None,
        }
    }

    /// The item at a position; `None` if this is no list, or has no such item.
    pub(super) fn item(&self, position: usize) -> Option<Self> {
        match self {
            Self::List(items) => items.get(position).cloned(),
            Self::JsonList(items, schema) => {
                Some(Self::of_json(items.get(position)?, schema.items.as_deref()?, false))
            }
            _ => None,
        }
    }

    /// How many items, entries or characters there are.
    pub(super) fn size(&self) -> Option<usize> {
        match self {
            Self::Text(text) => Some(text.chars().count()),
            Self::Bytes(bytes) => Some(bytes.len()),
            Self::List(items) => Some(items.len()),
            Self::JsonList(items, _) => Some(items.len()),
            Self::Map(entries) => Some(entries.len()),
            Self::JsonMap(..) => self.entries().map(|entries| entries.len()),
            _ => None,
        }
    }

    /// The entries of a map. Structures of the object have those fields that the schema lists.
    pub(super) fn entries(&self) -> Option<BTreeMap<Key, Self>> {
        match self {
            Self::Map(entries) => Some(entries.as_ref().clone()),
            Self::JsonMap(fields, schema, is_resource) => {
                let mut entries = BTreeMap::new();
                for (name, value) in *fields {
                    if is_map(schema) {
                        let schema = schema.additional_schema()?;
                        let value = Self::of_json(value, schema, false);
                        entries.insert(Key::Text(Rc::from(name.as_str())), value);
                    } else if let Some(property) = field_schema(schema, *is_resource, name)
                        && let Some(name) = super::escape::escape(name)
                        && !value.is_null()
                    {
                        let value = Self::of_json(value, property, false);
                        entries.insert(Key::Text(Rc::from(name)), value);
                    }
                }
                Some(entries)
            }
            _ => None,
        }
    }

    /// The field that an identifier names, if it is there.
    pub(super) fn field(&self, identifier: &str) -> Option<Self> {
        match self {
            Self::JsonMap(fields, schema, is_resource) => {
                if is_map(schema) {
                    let schema = schema.additional_schema()?;
                    return Some(Self::of_json(fields.get(identifier)?, schema, false));
                }
                let name = unescape(identifier);
                let property = field_schema(schema, *is_resource, &name)?;
                // Null in a structure is the same as nothing.
                let value = fields.get(&name).filter(|value| !value.is_null())?;
                Some(Self::of_json(value, property, false))
            }
            Self::Map(entries) => entries.get(&Key::Text(Rc::from(identifier))).cloned(),
            _ => None,
        }
    }

    /// The name of the type, as `type()` tells it and errors show it.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::List(_) | Self::JsonList(..) => "list",
            Self::Map(_) => "map",
            Self::JsonMap(_, schema, _) => {
                if is_map(schema) {
                    "map"
                } else {
                    "object"
                }
            }
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Url(_) => "kubernetes.URL",
            Self::Library(value) => library::type_name(value),
        }
    }

    /// Whether this is the zero value of its type.
    pub(super) fn is_zero(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(flag) => !flag,
            Self::Int(number) => *number == 0,
            Self::Uint(number) => *number == 0,
            Self::Double(number) => *number == 0.0,
            Self::Optional(inner) => inner.is_none(),
            _ => self.size() == Some(0),
        }
    }

    /// As a key of a map; `None` if values of this type are no keys.
    pub(super) fn as_key(&self) -> Option<Key> {
        match self {
            Self::Bool(flag) => Some(Key::Bool(*flag)),
            Self::Int(number) => Some(Key::Int(*number)),
            Self::Uint(number) => Some(match i64::try_from(*number) {
                Ok(number) => Key::Int(number),
                Err(_) => Key::Uint(*number),
            }),
            #[expect(clippy::cast_possible_truncation, reason = "checked to be whole")]
            Self::Double(number) if number.fract() == 0.0 && number.abs() < 9e15 => {
                Some(Key::Int(*number as i64))
            }
            Self::Text(text) => Some(Key::Text(text.clone())),
            _ => None,
        }
    }

    /// A text that is the same for equal values.
    pub(super) fn canonical(&self) -> String {
        match self {
            Self::Int(number) => format!("n{number}"),
            Self::Uint(number) => format!("n{number}"),
            Self::Double(number) => format!("n{number}"),
            Self::Text(text) => format!("t{text:?}"),
            Self::List(_) | Self::JsonList(..) => {
                let items = self.items().unwrap_or_default();
                let items: Vec<String> = items.iter().map(Self::canonical).collect();
                format!("[{}]", items.join(","))
            }
            Self::Map(_) | Self::JsonMap(..) => {
                let entries = self.entries().unwrap_or_default();
                let entries: Vec<String> =
                    entries.iter().map(|(k, v)| format!("{k:?}:{}", v.canonical())).collect();
                format!("{{{}}}", entries.join(","))
            }
            Self::Optional(Some(inner)) => format!("o{}", inner.canonical()),
            other => format!("{other:?}"),
        }
    }

    /// Equality: numbers compare across types, values of other different types are not equal.
    pub(super) fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Text(a), Self::Text(b)) | (Self::Url(a), Self::Url(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            (Self::Type(a), Self::Type(b)) => a == b,
            (Self::Optional(a), Self::Optional(b)) => match (a, b) {
                (None, None) => true,
                (Some(a), Some(b)) => a.equals(b),
                _ => false,
            },
            (Self::Library(a), Self::Library(b)) => a == b,
            (Self::JsonList(_, schema), _) if schema.list_type.is_some() => {
                lists_equal(self, other, schema)
            }
            (Self::List(_) | Self::JsonList(..), Self::List(_) | Self::JsonList(..)) => {
                match (self.items(), other.items()) {
                    (Some(a), Some(b)) => {
                        a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| a.equals(b))
                    }
                    _ => false,
                }
            }
            (Self::Map(_) | Self::JsonMap(..), Self::Map(_) | Self::JsonMap(..)) => {
                match (self.entries(), other.entries()) {
                    (Some(a), Some(b)) => {
                        a.len() == b.len()
                            && a.iter().all(|(k, v)| b.get(k).is_some_and(|o| v.equals(o)))
                    }
                    _ => false,
                }
            }
            _ => super::numbers::compare(self, other) == Some(std::cmp::Ordering::Equal),
        }
    }
}

/// Sets are equal in any order, and so are keyed lists with the same items per key.
fn lists_equal(a: &Val<'_>, b: &Val<'_>, schema: &Schema) -> bool {
    let (Some(a), Some(b)) = (a.items(), b.items()) else { return false };
    if a.len() != b.len() {
        return false;
    }
    match schema.list_type.as_deref() {
        Some("set" | "map") => {
            let sorted = |items: &[Val<'_>]| {
                let mut texts: Vec<String> = items.iter().map(Val::canonical).collect();
                texts.sort();
                texts
            };
            sorted(&a) == sorted(&b)
        }
        _ => a.iter().zip(&b).all(|(a, b)| a.equals(b)),
    }
}
