//! What changed: the story that observers are told.

use std::sync::Arc;

use jiff::Timestamp;

use super::{
    groups::PlacementGroup,
    instance::{Instance, InstanceState},
    tags::Tags,
    volumes::Volume,
};

/// A change, as it happens.
#[derive(Clone, Debug)]
pub struct Event {
    /// Counts up by one: nothing is left out.
    pub sequence: u64,
    /// When.
    pub at: Timestamp,
    /// What.
    pub change: Change,
}

/// What can change. Each carries the whole resource as it is after the change.
#[derive(Clone, Debug)]
pub enum Change {
    /// RunInstances made it: pending.
    InstanceLaunched(Arc<Instance>),
    /// It entered another state.
    InstanceState {
        /// The instance, in its new state.
        instance: Arc<Instance>,
        /// Where it came from.
        from: InstanceState,
    },
    /// A terminated instance is no longer listed.
    InstanceForgotten(String),
    /// A spot instance will be interrupted.
    SpotNotice {
        /// The instance.
        instance: Arc<Instance>,
        /// terminate or stop.
        action: &'static str,
        /// When it will be.
        at: Timestamp,
    },
    /// A spot instance is at more risk than usual.
    RebalanceRecommended(Arc<Instance>),
    /// The operating system of an instance hangs, or no longer does.
    InstanceFrozen {
        /// The instance.
        instance: Arc<Instance>,
        /// Whether it hangs.
        frozen: bool,
    },
    /// The tags of a resource are now these.
    Tags {
        /// Its identifier.
        resource: String,
        /// All its tags.
        tags: Tags,
    },
    /// A placement group was made.
    GroupCreated(PlacementGroup),
    /// It entered another state.
    GroupState(PlacementGroup),
    /// It is gone.
    GroupDeleted(PlacementGroup),
    /// A volume was made.
    VolumeCreated(Volume),
    /// Its instance is gone, and it stays.
    VolumeDetached(Volume),
    /// It is gone.
    VolumeDeleted(String),
    /// A target group gained a target.
    TargetRegistered {
        /// The target group.
        group: String,
        /// An address or an instance, and its port.
        target: (String, u16),
    },
    /// A target group lost a target.
    TargetDeregistered {
        /// The target group.
        group: String,
        /// An address or an instance, and its port.
        target: (String, u16),
    },
    /// A Dedicated Host was allocated.
    HostAllocated(String),
    /// A Dedicated Host was released.
    HostReleased(String),
}
