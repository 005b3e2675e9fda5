//! `config.openshift.io/v1`: Infrastructure, what an installer leaves behind about the cluster.
//!
//! Only what Fleetwright reads is typed; the rest is kept.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

resource! {
    /// The cluster's name in the cloud, its platform and its region. There is one, named
    /// [`crate::names::INFRASTRUCTURE`].
    Infrastructure, group: "config.openshift.io", version: "v1", plural: "infrastructures",
    scope: ClusterResourceScope, spec: InfrastructureSpec, status: InfrastructureStatus
}

/// What the administrator may choose after installation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InfrastructureSpec {
    /// Choices per platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform_spec: Option<PlatformSpec>,
    /// Everything else.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// Choices per platform.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlatformSpec {
    /// The platform.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<PlatformType>,
    /// Everything else.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// What the installer found and made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InfrastructureStatus {
    /// The cluster's name in the cloud: in tags, and in the names of what it owns.
    #[serde(default)]
    pub infrastructure_name: String,
    /// The platform, as written before there was a platformStatus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<PlatformType>,
    /// The platform and what it needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform_status: Option<PlatformStatus>,
    /// How control-plane components are spread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_topology: Option<String>,
    /// How other components are spread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infrastructure_topology: Option<String>,
    /// Whether nodes are partitioned for workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_partitioning: Option<String>,
    /// Where the API is.
    #[serde(default, rename = "apiServerURL")]
    pub api_server_url: String,
    /// Where the API is for those inside.
    #[serde(default, rename = "apiServerInternalURI")]
    pub api_server_internal_uri: String,
    /// A domain of old.
    #[serde(default)]
    pub etcd_discovery_domain: String,
    /// Everything else.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

open_enum! {
    /// Where the cluster runs.
    PlatformType {
        /// Amazon.
        Aws = "AWS",
        /// Microsoft.
        Azure = "Azure",
        /// Metal of one's own.
        BareMetal = "BareMetal",
        /// Google.
        Gcp = "GCP",
        /// Libvirt.
        Libvirt = "Libvirt",
        /// OpenStack.
        OpenStack = "OpenStack",
        /// None that we know of.
        None = "None",
        /// VMware.
        VSphere = "VSphere",
        /// oVirt.
        OVirt = "oVirt",
        /// IBM.
        IbmCloud = "IBMCloud",
        /// Virtual machines in Kubernetes.
        KubeVirt = "KubeVirt",
        /// Equinix.
        EquinixMetal = "EquinixMetal",
        /// IBM's Power.
        PowerVs = "PowerVS",
        /// Alibaba.
        AlibabaCloud = "AlibabaCloud",
        /// Nutanix.
        Nutanix = "Nutanix",
        /// One that brings its own integration.
        External = "External",
    }
}

/// The platform and what it needs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlatformStatus {
    /// The platform.
    #[serde(default, rename = "type")]
    pub type_: PlatformType,
    /// On AWS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aws: Option<AWSPlatformStatus>,
    /// Everything else.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// What the cluster needs on AWS.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AWSPlatformStatus {
    /// The region of the cluster.
    #[serde(default)]
    pub region: String,
    /// Tags for everything made for the cluster, 25 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_tags: Vec<AWSResourceTag>,
    /// Endpoints that differ from the public ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub service_endpoints: Vec<AWSServiceEndpoint>,
    /// Everything else.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

impl AWSPlatformStatus {
    /// The families of addresses that the cluster uses: a field that not every cluster's definition
    /// has.
    pub fn ip_family(&self) -> Option<&str> {
        self.other.get("ipFamily")?.as_str()
    }
}

open_enum! {
    /// One of Azure's clouds.
    AzureCloud {
        /// The public one.
        Public = "AzurePublicCloud",
        /// That of the government of the United States.
        UsGovernment = "AzureUSGovernmentCloud",
        /// China's.
        China = "AzureChinaCloud",
        /// Germany's.
        German = "AzureGermanCloud",
        /// One's own.
        Stack = "AzureStackCloud",
    }
}

/// A tag for everything made for the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AWSResourceTag {
    /// Its key.
    #[serde(default)]
    pub key: String,
    /// Its value.
    #[serde(default)]
    pub value: String,
}

/// Where a service of AWS is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AWSServiceEndpoint {
    /// The service.
    #[serde(default)]
    pub name: String,
    /// Its address.
    #[serde(default)]
    pub url: String,
}

impl Infrastructure {
    /// The cluster's name in the cloud; none while the status is not written.
    pub fn cluster(&self) -> Option<&str> {
        let name = self.status.as_ref()?.infrastructure_name.as_str();
        (!name.is_empty()).then_some(name)
    }

    /// The platform: from platformStatus, else from the field before it.
    pub fn platform(&self) -> Option<&PlatformType> {
        let status = self.status.as_ref()?;
        match &status.platform_status {
            Some(platform) => Some(&platform.type_),
            None => status.platform.as_ref(),
        }
    }

    /// Which of Azure's clouds the cluster is in: part of a section that has no type of its own.
    pub fn azure_cloud(&self) -> Option<AzureCloud> {
        let platform = self.status.as_ref()?.platform_status.as_ref()?;
        platform.other.get("azure")?.get("cloudName")?.as_str().map(AzureCloud::from)
    }

    /// What the cluster needs on AWS.
    pub fn aws(&self) -> Option<&AWSPlatformStatus> {
        self.status.as_ref()?.platform_status.as_ref()?.aws.as_ref()
    }
}
