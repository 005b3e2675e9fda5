//! An instance, and what was asked for when it was launched.

use std::{net::Ipv4Addr, sync::Arc};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{capacity::Pool, tags::Tags, types::InstanceType};

/// Where an instance is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstanceState {
    /// Being made, or starting.
    Pending,
    /// Up.
    Running,
    /// On its way to terminated.
    ShuttingDown,
    /// Gone, and still listed for an hour.
    Terminated,
    /// On its way to stopped.
    Stopping,
    /// Down, and can be started.
    Stopped,
}

impl InstanceState {
    /// On the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::ShuttingDown => "shutting-down",
            Self::Terminated => "terminated",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
        }
    }

    /// Its number on the wire.
    pub fn code(self) -> u8 {
        match self {
            Self::Pending => 0,
            Self::Running => 16,
            Self::ShuttingDown => 32,
            Self::Terminated => 48,
            Self::Stopping => 64,
            Self::Stopped => 80,
        }
    }

    /// It holds hardware: capacity, quota and its place in a group.
    pub fn occupies(self) -> bool {
        !matches!(self, Self::Stopped | Self::Terminated)
    }
}

/// Why it is in its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateReason {
    /// Such as `Client.UserInitiatedShutdown`.
    pub code: &'static str,
    /// In words.
    pub message: String,
}

/// What a launch made in common: one call, one reservation.
#[derive(Clone, Debug)]
pub struct Reservation {
    /// `r-…`.
    pub id: String,
    /// The client token, if one was given.
    pub token: Option<String>,
}

/// What was asked for and does not change.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "EC2 has that many switches")]
pub struct LaunchedWith {
    /// The reservation.
    pub reservation: Reservation,
    /// `ami-…`.
    pub image: String,
    /// Of the image.
    pub architecture: String,
    /// The device that it boots from.
    pub root_device: String,
    /// Its type.
    pub instance_type: &'static InstanceType,
    /// Key pair.
    pub key_name: Option<String>,
    /// (ARN, identifier) of the instance profile.
    pub profile: Option<(String, String)>,
    /// Decoded user data.
    pub user_data: Option<Vec<u8>>,
    /// default, dedicated or host.
    pub tenancy: String,
    /// Spot options of a spot instance.
    pub spot: Option<SpotOptions>,
    /// `capacity-block` for an instance in one.
    pub capacity_block: bool,
    /// The capacity reservation that was named.
    pub capacity_reservation: Option<String>,
    /// open or none, if it was given.
    pub capacity_preference: Option<String>,
    /// Metadata service.
    pub metadata: MetadataOptions,
    /// Processor.
    pub cpu: CpuOptions,
    /// EBS-optimised.
    pub ebs_optimized: bool,
    /// Detailed monitoring.
    pub monitoring: bool,
    /// TerminateInstances is refused.
    pub protected: bool,
    /// StopInstances is refused.
    pub stop_protected: bool,
    /// How the private name is made.
    pub names: NameOptions,
}

/// How a spot instance was asked for.
#[derive(Clone, Debug)]
pub struct SpotOptions {
    /// The most to pay, in millionths of a dollar.
    pub max_price: Option<u64>,
    /// Stays open after an interruption.
    pub persistent: bool,
    /// terminate, stop or hibernate.
    pub interruption: String,
}

/// The metadata service of an instance.
#[derive(Clone, Debug)]
pub struct MetadataOptions {
    /// optional or required.
    pub tokens: String,
    /// Hops that an answer lives.
    pub hop_limit: u32,
    /// enabled or disabled.
    pub endpoint: String,
    /// enabled or disabled.
    pub ipv6: String,
    /// enabled or disabled.
    pub tags: String,
}

/// The processor of an instance.
#[derive(Clone, Debug)]
pub struct CpuOptions {
    /// Cores.
    pub cores: u32,
    /// Threads of each.
    pub threads: u32,
    /// enabled or disabled, if it was given.
    pub sev_snp: Option<String>,
}

/// How the private name is made.
#[derive(Clone, Debug)]
pub struct NameOptions {
    /// ip-name or resource-name.
    pub kind: String,
    /// A record for the resource name.
    pub a_record: bool,
    /// AAAA record for the resource name.
    pub aaaa_record: bool,
}

/// A network interface.
#[derive(Clone, Debug)]
pub struct Interface {
    /// `eni-…`.
    pub id: String,
    /// `eni-attach-…`.
    pub attachment: String,
    /// Hardware address.
    pub mac: String,
    /// Its place.
    pub device_index: u32,
    /// Its card.
    pub card_index: u32,
    /// interface or efa.
    pub kind: String,
    /// `subnet-…`.
    pub subnet: String,
    /// Address in the subnet.
    pub address: Ipv4Addr,
    /// Private name.
    pub dns_name: String,
    /// (identifier, name) of the security groups.
    pub groups: Vec<(String, String)>,
    /// Goes with the instance.
    pub delete_on_termination: bool,
    /// Its public address is one of the carrier's, as in a Wavelength Zone.
    pub carrier: bool,
    /// What was written on it.
    pub description: String,
    /// When it was attached.
    pub attached: Timestamp,
}

/// A volume at its device.
#[derive(Clone, Debug)]
pub struct Attached {
    /// Device name.
    pub device: String,
    /// `vol-…`.
    pub volume: String,
    /// Goes with the instance.
    pub delete_on_termination: bool,
    /// Since when.
    pub since: Timestamp,
}

/// An instance.
#[derive(Clone, Debug)]
pub struct Instance {
    /// The order of launches.
    pub sequence: u64,
    /// `i-…`.
    pub id: String,
    /// Its number within its launch.
    pub launch_index: u32,
    /// What was asked for.
    pub with: Arc<LaunchedWith>,
    /// State.
    pub state: InstanceState,
    /// Counts the changes of state, so that a planned change that was overtaken is dropped.
    pub(super) epoch: u64,
    /// Why it is in its state.
    pub reason: Option<StateReason>,
    /// Who brought it there, and when, as EC2 writes it.
    pub transition: String,
    /// When it was launched, or last started.
    pub launched: Timestamp,
    /// Zone.
    pub zone: String,
    /// `vpc-…`; nothing once it is terminated.
    pub vpc: Option<String>,
    /// Network interfaces, the first one first; none once it is terminated.
    pub interfaces: Vec<Interface>,
    /// Public address.
    pub public_ip: Option<Ipv4Addr>,
    /// Placement group: (identifier, name).
    pub group: Option<(String, String)>,
    /// Partition of the group.
    pub partition: Option<u32>,
    /// `h-…`.
    pub host: Option<String>,
    /// Volumes.
    pub volumes: Vec<Attached>,
    /// `sir-…`.
    pub spot_request: Option<String>,
    /// Tags.
    pub tags: Tags,
}

impl Instance {
    /// Address in the subnet.
    pub fn private_ip(&self) -> Option<Ipv4Addr> {
        self.interfaces.first().map(|interface| interface.address)
    }

    /// Private name; EC2 writes an empty one for a terminated instance.
    pub fn private_dns(&self) -> &str {
        self.interfaces.first().map_or("", |interface| &interface.dns_name)
    }

    /// `subnet-…`.
    pub fn subnet(&self) -> Option<&str> {
        self.interfaces.first().map(|interface| interface.subnet.as_str())
    }

    /// Where it draws capacity from.
    pub(super) fn pool(&self) -> Pool {
        Pool {
            zone: self.zone.clone(),
            instance_type: self.with.instance_type.name.to_owned(),
            group: self.group.as_ref().map(|(_, name)| name.clone()),
            spot: self.with.spot.is_some(),
        }
    }
}
