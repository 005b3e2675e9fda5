//! The state of one account in one region, and its rules.
//!
//! Pure: nothing here waits, does I/O or looks at a clock. Every call is told what time it is,
//! and [`Region::advance`] carries out what fell due since. What changes is reported as
//! [`Event`]s, in order, which [`Region::drain_events`] hands over.

pub mod balancers;
pub mod capacity;
pub mod catalog;
mod error;
pub mod events;
pub mod groups;
pub mod hosts;
mod ids;
pub mod instance;
mod lag;
pub mod launch;
pub mod lifecycle;
pub mod maintenance;
pub mod network;
pub mod resources;
pub mod settings;
pub mod spot;
pub mod tags;
pub mod throttle;
pub mod types;
pub mod volumes;

use std::collections::{BTreeMap, BTreeSet};

use fleetwright_clock::Random;
use jiff::Timestamp;

pub use error::{ApiError, Outcome};
pub use events::{Change, Event};
pub(crate) use ids::{fresh, well_formed};
pub use lag::Lagged;

use instance::{Instance, InstanceState};
use settings::Settings;

/// One account in one region.
#[derive(Debug)]
pub struct Region {
    /// What was chosen about it; may be changed at any time.
    pub settings: Settings,
    pub(crate) random: Random,
    pub(crate) zones: Vec<network::Zone>,
    pub(crate) vpcs: BTreeMap<String, network::Vpc>,
    pub(crate) dhcp_options: BTreeMap<String, network::DhcpOptions>,
    pub(crate) subnets: BTreeMap<String, network::Subnet>,
    pub(crate) security_groups: BTreeMap<String, network::SecurityGroup>,
    pub(crate) images: BTreeMap<String, catalog::Image>,
    /// By name.
    pub(crate) keys: BTreeMap<String, catalog::KeyPair>,
    /// By name.
    pub(crate) profiles: BTreeMap<String, catalog::InstanceProfile>,
    pub(crate) reservations: BTreeMap<String, catalog::CapacityReservation>,
    /// By sequence: the order of launches is the order of listings.
    pub(crate) instances: BTreeMap<u64, Lagged<Instance>>,
    pub(crate) by_id: BTreeMap<String, u64>,
    pub(crate) volumes: BTreeMap<String, Lagged<volumes::Volume>>,
    pub(crate) spot_requests: BTreeMap<String, Lagged<spot::SpotRequest>>,
    /// By name.
    pub(crate) groups: BTreeMap<String, Lagged<groups::PlacementGroup>>,
    /// Sequences of the members of a group, in every state.
    members: BTreeMap<String, BTreeSet<u64>>,
    pub(crate) hosts: BTreeMap<String, Lagged<hosts::Host>>,
    pub(crate) balancers: BTreeMap<String, balancers::LoadBalancer>,
    pub(crate) target_groups: BTreeMap<String, balancers::TargetGroup>,
    pub(crate) classic: BTreeMap<String, balancers::ClassicBalancer>,
    /// What there is where.
    pub capacity: capacity::Capacity,
    /// (zone, type) pairs that are not offered at all.
    pub(crate) not_offered: BTreeSet<(String, String)>,
    /// By (zone, or nothing for a launch that named none; token).
    tokens: BTreeMap<(String, String), launch::TokenRecord>,
    /// Spot instances that have been given notice.
    noticed: BTreeMap<u64, spot::Notice>,
    /// Spot instances that are at more risk than usual, and since when.
    rebalanced: BTreeMap<u64, Timestamp>,
    /// What is planned for the hardware of instances.
    maintenance: BTreeMap<u64, Vec<maintenance::ScheduledEvent>>,
    /// Instances whose operating system hangs. EC2 knows nothing of it.
    frozen: BTreeSet<u64>,
    due: BTreeMap<(Timestamp, u64), Due>,
    sequence: u64,
    events: Vec<Event>,
    reported: u64,
}

/// What happens by itself when its time comes.
#[derive(Clone, Debug)]
enum Due {
    State { sequence: u64, epoch: u64, to: InstanceState },
    ForgetInstance { sequence: u64 },
    ForgetToken { key: (String, String) },
    GroupAvailable { id: String },
    GroupGone { id: String },
    Reclaim { sequence: u64 },
    TargetHealthy { group: String, target: (String, u16) },
    TargetGone { group: String, target: (String, u16) },
}

impl Region {
    /// An empty region.
    pub fn new(settings: Settings, random: Random) -> Self {
        Self {
            settings,
            random,
            zones: Vec::new(),
            vpcs: BTreeMap::new(),
            dhcp_options: BTreeMap::new(),
            subnets: BTreeMap::new(),
            security_groups: BTreeMap::new(),
            images: BTreeMap::new(),
            keys: BTreeMap::new(),
            profiles: BTreeMap::new(),
            reservations: BTreeMap::new(),
            instances: BTreeMap::new(),
            by_id: BTreeMap::new(),
            volumes: BTreeMap::new(),
            spot_requests: BTreeMap::new(),
            groups: BTreeMap::new(),
            members: BTreeMap::new(),
            hosts: BTreeMap::new(),
            balancers: BTreeMap::new(),
            target_groups: BTreeMap::new(),
            classic: BTreeMap::new(),
            capacity: capacity::Capacity::default(),
            not_offered: BTreeSet::new(),
            tokens: BTreeMap::new(),
            noticed: BTreeMap::new(),
            rebalanced: BTreeMap::new(),
            maintenance: BTreeMap::new(),
            frozen: BTreeSet::new(),
            due: BTreeMap::new(),
            sequence: 0,
            events: Vec::new(),
            reported: 0,
        }
    }

    /// Carries out what fell due, in order and each at its own time.
    pub fn advance(&mut self, now: Timestamp) {
        while let Some(entry) = self.due.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((at, _), due) = entry.remove_entry();
            match due {
                Due::State { sequence, epoch, to } => self.state_due(at, sequence, epoch, to),
                Due::ForgetInstance { sequence } => self.forget(at, sequence),
                Due::ForgetToken { key } => self.forget_token(&key),
                Due::GroupAvailable { id } => self.group_became_available(at, &id),
                Due::GroupGone { id } => self.group_went(at, &id),
                Due::Reclaim { sequence } => self.reclaim(at, sequence),
                Due::TargetHealthy { group, target } => self.target_became_healthy(&group, &target),
                Due::TargetGone { group, target } => self.target_went(&group, &target),
            }
        }
    }

    /// When something happens by itself next.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.due.first_key_value().map(|((at, _), _)| *at)
    }

    /// The events since the last call.
    pub fn drain_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Every instance as it is, terminated ones too while they are listed.
    pub fn instances(&self) -> impl Iterator<Item = &Instance> {
        self.instances.values().map(Lagged::latest)
    }

    /// An instance as it is.
    pub fn instance(&self, id: &str) -> Option<&Instance> {
        self.by_id.get(id).and_then(|sequence| self.instances.get(sequence)).map(Lagged::latest)
    }

    /// The notice that a spot instance has been given.
    pub fn spot_notice(&self, id: &str) -> Option<spot::Notice> {
        self.noticed.get(self.by_id.get(id)?).copied()
    }

    /// Since when a spot instance is at more risk than usual.
    pub fn rebalance_recommended(&self, id: &str) -> Option<Timestamp> {
        self.rebalanced.get(self.by_id.get(id)?).copied()
    }

    /// What is planned for the hardware of an instance.
    pub fn scheduled_events(&self, id: &str) -> &[maintenance::ScheduledEvent] {
        let events = self.by_id.get(id).and_then(|sequence| self.maintenance.get(sequence));
        events.map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether the operating system of an instance hangs.
    pub fn is_frozen(&self, id: &str) -> bool {
        self.by_id.get(id).is_some_and(|sequence| self.frozen.contains(sequence))
    }

    /// Every placement group as it is.
    pub fn placement_groups(&self) -> impl Iterator<Item = &groups::PlacementGroup> {
        self.groups.values().map(Lagged::latest)
    }

    /// Every volume as it is.
    pub fn volumes(&self) -> impl Iterator<Item = &volumes::Volume> {
        self.volumes.values().map(Lagged::latest)
    }

    /// Every target group as it is.
    pub fn target_groups(&self) -> impl Iterator<Item = &balancers::TargetGroup> {
        self.target_groups.values()
    }

    fn plan(&mut self, at: Timestamp, due: Due) {
        let sequence = self.next_sequence();
        self.due.insert((at, sequence), due);
    }

    fn report(&mut self, at: Timestamp, change: Change) {
        self.reported += 1;
        self.events.push(Event { sequence: self.reported, at, change });
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }
}
