//! What stands in a Machine on Google Cloud: the provider spec. Only what is read is typed; the rest
//! is kept.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lenient;
use crate::machine::{ProviderSpec, ProviderSpecError};

/// What a Machine on Google Cloud should be: the object in `spec.providerSpec.value`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GCPMachineProviderSpec {
    /// Group and version of this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind of this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Whether the instance is one of those that end after a day at the latest, the elder kind of
    /// interruptible instances.
    #[serde(
        default,
        deserialize_with = "lenient::null_is_empty",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub preemptible: bool,
    /// How the instance is bought; at the list price where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioning_model: Option<ProvisioningModel>,
    /// What becomes of the instance when its host is looked after.
    #[serde(
        default,
        deserialize_with = "lenient::null_is_empty",
        skip_serializing_if = "HostMaintenance::is_empty"
    )]
    pub on_host_maintenance: HostMaintenance,
    /// Whether the instance is started again when the cloud ended it.
    #[serde(
        default,
        deserialize_with = "lenient::null_is_empty",
        skip_serializing_if = "RestartPolicy::is_empty"
    )]
    pub restart_policy: RestartPolicy,
    /// Everything else.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

open_enum! {
    /// How an instance is bought.
    ProvisioningModel {
        /// From spare capacity, which may be taken back.
        Spot = "Spot",
    }
}

open_enum! {
    /// What becomes of an instance when its host is looked after.
    HostMaintenance {
        /// It moves to another host.
        Migrate = "Migrate",
        /// It ends.
        Terminate = "Terminate",
    }
}

open_enum! {
    /// Whether an instance is started again when the cloud ended it.
    RestartPolicy {
        /// It is.
        Always = "Always",
        /// It is not.
        Never = "Never",
    }
}

impl GCPMachineProviderSpec {
    /// The groups and versions under which users write this object.
    pub const API_VERSIONS: [&'static str; 2] =
        ["machine.openshift.io/v1beta1", "gcpprovider.openshift.io/v1beta1"];
    /// The kind of this object.
    pub const KIND: &'static str = "GCPMachineProviderSpec";

    /// Reads the provider spec of a Machine.
    pub fn read(spec: &ProviderSpec) -> Result<Self, ProviderSpecError> {
        spec.read()
    }

    /// Whether an instance is asked for that the cloud may take back, of either kind.
    pub fn is_interruptible(&self) -> bool {
        self.preemptible || self.provisioning_model == Some(ProvisioningModel::Spot)
    }
}
