//! `machine.openshift.io/v1`: AWSPlacementGroup, the group of instances that share a placement
//! strategy, made here or by someone else.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::{Deserialize, Serialize};

use crate::lenient;

resource! {
    /// A placement group in EC2. Its name there is the name of this object.
    AWSPlacementGroup, group: "machine.openshift.io", version: "v1", plural: "awsplacementgroups",
    scope: NamespaceResourceScope, spec: AWSPlacementGroupSpec, status: AWSPlacementGroupStatus
}

/// What a group should be.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AWSPlacementGroupSpec {
    /// Who looks after the group, and what it should look like.
    #[serde(default)]
    pub management_spec: AWSPlacementGroupManagementSpec,
    /// The secret with credentials for AWS, in the namespace of the group; without it the
    /// controller uses its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_secret: Option<LocalSecretReference>,
}

/// A secret in the namespace of the object that refers to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalSecretReference {
    /// Its name.
    #[serde(default)]
    pub name: String,
}

/// Who looks after a group, and what it should look like.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AWSPlacementGroupManagementSpec {
    /// Whether the group is made and removed here.
    #[serde(default)]
    pub management_state: ManagementState,
    /// What to make; only when managed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed: Option<ManagedAWSPlacementGroup>,
}

open_enum! {
    /// Whether a group is made and removed here.
    ManagementState {
        /// Made, observed and removed here.
        Managed = "Managed",
        /// Observed only. A group may become unmanaged, never managed again.
        Unmanaged = "Unmanaged",
    }
}

/// What a group looks like, wanted or observed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedAWSPlacementGroup {
    /// The strategy.
    #[serde(default)]
    pub group_type: GroupType,
    /// For the Partition strategy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<AWSPartitionPlacement>,
}

open_enum! {
    /// The strategy of a placement group.
    GroupType {
        /// Close together, for low latency.
        Cluster = "Cluster",
        /// In numbered partitions that share no racks.
        Partition = "Partition",
        /// Each on its own rack; seven at most per zone.
        Spread = "Spread",
    }
}

/// The partitions of a group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AWSPartitionPlacement {
    /// How many, 1 to 7; where nothing is said AWS makes 2. Fixed when the group is made.
    #[serde(
        default,
        deserialize_with = "lenient::clamped",
        skip_serializing_if = "Option::is_none"
    )]
    pub count: Option<i32>,
}

/// What was observed of a group.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AWSPlacementGroupStatus {
    /// Ready and Deleting; see [`crate::names::group`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Until when the observation may be trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// How many instances are in the group; absent until counted, which is not the same as none.
    #[serde(
        default,
        deserialize_with = "lenient::clamped",
        skip_serializing_if = "Option::is_none"
    )]
    pub replicas: Option<i32>,
    /// What the controller goes by. Differs from the spec when a user tries to manage a group
    /// that was unmanaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub management_state: Option<ManagementState>,
    /// What the group looks like in EC2; absent until observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_configuration: Option<ManagedAWSPlacementGroup>,
}
