//! What Go writes for values that were never set, and what it leaves out.

use fleetwright_kproto::types::{Declared, Field, FieldName, Shape, Special, Struct, Type, Types};
use serde_json::{Map, Value};

/// The JSON of a type's zero value.
pub(super) fn zero(types: &Types, ty: &Type) -> Value {
    match ty {
        Type::Pointer(_) | Type::Slice(_) | Type::Map(..) => Value::Null,
        Type::Bool => Value::Bool(false),
        Type::Int32 | Type::Int64 | Type::Uint8 | Type::Float64 => 0.into(),
        Type::String => Value::String(String::new()),
        Type::Declared(id) => match &types.get(*id).shape {
            Shape::Named(inner) | Shape::Message(inner) => zero(types, inner),
            Shape::Special(special) => zero_special(*special),
            Shape::Struct(fields) => Value::Object(write_struct(types, fields, Map::new())),
        },
    }
}

/// The JSON of a map value that was null. Storage cannot tell no bytes from empty ones there.
pub(super) fn zero_map_value(types: &Types, ty: &Type) -> Value {
    match own_type(types, ty) {
        Type::Slice(element) if **element == Type::Uint8 => Value::String(String::new()),
        _ => zero(types, ty),
    }
}

fn zero_special(special: Special) -> Value {
    match special {
        Special::Quantity => "0".into(),
        Special::IntOrString => 0.into(),
        Special::SchemaOrBool => false.into(),
        Special::Json
        | Special::SchemaOrArray
        | Special::SchemaOrStrings
        | Special::Fields
        | Special::MicroTime
        | Special::Time
        | Special::RawExtension => Value::Null,
    }
}

/// Writes a struct from the values that were set, by their JSON names.
pub(super) fn write_struct(
    types: &Types,
    fields: &Struct,
    mut set: Map<String, Value>,
) -> Map<String, Value> {
    let mut written = Map::new();
    write_fields(types, fields, &mut set, &mut written);
    written
}

fn write_fields(
    types: &Types,
    fields: &Struct,
    set: &mut Map<String, Value>,
    written: &mut Map<String, Value>,
) {
    for field in &fields.fields {
        match &field.name {
            FieldName::Inline(_) => {
                if let Some((_, inner)) = types.as_struct(&field.ty) {
                    write_fields(types, inner, set, written);
                }
            }
            FieldName::Json(name) => {
                let value = match set.remove(name) {
                    Some(value) => written_value(types, field, value),
                    None => unset_value(types, field),
                };
                if let Some(value) = value {
                    written.insert(name.clone(), value);
                }
            }
        }
    }
}

/// What JSON shows of a value that was set.
fn written_value(types: &Types, field: &Field, value: Value) -> Option<Value> {
    if field.omit_zero && value.is_null() {
        return None;
    }
    let empty = match own_type(types, &field.ty) {
        Type::Slice(_) | Type::Map(..) => match &value {
            Value::Array(list) => list.is_empty(),
            Value::Object(map) => map.is_empty(),
            // Bytes: set but empty ones are kept apart from none.
            Value::String(text) => text.is_empty() && field.omit_empty,
            _ => true,
        },
        Type::Bool | Type::Int32 | Type::Int64 | Type::Uint8 | Type::Float64 | Type::String => {
            field.omit_empty && is_zero(&value)
        }
        Type::Pointer(_) | Type::Declared(_) => false,
    };
    match (empty, field.omit_empty) {
        (false, _) => Some(value),
        (true, true) => None,
        (true, false) => Some(Value::Null),
    }
}

/// What JSON shows of a field that was not set.
fn unset_value(types: &Types, field: &Field) -> Option<Value> {
    if field.omit_zero {
        return None;
    }
    match own_type(types, &field.ty) {
        // Structs count as never empty.
        Type::Declared(_) => Some(zero(types, &field.ty)),
        _ if field.omit_empty => None,
        _ => Some(zero(types, &field.ty)),
    }
}

/// The type behind other names, but not behind pointers.
fn own_type<'a>(types: &'a Types, ty: &'a Type) -> &'a Type {
    match ty {
        Type::Declared(id) => match types.get(*id) {
            Declared { shape: Shape::Named(inner) | Shape::Message(inner), .. } => {
                own_type(types, inner)
            }
            _ => ty,
        },
        _ => ty,
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}
