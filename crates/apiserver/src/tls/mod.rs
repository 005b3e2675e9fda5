//! Serving over TLS.

mod certificates;
mod listener;

pub use certificates::{Authority, CertificateError, Identity};
pub use listener::{ListenError, Listener};
