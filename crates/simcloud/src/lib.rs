//! Simulated clouds behind their real wire protocols.
//!
//! Each cloud is a module of its own: a model that holds state and rules and is told the time, a
//! wire front that reads and writes the protocol, and a service of whole HTTP messages that puts
//! them together. The service works in one process on paused time; [`serve`] puts it on a
//! loopback socket. Nothing here uses the provider adapters or their shapes: each protocol is
//! read twice, independently, and the referees (boto3, moto) check this reading.

pub mod aws;
mod serve;

pub use serve::serve;

/// No answer came: what a client sees when a connection breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// The request was not taken: it has no effect.
    #[error("the connection was refused")]
    NotSent,
    /// The request was carried out, or may have been, and the answer was lost.
    #[error("the connection broke before the answer came")]
    Lost,
}
