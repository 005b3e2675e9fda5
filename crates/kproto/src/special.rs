//! Messages of the types that write their own JSON.

use serde_json::Value;

use crate::MAX_DEPTH;
use crate::decode::{ValueError, list_of, message};
use crate::gotime::{Moment, Precision};
use crate::types::{Special, Type, Types};
use crate::wire::{Records, Wire, signed, signed32};

/// Decodes the message of a special type.
pub(crate) fn decode(
    types: &Types,
    special: Special,
    bytes: &[u8],
    depth: usize,
) -> Result<Value, ValueError> {
    match special {
        Special::Time => time(bytes, Precision::Seconds),
        Special::MicroTime => time(bytes, Precision::Micros),
        Special::Quantity => quantity(bytes),
        Special::IntOrString => int_or_string(bytes),
        Special::Json | Special::RawExtension | Special::Fields => raw_json(bytes),
        Special::SchemaOrArray => schema_or(types, bytes, depth, Other::Schemas),
        Special::SchemaOrBool => schema_or_bool(types, bytes, depth),
        Special::SchemaOrStrings => schema_or(types, bytes, depth, Other::Strings),
    }
}

/// An empty message is the zero time.
fn time(bytes: &[u8], precision: Precision) -> Result<Value, ValueError> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0, 0);
    let mut records = Records(bytes);
    while let Some((number, wire)) = records.next()? {
        match number {
            1 => seconds = signed(wire.varint("seconds")?),
            2 => nanos = signed32(wire.varint("nanos")?),
            _ => {}
        }
    }
    // The years that RFC 3339 can write; Go writes nonsense outside of them.
    if !(-62_135_596_800..=253_402_300_799).contains(&seconds) {
        return Err(ValueError::TimeOutOfRange(seconds));
    }
    let micros = match precision {
        Precision::Seconds => 0,
        Precision::Micros => u32::try_from(nanos / 1000).unwrap_or_default() % 1_000_000,
    };
    let moment = Moment { seconds, micros };
    Ok(if moment.is_zero() { Value::Null } else { moment.format(precision).into() })
}

fn quantity(bytes: &[u8]) -> Result<Value, ValueError> {
    let mut text = String::new();
    let mut records = Records(bytes);
    while let Some((number, wire)) = records.next()? {
        if number == 1 {
            text = String::from_utf8_lossy(wire.bytes("string")?).into_owned();
        }
    }
    // A quantity that was never set reads as zero.
    Ok(if text.is_empty() { "0".into() } else { text.into() })
}

fn int_or_string(bytes: &[u8]) -> Result<Value, ValueError> {
    let (mut kind, mut number_value, mut text) = (0, 0, String::new());
    let mut records = Records(bytes);
    while let Some((number, wire)) = records.next()? {
        match number {
            1 => kind = wire.varint("type")?,
            2 => number_value = signed32(wire.varint("intVal")?),
            3 => text = String::from_utf8_lossy(wire.bytes("strVal")?).into_owned(),
            _ => {}
        }
    }
    match kind {
        0 => Ok(number_value.into()),
        1 => Ok(text.into()),
        _ => Err(ValueError::IntOrStringType),
    }
}

/// JSON text inside a message; none is `null`.
fn raw_json(bytes: &[u8]) -> Result<Value, ValueError> {
    let mut raw: &[u8] = &[];
    let mut records = Records(bytes);
    while let Some((number, wire)) = records.next()? {
        if number == 1 {
            raw = wire.bytes("raw")?;
        }
    }
    if raw.is_empty() {
        return Ok(Value::Null);
    }
    Ok(serde_json::from_slice(raw)?)
}

#[derive(Clone, Copy)]
enum Other {
    Schemas,
    Strings,
}

fn schema_or(types: &Types, bytes: &[u8], depth: usize, other: Other) -> Result<Value, ValueError> {
    let mut schema = None;
    let mut items = Vec::new();
    let mut records = Records(bytes);
    while let Some((number, wire)) = records.next()? {
        match number {
            1 => schema = Some(props(types, wire, depth)?),
            2 => items.push(match other {
                Other::Schemas => props(types, wire, depth)?,
                Other::Strings => list_of(types, &Type::String, wire, depth)?,
            }),
            _ => {}
        }
    }
    Ok(if items.is_empty() { schema.unwrap_or(Value::Null) } else { Value::Array(items) })
}

fn schema_or_bool(types: &Types, bytes: &[u8], depth: usize) -> Result<Value, ValueError> {
    let mut allows = false;
    let mut schema = None;
    let mut records = Records(bytes);
    while let Some((number, wire)) = records.next()? {
        match number {
            1 => allows = wire.varint("allows")? != 0,
            2 => schema = Some(props(types, wire, depth)?),
            _ => {}
        }
    }
    Ok(schema.unwrap_or(Value::Bool(allows)))
}

fn props(types: &Types, wire: Wire<'_>, depth: usize) -> Result<Value, ValueError> {
    let id =
        types.named("apiextensions/v1.JSONSchemaProps").ok_or(ValueError::TooDeep(MAX_DEPTH))?;
    message(types, id, wire.bytes("schema")?, depth + 1)
}
