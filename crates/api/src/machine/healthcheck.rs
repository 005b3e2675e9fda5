use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::{Deserialize, Serialize};

use super::Condition;
use crate::lenient;

resource! {
    /// Which Machines to watch, when they count as unhealthy, and how many may be repaired at once.
    MachineHealthCheck, group: "machine.openshift.io", version: "v1beta1",
    plural: "machinehealthchecks", scope: NamespaceResourceScope,
    spec: MachineHealthCheckSpec, status: MachineHealthCheckStatus
}

/// What a MachineHealthCheck watches. Durations stay text here, as the schema's pattern lets texts
/// pass that are none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineHealthCheckSpec {
    /// Which Machines; an empty selector is all of the namespace.
    #[serde(default)]
    pub selector: LabelSelector,
    /// Which conditions of a Node, for how long, make it unhealthy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unhealthy_conditions: Vec<UnhealthyCondition>,
    /// Nothing is repaired while more than this many, or this share, are unhealthy.
    #[serde(
        default,
        deserialize_with = "lenient::clamped_or_text",
        skip_serializing_if = "Option::is_none"
    )]
    pub max_unhealthy: Option<IntOrString>,
    /// How old a Machine without a Node may grow; `0` is for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_startup_timeout: Option<String>,
    /// Whom to ask for the repair instead of deleting the Machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation_template: Option<ObjectReference>,
}

/// A condition of a Node and how long it may last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnhealthyCondition {
    /// The condition's type.
    #[serde(default, rename = "type")]
    pub type_: String,
    /// The status that is unhealthy.
    #[serde(default)]
    pub status: String,
    /// For how long, as text such as `5m`.
    #[serde(default)]
    pub timeout: String,
}

/// What a MachineHealthCheck observed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineHealthCheckStatus {
    /// How many Machines it watches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_machines: Option<i64>,
    /// How many of them are healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_healthy: Option<i64>,
    /// How many more may be repaired now; written even when none.
    #[serde(default, deserialize_with = "lenient::null_is_empty")]
    pub remediations_allowed: i32,
    /// What holds and what does not; see [`crate::names::condition`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
