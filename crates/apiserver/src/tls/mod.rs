//! Serving over TLS.

mod listener;

pub use fleetwright_certificates::{Authority, CertificateError, Identity};
pub use listener::{ListenError, Listener};
