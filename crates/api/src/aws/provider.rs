use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    AllocationStrategy, BlockDevice, CpuOptions, LoadBalancer, LocalObjectReference,
    MetadataServiceOptions, NetworkInterfaceType, Placement, ResourceReference, SpotMarketOptions,
    Tag,
};
use crate::lenient;
use crate::machine::{ProviderSpec, ProviderSpecError};

/// What a Machine on AWS should be: the object in `spec.providerSpec.value`.
///
/// The fields that are written even when empty are those that Go writes: users compare.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AWSMachineProviderConfig {
    /// Group and version of this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind of this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Metadata of this object; nothing reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// The image to boot.
    #[serde(default, deserialize_with = "lenient::null_is_empty")]
    pub ami: ResourceReference,
    /// The type of instance, such as `m5.large`.
    #[serde(default, deserialize_with = "lenient::null_is_empty")]
    pub instance_type: String,
    /// Processor features.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_options: Option<CpuOptions>,
    /// Tags of the instance and its volumes, beside those of the cluster.
    #[serde(
        default,
        deserialize_with = "lenient::null_is_empty",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub tags: Vec<Tag>,
    /// The role the instance acts under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iam_instance_profile: Option<ResourceReference>,
    /// The secret whose key `userData` the instance is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data_secret: Option<LocalObjectReference>,
    /// The secret with credentials for AWS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_secret: Option<LocalObjectReference>,
    /// A key pair for SSH.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_name: Option<String>,
    /// The place of the network interface.
    #[serde(default, deserialize_with = "lenient::null_is_empty")]
    pub device_index: i64,
    /// Whether the instance gets a public address; the subnet decides where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_ip: Option<bool>,
    /// The kind of network interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_interface_type: Option<NetworkInterfaceType>,
    /// Security groups.
    #[serde(
        default,
        deserialize_with = "lenient::null_is_empty",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub security_groups: Vec<ResourceReference>,
    /// The subnet.
    #[serde(default, deserialize_with = "lenient::null_is_empty")]
    pub subnet: ResourceReference,
    /// Region, zone, tenancy, host, group.
    #[serde(default, deserialize_with = "lenient::null_is_empty")]
    pub placement: Placement,
    /// Load balancers that the instance joins.
    #[serde(
        default,
        deserialize_with = "lenient::null_is_empty",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub load_balancers: Vec<LoadBalancer>,
    /// Disks.
    #[serde(
        default,
        deserialize_with = "lenient::null_is_empty",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub block_devices: Vec<BlockDevice>,
    /// Present: the instance is bought on the spot market.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spot_market_options: Option<SpotMarketOptions>,
    /// How the instance reads about itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata_service_options: Option<MetadataServiceOptions>,
    /// The placement group, in the spelling of later releases; see
    /// [`AWSMachineProviderConfig::placed`].
    #[serde(
        default,
        deserialize_with = "lenient::null_is_empty",
        skip_serializing_if = "String::is_empty"
    )]
    pub placement_group_name: String,
    /// The partition, in the spelling of later releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_group_partition: Option<i32>,
    /// The capacity reservation to launch into.
    #[serde(default, deserialize_with = "lenient::null_is_empty")]
    pub capacity_reservation_id: String,
    /// How the instance is bought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub market_type: Option<MarketType>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

open_enum! {
    /// How an instance is bought.
    MarketType {
        /// At the list price.
        OnDemand = "OnDemand",
        /// On the spot market.
        Spot = "Spot",
        /// From a block of capacity bought before.
        CapacityBlock = "CapacityBlock",
    }
}

impl AWSMachineProviderConfig {
    /// The groups and versions under which users write this object.
    pub const API_VERSIONS: [&'static str; 2] =
        ["machine.openshift.io/v1beta1", "awsproviderconfig.openshift.io/v1beta1"];
    /// The kind of this object.
    pub const KIND: &'static str = "AWSMachineProviderConfig";

    /// Reads the provider spec of a Machine.
    pub fn read(spec: &ProviderSpec) -> Result<Self, ProviderSpecError> {
        spec.read()
    }

    /// Whether the instance is bought on the spot market.
    pub fn is_spot(&self) -> bool {
        self.spot_market_options.is_some() || self.market_type == Some(MarketType::Spot)
    }

    /// Whether a host is allocated for the instance alone.
    pub fn has_own_host(&self) -> bool {
        let host = self.placement.host.as_ref().and_then(|host| host.dedicated_host.as_ref());
        host.and_then(|host| host.allocation_strategy.as_ref())
            == Some(&AllocationStrategy::Dynamic)
    }
}
