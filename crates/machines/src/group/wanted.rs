//! What the user asks of a group, checked.

use std::fmt;

use fleetwright_cloud::{GroupOrder, PlacementGroup, Strategy, Tag};

use super::names::{CLUSTER_TAG_PREFIX, NAME_TAG, OWNED, cluster_tag};

/// Most partitions that a group can have in a zone.
pub const MAX_PARTITIONS: u32 = 7;

/// Who looks after the group in the cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Management {
    /// We make and remove it.
    Managed,
    /// The user does; we watch.
    Unmanaged,
}

impl Management {
    /// As the API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Managed => "Managed",
            Self::Unmanaged => "Unmanaged",
        }
    }

    /// As the API writes it.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Managed, Self::Unmanaged].into_iter().find(|state| state.as_str() == text)
    }
}

impl fmt::Display for Management {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// As the API writes a strategy.
pub fn group_type(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Cluster => "Cluster",
        Strategy::Spread => "Spread",
        Strategy::Partition => "Partition",
    }
}

/// Reads a strategy as the API writes it.
pub fn parse_group_type(text: &str) -> Option<Strategy> {
    [Strategy::Cluster, Strategy::Spread, Strategy::Partition]
        .into_iter()
        .find(|strategy| group_type(*strategy) == text)
}

/// What a group is, or should be. Groups cannot be changed once they exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// How it places.
    pub strategy: Strategy,
    /// Number of partitions, for [`Strategy::Partition`] alone; none lets the cloud choose.
    pub partitions: Option<u32>,
}

impl Configuration {
    /// What a group in the cloud is.
    pub fn of(group: &PlacementGroup) -> Self {
        let partitions =
            if group.strategy == Strategy::Partition { group.partitions } else { None };
        Self { strategy: group.strategy, partitions: partitions.filter(|count| *count > 0) }
    }
}

/// What the user asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A group like this, looked after by us.
    Managed(Configuration),
    /// A group that the user looks after.
    Unmanaged,
}

impl Wanted {
    /// Who looks after it.
    pub fn management(&self) -> Management {
        match self {
            Self::Managed(_) => Management::Managed,
            Self::Unmanaged => Management::Unmanaged,
        }
    }
}

/// The specification as it is written, before it is checked: it may come from a server that
/// checks less than our own CustomResourceDefinition.
#[derive(Clone, Copy, Debug, Default)]
pub struct WrittenSpec<'a> {
    /// `managementSpec.managementState`
    pub management_state: &'a str,
    /// `managementSpec.managed.groupType`, when there is `managed`.
    pub group_type: Option<&'a str>,
    /// `managementSpec.managed.partition.count`
    pub partition_count: Option<i32>,
}

/// Why a specification cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSpec {
    /// Neither of the two states.
    #[error(
        "invalid aws placement group. spec.managementSpec.managementState must either be Managed or Unmanaged"
    )]
    ManagementState,
    /// Managed, but as what?
    #[error(
        "invalid aws placement group. spec.managementSpec.managed must not be nil when spec.managementSpec.managementState is Managed"
    )]
    ManagedMissing,
    /// None of the three strategies.
    #[error(
        "invalid aws placement group. spec.managementSpec.managed.groupType must either be Cluster, Partition or Spread"
    )]
    GroupType,
    /// No such number of partitions.
    #[error(
        "invalid aws placement group. spec.managementSpec.managed.partition.count must be greater or equal than 1 and less or equal than 7"
    )]
    PartitionCount,
}

/// What the user is told who tries to have an unmanaged group managed.
pub const UNMANAGED_FOR_GOOD: &str = "invalid aws placement group. spec.managementSpec.managementState cannot be set to Managed once it has been set to Unmanaged";

/// Checks a specification. A count of partitions means something for partition groups alone;
/// absent, the cloud chooses.
pub fn check(written: WrittenSpec<'_>) -> Result<Wanted, InvalidSpec> {
    let WrittenSpec { management_state, group_type, partition_count } = written;
    match Management::parse(management_state).ok_or(InvalidSpec::ManagementState)? {
        Management::Unmanaged => Ok(Wanted::Unmanaged),
        Management::Managed => {
            let group_type = group_type.ok_or(InvalidSpec::ManagedMissing)?;
            let strategy = parse_group_type(group_type).ok_or(InvalidSpec::GroupType)?;
            let count = partition_count.map(|count| u32::try_from(count).unwrap_or_default());
            if count.is_some_and(|count| !(1..=MAX_PARTITIONS).contains(&count)) {
                return Err(InvalidSpec::PartitionCount);
            }
            let partitions = count.filter(|_| strategy == Strategy::Partition);
            Ok(Wanted::Managed(Configuration { strategy, partitions }))
        }
    }
}

/// How the group in the cloud differs from the one that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// Another group.
    #[error("placement group name mismatch: wanted: {wanted:?}, got: {got:?}")]
    Name {
        /// The name asked for.
        wanted: String,
        /// The name found.
        got: String,
    },
    /// It belongs to somebody else.
    #[error(
        "the group was not created by machine-api for cluster {cluster:?}{owner}; set managementState to Unmanaged to use it, or delete it in AWS"
    )]
    Foreign {
        /// Our cluster.
        cluster: String,
        /// What its tags say about its owner.
        owner: String,
    },
    /// Another strategy.
    #[error(
        "type mismatch between configured and existing values: wanted: {:?}, got: {:?}",
        .wanted.as_str(),
        .got.as_str()
    )]
    Type {
        /// The strategy asked for.
        wanted: Strategy,
        /// The strategy found.
        got: Strategy,
    },
    /// Another number of partitions.
    #[error(
        "group partition count mismatch between configured and existing values: wanted: {wanted}, got: {got}"
    )]
    PartitionCount {
        /// The number asked for.
        wanted: u32,
        /// The number found.
        got: u32,
    },
}

/// Compares what is asked for with what is there. A count of partitions is compared only when one
/// is asked for.
pub fn compare(name: &str, wanted: Configuration, found: &PlacementGroup) -> Result<(), Mismatch> {
    if found.name != name {
        return Err(Mismatch::Name { wanted: name.to_owned(), got: found.name.clone() });
    }
    let got = Configuration::of(found);
    if got.strategy != wanted.strategy {
        return Err(Mismatch::Type { wanted: wanted.strategy, got: got.strategy });
    }
    match (wanted.partitions, got.partitions.unwrap_or_default()) {
        (Some(wanted), got) if wanted != got => Err(Mismatch::PartitionCount { wanted, got }),
        _ => Ok(()),
    }
}

/// Whether the group was made for this cluster; if not, whose it is.
pub fn owned_by(cluster: &str, found: &PlacementGroup) -> Result<(), Mismatch> {
    if found.tags.get(&cluster_tag(cluster)).is_some_and(|value| value == OWNED) {
        return Ok(());
    }
    let other = found
        .tags
        .iter()
        .filter(|(_, value)| *value == OWNED)
        .find_map(|(key, _)| key.strip_prefix(CLUSTER_TAG_PREFIX));
    let owner = other.map(|other| format!(", it belongs to cluster {other:?}"));
    Err(Mismatch::Foreign { cluster: cluster.to_owned(), owner: owner.unwrap_or_default() })
}

/// The order that makes the group.
pub fn order(name: &str, wanted: Configuration, cluster: &str, user_tags: &[Tag]) -> GroupOrder {
    GroupOrder {
        name: name.to_owned(),
        strategy: wanted.strategy,
        partitions: wanted.partitions,
        tags: tags(name, cluster, user_tags),
    }
}

/// The tags of a new group: the user's for the whole cluster, then ours. Users cannot set those
/// that say whose it is and what it is called; of two with the same key the first counts.
fn tags(name: &str, cluster: &str, user_tags: &[Tag]) -> Vec<Tag> {
    let ours = [
        Tag { key: cluster_tag(cluster), value: OWNED.to_owned() },
        Tag { key: NAME_TAG.to_owned(), value: name.to_owned() },
    ];
    let allowed = |tag: &&Tag| tag.key != NAME_TAG && !tag.key.starts_with(CLUSTER_TAG_PREFIX);
    let mut tags: Vec<Tag> = Vec::new();
    for tag in user_tags.iter().filter(allowed).chain(&ours) {
        if tags.iter().all(|known| known.key != tag.key) {
            tags.push(tag.clone());
        }
    }
    tags
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use fleetwright_cloud::GroupState;

    use super::*;

    fn spec(
        state: &str,
        kind: Option<&'static str>,
        count: Option<i32>,
    ) -> Result<Wanted, InvalidSpec> {
        check(WrittenSpec { management_state: state, group_type: kind, partition_count: count })
    }

    fn found(strategy: Strategy, partitions: Option<u32>, tags: &[(&str, &str)]) -> PlacementGroup {
        let tags = tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        PlacementGroup {
            name: "g".to_owned(),
            id: "pg-1".to_owned(),
            strategy,
            partitions,
            state: GroupState::Available,
            tags: tags.collect::<BTreeMap<_, _>>(),
        }
    }

    #[test]
    fn a_count_may_be_absent_and_is_read_for_partition_groups_alone() {
        let partition = |partitions| {
            Ok(Wanted::Managed(Configuration { strategy: Strategy::Partition, partitions }))
        };
        assert_eq!(spec("Managed", Some("Partition"), None), partition(None));
        assert_eq!(spec("Managed", Some("Partition"), Some(7)), partition(Some(7)));
        for bad in [0, -1, 8, i32::MIN, i32::MAX] {
            assert_eq!(
                spec("Managed", Some("Partition"), Some(bad)),
                Err(InvalidSpec::PartitionCount)
            );
        }
        let cluster = Configuration { strategy: Strategy::Cluster, partitions: None };
        assert_eq!(spec("Managed", Some("Cluster"), Some(3)), Ok(Wanted::Managed(cluster)));
        assert_eq!(spec("Unmanaged", Some("Rack"), Some(9)), Ok(Wanted::Unmanaged));
    }

    #[test]
    fn every_strategy_compares_equal_to_itself() {
        for strategy in [Strategy::Cluster, Strategy::Spread, Strategy::Partition] {
            // Clouds may show a count where there is none to show.
            for partitions in [None, Some(0), Some(2)] {
                let wanted = Configuration { strategy, partitions: None };
                assert_eq!(compare("g", wanted, &found(strategy, partitions, &[])), Ok(()));
            }
        }
        let wanted = Configuration { strategy: Strategy::Partition, partitions: Some(5) };
        let text = compare("g", wanted, &found(Strategy::Partition, Some(3), &[])).unwrap_err();
        assert!(text.to_string().ends_with("wanted: 5, got: 3"), "{text}");
    }

    #[test]
    fn a_group_is_ours_by_its_tag_alone() {
        let owned = [("kubernetes.io/cluster/us", "owned")];
        assert_eq!(owned_by("us", &found(Strategy::Spread, None, &owned)), Ok(()));
        let shared = [("kubernetes.io/cluster/us", "shared")];
        assert!(owned_by("us", &found(Strategy::Spread, None, &shared)).is_err());
        assert!(owned_by("us", &found(Strategy::Spread, None, &[])).is_err());
        let theirs = [("kubernetes.io/cluster/them", "owned")];
        let text = owned_by("us", &found(Strategy::Spread, None, &theirs)).unwrap_err().to_string();
        assert!(text.contains("\"them\"") && text.contains("Unmanaged"), "{text}");
    }

    #[test]
    fn tags_come_in_order_and_cannot_be_forged() {
        let tag = |key: &str, value: &str| Tag { key: key.to_owned(), value: value.to_owned() };
        let user = [
            tag("a", "1"),
            tag("Name", "x"),
            tag("kubernetes.io/cluster/y", "owned"),
            tag("a", "2"),
        ];
        let tags = tags("g", "us", &user);
        assert_eq!(
            tags,
            [tag("a", "1"), tag("kubernetes.io/cluster/us", "owned"), tag("Name", "g")]
        );
    }
}
