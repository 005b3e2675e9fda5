//! Checks what clients of a store saw against what a store may show: for tests and simulations.
//!
//! The store numbers its writes, so unlike in general, checking for linearizability is cheap: the
//! order is known, and what is left to check is that it explains every answer and respects real
//! time (what was answered before a call began is visible to it).

use std::collections::BTreeMap;

use crate::{
    key::{Key, Scope},
    state::FIRST_REVISION,
    write::{EventKind, Expect},
};

/// One event of the log, or as a watch delivered it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// Its revision.
    pub revision: u64,
    /// The object.
    pub key: Key,
    /// What happened.
    pub kind: EventKind,
    /// What the object holds; every write of a test writes another value.
    pub value: u64,
}

/// Something that a client did, and when. Times are ticks of one counter that all clients share.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Taken before the call.
    pub began: u64,
    /// Taken after the answer.
    pub ended: u64,
    /// The call and its answer.
    pub what: What,
}

/// A call and its answer.
#[derive(Clone, Debug)]
pub enum What {
    /// A write.
    Wrote {
        /// The object.
        key: Key,
        /// The condition.
        expect: Expect,
        /// The value, or `None` for a deletion.
        value: Option<u64>,
        /// What was answered.
        answer: Answer,
    },
    /// A read of one object.
    Got {
        /// The object.
        key: Key,
        /// Its revision.
        found: Option<u64>,
    },
    /// A list of the latest revision.
    Listed {
        /// What was listed.
        scope: Scope,
        /// At which revision.
        revision: u64,
        /// The objects and their revisions.
        items: Vec<(Key, u64)>,
    },
    /// A list at a revision of the past. It may be as old as it likes, but must be right.
    ListedAt {
        /// What was listed.
        scope: Scope,
        /// At which revision.
        revision: u64,
        /// The objects and their revisions.
        items: Vec<(Key, u64)>,
    },
}

/// What a write was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Done, at this revision.
    Done(u64),
    /// Refused: there is such an object.
    AlreadyExists,
    /// Refused: there is no such object.
    NotFound,
    /// Refused: the object's revision is this.
    Conflict(u64),
    /// Not done.
    Unavailable,
    /// None was received (the store crashed, the client gave up): it may have been done.
    None,
}

/// What a watch delivered.
#[derive(Clone, Debug)]
pub struct Stream {
    /// What was watched.
    pub scope: Scope,
    /// After which revision.
    pub since: u64,
    /// Up to which revision it claims to have delivered everything.
    pub position: u64,
    /// The events, as delivered.
    pub events: Vec<Logged>,
}

/// Checks everything. `log` is all that ever happened, from an empty store.
pub fn check(log: &[Logged], seen: &[Seen], streams: &[Stream]) -> Result<(), String> {
    let history = History::replay(log)?;
    let bounds = Bounds::of(seen, &history)?;
    seen.iter().try_for_each(|one| history.explains(one, bounds.at(one)))?;
    streams.iter().try_for_each(|stream| history.produced(stream))
}

/// The log, replayed.
struct History<'a> {
    log: &'a [Logged],
    /// For each object, what it became at which revision; `None` when deleted.
    versions: BTreeMap<&'a Key, Vec<(u64, Option<u64>)>>,
}

impl<'a> History<'a> {
    fn replay(log: &'a [Logged]) -> Result<Self, String> {
        let mut versions: BTreeMap<&Key, Vec<(u64, Option<u64>)>> = BTreeMap::new();
        for (event, revision) in log.iter().zip(FIRST_REVISION + 1..) {
            let Logged { kind, key, .. } = event;
            if event.revision != revision {
                return Err(format!("the log has {} in the place of {revision}", event.revision));
            }
            let before = versions.entry(key).or_default();
            let existed = before.last().is_some_and(|(_, value)| value.is_some());
            if existed != (*kind != EventKind::Added) {
                return Err(format!("{key} was {kind:?} at {revision}, but existed: {existed}"));
            }
            before.push((revision, (*kind != EventKind::Deleted).then_some(event.value)));
        }
        Ok(Self { log, versions })
    }

    fn event(&self, revision: u64) -> Option<&'a Logged> {
        let index = revision.checked_sub(FIRST_REVISION + 1)?;
        self.log.get(usize::try_from(index).ok()?)
    }

    /// The revision of an object as of a point in the log.
    fn revision_at(&self, key: &Key, point: u64) -> Option<u64> {
        let versions = self.versions.get(key)?;
        let (revision, value) =
            versions.get(..versions.partition_point(|(revision, _)| *revision <= point))?.last()?;
        value.map(|_| *revision)
    }

    /// Whether at some point within bounds the object's revision satisfied a condition.
    fn ever(&self, key: &Key, (low, high): (u64, u64), is: impl Fn(Option<u64>) -> bool) -> bool {
        let changes = self.versions.get(key).into_iter().flatten().map(|(revision, _)| *revision);
        low <= high
            && std::iter::once(low)
                .chain(changes.filter(|revision| (low..=high).contains(revision)))
                .any(|point| is(self.revision_at(key, point)))
    }

    fn explains(&self, seen: &Seen, (low, high): (u64, u64)) -> Result<(), String> {
        let wrong = |why: &str| Err(format!("{why} (visible: {low} to {high}): {seen:?}"));
        match &seen.what {
            What::Wrote { key, expect, value, answer } => {
                let possible = match *answer {
                    Answer::Done(revision) => {
                        return self.explains_write(
                            seen,
                            key,
                            *expect,
                            *value,
                            revision,
                            low < revision && revision <= high,
                        );
                    }
                    Answer::AlreadyExists => {
                        *expect == Expect::Absent && self.ever(key, (low, high), |r| r.is_some())
                    }
                    Answer::NotFound => self.ever(key, (low, high), |r| r.is_none()),
                    Answer::Conflict(current) => {
                        *expect != Expect::Revision(current)
                            && self.ever(key, (low, high), |r| r == Some(current))
                    }
                    Answer::Unavailable => value.is_none_or(|value| {
                        !self.log.iter().any(|event| event.key == *key && event.value == value)
                    }),
                    Answer::None => true,
                };
                if possible { Ok(()) } else { wrong("no state explains the answer") }
            }
            What::Got { key, found } => {
                if self.ever(key, (low, high), |revision| revision == *found) {
                    Ok(())
                } else {
                    wrong("no state explains the read")
                }
            }
            What::Listed { scope, revision, items } => {
                if !(low..=high).contains(revision) {
                    return wrong("the list is stale or from the future");
                }
                self.explains_list(seen, scope, *revision, items)
            }
            What::ListedAt { scope, revision, items } => {
                if *revision > high {
                    return wrong("the list is from the future");
                }
                self.explains_list(seen, scope, *revision, items)
            }
        }
    }

    fn explains_write(
        &self,
        seen: &Seen,
        key: &Key,
        expect: Expect,
        value: Option<u64>,
        revision: u64,
        in_time: bool,
    ) -> Result<(), String> {
        let wrong = |why: &str| Err(format!("{why}: {seen:?}"));
        if !in_time {
            return wrong("the write is not ordered by real time");
        }
        let Some(event) = self.event(revision) else {
            return wrong("an acknowledged write is not in the log");
        };
        let deletion = event.kind == EventKind::Deleted;
        if event.key != *key || deletion != value.is_none() {
            return wrong("the log has another write at the acknowledged revision");
        }
        if value.is_some_and(|value| value != event.value) {
            return wrong("the log has another value for the write");
        }
        let before = self.revision_at(key, revision - 1);
        let held = match expect {
            Expect::Absent => before.is_none(),
            Expect::Any => before.is_some(),
            Expect::Revision(expected) => before == Some(expected),
        };
        if held { Ok(()) } else { wrong("the write happened though its expectation did not hold") }
    }

    fn explains_list(
        &self,
        seen: &Seen,
        scope: &Scope,
        revision: u64,
        items: &[(Key, u64)],
    ) -> Result<(), String> {
        let expected = self
            .versions
            .keys()
            .filter(|key| scope.contains(key))
            .filter_map(|&key| self.revision_at(key, revision).map(|at| (key, at)));
        if expected.eq(items.iter().map(|(key, revision)| (key, *revision))) {
            Ok(())
        } else {
            Err(format!("the list is not the state at its revision: {seen:?}"))
        }
    }

    fn produced(&self, stream: &Stream) -> Result<(), String> {
        let Stream { scope, since, position, events } = stream;
        let mut expected =
            self.log.iter().filter(|event| event.revision > *since && scope.contains(&event.key));
        for event in events {
            if expected.next() != Some(event) {
                return Err(format!("the watch of {scope:?} after {since} differs at {event:?}"));
            }
        }
        match expected.next() {
            Some(missed) if missed.revision <= *position => Err(format!(
                "the watch of {scope:?} after {since} is at {position} without {missed:?}"
            )),
            _ => Ok(()),
        }
    }
}

/// Which revisions a call must and can see.
struct Bounds {
    /// When something was answered, and the newest revision known by then.
    known: Vec<(u64, u64)>,
    /// When a write began, and the oldest revision of those that began then or later.
    begun: Vec<(u64, u64)>,
    newest: u64,
}

impl Bounds {
    fn of(seen: &[Seen], history: &History<'_>) -> Result<Self, String> {
        let mut known = Vec::new();
        let mut begun = Vec::new();
        let mut owners = BTreeMap::new();
        for one in seen {
            match &one.what {
                What::Wrote { answer: Answer::Done(revision), .. } => {
                    known.push((one.ended, *revision));
                    begun.push((one.began, *revision));
                    if let Some(other) = owners.insert(*revision, one) {
                        return Err(format!("two writes have one revision: {one:?} and {other:?}"));
                    }
                }
                What::Wrote { key, value: Some(value), answer: Answer::None, .. } => {
                    let written = |event: &&Logged| event.value == *value && event.key == *key;
                    let event = history.log.iter().find(written);
                    begun.extend(event.map(|event| (one.began, event.revision)));
                }
                What::Got { found: Some(revision), .. }
                | What::Wrote { answer: Answer::Conflict(revision), .. }
                | What::Listed { revision, .. } => known.push((one.ended, *revision)),
                _ => {}
            }
        }
        known.sort_unstable();
        begun.sort_unstable();
        let mut newest = FIRST_REVISION;
        for (_, revision) in &mut known {
            newest = newest.max(*revision);
            *revision = newest;
        }
        let mut oldest = u64::MAX;
        for (_, revision) in begun.iter_mut().rev() {
            oldest = oldest.min(*revision);
            *revision = oldest;
        }
        let newest = history.log.last().map_or(FIRST_REVISION, |event| event.revision);
        Ok(Self { known, begun, newest })
    }

    fn at(&self, seen: &Seen) -> (u64, u64) {
        let before = self.known.partition_point(|(ended, _)| *ended < seen.began);
        let low = before.checked_sub(1).and_then(|last| self.known.get(last));
        let after = self.begun.partition_point(|(began, _)| *began <= seen.ended);
        let high = self.begun.get(after).map_or(self.newest, |(_, oldest)| oldest - 1);
        (low.map_or(FIRST_REVISION, |(_, revision)| *revision), high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key::new("/pods", "a", "x")
    }

    fn log() -> Vec<Logged> {
        [EventKind::Added, EventKind::Modified, EventKind::Deleted]
            .into_iter()
            .zip(2..)
            .map(|(kind, revision)| Logged { revision, key: key(), kind, value: revision * 10 })
            .collect()
    }

    fn wrote(began: u64, expect: Expect, value: Option<u64>, answer: Answer) -> Seen {
        Seen { began, ended: began + 1, what: What::Wrote { key: key(), expect, value, answer } }
    }

    fn got(began: u64, found: Option<u64>) -> Seen {
        Seen { began, ended: began + 1, what: What::Got { key: key(), found } }
    }

    fn good() -> Vec<Seen> {
        vec![
            wrote(0, Expect::Absent, Some(20), Answer::Done(2)),
            wrote(10, Expect::Revision(2), Some(30), Answer::Done(3)),
            wrote(20, Expect::Any, None, Answer::Done(4)),
        ]
    }

    #[test]
    fn a_good_history_passes() {
        let mut seen = good();
        seen.push(got(5, Some(2)));
        seen.push(got(10, Some(2)));
        seen.push(got(10, Some(3)));
        seen.push(got(30, None));
        seen.push(wrote(15, Expect::Revision(2), Some(99), Answer::Conflict(3)));
        seen.push(wrote(15, Expect::Absent, Some(98), Answer::AlreadyExists));
        seen.push(wrote(25, Expect::Any, Some(97), Answer::NotFound));
        assert_eq!(check(&log(), &seen, &[]), Ok(()));
    }

    #[test]
    fn bad_answers_are_found() {
        for bad in [
            // Stale, from the future, never there.
            got(15, Some(2)),
            got(5, Some(3)),
            got(30, Some(4)),
            // A lost write, a write with a false expectation, and wrong refusals.
            wrote(30, Expect::Absent, Some(50), Answer::Done(5)),
            wrote(0, Expect::Any, Some(20), Answer::Done(2)),
            wrote(15, Expect::Revision(3), Some(99), Answer::Conflict(3)),
            wrote(15, Expect::Any, Some(99), Answer::NotFound),
            wrote(30, Expect::Absent, Some(99), Answer::AlreadyExists),
            wrote(10, Expect::Any, Some(30), Answer::Unavailable),
        ] {
            let mut seen = good();
            seen.push(bad.clone());
            assert!(check(&log(), &seen, &[]).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn bad_logs_and_lists_are_found() {
        let mut gap = log();
        gap.remove(1);
        assert!(check(&gap, &[], &[]).is_err());
        let mut twice = log();
        twice[1].kind = EventKind::Added;
        assert!(check(&twice, &[], &[]).is_err());
        for (revision, items, right) in
            [(3, vec![(key(), 3)], true), (4, vec![], true), (3, vec![], false)]
        {
            let what = What::Listed { scope: Scope::all("/pods"), revision, items };
            assert_eq!(check(&log(), &[Seen { began: 0, ended: 9, what }], &[]).is_ok(), right);
        }
    }

    #[test]
    fn bad_streams_are_found() {
        let stream = |since, position, events: &[usize]| {
            let events = events.iter().map(|&index| log()[index].clone()).collect();
            check(&log(), &[], &[Stream { scope: Scope::all("/pods"), since, position, events }])
        };
        assert_eq!(stream(1, 4, &[0, 1, 2]), Ok(()));
        assert_eq!(stream(2, 3, &[1]), Ok(()));
        assert!(stream(1, 4, &[0, 2]).is_err(), "gap");
        assert!(stream(1, 4, &[0, 1]).is_err(), "short");
        assert!(stream(1, 4, &[1, 0, 2]).is_err(), "order");
        assert!(stream(2, 4, &[0, 1, 2]).is_err(), "too early");
        assert!(stream(1, 4, &[0, 0, 1, 2]).is_err(), "double");
    }
}
