//! What people are shown of a fleet: the [tree](tree) of it, and [why](explain) one thing is as
//! it is.
//!
//! Both are plain functions over a [`Snapshot`] of Kubernetes objects. Nothing else is asked, so
//! that they work on any cluster, against any replica, and for anybody who may read.

pub mod explain;
mod history;
mod snapshot;
mod span;
mod table;
#[cfg(test)]
mod tests;
pub mod tree;
mod waiting;

pub use snapshot::{ReadError, Snapshot};
