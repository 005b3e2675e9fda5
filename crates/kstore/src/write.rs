//! What can be asked of the store, what comes of it, and how it can fail.

use std::sync::Arc;

use crate::{
    key::Key,
    object::{Body, Stored},
};

/// What must be true of the stored object for a write to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// There is none.
    Absent,
    /// Its last write was this revision.
    Revision(u64),
    /// There is one.
    Any,
}

/// What a write does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Creates or replaces the object.
    Put(Body),
    /// Removes the object.
    Delete {
        /// The final state, shown to those who watch; the previous one if not given.
        last: Option<Body>,
    },
}

/// One conditional write to one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Which object.
    pub key: Key,
    /// On what condition.
    pub expect: Expect,
    /// What to do.
    pub change: Change,
}

/// Why a write did not happen.
#[derive(Debug, thiserror::Error)]
pub enum WriteError<M> {
    /// The object was expected to be absent.
    #[error("the object already exists")]
    AlreadyExists,
    /// There is no such object.
    #[error("the object does not exist")]
    NotFound,
    /// The object was written since the expected revision.
    #[error("the object has been written since: its revision is {}", current.revision)]
    Conflict {
        /// The object as it is.
        current: Arc<Stored<M>>,
    },
    /// The store cannot write just now (a full disk, for example). Nothing was changed, and the
    /// next write tries again. Only if the process dies right after a failed sync can such a
    /// write be found to have happened after all, since the disk may have done what it denied.
    #[error("{0}")]
    Unavailable(String),
}

/// The revision at which a list is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The current one.
    Latest,
    /// Exactly this one.
    Revision(u64),
}

/// Objects as they all were at one revision.
#[derive(Debug)]
pub struct Listing<M> {
    /// That revision.
    pub revision: u64,
    /// In the order of namespace and name.
    pub items: Vec<Arc<Stored<M>>>,
}

/// Why a list cannot be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// The revision is older than what is remembered.
    #[error("the requested revision has been compacted")]
    Compacted,
    /// The revision has not happened yet.
    #[error("the requested revision is in the future")]
    Future,
}

/// Why a watch cannot begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// Events after the requested revision have been forgotten.
    #[error("the requested revision has been compacted")]
    Compacted,
}

/// The watcher was so slow that events which it had not seen have been forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the watch fell behind the history that is kept")]
pub struct Lagged;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventKind {
    /// It was created.
    Added,
    /// It was replaced.
    Modified,
    /// It was removed.
    Deleted,
}

/// One write that happened.
#[derive(Debug)]
pub struct Event<M> {
    /// Its revision; every revision has exactly one event.
    pub revision: u64,
    /// What happened.
    pub kind: EventKind,
    /// The object after the write; for a deletion its final state, at the deletion's revision.
    pub object: Arc<Stored<M>>,
    /// The object before the write.
    pub previous: Option<Arc<Stored<M>>>,
}

// Not derived: that would ask `M: Clone`.
impl<M> Clone for Event<M> {
    fn clone(&self) -> Self {
        Self {
            revision: self.revision,
            kind: self.kind,
            object: Arc::clone(&self.object),
            previous: self.previous.clone(),
        }
    }
}

/// How much history is kept, for watches that resume and lists that continue. Whichever bound is
/// met first counts; it is applied with every write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// At most this many events.
    pub history_events: usize,
    /// Events whose objects take at most this many bytes.
    pub history_bytes: usize,
    /// Events at most this old. The default is what kube-apiserver lets etcd keep.
    pub history_age: std::time::Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            history_events: 100_000,
            history_bytes: 64 << 20,
            history_age: std::time::Duration::from_mins(5),
        }
    }
}
