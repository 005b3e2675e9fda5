//! Whether Machines are healthy, and how many may be repaired at once.
//!
//! [`judge`] looks at one Machine, [`evaluate`] at all that a check selects, and a [`board`] keeps
//! what was judged and judges only what changed; [`limit`] says whether so many unhealthy ones may
//! be repaired at all. Both API families use this: one counts the time
//! of a start from the last change of the Machine, the other from its creation, so that time is
//! part of what comes in.

pub mod board;
pub mod limit;
#[cfg(test)]
mod tests;

use std::{fmt, time::Duration};

use jiff::Timestamp;

use crate::moment::after;

/// The longest until the next look at a Machine that may turn unhealthy.
const LONGEST_WAIT: Duration = Duration::from_hours(1);
/// Times have whole seconds, so a moment is over for certain one second later.
const ONE_SECOND: Duration = Duration::from_secs(1);

/// What a check asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Check {
    /// Conditions of a Node that make it unhealthy.
    pub node_conditions: Vec<Unhealthy>,
    /// Conditions of a Machine that make it unhealthy.
    pub machine_conditions: Vec<Unhealthy>,
    /// How long a Machine may be without a Node; zero is for ever.
    pub node_startup_timeout: Duration,
}

/// A condition that makes something unhealthy after a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unhealthy {
    /// Its type.
    pub kind: String,
    /// Its status.
    pub status: String,
    /// How long it may last.
    pub timeout: Duration,
}

/// A condition of a Node or Machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its type.
    pub kind: String,
    /// Its status.
    pub status: String,
    /// Since when.
    pub since: Timestamp,
}

/// The Node of a Machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NodeState {
    /// It has none yet.
    #[default]
    None,
    /// It has one, and that does not exist.
    Missing,
    /// It has one with these conditions.
    Present(Vec<Seen>),
}

/// What counts of a Machine.
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Whether its phase is Failed.
    pub failed: bool,
    /// Whether there was an instance: it has a provider ID or a Node.
    pub had_instance: bool,
    /// Whether it goes already.
    pub deleting: bool,
    /// Whether somebody else repairs it.
    pub repaired_by_others: bool,
    /// Whether its owner asks for a repair.
    pub repair_asked: bool,
    /// When its start began; none when nobody knows.
    pub started: Option<Timestamp>,
    /// Its Node.
    pub node: NodeState,
    /// Its conditions.
    pub conditions: Vec<Seen>,
}

impl Target {
    /// Whether a Machine that nothing speaks against counts as healthy: one that goes, or has no
    /// Node yet, does not.
    fn works(&self) -> bool {
        !self.deleting && !self.repaired_by_others && matches!(self.node, NodeState::Present(_))
    }
}

/// Why a Machine is unhealthy. Repairs are counted by it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Its owner asks for a repair.
    Asked,
    /// It is Failed and never had an instance.
    LaunchFailed,
    /// It is Failed and had an instance.
    InstanceGone,
    /// It did not become a Node in time.
    StartupTimeout,
    /// Its Node is gone.
    NodeMissing,
    /// A condition of its Node lasts too long.
    NodeCondition {
        /// Its type.
        kind: String,
        /// Its status.
        status: String,
    },
    /// A condition of its own lasts too long.
    MachineCondition {
        /// Its type.
        kind: String,
        /// Its status.
        status: String,
    },
}

/// As it is persisted and shown.
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked => f.write_str("asked"),
            Self::LaunchFailed => f.write_str("launch-failed"),
            Self::InstanceGone => f.write_str("instance-gone"),
            Self::StartupTimeout => f.write_str("startup-timeout"),
            Self::NodeMissing => f.write_str("node-missing"),
            Self::NodeCondition { kind, status } => write!(f, "condition:{kind}={status}"),
            Self::MachineCondition { kind, status } => {
                write!(f, "machine-condition:{kind}={status}")
            }
        }
    }
}

/// How a Machine is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It needs a repair.
    Unhealthy(Cause),
    /// It will, unless something changes, after this time.
    Doubtful(Duration),
    /// Nothing speaks against it.
    Fine,
}

/// Judges a Machine; the first rule that speaks decides.
pub fn judge(check: &Check, target: &Target, now: Timestamp) -> Verdict {
    if target.repair_asked {
        return Verdict::Unhealthy(Cause::Asked);
    }
    if target.failed {
        return Verdict::Unhealthy(if target.had_instance {
            Cause::InstanceGone
        } else {
            Cause::LaunchFailed
        });
    }
    let mut waits = Vec::new();
    let machine = too_long(&check.machine_conditions, &target.conditions, now, &mut waits);
    if let Some((kind, status)) = machine {
        return Verdict::Unhealthy(Cause::MachineCondition { kind, status });
    }
    match &target.node {
        NodeState::Missing => return Verdict::Unhealthy(Cause::NodeMissing),
        NodeState::None if check.node_startup_timeout.is_zero() => {}
        NodeState::None => match target.started {
            None => waits.push(check.node_startup_timeout),
            Some(started) => match left(started, check.node_startup_timeout, now) {
                None => return Verdict::Unhealthy(Cause::StartupTimeout),
                Some(left) => waits.push(left),
            },
        },
        NodeState::Present(conditions) => {
            if let Some((kind, status)) =
                too_long(&check.node_conditions, conditions, now, &mut waits)
            {
                return Verdict::Unhealthy(Cause::NodeCondition { kind, status });
            }
        }
    }
    waits.into_iter().min().map_or(Verdict::Fine, |wait| Verdict::Doubtful(wait.min(LONGEST_WAIT)))
}

/// The condition that lasts too long; or else how long those that are there may still last.
fn too_long(
    unhealthy: &[Unhealthy],
    seen: &[Seen],
    now: Timestamp,
    waits: &mut Vec<Duration>,
) -> Option<(String, String)> {
    for rule in unhealthy {
        let Some(found) = seen.iter().find(|seen| seen.kind == rule.kind) else { continue };
        if found.status != rule.status {
            continue;
        }
        // A condition that may not last at all has lasted too long, even if the Node's clock is
        // ahead of ours.
        let since =
            if rule.timeout.is_zero() && found.since > now { Timestamp::MIN } else { found.since };
        match left(since, rule.timeout, now) {
            None => return Some((rule.kind.clone(), rule.status.clone())),
            Some(left) => waits.push(left),
        }
    }
    None
}

/// How long until something that lasts since `since` has lasted longer than `timeout`; none when
/// it has.
fn left(since: Timestamp, timeout: Duration, now: Timestamp) -> Option<Duration> {
    let end = after(since, timeout);
    (end >= now).then(|| {
        Duration::try_from(end.duration_since(now)).unwrap_or_default().saturating_add(ONE_SECOND)
    })
}

/// How the Machines of a check are. Numbers are places in the list that came in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evaluation {
    /// How many there are.
    pub total: usize,
    /// How many are healthy. Those that start, that go and that are in doubt are not.
    pub healthy: usize,
    /// Those that need a repair; those whose owner asks come first.
    pub unhealthy: Vec<(usize, Cause)>,
    /// Those that may need one soon.
    pub doubtful: Vec<usize>,
    /// When to look again, if nothing changes.
    pub next_check: Option<Duration>,
}

impl Evaluation {
    /// How many are not healthy.
    pub fn not_healthy(&self) -> usize {
        self.total.saturating_sub(self.healthy)
    }
}

/// Judges Machines.
pub fn evaluate<'a>(
    check: &Check,
    targets: impl IntoIterator<Item = &'a Target>,
    now: Timestamp,
) -> Evaluation {
    let mut found = Evaluation::default();
    for (place, target) in targets.into_iter().enumerate() {
        found.total += 1;
        match judge(check, target, now) {
            Verdict::Unhealthy(cause) => found.unhealthy.push((place, cause)),
            Verdict::Doubtful(wait) => {
                found.doubtful.push(place);
                found.next_check = found.next_check.into_iter().chain([wait]).min();
            }
            Verdict::Fine => found.healthy += usize::from(target.works()),
        }
    }
    found.unhealthy.sort_by_key(|(place, cause)| (*cause != Cause::Asked, *place));
    found
}
