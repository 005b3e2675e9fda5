//! An instance as a cloud shows it.

use std::{collections::BTreeMap, fmt};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What an instance is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum InstanceState {
    /// Starting.
    Pending,
    /// Up.
    Running,
    /// On its way to [`Self::Stopped`].
    Stopping,
    /// Down, but there.
    Stopped,
    /// On its way out.
    ShuttingDown,
    /// Gone for good; clouds show it for a while.
    Terminated,
}

impl InstanceState {
    /// Whether it still holds capacity, or will.
    pub fn exists(self) -> bool {
        self != Self::Terminated
    }

    /// As EC2 writes it, which is how users know it from the annotation `instance-state`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::ShuttingDown => "shutting-down",
            Self::Terminated => "terminated",
        }
    }
}

impl fmt::Display for InstanceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Kinds of addresses, as Nodes have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AddressKind {
    /// Reached from inside.
    #[serde(rename = "InternalIP")]
    InternalIp,
    /// Reached from outside.
    #[serde(rename = "ExternalIP")]
    ExternalIp,
    /// Name that resolves inside.
    #[serde(rename = "InternalDNS")]
    InternalDns,
    /// Name that resolves outside.
    #[serde(rename = "ExternalDNS")]
    ExternalDns,
    /// The host's own name.
    Hostname,
}

/// One address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Address {
    /// Its kind.
    #[serde(rename = "type")]
    pub kind: AddressKind,
    /// The address.
    pub address: String,
}

/// An instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    /// The cloud's name of it (`i-0123456789abcdef0`).
    pub id: String,
    /// What a Node says of itself (`aws:///us-east-1a/i-0123456789abcdef0`).
    pub provider_id: String,
    /// What it is doing.
    pub state: InstanceState,
    /// Why it is in this state, where the cloud says (`Server.SpotInstanceTermination`).
    pub state_reason: Option<String>,
    /// Region.
    pub region: String,
    /// Zone.
    pub zone: String,
    /// Type (`m5.large`).
    pub instance_type: String,
    /// Whether the cloud may take it back.
    pub interruptible: bool,
    /// Addresses, sorted as Machines show them.
    pub addresses: Vec<Address>,
    /// When it was launched.
    pub launched_at: Option<Timestamp>,
    /// The token of the launch, where the cloud shows it.
    pub token: Option<String>,
    /// Its number among those that were launched together.
    pub launch_index: Option<u32>,
    /// The placement group that it is in.
    pub group: Option<String>,
    /// The partition of the group.
    pub partition: Option<u32>,
    /// The disks that it holds.
    pub volumes: Vec<String>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
}

impl Instance {
    /// The UID of the Machine that it belongs to.
    pub fn machine_uid(&self) -> Option<&str> {
        self.tags.get(crate::MACHINE_UID_TAG).map(String::as_str)
    }

    /// The UID of the cluster that it was launched by.
    pub fn cluster_uid(&self) -> Option<&str> {
        self.tags.get(crate::CLUSTER_UID_TAG).map(String::as_str)
    }

    /// The gang that it was launched with.
    pub fn gang(&self) -> Option<&str> {
        self.tags.get(crate::GANG_TAG).map(String::as_str)
    }
}
