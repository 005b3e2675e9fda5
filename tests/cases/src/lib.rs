//! Runs the behaviour tables: JSON files whose rows say what the product does in a situation.
//!
//! - [`tables`] reads a file and finds its tables: the lists of objects, at any depth. The rest of
//!   the file is context that a runner may read.
//! - [`row`] is one row, and the one place that knows which of its keys says what we want.
//! - [`runners`] is the registry: one [`runners::Runner`] per file, one function per table. A
//!   function calls what the product calls and compares.
//! - [`pending`] lists the files that wait for a capability, and those that will never run.
//! - [`harness`] runs a folder and reports.
//!
//! `cargo test -p fleetwright-cases -- --nocapture` runs everything; a word after `--` picks the
//! files that have it in their name. `FLEETWRIGHT_CASES` names another folder.

pub mod harness;
pub mod pending;
pub mod row;
pub mod runners;
pub mod tables;
