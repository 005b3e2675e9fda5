//! Watches: a place in the shared history, not a queue.
//!
//! A watcher that is slow costs a few events of look-ahead and nothing else; when the history
//! that it has not read is forgotten, it is told so and must list again.

use std::{collections::VecDeque, fmt, sync::Arc};

use parking_lot::RwLock;
use tokio::sync::Notify;

use crate::{
    key::Scope,
    state::State,
    write::{Event, Lagged},
};

/// How many events are taken from the history at once: enough to take the lock seldom, few
/// enough that a stuck watcher pins little.
const LOOK_AHEAD: usize = 64;

/// What readers and the writer share.
pub(crate) struct Shared<M> {
    pub(crate) state: RwLock<State<M>>,
    /// Wakes those who wait for a revision.
    pub(crate) advanced: Notify,
}

impl<M> Shared<M> {
    pub(crate) fn new(state: State<M>) -> Arc<Self> {
        Arc::new(Self { state: RwLock::new(state), advanced: Notify::new() })
    }

    /// What wakes the watches of a resource. Writes to the state only for the first of them.
    pub(crate) fn changed(&self, resource: &Arc<str>) -> Arc<Notify> {
        let known =
            self.state.read().resources.get(resource).map(|known| Arc::clone(&known.changed));
        known.unwrap_or_else(|| Arc::clone(&self.state.write().resource(resource).changed))
    }
}

/// The events of a [`Scope`], in order and without a gap. Dropping it ends it.
pub struct Watch<M> {
    shared: Arc<Shared<M>>,
    changed: Arc<Notify>,
    scope: Scope,
    /// Taken from the history, not yet delivered.
    ahead: VecDeque<Event<M>>,
    /// Everything up to this revision was taken from the history.
    taken: u64,
    /// Everything up to this revision was delivered.
    delivered: u64,
}

impl<M> Watch<M> {
    pub(crate) fn new(
        shared: &Arc<Shared<M>>,
        changed: Arc<Notify>,
        scope: Scope,
        since: u64,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            changed,
            scope,
            ahead: VecDeque::new(),
            taken: since,
            delivered: since,
        }
    }

    /// The next event; waits for it. Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Result<Event<M>, Lagged> {
        loop {
            let changed = Arc::clone(&self.changed);
            // Registered before the look, so that no event falls between the two.
            let changed = changed.notified();
            if let Some(event) = self.try_next()? {
                return Ok(event);
            }
            changed.await;
        }
    }

    /// The next event if it has happened already.
    pub fn try_next(&mut self) -> Result<Option<Event<M>>, Lagged> {
        if self.ahead.is_empty() {
            self.take()?;
        }
        let event = self.ahead.pop_front();
        self.delivered = match &event {
            Some(event) if !self.ahead.is_empty() => event.revision,
            _ => self.taken,
        };
        Ok(event)
    }

    /// Every event of the scope up to this revision has been delivered: what a bookmark may say.
    pub fn position(&self) -> u64 {
        if !self.ahead.is_empty() {
            return self.delivered;
        }
        let state = self.shared.state.read();
        let unread = state.resources.get(&self.scope.resource).is_some_and(|resource| {
            resource.forgotten > self.taken
                || resource
                    .events
                    .range(resource.events_after(self.taken)..)
                    .any(|event| self.scope.contains(&event.object.key))
        });
        if unread { self.delivered } else { self.taken.max(state.revision) }
    }

    fn take(&mut self) -> Result<(), Lagged> {
        let state = self.shared.state.read();
        let Some(resource) = state.resources.get(&self.scope.resource) else {
            self.taken = self.taken.max(state.revision);
            return Ok(());
        };
        if resource.forgotten > self.taken {
            return Err(Lagged);
        }
        let unread = resource.events.range(resource.events_after(self.taken)..);
        let in_scope = unread.filter(|event| self.scope.contains(&event.object.key));
        self.ahead.extend(in_scope.take(LOOK_AHEAD).cloned());
        self.taken = match self.ahead.back() {
            Some(last) if self.ahead.len() == LOOK_AHEAD => last.revision,
            _ => self.taken.max(state.revision),
        };
        Ok(())
    }
}

impl<M> fmt::Debug for Watch<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("scope", &self.scope)
            .field("delivered", &self.delivered)
            .finish_non_exhaustive()
    }
}
