//! What a work queue knows, without waiting for anything.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tokio::time::Instant;

/// Every item in `ready` is dirty and not being processed. An item may be dirty and processing
/// at once: it changed while somebody worked on it, and goes back to `ready` when they are done.
#[derive(Debug)]
pub(super) struct State<T> {
    ready: VecDeque<T>,
    dirty: BTreeSet<T>,
    processing: BTreeMap<T, Instant>,
    /// When an item became dirty.
    added: BTreeMap<T, Instant>,
    /// Items for later, by time and then by order of arrival.
    waiting: BTreeMap<(Instant, u64), T>,
    waiting_at: BTreeMap<T, (Instant, u64)>,
    arrivals: u64,
    shutting_down: bool,
}

impl<T> Default for State<T> {
    fn default() -> Self {
        Self {
            ready: VecDeque::new(),
            dirty: BTreeSet::new(),
            processing: BTreeMap::new(),
            added: BTreeMap::new(),
            waiting: BTreeMap::new(),
            waiting_at: BTreeMap::new(),
            arrivals: 0,
            shutting_down: false,
        }
    }
}

/// What became of an added item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Added {
    /// It can be taken now.
    Ready,
    /// It is being processed, and will be ready again after that.
    Later,
    /// It was there already, or the queue takes nothing any more.
    Ignored,
}

impl<T: Ord + Clone> State<T> {
    pub(super) fn add(&mut self, item: T, now: Instant) -> Added {
        if self.shutting_down || self.dirty.contains(&item) {
            return Added::Ignored;
        }
        self.dirty.insert(item.clone());
        self.added.insert(item.clone(), now);
        if self.processing.contains_key(&item) {
            return Added::Later;
        }
        self.ready.push_back(item);
        Added::Ready
    }

    /// Has the item added at `at`, unless it is already waiting for an earlier time. Says
    /// whether the earliest of all times changed.
    pub(super) fn add_at(&mut self, item: T, at: Instant) -> bool {
        if self.shutting_down {
            return false;
        }
        if let Some(known) = self.waiting_at.get(&item).copied() {
            if known.0 <= at {
                return false;
            }
            self.waiting.remove(&known);
        }
        let slot = (at, self.arrivals);
        self.arrivals += 1;
        self.waiting_at.insert(item.clone(), slot);
        self.waiting.insert(slot, item);
        self.next_time() == Some(at)
    }

    /// Adds the items whose time has come, and returns what became of them.
    pub(super) fn promote(&mut self, now: Instant) -> Vec<Added> {
        let mut added = Vec::new();
        while let Some(entry) = self.waiting.first_entry()
            && entry.key().0 <= now
        {
            let ((at, _), item) = entry.remove_entry();
            self.waiting_at.remove(&item);
            added.push(self.add(item, at));
        }
        added
    }

    /// When the next waiting item is due.
    pub(super) fn next_time(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|((at, _), _)| *at)
    }

    /// The next item, and since when it was dirty.
    pub(super) fn take(&mut self, now: Instant) -> Option<(T, Instant)> {
        let item = self.ready.pop_front()?;
        self.dirty.remove(&item);
        let since = self.added.remove(&item).unwrap_or(now);
        self.processing.insert(item.clone(), now);
        Some((item, since))
    }

    /// Ends work on the item. Answers since when it had been worked on, and whether it is ready
    /// again; `None` if nobody worked on it.
    pub(super) fn done(&mut self, item: &T) -> Option<(Instant, bool)> {
        let since = self.processing.remove(item)?;
        let again = self.dirty.contains(item);
        if again {
            self.ready.push_back(item.clone());
        }
        Some((since, again))
    }

    /// Takes nothing any more and forgets what was for later.
    pub(super) fn shut_down(&mut self) {
        self.shutting_down = true;
        self.waiting.clear();
        self.waiting_at.clear();
    }

    pub(super) fn is_shutting_down(&self) -> bool {
        self.shutting_down
    }

    pub(super) fn len(&self) -> usize {
        self.ready.len()
    }

    /// Nothing to do and nobody at work.
    pub(super) fn is_idle(&self) -> bool {
        self.ready.is_empty() && self.processing.is_empty()
    }

    /// Since when each item is being worked on.
    pub(super) fn in_progress(&self) -> impl Iterator<Item = (&T, Instant)> {
        self.processing.iter().map(|(item, since)| (item, *since))
    }
}
