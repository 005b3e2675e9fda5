//! Certificate authorities of our own, what they sign, and when it is renewed.
//!
//! - [`Authority`] signs certificates of servers and users.
//! - [`Bundle`] is what a server that others must trust keeps: its authorities and the certificate
//!   that it shows. [`Bundle::renewed`] says when that needs to change, and how.

mod authority;
mod bundle;

pub use authority::{Authority, CertificateError, Identity};
pub use bundle::{Bundle, Holder};
