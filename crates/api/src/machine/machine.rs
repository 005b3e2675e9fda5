use k8s_openapi::api::core::v1::{NodeAddress, ObjectReference, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{Condition, EmbeddedMetadata};

resource! {
    /// One machine: an instance in a cloud and the Node it becomes.
    Machine, group: "machine.openshift.io", version: "v1beta1", plural: "machines",
    scope: NamespaceResourceScope, spec: MachineSpec, status: MachineStatus
}

/// What a Machine should be.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineSpec {
    /// Labels and annotations for the Node.
    #[serde(default, skip_serializing_if = "EmbeddedMetadata::is_empty")]
    pub metadata: EmbeddedMetadata,
    /// Who may hold the Machine on its way out.
    #[serde(default, skip_serializing_if = "LifecycleHooks::is_empty")]
    pub lifecycle_hooks: LifecycleHooks,
    /// Taints to keep on the Node, beside those it has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// What the provider needs to know.
    #[serde(default)]
    pub provider_spec: ProviderSpec,
    /// The instance, as the Node names it too; set once the instance is known.
    #[serde(default, rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// Which API owns the Machine while a cluster moves to Cluster API.
    #[serde(default, rename = "authoritativeAPI", skip_serializing_if = "Option::is_none")]
    pub authoritative_api: Option<Authority>,
}

/// What the provider needs to know, uninterpreted: see [`crate::aws`], [`crate::gcp`] and
/// [`crate::azure`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProviderSpec {
    /// The provider's own object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

/// Why a provider spec cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ProviderSpecError {
    /// There is none.
    #[error("no providerSpec.value")]
    Absent,
    /// It is not what it should be.
    #[error("{0}")]
    Malformed(#[from] serde_json::Error),
}

impl ProviderSpec {
    /// Reads the provider's own object.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ProviderSpecError> {
        match &self.value {
            None | Some(Value::Null) => Err(ProviderSpecError::Absent),
            Some(value) => Ok(T::deserialize(value)?),
        }
    }

    /// The kind of the provider's own object, where it says.
    pub fn kind(&self) -> Option<&str> {
        self.value.as_ref()?.get("kind")?.as_str()
    }
}

/// Who may hold the Machine on its way out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LifecycleHooks {
    /// Hold it before its Node is drained.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pre_drain: Vec<LifecycleHook>,
    /// Hold it after the drain, before the instance is terminated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pre_terminate: Vec<LifecycleHook>,
}

impl LifecycleHooks {
    /// Whether nobody holds the Machine.
    pub fn is_empty(&self) -> bool {
        self.pre_drain.is_empty() && self.pre_terminate.is_empty()
    }
}

/// One hold on a Machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LifecycleHook {
    /// Unique among the hooks of its kind.
    #[serde(default)]
    pub name: String,
    /// Who holds, and takes the hook away.
    #[serde(default)]
    pub owner: String,
}

impl std::fmt::Display for LifecycleHook {
    /// As the messages users know print a hook.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{{Name:{} Owner:{}}}", self.name, self.owner)
    }
}

open_enum! {
    /// Which API owns a resource while a cluster moves to Cluster API.
    Authority {
        /// This one.
        MachineApi = "MachineAPI",
        /// Cluster API.
        ClusterApi = "ClusterAPI",
        /// Neither, for the moment of the hand-over.
        Migrating = "Migrating",
    }
}

open_enum! {
    /// Where a Machine is in its life.
    Phase {
        /// Has no instance yet.
        Provisioning = "Provisioning",
        /// Has an instance and no Node yet.
        Provisioned = "Provisioned",
        /// Has a Node.
        Running = "Running",
        /// Goes away.
        Deleting = "Deleting",
        /// Will never be of use; nothing but deletion leaves this phase.
        Failed = "Failed",
    }
}

/// What was observed of a Machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineStatus {
    /// The Node, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_ref: Option<ObjectReference>,
    /// When this status last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<Time>,
    /// Why the Machine failed for good; see [`crate::names::error_reason`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_reason: Option<String>,
    /// The same for people. The autoscaler takes a Machine that has it for lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// The provider's own object; see [`crate::aws::AWSMachineProviderStatus`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_status: Option<Value>,
    /// Addresses of the instance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<NodeAddress>,
    /// The last thing a controller did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_operation: Option<LastOperation>,
    /// Where the Machine is in its life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// What holds and what does not; see [`crate::names::condition`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Which API owns the Machine now.
    #[serde(default, rename = "authoritativeAPI", skip_serializing_if = "Option::is_none")]
    pub authoritative_api: Option<Authority>,
    /// Which API this copy was last synchronised from.
    #[serde(default, rename = "synchronizedAPI", skip_serializing_if = "Option::is_none")]
    pub synchronized_api: Option<Authority>,
    /// The generation of the owning copy that this one agrees with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synchronized_generation: Option<i64>,
}

/// The last thing a controller did to a Machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastOperation {
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// When this was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<Time>,
    /// How it went: Processing, Failed, Successful.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// What it was: Create, Update, Delete.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
}
