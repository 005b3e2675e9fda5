//! What can be wrong with a metadata service.

use std::time::Duration;

use fleetwright_cloud::transport::TransportError;

/// A question to the metadata service was not answered. Never the end: it is asked again.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Trouble {
    /// Nobody answers.
    #[error("{what}: the metadata service cannot be reached: {source}")]
    Unreachable {
        /// What was asked for.
        what: &'static str,
        /// What happened.
        source: TransportError,
    },
    /// The answer takes too long.
    #[error("{what}: the metadata service did not answer within {limit:?}")]
    TooSlow {
        /// What was asked for.
        what: &'static str,
        /// How long it was waited for.
        limit: Duration,
    },
    /// The service refuses to answer.
    #[error("{what}: the metadata service answered with status {status}")]
    Status {
        /// What was asked for.
        what: &'static str,
        /// The status.
        status: u16,
    },
    /// The answer makes no sense.
    #[error("{what}: the answer of the metadata service cannot be understood: {why}")]
    Unreadable {
        /// What was asked for.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
}

impl Trouble {
    /// As metrics call it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "unreachable",
            Self::TooSlow { .. } => "too_slow",
            Self::Status { status: 401 | 403, .. } => "refused",
            Self::Status { status: 429, .. } => "throttled",
            Self::Status { .. } => "status",
            Self::Unreadable { .. } => "unreadable",
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "for `map_err`: an error ends here")]
    pub(crate) fn unreadable(what: &'static str, why: impl ToString) -> Self {
        Self::Unreadable { what, why: why.to_string() }
    }
}
