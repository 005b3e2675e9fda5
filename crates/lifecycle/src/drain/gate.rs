//! Whether a Machine is to be drained, and whether now.

use std::time::Duration;

use crate::phase::Phase;

/// Annotation of a Machine that is not to be drained, whatever its value.
pub const EXCLUDE_NODE_DRAINING: &str = "machine.openshift.io/exclude-node-draining";

/// Condition of a Machine: its Node is empty.
pub const DRAINED: &str = "Drained";
/// Reason of [`DRAINED`] while something is left.
pub const DRAIN_ERROR: &str = "DrainError";
/// Message of [`DRAINED`] when all went.
pub const DRAIN_FINISHED: &str = "Drain finished successfully";
/// Message of [`DRAINED`] when there was nothing to drain, or it was not wanted.
pub const DRAIN_SKIPPED: &str = "Node drain skipped";
/// Message of the event `DrainBlocked`.
pub const BLOCKED_BY_HOOK: &str = "Drain blocked by pre-drain hook";
/// Message of the event `DrainProceeds`.
pub const DRAIN_PROCEEDS: &str = "Node drain proceeds";
/// Message of the event `DrainSucceeded`.
pub const DRAIN_SUCCEEDED: &str = "Node drain succeeded";

/// Label of a control plane Node.
pub const CONTROL_PLANE_LABEL: &str = "node-role.kubernetes.io/control-plane";
/// The same, as older tools write it.
pub const MASTER_LABEL: &str = "node-role.kubernetes.io/master";
/// How long to wait for another control plane Node, or for a cordon that failed.
pub const NOT_NOW: Duration = Duration::from_secs(20);

/// What counts of a Machine.
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineFacts {
    /// Its phase.
    pub phase: String,
    /// Whether it has a deletion timestamp.
    pub deleting: bool,
    /// Whether its condition [`DRAINED`] holds.
    pub drained: bool,
    /// Whether it has the annotation [`EXCLUDE_NODE_DRAINING`].
    pub excluded: bool,
    /// Whether it has a Node.
    pub has_node: bool,
    /// Whether somebody holds back its drain.
    pub pre_drain_hooks: bool,
}

/// What to do with a Machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Nothing: it does not go, or it is empty already.
    Ignore,
    /// Call it drained: [`DRAIN_SKIPPED`].
    Skip,
    /// Wait for the hooks: [`BLOCKED_BY_HOOK`].
    Blocked,
    /// Drain it: [`DRAIN_PROCEEDS`].
    Drain,
}

/// What to do with a Machine. Hooks do not hold one that has nothing to drain.
pub fn gate(machine: &MachineFacts) -> Gate {
    if !machine.deleting || machine.phase != Phase::Deleting.as_str() || machine.drained {
        Gate::Ignore
    } else if machine.excluded || !machine.has_node {
        Gate::Skip
    } else if machine.pre_drain_hooks {
        Gate::Blocked
    } else {
        Gate::Drain
    }
}

/// What counts of a Node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// Its name.
    pub name: String,
    /// Whether it is of the control plane.
    pub control_plane: bool,
    /// Whether it takes no new pods.
    pub cordoned: bool,
}

/// The control plane Node that must be gone before this one is drained: two at once could cost the
/// quorum. A Node that is cordoned already goes on.
pub fn waits_for<'a>(
    node: &NodeFacts,
    all: impl IntoIterator<Item = &'a NodeFacts>,
) -> Option<&'a NodeFacts> {
    if node.cordoned || !node.control_plane {
        return None;
    }
    all.into_iter().find(|other| other.control_plane && other.cordoned)
}
