//! Names of fields, and sets of them.
//!
//! A field is named by a [`Path`] of [`PathElement`]s. A [`Set`] is a trie of paths. The
//! text form in `managedFields` is FieldsV1, read and written in the `codec` module.

mod codec;
mod element;
mod filter;
mod set;

pub use codec::FieldsError;
pub use element::{Path, PathElement};
pub use filter::{FieldFilter, PathPattern};
pub(crate) use set::Node;
pub use set::Set;
