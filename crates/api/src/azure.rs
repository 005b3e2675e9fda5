//! What stands in a Machine on Azure: the provider spec. Only what is read is typed; the rest is
//! kept.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lenient;
use crate::machine::{ProviderSpec, ProviderSpecError};

/// What a Machine on Azure should be: the object in `spec.providerSpec.value`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AzureMachineProviderSpec {
    /// Group and version of this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind of this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Present: the virtual machine is bought from spare capacity, which may be taken back.
    #[serde(default, rename = "spotVMOptions", skip_serializing_if = "Option::is_none")]
    pub spot_vm_options: Option<SpotVMOptions>,
    /// The availability set that the virtual machine joins.
    #[serde(
        default,
        deserialize_with = "lenient::null_is_empty",
        skip_serializing_if = "String::is_empty"
    )]
    pub availability_set: String,
    /// The group of capacity reservations that the virtual machine takes its capacity from.
    #[serde(
        default,
        rename = "capacityReservationGroupID",
        deserialize_with = "lenient::null_is_empty",
        skip_serializing_if = "String::is_empty"
    )]
    pub capacity_reservation_group_id: String,
    /// Everything else.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// How spare capacity is bought.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SpotVMOptions {
    /// The most to pay per hour, as a quantity; -1, or nothing, is the price on demand.
    #[serde(
        default,
        deserialize_with = "lenient::text_or_number",
        skip_serializing_if = "Option::is_none"
    )]
    pub max_price: Option<String>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

impl AzureMachineProviderSpec {
    /// The groups and versions under which users write this object.
    pub const API_VERSIONS: [&'static str; 2] =
        ["machine.openshift.io/v1beta1", "azureproviderconfig.openshift.io/v1beta1"];
    /// The kind of this object.
    pub const KIND: &'static str = "AzureMachineProviderSpec";

    /// Reads the provider spec of a Machine.
    pub fn read(spec: &ProviderSpec) -> Result<Self, ProviderSpecError> {
        spec.read()
    }

    /// Whether a virtual machine is asked for that the cloud may take back.
    pub fn is_interruptible(&self) -> bool {
        self.spot_vm_options.is_some()
    }
}
