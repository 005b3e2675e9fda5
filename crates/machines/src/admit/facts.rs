//! What the rules must know beside the object itself.

use std::collections::{BTreeMap, BTreeSet};

use fleetwright_api::config::{AzureCloud, Infrastructure, PlatformType};
use fleetwright_api::placement::AWSPlacementGroup;
use fleetwright_runtime::config::{InterruptibleControlPlane, Updates};
use jiff::Timestamp;

/// What the rules must know beside the object itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// The cluster's name in the cloud.
    pub cluster: Option<String>,
    /// Where the cluster runs.
    pub platform: Option<PlatformType>,
    /// The region of the cluster.
    pub region: Option<String>,
    /// Which of Azure's clouds, on Azure.
    pub azure_cloud: Option<AzureCloud>,
    /// The architecture of the control plane, `amd64` or `arm64`.
    pub architecture: &'static str,
    /// Secrets that were looked for and are not there, in the namespace of the object.
    pub missing_secrets: BTreeSet<String>,
    /// Placement groups that were looked for, in the namespace of the object; none for one that is
    /// not there.
    pub groups: BTreeMap<String, Option<AWSPlacementGroup>>,
    /// The namespace whose groups are looked after.
    pub machine_namespace: String,
    /// Whether what was wrong before an update may stay wrong.
    pub updates: Updates,
    /// What becomes of Machines of the control plane on interruptible instances.
    pub interruptible_control_plane: InterruptibleControlPlane,
    /// The time.
    pub now: Timestamp,
}

impl Facts {
    /// What an Infrastructure says, and nothing else yet.
    pub fn of(
        infrastructure: Option<&Infrastructure>,
        machine_namespace: &str,
        now: Timestamp,
    ) -> Self {
        let region = infrastructure.and_then(Infrastructure::aws).map(|aws| aws.region.clone());
        Self {
            cluster: infrastructure.and_then(Infrastructure::cluster).map(str::to_owned),
            platform: infrastructure.and_then(Infrastructure::platform).cloned(),
            region: region.filter(|region| !region.is_empty()),
            azure_cloud: infrastructure.and_then(Infrastructure::azure_cloud),
            architecture: architecture(),
            missing_secrets: BTreeSet::new(),
            groups: BTreeMap::new(),
            machine_namespace: machine_namespace.to_owned(),
            updates: Updates::default(),
            interruptible_control_plane: InterruptibleControlPlane::default(),
            now,
        }
    }
}

/// The architecture this runs on, which is the control plane's: that is where it is deployed.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "aarch64" => "arm64",
        "x86_64" => "amd64",
        other => other,
    }
}
