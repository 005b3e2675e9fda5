//! The store as its users see it.

use std::{collections::BTreeMap, fmt, path::Path, sync::Arc};

use fleetwright_clock::Clock;
use parking_lot::Mutex;

use crate::{
    disk::Disk,
    key::{Key, Scope},
    object::{Index, Stored},
    open_error::OpenError,
    queue::{CLOSED, Queue},
    state::{FIRST_REVISION, State},
    volume::{Directory, Volume},
    watch::{Shared, Watch},
    write::{At, ListError, Listing, Options, WatchError, Write, WriteError},
    writer::Writer,
};

/// A revisioned store of JSON objects. Share it in an `Arc`.
pub struct Store<I: Index> {
    shared: Arc<Shared<I::Meta>>,
    clock: Clock,
    seat: Seat<I>,
}

/// Where the writer sits.
enum Seat<I: Index> {
    /// On the thread of whoever writes; nowhere once the store is closed.
    Here(Mutex<Option<Writer<I>>>),
    /// On a thread of its own.
    Thread(Queue<I>),
}

impl<I: Index> Store<I> {
    /// A store that forgets everything when it is dropped. Writes are applied at once, on the
    /// caller's thread.
    pub fn in_memory(index: I, clock: Clock, options: Options) -> Self {
        Self::here(State::empty(), None, index, clock, options)
    }

    /// A durable store in a directory, which is made if need be. Writes are committed in groups
    /// by a thread of its own.
    pub fn open(path: &Path, index: I, clock: Clock, options: Options) -> Result<Self, OpenError> {
        let (disk, state) = Disk::open(Box::new(Directory::claim(path)?), &index)?;
        let shared = Shared::new(state);
        let writer = Writer { shared: Arc::clone(&shared), index, options, disk: Some(disk) };
        let queue = Queue::start(writer)
            .map_err(|error| OpenError::from_io(&path.display().to_string(), error))?;
        Ok(Self { shared, clock, seat: Seat::Thread(queue) })
    }

    /// A durable store on any volume. Writes are applied and committed at once, on the caller's
    /// thread: for simulations, where there is one thread and no real disk.
    pub fn open_on(
        volume: impl Volume,
        index: I,
        clock: Clock,
        options: Options,
    ) -> Result<Self, OpenError> {
        let (disk, state) = Disk::open(Box::new(volume), &index)?;
        Ok(Self::here(state, Some(disk), index, clock, options))
    }

    fn here(
        state: State<I::Meta>,
        disk: Option<Disk>,
        index: I,
        clock: Clock,
        options: Options,
    ) -> Self {
        let shared = Shared::new(state);
        let writer = Writer { shared: Arc::clone(&shared), index, options, disk };
        Self { shared, clock, seat: Seat::Here(Mutex::new(Some(writer))) }
    }

    /// Carries out a write if its expectation holds, and returns the object: for a deletion its
    /// final state, at the deletion's revision. When this returns, the write is durable and
    /// every reader sees it. When the future is dropped, the write may still happen.
    pub async fn write(&self, write: Write) -> Result<Arc<Stored<I::Meta>>, WriteError<I::Meta>> {
        let at = self.clock.now().as_millisecond();
        match &self.seat {
            Seat::Here(writer) => {
                let mut writer = writer.lock();
                let outcome = writer.as_mut().and_then(|writer| writer.write([write], at).pop());
                outcome.unwrap_or_else(|| Err(WriteError::Unavailable(CLOSED.into())))
            }
            Seat::Thread(queue) => queue.write(write, at).await,
        }
    }

    /// One object as it is now.
    pub fn get(&self, key: &Key) -> Option<Arc<Stored<I::Meta>>> {
        self.shared.state.read().get(key).cloned()
    }

    /// The revision of the latest write.
    pub fn revision(&self) -> u64 {
        self.shared.state.read().revision
    }

    /// The oldest revision at which a list or from which a watch is possible.
    pub fn compacted(&self) -> u64 {
        self.shared.state.read().compacted
    }

    /// The revision of the last write to any object of a resource; 0 if there was none. What was
    /// derived from its objects is good while this stays the same.
    pub fn resource_revision(&self, resource: &str) -> u64 {
        let state = self.shared.state.read();
        state.resources.get(resource).map_or(0, crate::state::Resource::last_revision)
    }

    /// Waits until a revision has happened. The caller limits the time.
    pub async fn wait_for(&self, revision: u64) {
        loop {
            let advanced = self.shared.advanced.notified();
            if self.revision() >= revision {
                return;
            }
            advanced.await;
        }
    }

    /// The objects of a scope at one revision, in the order of namespace and name, strictly
    /// after the given namespace and name.
    pub fn list(
        &self,
        scope: &Scope,
        at: At,
        after: Option<(&str, &str)>,
    ) -> Result<Listing<I::Meta>, ListError> {
        self.shared.state.read().list(scope, at, after)
    }

    /// How many objects a scope has.
    pub fn count(&self, scope: &Scope) -> usize {
        let state = self.shared.state.read();
        let Some(resource) = state.resources.get(&scope.resource) else { return 0 };
        match &scope.namespace {
            Some(namespace) => resource.objects.get(namespace).map_or(0, BTreeMap::len),
            None => resource.objects.values().map(BTreeMap::len).sum(),
        }
    }

    /// How many objects each resource has, without those that have none.
    pub fn counts(&self) -> Vec<(Arc<str>, usize)> {
        let state = self.shared.state.read();
        state
            .counts()
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| (Arc::clone(name), count))
            .collect()
    }

    /// The events of a scope after a revision, which may lie in the future.
    pub fn watch(&self, scope: &Scope, since: u64) -> Result<Watch<I::Meta>, WatchError> {
        let since = since.max(FIRST_REVISION);
        let changed = self.shared.changed(&scope.resource);
        // Should the floor rise after this, the watch finds out by itself.
        if since < self.compacted() {
            return Err(WatchError::Compacted);
        }
        Ok(Watch::new(&self.shared, changed, scope.clone(), since))
    }

    /// The objects of a scope now, and every event from here on: no gap, no overlap.
    pub fn list_and_watch(&self, scope: &Scope) -> (Listing<I::Meta>, Watch<I::Meta>) {
        let changed = self.shared.changed(&scope.resource);
        let state = self.shared.state.read();
        let items = match state.resources.get(&scope.resource) {
            Some(resource) => resource.list(scope, state.revision, None),
            None => Vec::new(),
        };
        let listing = Listing { revision: state.revision, items };
        let watch = Watch::new(&self.shared, changed, scope.clone(), listing.revision);
        (listing, watch)
    }

    /// Forgets the events up to and with a revision, as if they had grown old: lists and watches
    /// from before it are refused from here on.
    pub async fn compact(&self, revision: u64) -> Result<(), WriteError<I::Meta>> {
        let at = self.clock.now().as_millisecond();
        match &self.seat {
            Seat::Here(writer) => match &mut *writer.lock() {
                Some(writer) => writer.forget(revision, at),
                None => Err(CLOSED.into()),
            },
            Seat::Thread(queue) => queue.forget(revision, at).await,
        }
        .map_err(WriteError::Unavailable)
    }

    /// Finishes the writes that were asked for and closes the file. Writes are refused from here
    /// on; reads still work. Dropping the store does the same, but blocks the thread meanwhile.
    pub async fn close(&self) {
        match &self.seat {
            Seat::Here(writer) => drop(writer.lock().take()),
            Seat::Thread(queue) => queue.close().await,
        }
    }
}

impl<I: Index> fmt::Debug for Store<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("revision", &self.revision()).finish_non_exhaustive()
    }
}
