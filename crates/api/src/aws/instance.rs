use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lenient;

/// Something in AWS, by identifier, by ARN or by filters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ResourceReference {
    /// Its identifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its ARN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arn: Option<String>,
    /// What finds it.
    #[serde(
        default,
        deserialize_with = "lenient::null_is_empty",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub filters: Vec<Filter>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// A filter of a Describe call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Filter {
    /// What to filter by, such as `tag:Name`.
    #[serde(default, deserialize_with = "lenient::null_is_empty")]
    pub name: String,
    /// The values that pass.
    #[serde(
        default,
        deserialize_with = "lenient::null_is_empty",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub values: Vec<String>,
}

/// A name and a value on what is made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tag {
    /// The name, 1 to 128 characters.
    #[serde(default, deserialize_with = "lenient::null_is_empty")]
    pub name: String,
    /// The value.
    #[serde(default, deserialize_with = "lenient::null_is_empty")]
    pub value: String,
}

/// An object in the namespace of the one that refers to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalObjectReference {
    /// Its name.
    #[serde(
        default,
        deserialize_with = "lenient::null_is_empty",
        skip_serializing_if = "String::is_empty"
    )]
    pub name: String,
}

/// Processor features.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CpuOptions {
    /// Whether memory is encrypted against the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidential_compute: Option<ConfidentialCompute>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

open_enum! {
    /// Whether memory is encrypted against the host.
    ConfidentialCompute {
        /// It is not.
        Disabled = "Disabled",
        /// By AMD SEV-SNP.
        SevSnp = "AMDEncryptedVirtualizationNestedPaging",
    }
}

open_enum! {
    /// The kind of network interface.
    NetworkInterfaceType {
        /// The ordinary one.
        Ena = "ENA",
        /// The one for high-performance computing.
        Efa = "EFA",
    }
}

/// How the instance reads about itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MetadataServiceOptions {
    /// Whether it must ask for a token first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication: Option<MetadataAuthentication>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

open_enum! {
    /// Whether the instance must ask for a token before it reads about itself.
    MetadataAuthentication {
        /// It must.
        Required = "Required",
        /// It may.
        Optional = "Optional",
    }
}

/// The instance is bought on the spot market.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SpotMarketOptions {
    /// The most to pay per hour, in dollars; the price on demand where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_price: Option<String>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// A load balancer that the instance joins.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadBalancer {
    /// Its name.
    #[serde(default, deserialize_with = "lenient::null_is_empty")]
    pub name: String,
    /// Its kind.
    #[serde(default, rename = "type", deserialize_with = "lenient::null_is_empty")]
    pub type_: LoadBalancerType,
}

open_enum! {
    /// The kind of a load balancer.
    LoadBalancerType {
        /// The first generation.
        Classic = "classic",
        /// A network load balancer.
        Network = "network",
    }
}

/// A disk. One without a device name is the root disk.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlockDevice {
    /// Where the instance sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_name: Option<String>,
    /// A volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ebs: Option<Ebs>,
    /// Suppresses the device of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_device: Option<String>,
    /// An ephemeral disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_name: Option<String>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// A volume.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ebs {
    /// Ignored: volumes go with their instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_on_termination: Option<bool>,
    /// Whether it is encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<bool>,
    /// By which key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kms_key: Option<ResourceReference>,
    /// Operations per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<i64>,
    /// Throughput in MiB per second, 125 to 2000; gp3 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_mib: Option<i32>,
    /// Size in GiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_size: Option<i64>,
    /// Kind of volume, such as `gp3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_type: Option<String>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}
