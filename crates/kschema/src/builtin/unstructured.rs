//! Built-in objects out of maps: what kube-apiserver does with the result of a strategic patch.
//!
//! That result is never JSON text there, so another converter reads it, with other words and
//! other rules: fields are taken in the order of the Go struct, the first error ends it, whole
//! floats are integers and integers lose their high bits.

use std::fmt::Write as _;

use fleetwright_kproto::types::{FieldName, Shape, Struct, Type, Types};
use serde_json::Value;

use super::decode::{DecodeError, Decoded, decode_value};

/// Converts an object.
pub fn convert(api_version: &str, kind: &str, mut object: Value) -> Result<Decoded, DecodeError> {
    let types = Types::builtin();
    let mut converter = Converter { types, unknown: Vec::new() };
    if let Some(id) = types.kind(api_version, kind) {
        converter.value(&Type::Declared(id), &mut object, "")?;
    }
    let mut strict = converter.unknown;
    strict.sort();
    let object = decode_value(api_version, kind, &object)?.object;
    Ok(Decoded { object, strict })
}

struct Converter {
    types: &'static Types,
    unknown: Vec<String>,
}

fn refuse(message: String) -> DecodeError {
    DecodeError::BadValue(message)
}

impl Converter {
    fn value(&mut self, ty: &Type, value: &mut Value, path: &str) -> Result<(), DecodeError> {
        if value.is_null() {
            return Ok(());
        }
        match ty {
            Type::Pointer(inner) => self.value(inner, value, path),
            Type::Declared(id) => {
                let types = self.types;
                match &types.get(*id).shape {
                    Shape::Named(inner) | Shape::Message(inner) => {
                        self.plain(inner, ty, value, path)
                    }
                    Shape::Struct(fields) => self.structure(fields, value, path),
                    Shape::Special(_) => self.special(ty, value),
                }
            }
            _ => self.plain(ty, ty, value, path),
        }
    }

    fn plain(
        &mut self,
        ty: &Type,
        name: &Type,
        value: &mut Value,
        path: &str,
    ) -> Result<(), DecodeError> {
        match ty {
            Type::Slice(element) if **element == Type::Uint8 && value.is_string() => Ok(()),
            Type::Slice(element) => {
                let Value::Array(list) = value else {
                    return Err(refuse(format!("cannot restore slice from {}", kind(value))));
                };
                for (index, item) in list.iter_mut().enumerate() {
                    self.value(element, item, &format!("{path}[{index}]"))?;
                }
                Ok(())
            }
            Type::Map(_, element) => {
                let Value::Object(map) = value else {
                    return Err(refuse(format!("cannot restore map from {}", kind(value))));
                };
                // The original leaves keys of maps out of the paths it reports.
                map.values_mut().try_for_each(|value| self.value(element, value, path))
            }
            Type::Declared(_) | Type::Pointer(_) => self.value(ty, value, path),
            _ => self.scalar(ty, name, value),
        }
    }

    fn scalar(&self, ty: &Type, name: &Type, value: &mut Value) -> Result<(), DecodeError> {
        let cannot = |value: &Value| {
            refuse(format!("cannot convert {} to {}", kind(value), self.types.go_name(name)))
        };
        match (ty, &*value) {
            (Type::String, Value::String(_))
            | (Type::Bool, Value::Bool(_))
            | (Type::Float64, Value::Number(_)) => Ok(()),
            (Type::Int32 | Type::Int64, Value::Number(number)) => {
                let Some(integer) = number.as_i64().or_else(|| whole(number.as_f64()?)) else {
                    return Err(cannot(value));
                };
                *value = if *ty == Type::Int32 { low_bits(integer).into() } else { integer.into() };
                Ok(())
            }
            // Go could convert an integer to a string, as a letter, so it refuses in other words.
            (Type::String, Value::Number(number)) if number.is_i64() => Err(cannot(value)),
            _ => Err(refuse(format!("unrecognized type: {}", self.types.go_name(ty)))),
        }
    }

    /// Such a type reads JSON text of its own, without knowing where it is.
    fn special(&self, ty: &Type, value: &Value) -> Result<(), DecodeError> {
        super::decode::decode_type(self.types, ty, value)
    }

    fn structure(
        &mut self,
        fields: &'static Struct,
        value: &mut Value,
        path: &str,
    ) -> Result<(), DecodeError> {
        if !value.is_object() {
            return Err(refuse(format!("cannot restore struct from: {}", kind(value))));
        }
        self.fields(fields, value, path)?;
        let Value::Object(map) = value else { return Ok(()) };
        for name in map.keys().filter(|name| fields.path(name).is_none()) {
            let mut message = "unknown field \"".to_owned();
            let dot = if path.is_empty() { "" } else { "." };
            let _ = write!(message, "{path}{dot}{name}\"");
            self.unknown.push(message);
        }
        Ok(())
    }

    fn fields(
        &mut self,
        fields: &'static Struct,
        value: &mut Value,
        path: &str,
    ) -> Result<(), DecodeError> {
        for field in &fields.fields {
            match &field.name {
                FieldName::Inline(_) => {
                    if let Some((_, inner)) = self.types.as_struct(&field.ty) {
                        self.fields(inner, value, path)?;
                    }
                }
                FieldName::Json(name) => {
                    if let Some(inner) = value.get_mut(name) {
                        let dot = if path.is_empty() { "" } else { "." };
                        self.value(&field.ty, inner, &format!("{path}{dot}{name}"))?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// The Go kind of a value in a map.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nil",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

#[expect(clippy::cast_possible_truncation, reason = "whole floats are converted as Go does")]
fn whole(number: f64) -> Option<i64> {
    (number.trunc().to_bits() == number.to_bits()).then_some(number as i64)
}

#[expect(clippy::cast_possible_truncation, reason = "Go's conversion keeps the low bits")]
fn low_bits(number: i64) -> i32 {
    number as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn converted(object: Value) -> Result<Decoded, String> {
        convert("apps/v1", "Deployment", object).map_err(|error| error.to_string())
    }

    /// Recorded from kube-apiserver.
    #[test]
    fn refusals_are_those_of_the_real_server() {
        for (object, expected) in [
            (json!({"spec": {"replicas": "x"}}), "unrecognized type: int32"),
            (json!({"spec": {"replicas": 1.5}}), "cannot convert float64 to int32"),
            (json!({"spec": {"paused": "x"}}), "unrecognized type: bool"),
            (json!({"metadata": {"labels": {"a": 5}}}), "cannot convert int64 to string"),
            (json!({"metadata": {"labels": ["x"]}}), "cannot restore map from slice"),
            (
                json!({"spec": {"template": {"spec": {"containers": {"a": 1}}}}}),
                "cannot restore slice from map",
            ),
            (json!({"spec": {"template": {"spec": "x"}}}), "cannot restore struct from: string"),
            (
                json!({"spec": {"strategy": {"rollingUpdate": {"maxSurge": true}}}}),
                "json: cannot unmarshal bool into Go value of type int32",
            ),
            (
                json!({"spec": {"template": {"metadata": {"creationTimestamp": "bad"}}}}),
                "parsing time \"bad\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"bad\" as \"2006\"",
            ),
        ] {
            assert_eq!(converted(object.clone()), Err(expected.to_owned()), "{object}");
        }
    }

    #[test]
    fn numbers_are_converted_and_unknown_fields_sorted() {
        let object = json!({"spec": {"replicas": 99_999_999_999_i64, "minReadySeconds": 2.0, "zz": 1, "template": {"aa": 1}}});
        let decoded = converted(object).unwrap();
        assert_eq!(decoded.object["spec"]["replicas"], 1_215_752_191);
        assert_eq!(decoded.object["spec"]["minReadySeconds"], 2);
        assert_eq!(
            decoded.strict,
            ["unknown field \"spec.template.aa\"", "unknown field \"spec.zz\""]
        );
    }
}
