use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Tag;
use crate::lenient;

/// Where the instance goes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Placement {
    /// The region.
    #[serde(
        default,
        deserialize_with = "lenient::null_is_empty",
        skip_serializing_if = "String::is_empty"
    )]
    pub region: String,
    /// The zone.
    #[serde(
        default,
        deserialize_with = "lenient::null_is_empty",
        skip_serializing_if = "String::is_empty"
    )]
    pub availability_zone: String,
    /// Whether the instance shares its host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenancy: Option<InstanceTenancy>,
    /// Which host; only with tenancy `host`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
    /// The placement group; see [`super::AWSMachineProviderConfig::placed`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<LocalPlacementGroupReference>,
    /// The partition of the group, 1 to 7; 0 is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_number: Option<i32>,
    /// Another spelling of `partitionNumber`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<i32>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// An AWSPlacementGroup in the namespace of the Machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalPlacementGroupReference {
    /// Its name; empty is none.
    #[serde(default, deserialize_with = "lenient::null_is_empty")]
    pub name: String,
}

open_enum! {
    /// Whether an instance shares its host.
    InstanceTenancy {
        /// With others.
        Default = "default",
        /// With instances of the same account only.
        Dedicated = "dedicated",
        /// On a host of one's own choice.
        Host = "host",
    }
}

/// Which dedicated host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Host {
    /// Whether the instance stays with its host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<HostAffinity>,
    /// The host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedicated_host: Option<DedicatedHost>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

open_enum! {
    /// Whether an instance stays with its host.
    HostAffinity {
        /// Any host will do.
        AnyAvailable = "AnyAvailable",
        /// One host.
        DedicatedHost = "DedicatedHost",
    }
}

/// A dedicated host, given or to be allocated.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DedicatedHost {
    /// Who brings the host; the user where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation_strategy: Option<AllocationStrategy>,
    /// The host the user brings, `h-` and 8 or 17 hexadecimal digits.
    #[serde(
        default,
        deserialize_with = "lenient::null_is_empty",
        skip_serializing_if = "String::is_empty"
    )]
    pub id: String,
    /// How to allocate one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dynamic_host_allocation: Option<DynamicHostAllocation>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

open_enum! {
    /// Who brings a dedicated host.
    AllocationStrategy {
        /// The user.
        UserProvided = "UserProvided",
        /// It is allocated for the Machine and released with it.
        Dynamic = "Dynamic",
    }
}

/// How to allocate a host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DynamicHostAllocation {
    /// Tags of the host, 1 to 50; absent is not the same as empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<Tag>>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}
