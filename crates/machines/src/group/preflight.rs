//! What a placement group means for a launch: whether it may go out now, later or never.
//!
//! Everything that can be known before the call is said here, in words that name the fix, instead
//! of letting the cloud refuse the instance in its own.

use std::collections::BTreeSet;

use fleetwright_api::{
    aws::{AWSMachineProviderConfig, InstanceTenancy, PlacementContradiction},
    placement::AWSPlacementGroup,
};
use fleetwright_cloud::{InstanceState, Strategy};
use jiff::Timestamp;

use super::{
    decide::Member,
    status::{Status, configuration},
    wanted::{Configuration, Management, group_type, parse_group_type},
};

/// Most instances that a spread group can have in one zone.
pub const SPREAD_LIMIT: u32 = 7;
/// Most partitions that a group with dedicated instances can have.
pub const DEDICATED_PARTITIONS: u32 = 2;
const DEDICATED: &str = "dedicated";
const HOST: &str = "host";

/// What a Machine asks of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish<'a> {
    /// The group's name.
    pub group: &'a str,
    /// Whether there must be an AWSPlacementGroup of this name: `placement.group` says so, while
    /// `placementGroupName` is content with a group in the cloud.
    pub needs_object: bool,
    /// The partition that the user chose.
    pub partition: Option<i32>,
    /// `default`, `dedicated` or `host`.
    pub tenancy: Option<&'a str>,
    /// Whether a dedicated host is asked for.
    pub host: bool,
    /// The zone; empty while it is not known.
    pub zone: &'a str,
    /// The type.
    pub instance_type: &'a str,
}

impl<'a> Wish<'a> {
    /// What a provider spec asks for; none when it names no group. `zone` is where the instance
    /// goes, which the spec may say only by its subnet.
    pub fn of(
        config: &'a AWSMachineProviderConfig,
        zone: &'a str,
    ) -> Result<Option<Self>, PlacementContradiction> {
        let partition = config.partition()?;
        let Some(group) = config.group_name()? else { return Ok(None) };
        let placement = &config.placement;
        Ok(Some(Self {
            group,
            needs_object: placement.group.as_ref().is_some_and(|group| !group.name.is_empty()),
            partition,
            tenancy: placement.tenancy.as_ref().map(InstanceTenancy::as_str),
            host: placement.host.is_some(),
            zone,
            instance_type: &config.instance_type,
        }))
    }
}

/// What is known when a launch is considered.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// The AWSPlacementGroup of that name.
    pub group: Option<&'a AWSPlacementGroup>,
    /// Strategies that the instance type supports; none while that is not known.
    pub strategies: Option<&'a BTreeSet<Strategy>>,
    /// Instances in the group, as fresh as they are known; those of launches under way included.
    pub members: &'a [Member],
    /// The time.
    pub now: Timestamp,
}

/// Whether a launch may go out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may, for at most this many instances; none means that there is no limit.
    Launch {
        /// Most instances.
        room: Option<u32>,
    },
    /// The AWSPlacementGroup is not there. Manifests come in any order, so this is held against
    /// the user only after a while.
    Missing {
        /// What to tell the user.
        message: String,
    },
    /// The group is not ready: the Machine waits.
    Wait {
        /// What to tell the user.
        message: String,
        /// Whether the group should be looked at again now: what is known of it is too old.
        refresh: bool,
    },
    /// The group has no room for the instance where it should go.
    Full {
        /// Whether that is the limit of a spread group, rather than the zone of a cluster group.
        spread_limit: bool,
        /// What to tell the user.
        message: String,
    },
    /// It can never work: what the user wrote is wrong.
    Refuse {
        /// What to tell the user.
        message: String,
    },
}

impl Verdict {
    fn refuse(message: impl Into<String>) -> Self {
        Self::Refuse { message: message.into() }
    }

    fn wait(message: impl Into<String>) -> Self {
        Self::Wait { message: message.into(), refresh: false }
    }
}

/// Checks a launch against its group: the user's words, the group's state, its room.
pub fn check(wish: &Wish<'_>, known: &Known<'_>) -> Verdict {
    if let Some(refused) = check_tenancy_host(wish) {
        return refused;
    }
    let Some(group) = known.group else {
        return if wish.needs_object {
            Verdict::Missing { message: missing(wish.group) }
        } else {
            Verdict::Launch { room: None }
        };
    };
    if let Some(refused) = check_spec(wish, group) {
        return refused;
    }
    if let Some(wait) = gate(group, known.now) {
        return wait;
    }
    match Status::of(group.status.as_ref()).observed {
        Some(observed) => fits(wish, observed, known),
        // Ready without a word about what it is: nothing to check it against.
        None => Verdict::Launch { room: None },
    }
}

/// What a Machine is told whose group is not there.
pub fn missing(group: &str) -> String {
    format!(
        "AWSPlacementGroup {group:?} not found. Please create an AWSPlacementGroup before setting placement.group.name"
    )
}

/// What a Machine is told that chose a partition of a group without partitions.
pub const PARTITION_NEEDS_PARTITION_GROUP: &str = "placement.partitionNumber may only be set when used with a AWSPlacementGroup with groupType \"Partition\"";

/// What a Machine is told that chose a partition which is not there.
pub fn no_such_partition(partitions: u32, wanted: i32) -> String {
    format!(
        "placement group has {partitions} partitions, requested partition number ({wanted}) does not exist"
    )
}

/// Dedicated hosts and groups exclude each other, whatever the group is.
fn check_tenancy_host(wish: &Wish<'_>) -> Option<Verdict> {
    (wish.host || wish.tenancy == Some(HOST)).then(|| {
        Verdict::refuse(format!(
            "an instance on a dedicated host cannot be in a placement group: remove placement.host and tenancy \"host\", or placement group {:?}",
            wish.group
        ))
    })
}

/// What the object's specification alone rules out.
fn check_spec(wish: &Wish<'_>, group: &AWSPlacementGroup) -> Option<Verdict> {
    let management = &group.spec.management_spec;
    if Management::parse(management.management_state.as_str()) != Some(Management::Managed) {
        return None;
    }
    let managed = management.managed.as_ref()?;
    let strategy = parse_group_type(managed.group_type.as_str())?;
    let configuration = configuration(managed)?;
    (wish.partition.is_some() && strategy != Strategy::Partition)
        .then(|| Verdict::refuse(PARTITION_NEEDS_PARTITION_GROUP))
        .or_else(|| check_partition(wish, configuration))
        .or_else(|| check_tenancy(wish, configuration))
}

/// A launch waits for a group that is not ready, going, or not looked at for too long.
pub fn gate(group: &AWSPlacementGroup, now: Timestamp) -> Option<Verdict> {
    let name = group.metadata.name.as_deref().unwrap_or_default();
    if group.metadata.deletion_timestamp.is_some() {
        return Some(Verdict::wait(format!("AWSPlacementGroup {name:?} is being deleted")));
    }
    let status = Status::of(group.status.as_ref());
    match &status.ready {
        None => {
            let message = format!("AWSPlacementGroup {name:?} has not been observed yet");
            return Some(Verdict::Wait { message, refresh: true });
        }
        Some(ready) if !status.is_ready() => {
            return Some(Verdict::wait(format!(
                "AWSPlacementGroup {name:?} is not ready: {}: {}",
                ready.reason, ready.message
            )));
        }
        Some(_) => {}
    }
    match status.expires_at {
        Some(until) if until > now => None,
        until => {
            let until = until.map(|until| format!(", it was valid until {until}"));
            let message = format!(
                "the status of AWSPlacementGroup {name:?} has expired{}",
                until.unwrap_or_default()
            );
            Some(Verdict::Wait { message, refresh: true })
        }
    }
}

/// Whether the instance fits into the group as it is in the cloud.
fn fits(wish: &Wish<'_>, observed: Configuration, known: &Known<'_>) -> Verdict {
    if wish.partition.is_some() && observed.strategy != Strategy::Partition {
        return Verdict::refuse(PARTITION_NEEDS_PARTITION_GROUP);
    }
    if let Some(refused) = check_partition(wish, observed)
        .or_else(|| check_tenancy(wish, observed))
        .or_else(|| check_strategy(wish, observed.strategy, known.strategies))
    {
        return refused;
    }
    match observed.strategy {
        Strategy::Cluster => check_zone(wish, known.members),
        Strategy::Spread => check_room(wish, known.members),
        Strategy::Partition => Verdict::Launch { room: None },
    }
}

fn check_partition(wish: &Wish<'_>, group: Configuration) -> Option<Verdict> {
    let (wanted, partitions) = (wish.partition?, group.partitions?);
    let exists = u32::try_from(wanted).is_ok_and(|wanted| (1..=partitions).contains(&wanted));
    (!exists).then(|| Verdict::refuse(no_such_partition(partitions, wanted)))
}

fn check_tenancy(wish: &Wish<'_>, group: Configuration) -> Option<Verdict> {
    if wish.tenancy != Some(DEDICATED) {
        return None;
    }
    match (group.strategy, group.partitions) {
        (Strategy::Spread, _) => Some(Verdict::refuse(format!(
            "spread placement groups do not support instances with tenancy \"dedicated\": placement group {:?} cannot hold this Machine",
            wish.group
        ))),
        (Strategy::Partition, Some(partitions)) if partitions > DEDICATED_PARTITIONS => {
            Some(Verdict::refuse(format!(
                "a partition placement group with instances of tenancy \"dedicated\" can have at most {DEDICATED_PARTITIONS} partitions: placement group {:?} has {partitions}",
                wish.group
            )))
        }
        _ => None,
    }
}

fn check_strategy(
    wish: &Wish<'_>,
    strategy: Strategy,
    supported: Option<&BTreeSet<Strategy>>,
) -> Option<Verdict> {
    supported.is_some_and(|supported| !supported.contains(&strategy)).then(|| {
        Verdict::refuse(format!(
            "{} placement groups are not supported by the '{}' instance type",
            group_type(strategy),
            wish.instance_type
        ))
    })
}

/// Whether a member takes a place: what is on its way out does not.
fn takes_a_place(member: &Member) -> bool {
    !matches!(member.state, InstanceState::ShuttingDown | InstanceState::Terminated)
}

/// A cluster group is in one zone: that of its members.
fn check_zone(wish: &Wish<'_>, members: &[Member]) -> Verdict {
    let elsewhere = members
        .iter()
        .filter(|member| takes_a_place(member))
        .find(|member| member.zone != wish.zone);
    match elsewhere {
        Some(member) if !wish.zone.is_empty() => Verdict::Full {
            spread_limit: false,
            message: format!(
                "cluster placement group {:?} has instances in {} and cannot span Availability Zones: an instance in {} cannot join it",
                wish.group, member.zone, wish.zone
            ),
        },
        _ => Verdict::Launch { room: None },
    }
}

/// A spread group has seven places in each zone.
fn check_room(wish: &Wish<'_>, members: &[Member]) -> Verdict {
    if wish.zone.is_empty() {
        return Verdict::Launch { room: None };
    }
    let taken =
        members.iter().filter(|member| takes_a_place(member) && member.zone == wish.zone).count();
    let taken = u32::try_from(taken).unwrap_or(u32::MAX);
    let room = SPREAD_LIMIT.saturating_sub(taken);
    if room > 0 {
        return Verdict::Launch { room: Some(room) };
    }
    Verdict::Full { spread_limit: true, message: spread_full(wish.group, taken, wish.zone) }
}

/// What a Machine is told that is one too many for its spread group.
fn spread_full(group: &str, taken: u32, zone: &str) -> String {
    format!(
        "spread placement group {group:?} has {taken} instances in {zone}, and at most {SPREAD_LIMIT} fit into one Availability Zone: use another zone or group, or fewer replicas"
    )
}
