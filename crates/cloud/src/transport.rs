//! The one seam between adapters and whatever answers.
//!
//! A transport is a service of whole HTTP messages. On sockets it is a client with TLS; in tests
//! it is the simulated cloud itself. Signing, retries, limits and faults are layers on it.

use bytes::Bytes;
use http::{Request, Response};

/// No answer came.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TransportError {
    /// Nothing was sent: it has no effect.
    #[error("cannot connect: {0}")]
    NotSent(String),
    /// It was sent and may have had its effect.
    #[error("no answer: {0}")]
    AnswerLost(String),
}

/// A service of HTTP messages.
pub type Transport =
    tower::util::BoxCloneSyncService<Request<Bytes>, Response<Bytes>, TransportError>;
