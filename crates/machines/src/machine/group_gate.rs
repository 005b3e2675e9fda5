//! What the placement group of a Machine says to its launch.

use std::collections::BTreeSet;

use fleetwright_api::{aws::AWSMachineProviderConfig, placement::AWSPlacementGroup};
use fleetwright_cloud::{Instance, Shape, Strategy};
use jiff::Timestamp;

use super::wish::Obstacle;
use crate::group::{
    decide::Member,
    preflight::{self, Known, Verdict, Wish},
    status::Status,
};

/// What a group lets through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// How many more it takes, where there is a limit.
    pub room: Option<u32>,
    /// Whether it is a cluster group, whose Machines are launched together.
    pub is_cluster: bool,
}

/// What does not pass, and whether the group should be looked at again.
#[derive(Clone, Debug, PartialEq)]
pub struct Stopped {
    /// Why.
    pub obstacle: Obstacle,
    /// What is known of the group is too old.
    pub refresh: bool,
}

/// Asks the group of a launch.
pub fn ask(
    config: &AWSMachineProviderConfig,
    shape: &Shape,
    group: Option<&AWSPlacementGroup>,
    strategies: Option<&BTreeSet<Strategy>>,
    members: &[Member],
    now: Timestamp,
) -> Result<Passed, Stopped> {
    let stop = |obstacle| Stopped { obstacle, refresh: false };
    let wish =
        Wish::of(config, &shape.zone).map_err(|error| stop(Obstacle::Wrong(error.to_string())))?;
    let Some(wish) = wish else { return Ok(Passed::default()) };
    match preflight::check(&wish, &Known { group, strategies, members, now }) {
        Verdict::Launch { room } => {
            let observed = group.and_then(|group| Status::of(group.status.as_ref()).observed);
            let is_cluster = observed.is_some_and(|seen| seen.strategy == Strategy::Cluster);
            Ok(Passed { room, is_cluster })
        }
        Verdict::Missing { message } => Err(stop(Obstacle::Missing(message))),
        Verdict::Wait { message, refresh } => {
            Err(Stopped { obstacle: Obstacle::GroupNotReady(message), refresh })
        }
        Verdict::Full { spread_limit, message } => {
            Err(stop(Obstacle::GroupFull { spread_limit, message }))
        }
        Verdict::Refuse { message } => Err(stop(Obstacle::Wrong(message))),
    }
}

/// The members of a group: those that were last seen in it, and those that we know better of.
pub fn members<'a>(
    seen: Vec<Member>,
    instances: impl IntoIterator<Item = &'a Instance>,
) -> Vec<Member> {
    let mut members = seen;
    for instance in instances {
        let member =
            Member { id: instance.id.clone(), state: instance.state, zone: instance.zone.clone() };
        match members.iter_mut().find(|known| known.id == instance.id) {
            Some(known) => *known = member,
            None => members.push(member),
        }
    }
    members
}
