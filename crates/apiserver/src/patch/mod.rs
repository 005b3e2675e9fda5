//! Patches: JSON patch, merge patch, strategic merge patch.
//!
//! Everything here is a function from a document and a body to a document or a [`PatchError`].
//! A body is decoded as kube-apiserver decodes it, so that malformed patches are refused in its
//! words; the semantics are those of the libraries it uses, quirks included, because clients
//! rely on them (replacing a missing field works, negative list positions count from the end).
//!
//! The size of a body is the caller's to limit.

mod error;
mod goprint;
mod json;
mod merge;
mod strategic;

use fleetwright_kschema::builtin::gojson::{self, Node};
use fleetwright_kschema::builtin::strict_error;
use serde_json::Value;

pub use error::{PatchError, REJECTED};
pub use goprint::go_print;
pub use json::{MAX_COPIED_BYTES, MAX_OPERATIONS, json_patch};
pub use merge::merge_patch;
pub use strategic::{apply_strategic, strategic_merge};

/// A patched document.
#[derive(Debug, Clone, PartialEq)]
pub struct Patched {
    /// The document after the patch.
    pub object: Value,
    /// Unknown and duplicate fields, in the words of warnings and strict errors.
    pub strict: Vec<String>,
    /// What messages quote: the strategic patch, or else the patched document.
    quoted: Option<String>,
}

impl Patched {
    /// The error that refuses the patched document.
    pub fn invalid(&self, detail: String) -> PatchError {
        let value = self.quoted.clone().unwrap_or_else(|| go_json(&self.object));
        PatchError::Invalid { value, detail }
    }

    /// The error that refuses unknown and duplicate fields, if there are any.
    pub fn refuse_fields(&self) -> Option<PatchError> {
        (!self.strict.is_empty()).then(|| self.invalid(strict_error(&self.strict)))
    }
}

/// JSON as Go writes it, which escapes what HTML would read.
fn go_json(value: &Value) -> String {
    let text = value.to_string();
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// Reads a body; what is not JSON is refused the same way for all patches.
fn parse(body: &[u8]) -> Result<Node, PatchError> {
    gojson::parse(body).map_err(|_| PatchError::Malformed("invalid JSON patch".to_owned()))
}

/// What Go says of a body that is not an object.
fn not_a_map(body: &Node) -> String {
    format!(
        "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
        body.go_kind()
    )
}

#[cfg(test)]
mod tests;
