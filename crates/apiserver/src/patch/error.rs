//! Why a patch is refused, and with which status.

use fleetwright_kschema::builtin::gojson::quote;
use http::StatusCode;

/// What kube-apiserver says to every JSON patch that does not apply.
pub const REJECTED: &str = "the server rejected our request due to an error in our request";

/// A patch that is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// Not a patch: 400, reason `BadRequest`.
    #[error("{0}")]
    Malformed(String),
    /// A patch that does not apply: 422, reason `Invalid`, empty details. The cause is not told
    /// to the client.
    #[error("{REJECTED}")]
    DoesNotApply(String),
    /// The patched document is no object of its kind: 422, reason `Invalid`, and one cause for
    /// the field `patch`.
    #[error(" \"\" is invalid: patch: {}", invalid_value(.value, .detail))]
    Invalid {
        /// The patch or the patched document, as text.
        value: String,
        /// What is wrong with it.
        detail: String,
    },
    /// Too many operations, or copies of too much: 413, reason `RequestEntityTooLarge`.
    #[error("Request entity too large: {0}")]
    TooLarge(String),
    /// A strategic patch that its kind cannot take: 500, no reason.
    #[error("{0}")]
    Unexpected(String),
}

impl PatchError {
    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        match self {
            PatchError::Malformed(_) => StatusCode::BAD_REQUEST,
            PatchError::DoesNotApply(_) | PatchError::Invalid { .. } => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            PatchError::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            PatchError::Unexpected(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The reason of the status object; empty where it has none.
    pub fn reason(&self) -> &'static str {
        match self {
            PatchError::Malformed(_) => "BadRequest",
            PatchError::DoesNotApply(_) | PatchError::Invalid { .. } => "Invalid",
            PatchError::TooLarge(_) => "RequestEntityTooLarge",
            PatchError::Unexpected(_) => "",
        }
    }

    /// The message of the cause for the field `patch`, where there is one.
    pub fn cause(&self) -> Option<String> {
        match self {
            PatchError::Invalid { value, detail } => Some(invalid_value(value, detail)),
            _ => None,
        }
    }
}

fn invalid_value(value: &str, detail: &str) -> String {
    format!("Invalid value: {}: {detail}", quote(value))
}
