//! Schemas of built-in and custom kinds: pruning, defaults, validation, CEL.

pub mod builtin;
mod cel;
pub mod columns;
mod compiled;
mod correlate;
pub mod crd;
mod defaulting;
pub mod field;
pub mod formats;
pub mod jsonpath;
mod listtype;
pub mod names;
pub mod objectmeta;
pub mod openapi;
#[cfg(test)]
mod properties;
mod prune;
pub mod scale;
pub mod schema;
pub mod selectable;
mod validate;

pub use fleetwright_gotext as gotext;

pub use compiled::{CompiledSchema, Verdict};
