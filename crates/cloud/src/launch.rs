//! What is launched, resolved from a provider spec.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tag.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Tag {
    /// Name.
    pub key: String,
    /// Value.
    pub value: String,
}

/// What is needed to turn a provider spec into a launch.
#[derive(Clone)]
pub struct ResolveRequest {
    /// The provider spec of a Machine, as the user wrote it and admission completed it.
    pub provider_spec: Value,
    /// The name of the cluster in the cloud (`Infrastructure.status.infrastructureName`).
    pub cluster: String,
    /// Tags of every resource of the cluster (`Infrastructure`), before those of the spec.
    pub cluster_tags: Vec<Tag>,
    /// What the instance runs at first boot. Secret: never logged or shown.
    pub user_data: Option<Bytes>,
}

impl fmt::Debug for ResolveRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResolveRequest").field("cluster", &self.cluster).finish_non_exhaustive()
    }
}

/// What a launch means for choices that do not depend on the cloud.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Shape {
    /// Region.
    pub region: String,
    /// Zone, once it is known from the spec or its subnet.
    pub zone: String,
    /// Type.
    pub instance_type: String,
    /// Placement group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Partition that the user chose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<u32>,
    /// Whether the cloud may take it back.
    pub interruptible: bool,
    /// `default`, `dedicated` or `host`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenancy: Option<String>,
}

/// A launch, fully resolved: everything but how many, and for whom.
#[derive(Clone, PartialEq)]
pub struct Launch {
    /// The request in the adapter's own form, without what differs from Machine to Machine. May
    /// hold secrets: neither logged nor stored.
    pub request: Value,
    /// Digest of `request`: launches with equal hashes may go out together, and a token is
    /// repeated only with the hash it was first used with.
    pub hash: String,
    /// What it means.
    pub shape: Shape,
}

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch")
            .field("hash", &self.hash)
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}

/// How many instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// Fewer than this is an error, and nothing is launched.
    pub min: u32,
    /// At most.
    pub max: u32,
}

/// An order to launch.
#[derive(Clone, Debug)]
pub struct LaunchOrder {
    /// Makes the order repeatable: the same token with the same launch and count gives the same
    /// instances, however often and by whomever it is sent. At most 64 characters.
    pub token: String,
    /// What.
    pub launch: Launch,
    /// How many.
    pub count: Count,
    /// Tags beside those of the launch: those of one Machine, or of the gang. Part of what a
    /// repeated token must repeat.
    pub tags: Vec<Tag>,
}
