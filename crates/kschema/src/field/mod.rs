//! Paths of fields and errors about them, with the texts of the Kubernetes API.

mod error;
mod path;

pub use error::{BadValue, FieldError, FieldErrorKind, aggregate_message, invalid_causes};
pub use path::Path;
