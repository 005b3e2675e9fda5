//! A whole JSON body: from bytes to an object, or to the text of a 400 answer.

use std::fmt::Write as _;

use fleetwright_kproto::types::Types;

use super::decode::{Decoded, TypeMeta, decode, type_meta};
use super::gojson;

/// A body that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Body {
    /// `apiVersion` and kind, with those of the request where the body has none.
    pub meta: TypeMeta,
    /// The object, and what a strict decoding has against it.
    pub decoded: Decoded,
}

impl Body {
    /// The message that refuses the body for unknown or duplicate fields, if it has any.
    pub fn strict_refusal(&self, expected_kind: &str, body: &[u8]) -> Option<String> {
        let strict = &self.decoded.strict;
        (!strict.is_empty())
            .then(|| refusal(expected_kind, Some(&self.meta), &super::strict_error(strict), body))
    }
}

/// Reads the body of a request for a built-in kind.
///
/// A body may name another version of the same kind; whether that is served is not decided here.
pub fn read(body: &[u8], api_version: &str, kind: &str) -> Result<Body, String> {
    let refuse = |meta: Option<&TypeMeta>, error: &str| refusal(kind, meta, error, body);
    let node = gojson::parse(body).map_err(|error| {
        refuse(None, &format!("couldn't get version/kind; json parse error: {error}"))
    })?;
    let mut meta = type_meta(&node).map_err(|error| refuse(None, &error.to_string()))?;
    if meta.kind.is_empty() {
        kind.clone_into(&mut meta.kind);
    }
    if meta.api_version.is_empty() {
        api_version.clone_into(&mut meta.api_version);
    }
    let decoded = decode(&meta.api_version, &meta.kind, &node)
        .map_err(|error| refuse(Some(&meta), &error.to_string()))?;
    if meta.kind != kind {
        let error = unknown_conversion(&meta, api_version, kind);
        return Err(refuse(Some(&meta), &error));
    }
    Ok(Body { meta, decoded })
}

/// What Go says when an object is of another kind than the request.
pub fn unknown_conversion(found: &TypeMeta, api_version: &str, kind: &str) -> String {
    let types = Types::builtin();
    let from = types
        .kind(&found.api_version, &found.kind)
        .map_or_else(|| found.kind.clone(), |id| types.get(id).go_name());
    // The internal package is named after the group, without its domain.
    let group = api_version.split_once('/').map_or("core", |(group, _)| group);
    let package = match group {
        "events.k8s.io" => "core",
        other => other.split('.').next().unwrap_or(other),
    };
    format!("converting ({from}) to ({package}.{kind}): unknown conversion")
}

/// The text of a 400 answer to a body that cannot be decoded.
pub fn refusal(expected_kind: &str, found: Option<&TypeMeta>, error: &str, body: &[u8]) -> String {
    match found {
        Some(TypeMeta { api_version, kind }) if !kind.is_empty() => {
            let version = api_version.rsplit('/').next().unwrap_or_default();
            format!("{kind} in version {version:?} cannot be handled as a {expected_kind}: {error}")
        }
        _ => format!(
            "the object provided is unrecognized (must be of type {expected_kind}): {error} ({})",
            summary(body)
        ),
    }
}

/// The start of a body: as text where it looks like JSON, else in hexadecimal digits.
fn summary(body: &[u8]) -> String {
    const LENGTH: usize = 30;
    let start = body.get(..LENGTH).unwrap_or(body);
    let mut shown = match body.first() {
        None => return "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(start).into_owned(),
        Some(_) => start.iter().fold(String::new(), |mut shown, byte| {
            let _ = write!(shown, "{byte:02x}");
            shown
        }),
    };
    if body.len() > LENGTH {
        shown.push_str(" ...");
    }
    shown
}
