//! The pods that wait for a node: those to try next, those that must pause, and those that wait
//! for something to change.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;

use super::{decide::Unschedulable, pod::PodFacts};

/// A pod that could not be placed pauses this long, then twice that, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// A pod that nothing has woken is tried again after this time all the same.
const LONGEST_WAIT: Duration = Duration::from_mins(5);

#[derive(Default)]
pub(super) struct Queue {
    entries: BTreeMap<String, Entry>,
    /// The most important first, then the one that has waited longest.
    ready: BTreeSet<(Reverse<i32>, u64, String)>,
    /// Pods that will be ready, by time.
    timed: BTreeSet<(Instant, String)>,
    counter: u64,
}

struct Entry {
    pod: Arc<PodFacts>,
    order: u64,
    attempts: u32,
    place: Place,
}

enum Place {
    Ready,
    /// It will be tried again then, whatever happens.
    Pausing(Instant),
    /// It is tried again when something changes, but not before it has paused.
    Parked {
        not_before: Instant,
        latest: Instant,
        why: Unschedulable,
    },
}

impl Queue {
    /// A pod wants a node, or has changed while it waits: a change may be what it waited for.
    pub(super) fn offer(&mut self, pod: Arc<PodFacts>) {
        let uid = pod.uid.clone();
        let known = self.remove(&uid);
        self.counter += 1;
        let (order, attempts) =
            known.map_or((self.counter, 0), |entry| (entry.order, entry.attempts));
        self.put(uid, Entry { pod, order, attempts, place: Place::Ready });
    }

    /// The pod needs no node any more.
    pub(super) fn forget(&mut self, uid: &str) {
        self.remove(uid);
    }

    /// The pod as it waits, if it does.
    pub(super) fn waiting(&self, uid: &str) -> Option<&Arc<PodFacts>> {
        self.entries.get(uid).map(|entry| &entry.pod)
    }

    /// The next pod to try. It is not in the queue any more until something is said about it.
    pub(super) fn pop(&mut self, now: Instant) -> Option<(Arc<PodFacts>, u32)> {
        while let Some((time, uid)) = self.timed.first().cloned() {
            if time > now {
                break;
            }
            if let Some(entry) = self.remove(&uid) {
                self.put(uid, Entry { place: Place::Ready, ..entry });
            }
        }
        let (_, _, uid) = self.ready.first().cloned()?;
        let entry = self.remove(&uid)?;
        Some((entry.pod, entry.attempts))
    }

    /// When something will be ready by itself.
    pub(super) fn next_time(&self) -> Option<Instant> {
        self.timed.first().map(|(time, _)| *time)
    }

    /// The pod could not be placed.
    pub(super) fn park(
        &mut self,
        pod: Arc<PodFacts>,
        attempts: u32,
        why: Unschedulable,
        now: Instant,
    ) {
        let place =
            Place::Parked { not_before: now + pause(attempts), latest: now + LONGEST_WAIT, why };
        self.counter += 1;
        let (uid, order) = (pod.uid.clone(), self.counter);
        self.put(uid, Entry { pod, order, attempts: attempts.saturating_add(1), place });
    }

    /// Placing the pod failed for no fault of its own.
    pub(super) fn retry(&mut self, pod: Arc<PodFacts>, attempts: u32, now: Instant) {
        let place = Place::Pausing(now + pause(attempts));
        self.counter += 1;
        let (uid, order) = (pod.uid.clone(), self.counter);
        self.put(uid, Entry { pod, order, attempts: attempts.saturating_add(1), place });
    }

    /// Something has changed: the parked pods that it may help are tried again.
    pub(super) fn wake(&mut self, now: Instant, helps: impl Fn(&PodFacts, &Unschedulable) -> bool) {
        let helped: Vec<(String, Instant)> = self
            .entries
            .iter()
            .filter_map(|(uid, entry)| match &entry.place {
                Place::Parked { not_before, why, .. } if helps(&entry.pod, why) => {
                    Some((uid.clone(), *not_before))
                }
                _ => None,
            })
            .collect();
        for (uid, not_before) in helped {
            if let Some(entry) = self.remove(&uid) {
                let place =
                    if not_before > now { Place::Pausing(not_before) } else { Place::Ready };
                self.put(uid, Entry { place, ..entry });
            }
        }
    }

    fn put(&mut self, uid: String, entry: Entry) {
        match &entry.place {
            Place::Ready => {
                self.ready.insert((Reverse(entry.pod.priority), entry.order, uid.clone()));
            }
            Place::Pausing(time) | Place::Parked { latest: time, .. } => {
                self.timed.insert((*time, uid.clone()));
            }
        }
        self.entries.insert(uid, entry);
    }

    fn remove(&mut self, uid: &str) -> Option<Entry> {
        let entry = self.entries.remove(uid)?;
        match &entry.place {
            Place::Ready => {
                self.ready.remove(&(Reverse(entry.pod.priority), entry.order, uid.to_owned()));
            }
            Place::Pausing(time) | Place::Parked { latest: time, .. } => {
                self.timed.remove(&(*time, uid.to_owned()));
            }
        }
        Some(entry)
    }
}

fn pause(attempts: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << attempts.min(4)).min(LONGEST_PAUSE)
}
