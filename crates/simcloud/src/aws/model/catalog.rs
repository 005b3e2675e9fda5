//! What instances are made from, and who may use them: images, keys, profiles, reservations.

use super::tags::Tags;

/// A machine image.
#[derive(Clone, Debug)]
pub struct Image {
    /// `ami-…`.
    pub id: String,
    /// Name.
    pub name: String,
    /// The account that owns it.
    pub owner: String,
    /// x86_64 or arm64.
    pub architecture: String,
    /// When it was made, as EC2 writes it.
    pub created: String,
    /// pending, available, failed, deregistered …
    pub state: String,
    /// Anyone may launch it.
    pub public: bool,
    /// The device that it boots from.
    pub root_device: String,
    /// `snap-…` of the root device.
    pub snapshot: String,
    /// Size of the root device.
    pub size_gib: u32,
    /// Tags.
    pub tags: Tags,
}

/// A key pair.
#[derive(Clone, Debug)]
pub struct KeyPair {
    /// `key-…`.
    pub id: String,
    /// Name.
    pub name: String,
    /// Fingerprint.
    pub fingerprint: String,
    /// Tags.
    pub tags: Tags,
}

/// An instance profile of IAM.
#[derive(Clone, Debug)]
pub struct InstanceProfile {
    /// `AIPA…`.
    pub id: String,
    /// Name.
    pub name: String,
}

/// Capacity that somebody set aside.
#[derive(Clone, Debug)]
pub struct CapacityReservation {
    /// `cr-…`.
    pub id: String,
    /// Zone.
    pub zone: String,
    /// Instance type.
    pub instance_type: String,
    /// How many instances.
    pub total: u32,
    /// How many are in it.
    pub used: u32,
    /// A Capacity Block for machine learning.
    pub block: bool,
}
