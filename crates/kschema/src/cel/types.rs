//! Types of expressions, as far as they can be told before there are values.

use std::fmt;

use super::escape::{is_reserved, unescape};
use super::value::{field_schema, is_map};
use crate::schema::Schema;

/// A type. `Dyn` is everything that is not known.
#[derive(Clone, Debug)]
pub(super) enum Type<'a> {
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Duration,
    Timestamp,
    List(Box<Type<'a>>),
    Map(Box<Type<'a>>, Box<Type<'a>>),
    /// A structure of the object; the flag tells that it is an object with metadata.
    Object(&'a Schema, bool),
    Optional(Box<Type<'a>>),
    /// The type of types.
    Meta,
    Opaque(&'static str),
}

impl<'a> Type<'a> {
    /// The type of values with this schema; `None` if expressions cannot see them.
    pub(super) fn of_schema(schema: &'a Schema, is_resource: bool) -> Option<Self> {
        if schema.int_or_string {
            return Some(Self::Dyn);
        }
        Some(match schema.type_name.as_str() {
            "array" => {
                let items = schema.items.as_deref()?;
                Self::List(Box::new(Self::of_schema(items, items.embedded_resource)?))
            }
            "object" if is_map(schema) => {
                let values = schema.additional_schema()?;
                let values = Self::of_schema(values, values.embedded_resource)?;
                Self::Map(Box::new(Self::Text), Box::new(values))
            }
            "object" => Self::Object(schema, is_resource || schema.embedded_resource),
            "string" => match schema.format.as_str() {
                "byte" => Self::Bytes,
                "duration" => Self::Duration,
                "date" | "date-time" => Self::Timestamp,
                _ => Self::Text,
            },
            "boolean" => Self::Bool,
            "number" => Self::Double,
            "integer" => Self::Int,
            _ => return None,
        })
    }

    /// The type of the field that an identifier names; `None` if there is no such field.
    pub(super) fn field(&self, identifier: &str) -> Option<Self> {
        match self {
            Self::Object(schema, is_resource) => {
                let name = unescape(identifier);
                // Reserved words are allowed after a dot, escaped or not.
                let escaped = super::escape::escape(&name);
                if escaped.as_deref() != Some(identifier) && !is_reserved(identifier) {
                    return None;
                }
                let property = field_schema(schema, *is_resource, &name)?;
                Self::of_schema(property, property.embedded_resource)
            }
            Self::Map(_, values) => Some(values.as_ref().clone()),
            Self::Dyn => Some(Self::Dyn),
            _ => None,
        }
    }

    pub(super) fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn)
    }

    pub(super) fn is_bool(&self) -> bool {
        matches!(self, Self::Bool)
    }

    pub(super) fn is_numeric(&self) -> bool {
        matches!(self, Self::Int | Self::Uint | Self::Double)
    }

    /// Whether a value of one of the types could be one of the other.
    pub(super) fn agrees(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Dyn, _) | (_, Self::Dyn) => true,
            (Self::Null, other) | (other, Self::Null) => !matches!(
                other,
                Self::Bool | Self::Int | Self::Uint | Self::Double | Self::Text | Self::Bytes
            ),
            (Self::List(a), Self::List(b)) | (Self::Optional(a), Self::Optional(b)) => a.agrees(b),
            (Self::Map(ak, av), Self::Map(bk, bv)) => ak.agrees(bk) && av.agrees(bv),
            (Self::Object(a, _), Self::Object(b, _)) => std::ptr::eq(*a, *b),
            (Self::Opaque(a), Self::Opaque(b)) => a == b,
            (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
        }
    }

    /// The type of either of two values.
    pub(super) fn joined(self, other: &Self) -> Self {
        if self.agrees(other) && !other.is_dyn() { self } else { Self::Dyn }
    }
}

impl fmt::Display for Type<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::Text => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Duration => f.write_str("google.protobuf.Duration"),
            Self::Timestamp => f.write_str("google.protobuf.Timestamp"),
            Self::List(items) => write!(f, "list({items})"),
            Self::Map(keys, values) => write!(f, "map({keys}, {values})"),
            Self::Object(..) => f.write_str("object"),
            Self::Optional(inner) => write!(f, "optional_type({inner})"),
            Self::Meta => f.write_str("type"),
            Self::Opaque(name) => f.write_str(name),
        }
    }
}
