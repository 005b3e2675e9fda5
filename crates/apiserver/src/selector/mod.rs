//! Label and field selectors.

mod field;
mod label;

pub use field::{FieldSelector, FieldTerm};
pub use label::{LabelSelector, Operator, Requirement};
