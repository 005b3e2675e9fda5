//! The Machines of one check, each judged when it changes or its time is over.
//!
//! A check of five thousand Machines hears of one of them several times a second. The board keeps
//! what is known of the others, so that an event costs as much as one Machine.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;

use super::{Cause, Check, Target, Verdict, judge};
use crate::moment::after;

/// The Machines of a check, by what they are known as.
#[derive(Clone, Debug)]
pub struct Board<K> {
    check: Check,
    entries: BTreeMap<K, Entry>,
    due: BTreeSet<(Timestamp, K)>,
    unhealthy: BTreeSet<K>,
    healthy: usize,
}

#[derive(Clone, Debug)]
struct Entry {
    target: Target,
    verdict: Verdict,
    due: Option<Timestamp>,
}

impl Entry {
    fn healthy(&self) -> bool {
        self.verdict == Verdict::Fine && self.target.works()
    }
}

/// A Machine of which something new is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Nothing new.
    None,
    /// It may turn unhealthy.
    Doubtful,
    /// It is unhealthy, or for another cause than before.
    Unhealthy,
    /// It works, and did not before.
    Recovered,
}

impl<K: Clone + Ord> Board<K> {
    /// A board without Machines.
    pub fn new(check: Check) -> Self {
        Self {
            check,
            entries: BTreeMap::new(),
            due: BTreeSet::new(),
            unhealthy: BTreeSet::new(),
            healthy: 0,
        }
    }

    /// Judges a Machine that is new or has changed.
    pub fn put(&mut self, key: K, target: Target, now: Timestamp) -> Turn {
        let before = self.take(&key);
        let verdict = judge(&self.check, &target, now);
        let due = match &verdict {
            Verdict::Doubtful(wait) => Some(after(now, *wait)),
            Verdict::Unhealthy(_) | Verdict::Fine => None,
        };
        let entry = Entry { target, verdict, due };
        let turn = turn(before.as_ref(), &entry);
        if let Some(due) = due {
            self.due.insert((due, key.clone()));
        }
        if matches!(entry.verdict, Verdict::Unhealthy(_)) {
            self.unhealthy.insert(key.clone());
        }
        self.healthy += usize::from(entry.healthy());
        self.entries.insert(key, entry);
        turn
    }

    /// Forgets a Machine.
    pub fn remove(&mut self, key: &K) {
        self.take(key);
    }

    fn take(&mut self, key: &K) -> Option<Entry> {
        let entry = self.entries.remove(key)?;
        if let Some(due) = entry.due {
            self.due.remove(&(due, key.clone()));
        }
        self.unhealthy.remove(key);
        self.healthy -= usize::from(entry.healthy());
        Some(entry)
    }

    /// Judges those again whose time is over. Says who turned.
    pub fn advance(&mut self, now: Timestamp) -> Vec<(K, Turn)> {
        let mut turned = Vec::new();
        while let Some((due, key)) = self.due.first().cloned() {
            if now < due {
                break;
            }
            let Some(entry) = self.entries.get(&key) else { break };
            let target = entry.target.clone();
            turned.push((key.clone(), self.put(key, target, now)));
        }
        turned
    }

    /// How many Machines there are.
    pub fn total(&self) -> usize {
        self.entries.len()
    }

    /// How many are healthy. Those that start, that go and that are in doubt are not.
    pub fn healthy(&self) -> usize {
        self.healthy
    }

    /// Whether a Machine is healthy.
    pub fn is_healthy(&self, key: &K) -> bool {
        self.entries.get(key).is_some_and(Entry::healthy)
    }

    /// Those that need a repair, and why; those whose owner asks come first.
    pub fn unhealthy(&self) -> Vec<(&K, &Cause)> {
        let mut found: Vec<_> = self
            .unhealthy
            .iter()
            .filter_map(|key| match &self.entries.get(key)?.verdict {
                Verdict::Unhealthy(cause) => Some((key, cause)),
                Verdict::Doubtful(_) | Verdict::Fine => None,
            })
            .collect();
        found.sort_by_key(|(_, cause)| **cause != Cause::Asked);
        found
    }

    /// How long until somebody must be judged again, if nothing changes.
    pub fn next_check(&self, now: Timestamp) -> Option<Duration> {
        let (due, _) = self.due.first()?;
        Some(Duration::try_from(due.duration_since(now)).unwrap_or_default())
    }
}

fn turn(before: Option<&Entry>, entry: &Entry) -> Turn {
    let old = before.map(|before| &before.verdict);
    match &entry.verdict {
        Verdict::Unhealthy(_) if old == Some(&entry.verdict) => Turn::None,
        Verdict::Unhealthy(_) => Turn::Unhealthy,
        Verdict::Doubtful(_) if matches!(old, Some(Verdict::Doubtful(_))) => Turn::None,
        Verdict::Doubtful(_) => Turn::Doubtful,
        Verdict::Fine if entry.healthy() && before.is_some_and(|before| !before.healthy()) => {
            Turn::Recovered
        }
        Verdict::Fine => Turn::None,
    }
}

#[cfg(test)]
mod tests {
    use super::{super::*, *};

    fn now() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    fn at(second: u64) -> Timestamp {
        now() + Duration::from_secs(second)
    }

    fn check() -> Check {
        let rule = |kind: &str, status: &str, timeout| Unhealthy {
            kind: kind.to_owned(),
            status: status.to_owned(),
            timeout: Duration::from_secs(timeout),
        };
        Check {
            node_conditions: vec![rule("Ready", "False", 60), rule("Terminating", "True", 0)],
            node_startup_timeout: Duration::from_mins(10),
            ..Check::default()
        }
    }

    fn node(kind: &str, status: &str, since: Timestamp) -> Target {
        let seen = Seen { kind: kind.to_owned(), status: status.to_owned(), since };
        Target { node: NodeState::Present(vec![seen]), ..Target::default() }
    }

    #[test]
    fn a_node_in_doubt_turns_when_its_time_is_over() {
        let mut board = Board::new(check());
        assert_eq!(board.put("a", node("Ready", "True", now()), now()), Turn::None);
        assert_eq!((board.total(), board.healthy(), board.next_check(now())), (1, 1, None));
        assert_eq!(board.put("a", node("Ready", "False", now()), now()), Turn::Doubtful);
        assert_eq!(board.put("a", node("Ready", "False", now()), at(1)), Turn::None);
        assert_eq!(board.next_check(at(1)), Some(Duration::from_mins(1)));
        assert!(board.advance(at(60)).is_empty());
        assert_eq!(board.advance(at(61)), [("a", Turn::Unhealthy)]);
        assert_eq!((board.healthy(), board.unhealthy().len()), (0, 1));
        assert_eq!(board.put("a", node("Ready", "True", at(61)), at(62)), Turn::Recovered);
        assert!(board.is_healthy(&"a") && board.unhealthy().is_empty());
        board.remove(&"a");
        assert_eq!((board.total(), board.healthy(), board.next_check(now())), (0, 0, None));
    }

    #[test]
    fn a_clock_ahead_does_not_delay_what_may_not_last_at_all() {
        let mut board = Board::new(check());
        let told = node("Terminating", "True", at(3600));
        assert_eq!(board.put("a", told, now()), Turn::Unhealthy);
    }

    /// Whatever happens in whatever order, the board says what judging all of them says.
    #[test]
    fn the_board_says_what_everybody_together_says() {
        // A small generator of its own is enough: what matters is many mixed steps.
        let mut state = 7_u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let mut board = Board::new(check());
        let mut all: BTreeMap<u64, Target> = BTreeMap::new();
        let mut time = now();
        for _ in 0..5000 {
            time += Duration::from_secs(draw(30));
            let key = draw(12);
            let since = time - Duration::from_secs(draw(80));
            let target = match draw(7) {
                0 => {
                    board.remove(&key);
                    all.remove(&key);
                    None
                }
                1 => Some(node("Ready", "True", since)),
                2 => Some(node("Ready", "False", since)),
                3 => Some(Target { started: Some(since), ..Target::default() }),
                4 => Some(Target { failed: true, ..Target::default() }),
                5 => Some(Target { deleting: true, ..node("Ready", "True", since) }),
                _ => Some(Target { repair_asked: true, ..node("Ready", "True", since) }),
            };
            if let Some(target) = target {
                board.put(key, target.clone(), time);
                all.insert(key, target);
            }
            board.advance(time);
            let wanted = evaluate(&check(), all.values(), time);
            assert_eq!((board.total(), board.healthy()), (wanted.total, wanted.healthy));
            let keys: Vec<u64> = all.keys().copied().collect();
            let sick: Vec<_> =
                wanted.unhealthy.iter().map(|(place, cause)| (&keys[*place], cause)).collect();
            assert_eq!(board.unhealthy(), sick);
            assert_eq!(board.next_check(time).is_some(), wanted.next_check.is_some());
        }
    }
}
