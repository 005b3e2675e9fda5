//! The envelope: four magic bytes and a message that names the kind.

use serde_json::Value;

use crate::MAX_DEPTH;
use crate::decode::{ValueError, message};
use crate::types::Types;
use crate::wire::{Records, WireError};

/// The media type of such bodies.
pub const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";

const PREFIX: [u8; 4] = *b"k8s\0";

/// An object out of a protobuf body.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// Group and version, as in JSON: `apps/v1`.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The object, with its `apiVersion` and `kind`.
    pub object: Value,
}

/// A body that is no object; the texts are those of a 400 answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// No bytes at all.
    #[error("empty data")]
    Empty,
    /// Something else than protobuf.
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    Prefix,
    /// The magic bytes alone.
    #[error("empty body")]
    EmptyBody,
    /// The envelope cannot be read.
    #[error(transparent)]
    Envelope(#[from] WireError),
    /// Neither the envelope nor the caller names a kind.
    #[error("Object 'Kind' is missing in '{0}'")]
    MissingKind(String),
    /// A kind that is not built in.
    #[error(
        "no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\""
    )]
    UnknownKind {
        /// Group and version.
        api_version: String,
        /// The kind.
        kind: String,
    },
    /// The message cannot be read.
    #[error("{message}")]
    Message {
        /// Group and version of the envelope.
        api_version: String,
        /// The kind of the envelope.
        kind: String,
        /// What is wrong.
        message: String,
    },
}

/// Whether a body starts like protobuf.
pub fn is_protobuf(body: &[u8]) -> bool {
    body.starts_with(&PREFIX)
}

/// Decodes a body. The default `apiVersion` and kind stand in where the envelope names none.
pub fn decode(body: &[u8], default: Option<(&str, &str)>) -> Result<Decoded, DecodeError> {
    if body.is_empty() {
        return Err(DecodeError::Empty);
    }
    let body = body.strip_prefix(&PREFIX).ok_or(DecodeError::Prefix)?;
    if body.is_empty() {
        return Err(DecodeError::EmptyBody);
    }
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    let mut records = Records(body);
    while let Some((number, wire)) = records.next()? {
        match number {
            1 => {
                let mut meta = Records(wire.bytes("typeMeta")?);
                while let Some((number, wire)) = meta.next()? {
                    let text = || wire.bytes("typeMeta").map(String::from_utf8_lossy);
                    match number {
                        1 => api_version = text()?.into_owned(),
                        2 => kind = text()?.into_owned(),
                        _ => {}
                    }
                }
            }
            2 => raw = wire.bytes("raw")?,
            _ => {}
        }
    }
    if let Some((default_version, default_kind)) = default {
        if kind.is_empty() {
            default_kind.clone_into(&mut kind);
        }
        if api_version.is_empty() {
            default_version.clone_into(&mut api_version);
        }
    }
    if kind.is_empty() || api_version.is_empty() {
        let shown = format!("runtime.TypeMeta{{APIVersion:{api_version:?}, Kind:{kind:?}}}");
        return Err(DecodeError::MissingKind(shown));
    }
    object(&api_version, &kind, raw)
}

fn object(api_version: &str, kind: &str, raw: &[u8]) -> Result<Decoded, DecodeError> {
    let (api_version, kind) = (api_version.to_owned(), kind.to_owned());
    let types = Types::builtin();
    let Some(id) = types.kind(&api_version, &kind) else {
        return Err(DecodeError::UnknownKind { api_version, kind });
    };
    let decoded = message(types, id, raw, 0).and_then(|object| {
        if deeper_than(&object, MAX_DEPTH) {
            Err(ValueError::TooDeep(MAX_DEPTH))
        } else {
            Ok(object)
        }
    });
    match decoded {
        Ok(mut object) => {
            if let Value::Object(fields) = &mut object {
                fields.insert("apiVersion".to_owned(), api_version.clone().into());
                fields.insert("kind".to_owned(), kind.clone().into());
            }
            Ok(Decoded { api_version, kind, object })
        }
        Err(error) => Err(DecodeError::Message { api_version, kind, message: error.to_string() }),
    }
}

/// Raw JSON inside an object has a depth of its own; only the whole counts.
fn deeper_than(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else { return true };
    match value {
        Value::Array(list) => list.iter().any(|value| deeper_than(value, below)),
        Value::Object(map) => map.values().any(|value| deeper_than(value, below)),
        _ => false,
    }
}
