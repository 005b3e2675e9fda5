use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::{Deserialize, Serialize};

use super::{Authority, Condition, EmbeddedMetadata, MachineSpec};
use crate::lenient;

resource! {
    /// A number of Machines alike.
    MachineSet, group: "machine.openshift.io", version: "v1beta1", plural: "machinesets",
    scope: NamespaceResourceScope, spec: MachineSetSpec, status: MachineSetStatus
}

/// What a MachineSet should be.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineSetSpec {
    /// How many Machines; the schema says 1 where nothing is said.
    #[serde(
        default,
        deserialize_with = "lenient::clamped",
        skip_serializing_if = "Option::is_none"
    )]
    pub replicas: Option<i32>,
    /// How long a Machine must be ready before it counts as available.
    #[serde(
        default,
        deserialize_with = "lenient::clamped",
        skip_serializing_if = "Option::is_none"
    )]
    pub min_ready_seconds: Option<i32>,
    /// Which Machine goes first when there are too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_policy: Option<DeletePolicy>,
    /// Which Machines belong to the set; never changes.
    #[serde(default)]
    pub selector: LabelSelector,
    /// What a new Machine looks like.
    #[serde(default)]
    pub template: MachineTemplateSpec,
    /// Which API owns the MachineSet while a cluster moves to Cluster API.
    #[serde(default, rename = "authoritativeAPI", skip_serializing_if = "Option::is_none")]
    pub authoritative_api: Option<Authority>,
}

open_enum! {
    /// Which Machine goes first when there are too many.
    DeletePolicy {
        /// No preference of age.
        Random = "Random",
        /// The youngest.
        Newest = "Newest",
        /// The oldest.
        Oldest = "Oldest",
    }
}

/// What a new Machine looks like.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineTemplateSpec {
    /// Labels and annotations of the Machine.
    #[serde(default, skip_serializing_if = "EmbeddedMetadata::is_empty")]
    pub metadata: EmbeddedMetadata,
    /// Its spec.
    #[serde(default)]
    pub spec: MachineSpec,
}

/// What was observed of a MachineSet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineSetStatus {
    /// How many Machines there are; written even when none.
    #[serde(default, deserialize_with = "lenient::null_is_empty")]
    pub replicas: i32,
    /// How many carry all labels of the template.
    #[serde(
        default,
        deserialize_with = "lenient::clamped",
        skip_serializing_if = "Option::is_none"
    )]
    pub fully_labeled_replicas: Option<i32>,
    /// How many have a Node that is ready.
    #[serde(
        default,
        deserialize_with = "lenient::clamped",
        skip_serializing_if = "Option::is_none"
    )]
    pub ready_replicas: Option<i32>,
    /// How many have been ready for minReadySeconds.
    #[serde(
        default,
        deserialize_with = "lenient::clamped",
        skip_serializing_if = "Option::is_none"
    )]
    pub available_replicas: Option<i32>,
    /// The generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The selector as text, for the scale subresource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<String>,
    /// Why the set cannot do its work; see [`crate::names::error_reason`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_reason: Option<String>,
    /// The same for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// What holds and what does not; see [`crate::names::condition`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Which API owns the MachineSet now.
    #[serde(default, rename = "authoritativeAPI", skip_serializing_if = "Option::is_none")]
    pub authoritative_api: Option<Authority>,
    /// Which API this copy was last synchronised from.
    #[serde(default, rename = "synchronizedAPI", skip_serializing_if = "Option::is_none")]
    pub synchronized_api: Option<Authority>,
    /// The generation of the owning copy that this one agrees with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synchronized_generation: Option<i64>,
}
