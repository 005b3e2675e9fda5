//! The exact words of the AWSPlacementGroup API that users and tools match on, beside those of
//! `fleetwright_api::names::group`.

pub use fleetwright_api::names::{
    event::RECONCILE_ERROR,
    group::{
        CONFIGURATION_IN_SYNC, CONFIGURATION_MISMATCH, CREATION_FAILED, CREATION_SUCCEEDED,
        DELETING, DELETION_FAILED, NOT_FOUND, READY,
    },
    tag::{NAME as NAME_TAG, OWNED, cluster as cluster_tag},
};

/// Ready: the group is being made or removed.
pub const NOT_AVAILABLE: &str = "NotAvailable";
/// Ready: what the user wrote cannot work.
pub const INVALID_CONFIGURATION: &str = "InvalidConfiguration";
/// Ready: the cloud could not be asked, and what it last said is too old.
pub const OBSERVATION_FAILED: &str = "ObservationFailed";

/// Event: the group was made in the cloud.
pub const CREATED: &str = "Created";
/// Event: the group was removed from the cloud.
pub const DELETED: &str = "Deleted";
/// Event: the object no longer looks after the group.
pub const RELEASED: &str = "Released";

/// Start of the tag that says to which cluster a resource belongs.
pub const CLUSTER_TAG_PREFIX: &str = "kubernetes.io/cluster/";
