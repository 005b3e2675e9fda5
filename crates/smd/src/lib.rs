//! Structured merge and diff: the algorithm of server-side apply.
//!
//! Everything works on [`serde_json::Value`] and behaves as the Go library
//! `structured-merge-diff` and apimachinery's `managedfields` do, down to the texts of
//! errors, because clients read the results: `metadata.managedFields` and conflict messages.
//!
//! - [`fieldpath`] names fields and sets of fields.
//! - [`schema`] says which lists and maps are owned as a whole and which by element.
//! - [`typed`] validates, merges, compares and prunes values by their schema.
//! - [`merge`] keeps the book of who owns what across applies and updates.
//! - [`managed`] is the entry point for an API server: objects in, objects out.
//!
//! Recursion follows the depth of values and sets, so both are refused beyond
//! [`MAX_DEPTH`] where they enter: in validation and in the FieldsV1 decoder.

pub mod fieldpath;
mod goformat;
pub mod managed;
pub mod merge;
pub mod schema;
pub mod typed;
mod values;

/// Deepest nesting accepted in objects and field sets. The JSON parser stops at 128.
pub const MAX_DEPTH: usize = 200;
