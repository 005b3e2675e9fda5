//! What the controller remembers of groups between reconciles: what it last saw, whether something
//! has happened since, and how long to leave the cloud alone after a failure.
//!
//! Nothing here must survive a restart: a process that remembers nothing looks again.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use fleetwright_clock::BackoffPolicy;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::decide::Seen;

/// How failures are retried. No jitter: a failure of one account is one call for all its groups.
const RETRY: BackoffPolicy = BackoffPolicy {
    initial: Duration::from_secs(1),
    max: Duration::from_mins(2),
    factor: 2.0,
    jitter: 0.0,
    reset_after: None,
};

/// What is remembered. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory(Arc<Mutex<BTreeMap<String, Note>>>);

#[derive(Debug, Default)]
struct Note {
    seen: Option<Arc<Seen>>,
    /// When that is to be renewed.
    renew: Option<Instant>,
    outdated: bool,
    failures: u32,
    /// Leave the cloud alone until then, unless the user changes something.
    pause: Option<(Instant, Version)>,
}

/// What the user has asked for: a change of it ends a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) generation: Option<i64>,
    pub(crate) deleting: bool,
}

impl Memory {
    /// What was last seen of a group.
    pub(crate) fn seen(&self, name: &str) -> Option<Arc<Seen>> {
        self.0.lock().get(name)?.seen.clone()
    }

    /// Whether a group must be looked at before anything is said about it.
    pub(crate) fn is_outdated(&self, name: &str) -> bool {
        self.0.lock().get(name).is_none_or(|note| {
            note.outdated || note.renew.is_none_or(|renew| renew <= Instant::now())
        })
    }

    /// How long what was seen may stand.
    pub(crate) fn renew_in(&self, name: &str) -> Option<Duration> {
        let renew = self.0.lock().get(name)?.renew?;
        Some(renew.saturating_duration_since(Instant::now()))
    }

    /// Something happened that the cloud would show.
    pub(crate) fn outdate(&self, name: &str) {
        self.0.lock().entry(name.to_owned()).or_default().outdated = true;
    }

    /// What was seen stands for no longer than this. Not outdated at once: groups that wait for
    /// something at the same time would look for each other again and again.
    pub(crate) fn stands_for(&self, name: &str, delay: Duration) {
        let until = Instant::now() + delay;
        let mut notes = self.0.lock();
        let note = notes.entry(name.to_owned()).or_default();
        note.renew = Some(note.renew.map_or(until, |renew| renew.min(until)));
    }

    /// The cloud showed this. `renew` is when to ask again.
    pub(crate) fn saw(&self, name: &str, seen: Seen, renew: Instant) {
        let mut notes = self.0.lock();
        let note = notes.entry(name.to_owned()).or_default();
        note.seen = Some(Arc::new(seen));
        note.renew = Some(renew);
        note.outdated = false;
    }

    /// It went well.
    pub(crate) fn succeeded(&self, name: &str) {
        if let Some(note) = self.0.lock().get_mut(name) {
            note.failures = 0;
            note.pause = None;
        }
    }

    /// It went wrong: how long to wait.
    pub(crate) fn failed(&self, name: &str, version: Version) -> Duration {
        let mut notes = self.0.lock();
        let note = notes.entry(name.to_owned()).or_default();
        let wait = RETRY.wait(note.failures);
        note.failures = note.failures.saturating_add(1);
        note.pause = Some((Instant::now() + wait, version));
        wait
    }

    /// How long to leave the cloud alone.
    pub(crate) fn pause(&self, name: &str, version: Version) -> Option<Duration> {
        let (until, of) = self.0.lock().get(name)?.pause?;
        let left = until.saturating_duration_since(Instant::now());
        (of == version && !left.is_zero()).then_some(left)
    }

    /// The object is gone.
    pub(crate) fn forget(&self, name: &str) {
        self.0.lock().remove(name);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const FIRST: Version = Version { generation: Some(1), deleting: false };

    #[tokio::test(start_paused = true)]
    async fn failures_pause_ever_longer_until_the_user_acts() {
        let memory = Memory::default();
        let waits: Vec<u64> = (0..9).map(|_| memory.failed("g", FIRST).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 120, 120]);
        assert_eq!(memory.pause("g", FIRST), Some(Duration::from_mins(2)));
        assert_eq!(memory.pause("g", Version { generation: Some(2), ..FIRST }), None);
        advance(Duration::from_mins(2)).await;
        assert_eq!(memory.pause("g", FIRST), None);
        memory.succeeded("g");
        assert_eq!(memory.failed("g", FIRST), Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_seen_stands_until_it_is_time_or_something_happens() {
        let memory = Memory::default();
        assert!(memory.is_outdated("g"));
        let at = jiff::Timestamp::UNIX_EPOCH;
        let see = || {
            let seen = Seen { at, group: None, members: Vec::new(), made: false };
            memory.saw("g", seen, Instant::now() + Duration::from_secs(90));
        };
        see();
        assert!(!memory.is_outdated("g"));
        memory.outdate("g");
        assert!(memory.is_outdated("g"));
        see();
        advance(Duration::from_secs(90)).await;
        assert!(memory.is_outdated("g"));
        see();
        memory.stands_for("g", Duration::from_secs(5));
        assert!(!memory.is_outdated("g"));
        advance(Duration::from_secs(5)).await;
        assert!(memory.is_outdated("g"));
    }
}
