//! What AWS says when it refuses.

use std::borrow::Cow;

/// An error as the wire shows it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ApiError {
    /// HTTP status. It does not follow from the kind of error: capacity is a 500.
    pub status: u16,
    /// What clients match on.
    pub code: Cow<'static, str>,
    /// What people read.
    pub message: String,
}

/// What a call gives.
pub type Outcome<T> = Result<T, ApiError>;

impl ApiError {
    /// An error of the caller (400).
    pub fn client(code: &'static str, message: impl Into<String>) -> Self {
        Self { status: 400, code: Cow::Borrowed(code), message: message.into() }
    }

    /// An error of the cloud (500): EC2 answers so when it has no capacity.
    pub fn server(code: &'static str, message: impl Into<String>) -> Self {
        Self { status: 500, code: Cow::Borrowed(code), message: message.into() }
    }

    /// With another status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// A parameter that must be there is not.
    pub fn missing(parameter: &str) -> Self {
        Self::client(
            "MissingParameter",
            format!("The request must contain the parameter {parameter}"),
        )
    }

    /// A parameter has a value that cannot be.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::client("InvalidParameterValue", message)
    }

    /// Two parameters do not go together.
    pub fn combination(message: impl Into<String>) -> Self {
        Self::client("InvalidParameterCombination", message)
    }

    /// Too many calls.
    pub fn throttled() -> Self {
        Self::client("RequestLimitExceeded", "Request limit exceeded.").with_status(503)
    }

    /// The answer to a call with `DryRun`.
    pub fn dry_run() -> Self {
        Self::client("DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
            .with_status(412)
    }
}
