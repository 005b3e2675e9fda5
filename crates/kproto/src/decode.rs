//! Messages to JSON, by the table of types.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::MAX_DEPTH;
use crate::special;
use crate::types::{Field, FieldName, Shape, Struct, Type, TypeId, Types};
use crate::wire::{Records, Wire, WireError, signed, signed32};

/// A message that holds no object of its kind.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ValueError {
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error("impossible IntOrString.Type")]
    IntOrStringType,
    #[error("time out of range: {0} seconds")]
    TimeOutOfRange(i64),
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    #[error("nested deeper than {0} levels")]
    TooDeep(usize),
}

/// What a struct's fields hold so far. A message may come in pieces, which count as joined.
#[derive(Default)]
struct Pieces {
    values: Map<String, Value>,
    messages: BTreeMap<u32, Vec<u8>>,
}

/// Decodes a message of a declared type.
pub(crate) fn message(
    types: &Types,
    id: TypeId,
    bytes: &[u8],
    depth: usize,
) -> Result<Value, ValueError> {
    if depth > MAX_DEPTH {
        return Err(ValueError::TooDeep(MAX_DEPTH));
    }
    match &types.get(id).shape {
        Shape::Struct(fields) => fields_of(types, fields, bytes, depth).map(Value::Object),
        Shape::Special(special) => special::decode(types, *special, bytes, depth),
        Shape::Named(inner) | Shape::Message(inner) => items(types, inner, bytes, depth),
    }
}

/// A slice that has a message of its own.
fn items(types: &Types, ty: &Type, bytes: &[u8], depth: usize) -> Result<Value, ValueError> {
    let Type::Slice(element) = ty else { return Ok(Value::Null) };
    let mut list = Vec::new();
    let mut records = Records(bytes);
    while let Some((number, wire)) = records.next()? {
        if number == 1 {
            list.push(list_of(types, element, wire, depth)?);
        }
    }
    Ok(Value::Array(list))
}

fn fields_of(
    types: &Types,
    fields: &Struct,
    bytes: &[u8],
    depth: usize,
) -> Result<Map<String, Value>, ValueError> {
    let mut pieces = Pieces::default();
    let mut records = Records(bytes);
    while let Some((number, wire)) = records.next()? {
        // Fields of a newer version are dropped, as a typed decoding does.
        if let Some(field) = fields.by_number(number) {
            field_value(types, field, number, wire, depth, &mut pieces)?;
        }
    }
    let Pieces { mut values, messages } = pieces;
    for (number, bytes) in messages {
        let Some(field) = fields.by_number(number) else { continue };
        let Type::Declared(id) = pointed(&field.ty) else { continue };
        let value = message(types, *id, &bytes, depth + 1)?;
        match (&field.name, value) {
            (FieldName::Inline(_), Value::Object(inner)) => values.extend(inner),
            (FieldName::Json(_), Value::Null) if field.omit_zero => {}
            (FieldName::Json(name), value) => {
                values.insert(name.clone(), value);
            }
            (FieldName::Inline(_), _) => {}
        }
    }
    Ok(values)
}

fn pointed(ty: &Type) -> &Type {
    match ty {
        Type::Pointer(inner) => inner,
        other => other,
    }
}

fn field_value(
    types: &Types,
    field: &Field,
    number: u32,
    wire: Wire<'_>,
    depth: usize,
    pieces: &mut Pieces,
) -> Result<(), ValueError> {
    let label = field.label();
    let wrapped = matches!(pointed(&field.ty), Type::Declared(id)
        if matches!(types.get(*id).shape, Shape::Struct(_) | Shape::Special(_) | Shape::Message(_)));
    if wrapped {
        pieces.messages.entry(number).or_default().extend_from_slice(wire.bytes(label)?);
        return Ok(());
    }
    match types.underlying(&field.ty) {
        Type::Slice(element) if **element != Type::Uint8 => {
            let list = pieces.values.entry(label).or_insert_with(|| Value::Array(Vec::new()));
            let Value::Array(list) = list else { return Ok(()) };
            list.push(list_of(types, element, wire, depth)?);
        }
        Type::Map(_, value) => {
            let (key, value) = entry(types, value, wire.bytes(label)?, depth)?;
            let map = pieces.values.entry(label).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(map) = map {
                map.insert(key, value);
            }
        }
        _ => {
            let value = list_of(types, &field.ty, wire, depth)?;
            let pointer = matches!(field.ty, Type::Pointer(_));
            // Go writes plain fields whether or not they were set; JSON leaves out the empty ones.
            if field.omit_empty && !pointer && is_empty(&value) {
                pieces.values.remove(label);
            } else {
                pieces.values.insert(label.to_owned(), value);
            }
        }
    }
    Ok(())
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// One value: an element of a list, a map value or a plain field.
pub(crate) fn list_of(
    types: &Types,
    ty: &Type,
    wire: Wire<'_>,
    depth: usize,
) -> Result<Value, ValueError> {
    let underlying = match pointed(ty) {
        Type::Declared(id) => match &types.get(*id).shape {
            Shape::Named(_) => types.underlying(ty),
            _ => return message(types, *id, wire.bytes("value")?, depth + 1),
        },
        other => other,
    };
    Ok(match underlying {
        Type::Bool => (wire.varint("value")? != 0).into(),
        Type::Int32 => signed32(wire.varint("value")?).into(),
        Type::Int64 | Type::Uint8 => signed(wire.varint("value")?).into(),
        Type::Float64 => go_float(wire.double("value")?),
        Type::String => String::from_utf8_lossy(wire.bytes("value")?).into_owned().into(),
        Type::Slice(element) if **element == Type::Uint8 => {
            STANDARD.encode(wire.bytes("value")?).into()
        }
        Type::Declared(id) => message(types, *id, wire.bytes("value")?, depth + 1)?,
        // Protobuf has no lists of lists or of maps.
        Type::Slice(_) | Type::Map(..) | Type::Pointer(_) => Value::Null,
    })
}

/// A float as Go writes it: whole numbers without a point.
#[expect(clippy::cast_possible_truncation, reason = "only whole numbers that fit are converted")]
pub fn go_float(value: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        return (value as i64).into();
    }
    value.into()
}

/// An entry of a map: a message of a key and a value, either of which may be left out.
fn entry(
    types: &Types,
    ty: &Type,
    bytes: &[u8],
    depth: usize,
) -> Result<(String, Value), ValueError> {
    let mut key = String::new();
    let mut value = None;
    let mut records = Records(bytes);
    while let Some((number, wire)) = records.next()? {
        match number {
            1 => key = String::from_utf8_lossy(wire.bytes("key")?).into_owned(),
            2 => value = Some(list_of(types, ty, wire, depth)?),
            _ => {}
        }
    }
    let value = match value {
        Some(value) => value,
        None => zero(types, ty, depth)?,
    };
    Ok((key, value))
}

fn zero(types: &Types, ty: &Type, depth: usize) -> Result<Value, ValueError> {
    let empty = match pointed(ty) {
        Type::Declared(id) if !matches!(types.get(*id).shape, Shape::Named(_)) => {
            return message(types, *id, &[], depth + 1);
        }
        _ => types.underlying(ty),
    };
    Ok(match empty {
        Type::Bool => false.into(),
        Type::Int32 | Type::Int64 | Type::Uint8 | Type::Float64 => 0.into(),
        Type::String => "".into(),
        Type::Slice(element) if **element == Type::Uint8 => "".into(),
        _ => Value::Null,
    })
}
