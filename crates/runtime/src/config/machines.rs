//! How machines are launched, drained and replaced.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Span;

/// How Machines are launched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct LaunchConfig {
    /// How long a Machine waits for capacity, room in a spread group or quota before it is Failed
    /// with reason InsufficientResources; 0 is at once. The annotation
    /// `fleetwright.dev/capacity-deadline` on a MachineSet wins.
    pub capacity_deadline: Span,
    /// What becomes of an interruptible (spot) Machine for which there is no capacity.
    pub spot_capacity: SpotCapacity,
    /// Whether the Machines of a MachineSet in a cluster placement group are launched in one
    /// request. The annotation `fleetwright.dev/gang` on a MachineSet wins.
    pub gang: ClusterGroups,
    /// How long the first Machine of a gang waits for the others.
    pub gang_window: Span,
    /// Whether other launches with equal parameters go out in one request.
    pub coalesce: bool,
    /// How long a launch waits for others like it.
    pub coalesce_window: Span,
    /// The most instances of one request.
    #[schemars(range(min = 1))]
    pub max_batch: u32,
    /// How long a Secret or an AWSPlacementGroup that a Machine names may be missing before the
    /// Machine is Failed.
    pub missing_deadline: Span,
    /// After this time a cloud shows what it launched: what is not there then was not launched.
    pub settle_time: Span,
}

impl Default for LaunchConfig {
    fn default() -> Self {
        Self {
            capacity_deadline: Span(Duration::from_mins(15)),
            spot_capacity: SpotCapacity::Fail,
            gang: ClusterGroups::AllOrNothing,
            gang_window: Span(Duration::from_secs(20)),
            coalesce: true,
            coalesce_window: Span(Duration::from_millis(200)),
            // EC2's throttle of RunInstances counts instances; others use the same size.
            max_batch: 500,
            missing_deadline: Span(Duration::from_mins(2)),
            settle_time: Span(Duration::from_mins(1)),
        }
    }
}

/// A spot Machine without capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SpotCapacity {
    /// It is Failed at once, so that something else can be tried.
    Fail,
    /// It waits as long as any other Machine.
    Wait,
}

/// Machines in cluster placement groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ClusterGroups {
    /// Launched together, or not at all.
    AllOrNothing,
    /// Launched together, and when that cannot be, as many as can be.
    BestEffort,
    /// Launched as any others.
    Off,
}

/// How Nodes of Machines that go are emptied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct DrainConfig {
    /// How long a drain may take; what is left then stays. 0 is for ever. The annotation
    /// `fleetwright.dev/drain-timeout` on a Machine wins.
    pub timeout: Span,
    /// What becomes of pods that a disruption budget holds on a Node that the cloud takes back.
    pub when_node_dies: WhenNodeDies,
}

impl Default for DrainConfig {
    fn default() -> Self {
        Self { timeout: Span(Duration::ZERO), when_node_dies: WhenNodeDies::RespectBudgets }
    }
}

/// Pods that a disruption budget holds on a Node that dies anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WhenNodeDies {
    /// They are asked until the end, and die with the Node.
    RespectBudgets,
    /// They are deleted while there is time for them to end in order.
    DeleteWhatBlocks,
}

/// How unhealthy Machines are replaced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct RepairConfig {
    /// When a replacement fails as well, how long the next one waits; it doubles each time. 0 never
    /// waits.
    pub backoff: Span,
    /// The longest wait.
    pub longest_backoff: Span,
    /// How long a replacement must be healthy until earlier failures are forgotten.
    pub healthy_for: Span,
    /// Whether the MachineHealthCheck `machine-api-termination-handler` is kept, which replaces
    /// interruptible Machines that the cloud takes back.
    pub termination_check: bool,
}

impl Default for RepairConfig {
    fn default() -> Self {
        Self {
            backoff: Span(Duration::from_secs(30)),
            longest_backoff: Span(Duration::from_mins(30)),
            healthy_for: Span(Duration::from_mins(10)),
            termination_check: true,
        }
    }
}
