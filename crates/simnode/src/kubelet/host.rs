//! The machine that a simulated kubelet runs on, as the world describes it.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::{NodeAddress, Taint};

/// A machine on which a kubelet will start. Plain facts: where they come from is not known here.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// The name of its Node, usually the private DNS name.
    pub name: String,
    /// `spec.providerID` of its Node.
    pub provider_id: String,
    /// The addresses of its Node.
    pub addresses: Vec<NodeAddress>,
    /// Label `node.kubernetes.io/instance-type`.
    pub instance_type: String,
    /// Label `topology.kubernetes.io/zone`.
    pub zone: String,
    /// Label `topology.kubernetes.io/region`.
    pub region: String,
    /// `amd64` or `arm64`.
    pub architecture: String,
    /// Processors.
    pub cpu: u32,
    /// Bytes of memory.
    pub memory: u64,
    /// `nvidia.com/gpu`.
    pub gpus: u32,
    /// Further extended resources by name.
    pub extended: BTreeMap<String, u64>,
    /// How many pods it takes.
    pub pods: u32,
    /// Labels that its user data asks for.
    pub labels: BTreeMap<String, String>,
    /// Taints that its user data asks for.
    pub taints: Vec<Taint>,
    /// From power on until the kubelet registers.
    pub boot_delay: Duration,
}

impl Default for Host {
    fn default() -> Self {
        Self {
            name: String::new(),
            provider_id: String::new(),
            addresses: Vec::new(),
            instance_type: String::new(),
            zone: String::new(),
            region: String::new(),
            architecture: "amd64".to_owned(),
            cpu: 2,
            memory: 8 << 30,
            gpus: 0,
            extended: BTreeMap::new(),
            // OpenShift's limit.
            pods: 250,
            labels: BTreeMap::new(),
            taints: Vec::new(),
            boot_delay: Duration::ZERO,
        }
    }
}

impl Host {
    /// The first address of a kind.
    pub(crate) fn address(&self, kind: &str) -> Option<&str> {
        let found = self.addresses.iter().find(|address| address.type_ == kind);
        found.map(|address| address.address.as_str())
    }
}
