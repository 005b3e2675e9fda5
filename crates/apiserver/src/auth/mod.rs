//! Who asks, and may they?
//!
//! [`authn`] finds out who sends a request, [`rbac`] decides what they may do, [`reviews`]
//! answers questions about both. Nothing here performs I/O: objects come from an
//! [`ObjectSource`] and time from the clock, so all of it runs on virtual time.

pub mod authn;
pub mod authorize;
pub mod names;
pub mod node;
pub mod rbac;
pub mod reviews;
pub mod source;
mod text;

pub use authorize::{Attributes, Authorizer, Decision, SuperuserThenRbac, Verdict, forbidden};
pub use source::ObjectSource;
