//! Values of types that decode themselves.

use fleetwright_kproto::gotime::{Moment, Precision};
use fleetwright_kproto::types::{Special, Type};
use serde_json::Value;

use crate::builtin::gojson::Node;
use crate::builtin::quantity::{Quantity, QuantityError};

use super::errors::DecodeError;
use super::typed::Decoder;

/// Decodes a value. Unlike a wrong type, what is wrong here ends the decoding.
pub(super) fn decode<'a>(
    decoder: &mut Decoder<'a>,
    special: Special,
    node: &'a Node,
) -> Result<Option<Value>, DecodeError> {
    match special {
        Special::Time => time(decoder, node, Precision::Seconds),
        Special::MicroTime => time(decoder, node, Precision::Micros),
        Special::Quantity => quantity(decoder, node),
        Special::IntOrString => int_or_string(decoder, node),
        Special::Json | Special::Fields | Special::RawExtension => Ok(match node {
            Node::Null => None,
            other => Some(other.to_value()),
        }),
        Special::SchemaOrBool => match node {
            Node::Bool(value) => Ok(Some((*value).into())),
            Node::Object(_) => schema(decoder, node),
            _ => Err(DecodeError::BadValue("boolean or JSON schema expected".to_owned())),
        },
        Special::SchemaOrArray => schema_or_list(decoder, node, schema),
        Special::SchemaOrStrings => schema_or_list(decoder, node, |decoder, node| match node {
            Node::String(text) => Ok(Some(text.as_str().into())),
            Node::Null => Ok(Some("".into())),
            other => Err(decoder.wrong_type_error(other.go_kind(), "string")),
        }),
    }
}

fn time(
    decoder: &Decoder<'_>,
    node: &Node,
    precision: Precision,
) -> Result<Option<Value>, DecodeError> {
    match node {
        Node::Null => Ok(None),
        Node::String(text) => {
            let moment = Moment::parse(text, precision)
                .map_err(|error| DecodeError::BadValue(error.to_string()))?;
            Ok(Some(if moment.is_zero() { Value::Null } else { moment.format(precision).into() }))
        }
        other => Err(decoder.wrong_type_error(other.go_kind(), "string")),
    }
}

fn quantity(decoder: &Decoder<'_>, node: &Node) -> Result<Option<Value>, DecodeError> {
    let text = match node {
        Node::Null => return Ok(None),
        Node::String(text) | Node::Number(text) => text.trim(),
        _ => return Err(DecodeError::BadValue(QuantityError::Format.to_string())),
    };
    let mut quantity =
        Quantity::parse(text).map_err(|error| DecodeError::BadValue(error.to_string()))?;
    if decoder.in_resource_list {
        quantity.round_up_to_milli();
    }
    Ok(Some(quantity.to_string().into()))
}

fn int_or_string(decoder: &Decoder<'_>, node: &Node) -> Result<Option<Value>, DecodeError> {
    match node {
        Node::Null => Ok(None),
        Node::String(text) => Ok(Some(text.as_str().into())),
        Node::Number(text) => match text.parse::<i32>() {
            Ok(number) => Ok(Some(number.into())),
            Err(_) => Err(decoder.wrong_type_error(&format!("number {text}"), "int32")),
        },
        other => Err(decoder.wrong_type_error(other.go_kind(), "int32")),
    }
}

/// A schema inside a schema. It is decoded apart: unknown fields in it go unnoticed.
fn schema(decoder: &mut Decoder<'_>, node: &Node) -> Result<Option<Value>, DecodeError> {
    let Some(id) = decoder.types.named("apiextensions/v1.JSONSchemaProps") else { return Ok(None) };
    Decoder::new(decoder.types)
        .root(&Type::Declared(id), node)
        .map(Some)
        .map_err(|error| decoder.nested_error(error))
}

fn schema_or_list(
    decoder: &mut Decoder<'_>,
    node: &Node,
    element: impl Fn(&mut Decoder<'_>, &Node) -> Result<Option<Value>, DecodeError>,
) -> Result<Option<Value>, DecodeError> {
    match node {
        Node::Object(_) => schema(decoder, node),
        Node::Array(list) if !list.is_empty() => {
            let items = list.iter().map(|node| element(decoder, node));
            let items = items.collect::<Result<Option<Vec<Value>>, _>>()?;
            Ok(items.map(Value::Array))
        }
        // The original takes anything else for nothing.
        _ => Ok(None),
    }
}
