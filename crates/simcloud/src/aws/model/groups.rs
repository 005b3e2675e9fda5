//! Placement groups: their life, and who may be launched into them.

use std::time::Duration;

use jiff::Timestamp;

use super::{
    Due, Region,
    error::{ApiError, Outcome},
    events::Change,
    ids,
    instance::Instance,
    lag::Lagged,
    tags::Tags,
    types::InstanceType,
};

/// How a group places its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strategy {
    /// Close together, in one zone.
    Cluster,
    /// In partitions that share no hardware.
    Partition,
    /// Each on hardware of its own.
    Spread,
}

impl Strategy {
    /// From the wire.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "cluster" => Self::Cluster,
            "partition" => Self::Partition,
            "spread" => Self::Spread,
            _ => return None,
        })
    }

    /// On the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::Partition => "partition",
            Self::Spread => "spread",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Cluster => "Cluster",
            Self::Partition => "Partition",
            Self::Spread => "Spread",
        }
    }
}

/// Where a group is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupState {
    /// Being made.
    Pending,
    /// Usable.
    Available,
    /// Being deleted.
    Deleting,
}

impl GroupState {
    /// On the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Available => "available",
            Self::Deleting => "deleting",
        }
    }
}

/// A placement group.
#[derive(Clone, Debug)]
pub struct PlacementGroup {
    /// `pg-…`.
    pub id: String,
    /// Name, unique in the region.
    pub name: String,
    /// Strategy.
    pub strategy: Strategy,
    /// Partitions, of a partition group.
    pub partitions: Option<u32>,
    /// `rack` or `host`, of a spread group.
    pub spread_level: Option<String>,
    /// State.
    pub state: GroupState,
    /// Tags.
    pub tags: Tags,
}

/// A request for a new group.
#[derive(Clone, Debug, Default)]
pub struct NewGroup {
    /// Name.
    pub name: String,
    /// Strategy; cluster if absent.
    pub strategy: Option<String>,
    /// Partitions.
    pub partitions: Option<i64>,
    /// Spread level.
    pub spread_level: Option<String>,
    /// Tags.
    pub tags: Tags,
}

/// Most partitions of a group in a zone.
const MOST_PARTITIONS: i64 = 7;
/// What EC2 makes when no count is given.
const DEFAULT_PARTITIONS: u32 = 2;
/// Most partitions of a group that holds Dedicated Instances.
const MOST_DEDICATED_PARTITIONS: u32 = 2;
const LONGEST_NAME: usize = 255;

/// What a launch into a group came to.
pub(super) struct GroupPlace {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) strategy: Strategy,
    /// Partitions of the group, of which each instance gets the emptiest, unless `partition`.
    pub(super) partitions: Option<u32>,
    pub(super) partition: Option<u32>,
    /// How many more fit by the group's own rules.
    pub(super) room: u32,
}

impl GroupPlace {
    /// Why no more fit.
    pub(super) fn is_full(&self) -> ApiError {
        ApiError::server(
            "InsufficientInstanceCapacity",
            format!(
                "You've reached the limit of instances in this spread placement group ('{}') for the \
                 Availability Zone. Launch instances in another Availability Zone, or use another \
                 placement group.",
                self.name
            ),
        )
    }
}

/// What of a launch a group looks at.
pub(super) struct GroupLaunch<'a> {
    pub(super) name: Option<&'a str>,
    pub(super) id: Option<&'a str>,
    pub(super) partition: Option<i64>,
    pub(super) tenancy: &'a str,
    pub(super) zone: &'a str,
    pub(super) of: &'static InstanceType,
    pub(super) spot: bool,
}

fn unknown(name: &str) -> ApiError {
    ApiError::client(
        "InvalidPlacementGroup.Unknown",
        format!("The Placement Group '{name}' is unknown."),
    )
}

impl NewGroup {
    fn checked(&self) -> Outcome<(Strategy, Option<u32>, Option<String>)> {
        if self.name.is_empty() {
            return Err(ApiError::missing("GroupName"));
        }
        if self.name.len() > LONGEST_NAME || !self.name.is_ascii() || self.name.trim() != self.name
        {
            return Err(ApiError::invalid(format!(
                "Value ({}) for parameter groupName is invalid. It may have up to {LONGEST_NAME} \
                 ASCII characters, without leading or trailing spaces.",
                self.name
            )));
        }
        let strategy = match self.strategy.as_deref() {
            None => Strategy::Cluster,
            Some(text) => Strategy::parse(text).ok_or_else(|| {
                ApiError::invalid(format!("Value ({text}) for parameter strategy is invalid."))
            })?,
        };
        let partitions = match (strategy, self.partitions) {
            (Strategy::Partition, None) => Some(DEFAULT_PARTITIONS),
            (Strategy::Partition, Some(count)) => {
                let valid = (1..=MOST_PARTITIONS).contains(&count);
                let count = u32::try_from(count).ok().filter(|_| valid).ok_or_else(|| {
                    ApiError::invalid(format!(
                        "Value ({count}) for parameter partitionCount is invalid. It must be \
                         between 1 and {MOST_PARTITIONS}."
                    ))
                })?;
                Some(count)
            }
            (_, None) => None,
            (_, Some(_)) => {
                return Err(ApiError::combination(
                    "The parameter PartitionCount may only be used with the 'partition' strategy.",
                ));
            }
        };
        let spread_level = match (strategy, self.spread_level.as_deref()) {
            (Strategy::Spread, None) => Some("rack".to_owned()),
            (Strategy::Spread, Some(level @ ("rack" | "host"))) => Some(level.to_owned()),
            (_, None) => None,
            (Strategy::Spread, Some(level)) => {
                return Err(ApiError::invalid(format!(
                    "Value ({level}) for parameter spreadLevel is invalid."
                )));
            }
            (_, Some(_)) => {
                return Err(ApiError::combination(
                    "The parameter SpreadLevel may only be used with the 'spread' strategy.",
                ));
            }
        };
        Ok((strategy, partitions, spread_level))
    }
}

impl Region {
    /// CreatePlacementGroup.
    pub fn create_group(&mut self, now: Timestamp, new: NewGroup) -> Outcome<PlacementGroup> {
        let (strategy, partitions, spread_level) = new.checked()?;
        if self.groups.contains_key(&new.name) {
            return Err(ApiError::client(
                "InvalidPlacementGroup.Duplicate",
                format!("The Placement Group '{}' already exists.", new.name),
            ));
        }
        if self.groups.len() >= self.settings.quotas.placement_groups {
            return Err(ApiError::client(
                "PlacementGroupLimitExceeded",
                "The maximum number of placement groups has been reached.",
            ));
        }
        let delay = self.settings.delays.group_available;
        let group = PlacementGroup {
            id: ids::fresh(&self.random, "pg"),
            name: new.name,
            strategy,
            partitions,
            spread_level,
            state: if delay.is_zero() { GroupState::Available } else { GroupState::Pending },
            tags: new.tags,
        };
        if !delay.is_zero() {
            self.plan(now + delay, Due::GroupAvailable { id: group.id.clone() });
        }
        let lag = self.settings.lag.after("CreatePlacementGroup");
        self.groups.insert(group.name.clone(), Lagged::new(group.clone(), now, lag));
        self.report(now, Change::GroupCreated(group.clone()));
        Ok(group)
    }

    /// DeletePlacementGroup.
    pub fn delete_group(&mut self, now: Timestamp, name: &str) -> Outcome<()> {
        let Some(group) = self.groups.get(name) else {
            return Err(unknown(name));
        };
        if group.latest().state == GroupState::Deleting {
            return Err(unknown(name));
        }
        // Stopped members do not hold a group; they cannot start once it is gone.
        if self.members(name).any(|member| member.state.occupies()) {
            return Err(ApiError::client(
                "InvalidPlacementGroup.InUse",
                format!("The placement group '{name}' is in use and may not be deleted."),
            ));
        }
        let delay = self.settings.delays.group_deleted;
        let lag = self.settings.lag.after("DeletePlacementGroup");
        if delay.is_zero() && lag.is_zero() {
            self.remove_group(now, name);
            return Ok(());
        }
        if let Some(group) = self.groups.get_mut(name) {
            group.change(now, lag, |group| group.state = GroupState::Deleting);
            let group = group.latest().clone();
            self.plan(now + delay.max(lag), Due::GroupGone { id: group.id.clone() });
            self.report(now, Change::GroupState(group));
        }
        Ok(())
    }

    fn remove_group(&mut self, at: Timestamp, name: &str) {
        if let Some(group) = self.groups.remove(name) {
            self.report(at, Change::GroupDeleted(group.latest().clone()));
        }
    }

    pub(super) fn group_became_available(&mut self, at: Timestamp, id: &str) {
        let found = self.groups.values_mut().find(|group| group.latest().id == id);
        if let Some(group) = found.filter(|group| group.latest().state == GroupState::Pending) {
            group.change(at, Duration::ZERO, |group| group.state = GroupState::Available);
            let group = group.latest().clone();
            self.report(at, Change::GroupState(group));
        }
    }

    pub(super) fn group_went(&mut self, at: Timestamp, id: &str) {
        let found = self.groups.values().find(|group| group.latest().id == id);
        if let Some(name) = found.map(|group| group.latest().name.clone()) {
            self.remove_group(at, &name);
        }
    }

    /// Members of a group, in every state.
    pub(super) fn members(&self, name: &str) -> impl Iterator<Item = &Instance> {
        let sequence = self.members.get(name).into_iter().flatten();
        sequence.filter_map(|seq| self.instances.get(seq)).map(Lagged::latest)
    }

    /// Whether a launch may join a group, and what place it gets.
    pub(super) fn place_in_group(&self, launch: &GroupLaunch<'_>) -> Outcome<Option<GroupPlace>> {
        let group = match (launch.name, launch.id) {
            (None, None) if launch.partition.is_some() => {
                return Err(ApiError::combination(
                    "The parameter PartitionNumber may only be used with a partition placement \
                     group.",
                ));
            }
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => {
                return Err(ApiError::combination(
                    "The parameters GroupName and GroupId may not be used together.",
                ));
            }
            (Some(name), None) => self.groups.get(name).ok_or_else(|| unknown(name))?,
            (None, Some(id)) => self
                .groups
                .values()
                .find(|group| group.latest().id == id)
                .ok_or_else(|| unknown(id))?,
        }
        .latest();
        if group.state != GroupState::Available {
            return Err(unknown(&group.name));
        }
        check_tenancy(group, launch.tenancy)?;
        if !launch.of.strategies.contains(&group.strategy) {
            return Err(ApiError::combination(format!(
                "{} placement groups are not supported by the '{}' instance type. Specify a \
                 supported instance type or change the placement group strategy, and try again.",
                group.strategy.title(),
                launch.of.name
            )));
        }
        let partition = partition_number(group, launch.partition)?;
        let mut here = 0;
        for member in self.members(&group.name).filter(|member| member.state.occupies()) {
            if member.zone == launch.zone {
                here += 1;
            } else if group.strategy == Strategy::Cluster {
                return Err(other_zone(group, launch));
            }
        }
        let room = if group.strategy == Strategy::Spread {
            self.settings.quotas.spread_per_zone.saturating_sub(here)
        } else {
            u32::MAX
        };
        Ok(Some(GroupPlace {
            id: group.id.clone(),
            name: group.name.clone(),
            strategy: group.strategy,
            partitions: group.partitions,
            partition,
            room,
        }))
    }

    /// The partition with the fewest members in the zone, and of those the first: launched one
    /// after the other, instances go round.
    pub(super) fn emptiest_partition(&self, group: &str, zone: &str, partitions: u32) -> u32 {
        let count = |number: u32| {
            self.members(group)
                .filter(|m| m.state.occupies() && m.zone == zone && m.partition == Some(number))
                .count()
        };
        (1..=partitions).min_by_key(|number| count(*number)).unwrap_or(1)
    }
}

fn check_tenancy(group: &PlacementGroup, tenancy: &str) -> Outcome<()> {
    match (tenancy, group.strategy) {
        ("host", _) => Err(ApiError::combination(
            "You cannot launch an instance with a tenancy of 'host' into a placement group. Either \
             remove the placement group from the request, or specify a different tenancy.",
        )),
        ("dedicated", Strategy::Spread) => Err(ApiError::combination(
            "Spread placement groups do not support instances with a tenancy of 'dedicated'.",
        )),
        ("dedicated", Strategy::Partition)
            if group.partitions.unwrap_or(0) > MOST_DEDICATED_PARTITIONS =>
        {
            Err(ApiError::combination(format!(
                "A partition placement group with instances with a tenancy of 'dedicated' may have \
                 at most {MOST_DEDICATED_PARTITIONS} partitions."
            )))
        }
        _ => Ok(()),
    }
}

fn partition_number(group: &PlacementGroup, wanted: Option<i64>) -> Outcome<Option<u32>> {
    let Some(wanted) = wanted else {
        return Ok(None);
    };
    let Some(partitions) = group.partitions else {
        return Err(ApiError::combination(
            "The parameter PartitionNumber may only be used with a partition placement group.",
        ));
    };
    let number = u32::try_from(wanted).ok().filter(|number| (1..=partitions).contains(number));
    number.map(Some).ok_or_else(|| {
        ApiError::invalid(format!(
            "Value ({wanted}) for parameter partitionNumber is invalid. The placement group '{}' \
             has {partitions} partitions.",
            group.name
        ))
    })
}

fn other_zone(group: &PlacementGroup, launch: &GroupLaunch<'_>) -> ApiError {
    if launch.spot {
        ApiError::invalid("Your placement group is spread across Availability Zones.")
    } else {
        ApiError::server(
            "InsufficientInstanceCapacity",
            format!(
                "We currently do not have sufficient {} capacity in the Availability Zone you \
                 requested ({}) for the placement group '{}', whose instances are in another \
                 Availability Zone.",
                launch.of.name, launch.zone, group.name
            ),
        )
    }
}
