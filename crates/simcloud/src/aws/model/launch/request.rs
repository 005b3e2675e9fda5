//! RunInstances as it was asked for.

use std::{collections::BTreeMap, net::Ipv4Addr};

use super::super::{tags::Tags, volumes::BlockDevice};

/// A decoded RunInstances.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "EC2 has that many switches")]
pub struct LaunchRequest {
    /// `ami-…`.
    pub image: Option<String>,
    /// Instance type.
    pub instance_type: Option<String>,
    /// Fewest instances.
    pub min: i64,
    /// Most instances.
    pub max: i64,
    /// Key pair.
    pub key_name: Option<String>,
    /// `sg-…`.
    pub security_group_ids: Vec<String>,
    /// Names of security groups of the default VPC.
    pub security_groups: Vec<String>,
    /// `subnet-…`.
    pub subnet: Option<String>,
    /// A chosen address.
    pub private_ip: Option<Ipv4Addr>,
    /// Network interfaces.
    pub interfaces: Vec<InterfaceRequest>,
    /// Decoded user data.
    pub user_data: Option<Vec<u8>>,
    /// Client token.
    pub token: Option<String>,
    /// Everything that was sent, but the token: what a repeated call is compared with.
    pub parameters: BTreeMap<String, String>,
    /// Where to place it.
    pub placement: PlacementRequest,
    /// Block devices.
    pub devices: Vec<BlockDevice>,
    /// Instance profile by name or by ARN.
    pub profile: Option<ProfileRequest>,
    /// spot or capacity-block.
    pub market: Option<String>,
    /// Spot options.
    pub spot: SpotRequestOptions,
    /// Tags by resource type.
    pub tags: BTreeMap<String, Tags>,
    /// Metadata service, where it differs from the default.
    pub metadata: MetadataRequest,
    /// (cores, threads per core, SEV-SNP).
    pub cpu: (Option<i64>, Option<i64>, Option<String>),
    /// Preference: open or none.
    pub capacity_preference: Option<String>,
    /// `cr-…`.
    pub capacity_reservation: Option<String>,
    /// EBS-optimised.
    pub ebs_optimized: bool,
    /// Detailed monitoring.
    pub monitoring: bool,
    /// TerminateInstances is refused.
    pub protected: bool,
    /// StopInstances is refused.
    pub stop_protected: bool,
    /// (ip-name or resource-name, A record, AAAA record).
    pub names: (Option<String>, Option<bool>, Option<bool>),
}

/// A network interface of a launch.
#[derive(Clone, Debug, Default)]
pub struct InterfaceRequest {
    /// Its place.
    pub device_index: Option<i64>,
    /// Its card.
    pub card_index: Option<i64>,
    /// `subnet-…`.
    pub subnet: Option<String>,
    /// `sg-…`.
    pub groups: Vec<String>,
    /// A public address.
    pub public: Option<bool>,
    /// A carrier address, in a wavelength zone.
    pub carrier: Option<bool>,
    /// Goes with the instance.
    pub delete_on_termination: Option<bool>,
    /// interface, efa or efa-only.
    pub kind: Option<String>,
    /// A chosen address.
    pub private_ip: Option<Ipv4Addr>,
    /// What is written on it.
    pub description: Option<String>,
}

/// Where to place a launch.
#[derive(Clone, Debug, Default)]
pub struct PlacementRequest {
    /// Zone.
    pub zone: Option<String>,
    /// Group by name.
    pub group_name: Option<String>,
    /// Group by identifier.
    pub group_id: Option<String>,
    /// Partition.
    pub partition: Option<i64>,
    /// default, dedicated or host.
    pub tenancy: Option<String>,
    /// `h-…`.
    pub host: Option<String>,
    /// default or host.
    pub affinity: Option<String>,
}

/// An instance profile.
#[derive(Clone, Debug)]
pub enum ProfileRequest {
    /// By name.
    Name(String),
    /// By ARN.
    Arn(String),
}

/// Spot options as they were sent.
#[derive(Clone, Debug, Default)]
pub struct SpotRequestOptions {
    /// In dollars per hour.
    pub max_price: Option<String>,
    /// one-time or persistent.
    pub kind: Option<String>,
    /// terminate, stop or hibernate.
    pub interruption: Option<String>,
}

impl SpotRequestOptions {
    pub(super) fn is_empty(&self) -> bool {
        self.max_price.is_none() && self.kind.is_none() && self.interruption.is_none()
    }
}

/// Metadata options as they were sent.
#[derive(Clone, Debug, Default)]
pub struct MetadataRequest {
    /// optional or required.
    pub tokens: Option<String>,
    /// Hops that an answer lives.
    pub hop_limit: Option<i64>,
    /// enabled or disabled.
    pub endpoint: Option<String>,
    /// enabled or disabled.
    pub ipv6: Option<String>,
    /// enabled or disabled.
    pub tags: Option<String>,
}
