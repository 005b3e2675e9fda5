//! Writes that were decided but are not visible yet.
//!
//! Writes are evaluated one after the other against the published state with the batch so far on
//! top. If the batch cannot be made durable it is dropped, and the state was never touched.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    key::Key,
    object::{Body, Index, Stored},
    state::State,
    write::{Change, Event, EventKind, Expect, Write, WriteError},
};

pub(crate) struct Batch<M> {
    /// What happened, in order; revisions follow the published one without a gap.
    pub(crate) events: Vec<Event<M>>,
    /// When, in milliseconds since 1970.
    pub(crate) at: i64,
    /// Events up to this revision are to be forgotten, whatever the options say.
    pub(crate) forget_to: u64,
    /// The latest event of each object, as an index into `events`.
    latest: BTreeMap<Key, usize>,
}

impl<M: Send + Sync + 'static> Batch<M> {
    pub(crate) fn new(at: i64) -> Self {
        Self { events: Vec::new(), at, forget_to: 0, latest: BTreeMap::new() }
    }

    /// Decides one write and adds its event.
    pub(crate) fn evaluate<I: Index<Meta = M>>(
        &mut self,
        state: &State<M>,
        index: &I,
        write: Write,
    ) -> Result<Arc<Stored<M>>, WriteError<M>> {
        let Write { key, expect, change } = write;
        let previous = self.current(state, &key);
        check(expect, previous.as_ref())?;
        let revision = state.revision + self.events.len() as u64 + 1;
        let (kind, body) = match (change, &previous) {
            (Change::Put(body), None) => (EventKind::Added, body),
            (Change::Put(body), Some(_)) => (EventKind::Modified, body),
            (Change::Delete { last: Some(body) }, Some(_)) => (EventKind::Deleted, body),
            (Change::Delete { last: None }, Some(previous)) => {
                (EventKind::Deleted, previous.body())
            }
            (Change::Delete { .. }, None) => return Err(WriteError::NotFound),
        };
        let created = previous.as_ref().map_or(revision, |previous| previous.created);
        let object = Arc::new(render(state.share(key), revision, created, &body, index));
        self.latest.insert(object.key.clone(), self.events.len());
        self.events.push(Event { revision, kind, object: Arc::clone(&object), previous });
        Ok(object)
    }

    fn current(&self, state: &State<M>, key: &Key) -> Option<Arc<Stored<M>>> {
        match self.latest.get(key).and_then(|&at| self.events.get(at)) {
            Some(event) if event.kind == EventKind::Deleted => None,
            Some(event) => Some(Arc::clone(&event.object)),
            None => state.get(key).cloned(),
        }
    }
}

/// The object that a body becomes at a revision.
pub(crate) fn render<I: Index>(
    key: Key,
    revision: u64,
    created: u64,
    body: &Body,
    index: &I,
) -> Stored<I::Meta> {
    let (json, digits_at) = body.at(revision);
    let meta = index.index(&key, &json);
    Stored { key, revision, created, json, meta, digits_at }
}

fn check<M>(expect: Expect, current: Option<&Arc<Stored<M>>>) -> Result<(), WriteError<M>> {
    match (expect, current) {
        (Expect::Absent, None) | (Expect::Any, Some(_)) => Ok(()),
        (Expect::Absent, Some(_)) => Err(WriteError::AlreadyExists),
        (Expect::Any | Expect::Revision(_), None) => Err(WriteError::NotFound),
        (Expect::Revision(expected), Some(current)) if expected == current.revision => Ok(()),
        (Expect::Revision(_), Some(current)) => {
            Err(WriteError::Conflict { current: Arc::clone(current) })
        }
    }
}
