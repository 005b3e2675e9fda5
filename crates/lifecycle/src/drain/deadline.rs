//! Fitting a drain into the time that a Node still has.

use std::{cmp::Reverse, time::Duration};

use jiff::{SignedDuration, Timestamp};

use super::{Options, Pod, Request, Verb};
use crate::moment::{after, before};

/// What is kept back of the time that a cloud gives, for the last words to reach everybody.
pub const SAFETY: Duration = Duration::from_secs(5);
/// The least that a pod gets.
const SHORTEST_GRACE: Duration = Duration::from_secs(1);

/// What becomes of pods that a budget holds when the Node dies anyway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AtDeadline {
    /// They are asked until the end, and die with the Node.
    #[default]
    RespectBudgets,
    /// They are deleted while there is time for them to end in order.
    DeleteWhatBlocks,
}

/// The time by which a drain should be over, when a cloud says when a Node ends.
pub fn drain_by(end: Timestamp) -> Timestamp {
    before(end, SAFETY)
}

/// How to remove a pod with so much time left, and how long it may take, if that is less than it
/// would by itself.
pub fn removal(
    at_deadline: AtDeadline,
    left: Option<SignedDuration>,
    own: Duration,
) -> (Verb, Option<Duration>) {
    let Some(left) = left else { return (Verb::Evict, None) };
    let left = Duration::try_from(left).unwrap_or_default();
    if left >= own {
        return (Verb::Evict, None);
    }
    let verb = match at_deadline {
        AtDeadline::RespectBudgets => Verb::Evict,
        AtDeadline::DeleteWhatBlocks => Verb::Delete,
    };
    (verb, Some(Duration::from_secs(left.as_secs()).max(SHORTEST_GRACE)))
}

/// When a pod that a budget holds will be deleted without asking.
pub(super) fn turns(options: &Options, pod: &Pod) -> impl Iterator<Item = Timestamp> {
    let own = options.grace.unwrap_or(pod.grace);
    options
        .deadline
        .filter(|_| options.at_deadline == AtDeadline::DeleteWhatBlocks)
        // A moment later, since at that very moment there is still enough time.
        .map(|deadline| after(before(deadline, own), Duration::from_millis(1)))
        .into_iter()
}

/// Sorts requests so that most pods end in time: those first that need most of the time that is
/// left, those last that cannot make it. What the cluster needs goes after what users need.
pub(super) fn most_urgent_first(
    requests: &mut [Request],
    pods: &[Pod],
    left: Option<SignedDuration>,
) {
    let left = left.map(|left| Duration::try_from(left).unwrap_or_default());
    requests.sort_by_key(|request| {
        let pod = &pods[request.pod];
        let late = left.is_some_and(|left| pod.grace > left);
        let need = left.map(|_| Reverse(pod.grace));
        (pod.critical, late, need, &pod.namespace, &pod.name)
    });
}
