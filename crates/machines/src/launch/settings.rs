//! What can be set about launches.

pub use fleetwright_runtime::config::{ClusterGroups, LaunchConfig, SpotCapacity};

/// How a gang is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GangPolicy {
    /// All or none.
    AllOrNothing,
    /// All; else half of them at least, and so on down to one.
    BestEffort,
}

impl GangPolicy {
    /// The policy for Machines of a MachineSet in a cluster placement group.
    pub fn of_cluster_groups(configured: ClusterGroups) -> Option<Self> {
        match configured {
            ClusterGroups::AllOrNothing => Some(Self::AllOrNothing),
            ClusterGroups::BestEffort => Some(Self::BestEffort),
            ClusterGroups::Off => None,
        }
    }

    /// The value of the annotation `fleetwright.dev/gang`; none when it asks for no gang.
    pub fn parse(value: &str) -> Result<Option<Self>, UnknownGang> {
        match value {
            "true" | "all-or-nothing" => Ok(Some(Self::AllOrNothing)),
            "best-effort" => Ok(Some(Self::BestEffort)),
            "false" => Ok(None),
            other => Err(UnknownGang(other.to_owned())),
        }
    }

    /// The fewest to try with after `min` could not be had; none when there is nothing to try.
    pub fn next_floor(self, min: u32) -> Option<u32> {
        match self {
            Self::AllOrNothing => None,
            Self::BestEffort => (min > 1).then_some(min / 2),
        }
    }
}

/// A gang that we do not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "annotation fleetwright.dev/gang: {0:?} is none of \"true\", \"all-or-nothing\", \"best-effort\" and \"false\""
)]
pub struct UnknownGang(pub String);
