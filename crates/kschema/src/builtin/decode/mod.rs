//! Typed decoding: what kube-apiserver makes of a body of a built-in kind.
//!
//! One pass finds wrong types and unknown or duplicate fields, and yields the object as the
//! server would write it back: unknown fields and nulls dropped, empty values left out where Go
//! leaves them out and present where Go always writes them, quantities and times rewritten.
//!
//! The object is what comes out of storage, where Kubernetes keeps protobuf: an empty list and
//! no list are the same there. Defaults of single kinds are not applied.

mod errors;
mod meta;
mod special;
mod typed;
mod zero;

use fleetwright_kproto::types::{Type, Types};
use serde_json::Value;

pub use errors::DecodeError;
pub use meta::{MetaError, TypeMeta, type_meta};

use super::gojson::Node;
use typed::Decoder;

/// How a refusal of unknown or duplicate fields starts.
pub const STRICT_PREFIX: &str = "strict decoding error: ";

/// A decoded body.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The object, as the server would write it.
    pub object: Value,
    /// Unknown and duplicate fields in the order of the body, in the words of warnings.
    pub strict: Vec<String>,
}

/// The message that refuses a body for its unknown or duplicate fields.
pub fn strict_error(strict: &[String]) -> String {
    format!("{STRICT_PREFIX}{}", strict.join(", "))
}

/// Decodes a body that has been read as JSON.
pub fn decode(api_version: &str, kind: &str, body: &Node) -> Result<Decoded, DecodeError> {
    let types = Types::builtin();
    let id = types.kind(api_version, kind).ok_or_else(|| DecodeError::UnknownKind {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
    })?;
    let mut decoder = Decoder::new(types);
    let object = decoder.root(&Type::Declared(id), body)?;
    Ok(Decoded { object, strict: decoder.into_strict() })
}

/// Decodes an object that is already a value. Duplicate fields are gone by then, and of several
/// errors the first by name is reported.
pub fn decode_value(api_version: &str, kind: &str, object: &Value) -> Result<Decoded, DecodeError> {
    decode(api_version, kind, &Node::from(object))
}

/// Checks a value against a type, for converters that meet it out of its place.
pub(super) fn decode_type(
    types: &'static Types,
    ty: &Type,
    value: &Value,
) -> Result<(), DecodeError> {
    Decoder::new(types).root(ty, &Node::from(value)).map(drop)
}

/// Checks an object: the unknown fields, or what is wrong with it.
pub fn check(api_version: &str, kind: &str, object: &Value) -> Result<Vec<String>, DecodeError> {
    decode_value(api_version, kind, object).map(|decoded| decoded.strict)
}

/// Rewrites an object as the server would write it.
pub fn normalise(api_version: &str, kind: &str, object: &mut Value) -> Result<(), DecodeError> {
    *object = decode_value(api_version, kind, object)?.object;
    Ok(())
}

#[cfg(test)]
mod tests;
