//! Revisioned object store with watch, in memory or durable.
//!
//! This is what etcd is to kube-apiserver, in one process and no larger than needed: one global
//! revision, conditional writes, lists that are consistent at one revision, and watches without
//! a gap. Every object lives in memory as the bytes that a client is sent; a durable store adds
//! a file that is written before anything is visible or answered.
//!
//! What was rejected: snapshots for paginated lists (an event holds the object before it, so an
//! older state is the newer one with events undone) and a channel for each watcher (a slow one
//! would hold memory; here it holds a position in the shared history and is told when it fell
//! off).

mod batch;
mod disk;
pub mod fake_disk;
mod file;
pub mod history_check;
mod key;
mod object;
mod open_error;
mod queue;
mod rows;
mod state;
mod store;
mod volume;
mod watch;
mod watched;
mod write;
mod writer;

pub use key::{Key, Scope};
pub use object::{Body, Index, NotAnObject, Stored};
pub use open_error::OpenError;
pub use store::Store;
pub use volume::Volume;
pub use watch::Watch;
pub use write::{
    At, Change, Event, EventKind, Expect, Lagged, ListError, Listing, Options, WatchError, Write,
    WriteError,
};
