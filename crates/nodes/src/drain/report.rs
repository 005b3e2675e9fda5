//! What a step of a drain brought, for conditions and people.

use std::time::Duration;

use fleetwright_lifecycle::{
    conditions::{Condition, SEVERITY_WARNING},
    drain::{
        Options, Plan, Stage,
        attempts::Answer,
        gate::{DRAIN_ERROR, DRAIN_FINISHED, DRAINED, NOT_NOW},
        progress::some_of,
    },
};
use jiff::Timestamp;

/// Cause of a refusal in a namespace that is being deleted.
const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";
/// Reason of the condition when a drain stopped before it was done.
pub const DRAIN_TIMED_OUT: &str = "DrainTimedOut";

/// Where a drain is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing is left that has to go.
    Drained,
    /// There is no such Node.
    NodeGone,
    /// The time that it may take is over; these pods are left.
    TimedOut(Vec<String>),
    /// Pods are still there.
    Draining,
    /// A pod is there that cannot be judged.
    Refused,
    /// This control plane Node must be gone first.
    WaitsForNode(String),
    /// The Node cannot be cordoned.
    CannotCordon(String),
}

impl State {
    /// Whether the Node need not be drained any more.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Drained | Self::NodeGone | Self::TimedOut(_))
    }
}

/// What a step brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advance {
    /// Where the drain is.
    pub state: State,
    /// What is missing, or how it ended, for people.
    pub message: String,
    /// When to make the next step, unless something happens sooner; none when it is over.
    pub look_again: Option<Timestamp>,
    /// What kubectl would warn of.
    pub warnings: Vec<String>,
}

impl Advance {
    pub(super) fn new(state: State, now: Timestamp) -> Self {
        let message = match &state {
            State::WaitsForNode(other) => format!(
                "drain not permitted: control plane Node {other} is cordoned already and may be \
                 drained: waiting until it is gone"
            ),
            State::CannotCordon(error) => format!("cannot cordon the Node: {error}"),
            _ => DRAIN_FINISHED.to_owned(),
        };
        let look_again = (!state.is_over()).then(|| now + NOT_NOW);
        Self { state, message, look_again, warnings: Vec::new() }
    }

    pub(super) fn of(plan: Plan, options: &Options, now: Timestamp) -> Self {
        let (state, message) = match plan.stage {
            Stage::Drained => return Self::new(State::Drained, now),
            Stage::Draining => (State::Draining, plan.progress.message()),
            Stage::Refused => (State::Refused, plan.progress.message()),
            Stage::TimedOut(left) => {
                let after = options.timeout.unwrap_or_default().as_secs();
                let message = format!(
                    "Drain stopped after its timeout of {after}s; left on the Node: {}",
                    some_of(&left)
                );
                (State::TimedOut(left), message)
            }
        };
        Self { state, message, look_again: plan.look_again, warnings: plan.warnings }
    }

    /// How long until the next step; none when it is over.
    pub fn after(&self, now: Timestamp) -> Option<Duration> {
        self.look_again.map(|time| Duration::try_from(time.duration_since(now)).unwrap_or_default())
    }

    /// The condition `Drained` that says so.
    pub fn condition(&self) -> Condition {
        match &self.state {
            State::TimedOut(_) => Condition::holds(DRAINED)
                .with_reason(DRAIN_TIMED_OUT)
                .with_message(self.message.clone()),
            state if state.is_over() => {
                Condition::holds(DRAINED).with_message(self.message.clone())
            }
            _ => Condition::fails(
                DRAINED,
                DRAIN_ERROR,
                SEVERITY_WARNING,
                format!("could not drain machine: {}", self.message),
            ),
        }
    }
}

/// What an error of the API says.
pub(super) fn answer(error: kube::Error) -> Answer {
    let status = match error {
        kube::Error::Api(status) => *status,
        other => return Answer { message: other.to_string(), ..Answer::default() },
    };
    let (causes, seconds) = status
        .details
        .map(|details| (details.causes, details.retry_after_seconds))
        .unwrap_or_default();
    Answer {
        code: status.code,
        namespace_terminating: causes.iter().any(|cause| cause.reason == NAMESPACE_TERMINATING),
        message: status.message,
        causes: causes.into_iter().map(|cause| cause.message).collect(),
        retry_after: (seconds > 0).then(|| Duration::from_secs(seconds.into())),
    }
}
