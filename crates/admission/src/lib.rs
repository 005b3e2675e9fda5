//! Admission: rules that look at what users write, before it is stored.
//!
//! - A [`Rule`] answers a [`Request`] with a [`Verdict`]: errors that refuse it, warnings, and
//!   edits. What a rule decides should be a plain function; what it must know first it may fetch.
//! - A [`Registry`] holds [`Webhook`]s, each a rule at a path for some kinds, and writes the
//!   configurations that make the API server call them.
//! - [`Service`] answers AdmissionReviews. It is a tower service over http types, so the embedded
//!   API calls it in this process and [`https::serve`] puts it on a socket.
//!
//! Errors read as Kubernetes writes them: see [`FieldError`].

mod certificate;
mod edit;
mod field;
pub mod https;
mod registry;
mod review;
mod rule;
mod service;
#[cfg(test)]
mod tests;

pub use certificate::{Certificate, CertificateError};
pub use edit::Edit;
pub use field::{FieldError, Problem, aggregate};
pub use registry::{Endpoint, FailurePolicy, Registry, Stage, Webhook};
pub use rule::{Operation, Request, Rule, RuleFuture, Verdict};
pub use service::Service;
