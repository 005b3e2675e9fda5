//! What the answers to requests mean, and when a refused request is made again.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;

use super::{Pod, Verb};
use crate::moment::after;

/// The first wait after a refusal.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait while a Node is about to die: every second counts then.
pub const LONGEST_WAIT_WITH_DEADLINE: Duration = Duration::from_secs(5);
/// The longest wait otherwise: a budget that lets go is noticed within a minute.
pub const LONGEST_WAIT: Duration = Duration::from_mins(1);
/// How long an answer is trusted over what the list of pods still says.
const TRUST: Duration = Duration::from_secs(10);

/// What the API answered to an eviction or a deletion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The status code; 0 when there was no answer.
    pub code: u16,
    /// Whether a cause says that the namespace is being deleted.
    pub namespace_terminating: bool,
    /// What it said.
    pub message: String,
    /// The causes that it gave; a disruption budget names itself here.
    pub causes: Vec<String>,
    /// How long it asks to wait.
    pub retry_after: Option<Duration>,
}

/// What an answer means for a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// It is gone, or its name belongs to another now.
    Gone,
    /// It will go.
    WaitForGone,
    /// Not now; ask again.
    Retry,
    /// Something is wrong; ask again, and say so.
    Error,
}

/// What an answer means for a pod. Every request carries the UID, so a conflict says that the
/// pod of that UID is gone.
pub fn next(answer: &Answer, terminating: bool) -> Next {
    match answer.code {
        200..=299 => Next::WaitForGone,
        404 | 409 => Next::Gone,
        429 => Next::Retry,
        // A namespace that goes takes its pods along, and lets nobody evict meanwhile.
        403 if answer.namespace_terminating && terminating => Next::WaitForGone,
        403 if answer.namespace_terminating => Next::Retry,
        _ => Next::Error,
    }
}

/// How long to wait after so many refusals.
pub fn wait(refusals: u32, asked: Option<Duration>, deadline: bool) -> Duration {
    let longest = if deadline { LONGEST_WAIT_WITH_DEADLINE } else { LONGEST_WAIT };
    let doubled = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(refusals.saturating_sub(1)));
    doubled.max(asked.unwrap_or_default()).min(longest)
}

/// What earlier requests brought, by the UID of the pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attempts(BTreeMap<String, Attempt>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Attempt {
    refusals: u32,
    state: State,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Gone { at: Timestamp },
    Accepted { at: Timestamp },
    Refused { retry_at: Timestamp, verb: Verb, why: String },
}

/// Where a pod stands with us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing<'a> {
    /// A request may be made.
    Due {
        /// Why the last one was refused.
        why: Option<&'a str>,
    },
    /// It will go.
    Accepted,
    /// It is gone, though the list may not know yet.
    Gone,
    /// No request before this time.
    Refused {
        /// When to ask again.
        retry_at: Timestamp,
        /// What was refused.
        verb: Verb,
        /// Why it was refused.
        why: &'a str,
    },
}

impl Attempts {
    /// Where a pod stands.
    pub fn standing(&self, uid: &str, now: Timestamp) -> Standing<'_> {
        match self.0.get(uid).map(|attempt| &attempt.state) {
            Some(State::Gone { at }) if now < after(*at, TRUST) => Standing::Gone,
            Some(State::Accepted { at }) if now < after(*at, TRUST) => Standing::Accepted,
            Some(State::Refused { retry_at, verb, why }) if now < *retry_at => {
                Standing::Refused { retry_at: *retry_at, verb: *verb, why }
            }
            Some(State::Refused { why, .. }) => Standing::Due { why: Some(why) },
            _ => Standing::Due { why: None },
        }
    }

    /// Remembers the answer to a request. With a deadline, waits are short.
    pub fn answered(
        &mut self,
        pod: &Pod,
        verb: Verb,
        answer: &Answer,
        deadline: bool,
        now: Timestamp,
    ) {
        let before = self.0.get(&pod.uid).map_or(0, |attempt| attempt.refusals);
        let attempt = match next(answer, pod.deletion.is_some()) {
            Next::Gone => Attempt { refusals: 0, state: State::Gone { at: now } },
            Next::WaitForGone => Attempt { refusals: 0, state: State::Accepted { at: now } },
            Next::Retry | Next::Error => {
                let refusals = before.saturating_add(1);
                let retry_at = after(now, wait(refusals, answer.retry_after, deadline));
                let words: Vec<&str> = std::iter::once(answer.message.as_str())
                    .chain(answer.causes.iter().map(String::as_str))
                    .collect();
                Attempt { refusals, state: State::Refused { retry_at, verb, why: words.join(" ") } }
            }
        };
        self.0.insert(pod.uid.clone(), attempt);
    }

    /// Lets a list of pods that is known to be current count more than answers that said that a
    /// pod is gone.
    pub fn believe_the_list(&mut self) {
        self.0.retain(|_, attempt| !matches!(attempt.state, State::Gone { .. }));
    }

    /// Forgets pods that are not there any more.
    pub fn keep_only<'a>(&mut self, uids: impl Iterator<Item = &'a str>) {
        let uids: std::collections::BTreeSet<&str> = uids.collect();
        self.0.retain(|uid, _| uids.contains(uid.as_str()));
    }

    /// How many pods it remembers.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it remembers none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
