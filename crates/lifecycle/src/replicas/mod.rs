//! How many Machines a set has, which of them count, who is made and who goes.
//!
//! Failed Machines count: replacing them is the health check's decision, not the set's. Deleting
//! ones do not, so that a replacement begins while the old one still drains.

mod membership;
mod status;
mod victims;

use jiff::Timestamp;

pub use membership::{Membership, membership};
pub use status::{Counts, NodeReady, counts};
pub use victims::{DeletePolicy, UnsupportedPolicy, score, victims};

use crate::selector::{Labels, Selector};

/// Annotation of a Machine that is to go first when its set shrinks.
pub const DELETE_MACHINE: &str = "machine.openshift.io/delete-machine";
/// The same, as older tools write it.
pub const OLD_DELETE_MACHINE: &str = "machine.openshift.io/cluster-api-delete-machine";

/// What counts of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    /// Its UID.
    pub uid: String,
    /// Whether it goes; then nothing is made, adopted or chosen.
    pub deleting: bool,
    /// How many it wants.
    pub replicas: usize,
    /// Which Machines are its own.
    pub selector: Selector,
    /// The labels that it gives to new Machines.
    pub template_labels: Labels,
    /// How long a Node must be ready until it counts as available, in seconds.
    pub min_ready_seconds: u32,
    /// Who goes first.
    pub delete_policy: DeletePolicy,
}

/// What counts of a Machine.
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replica {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: Labels,
    /// The UID of its controller.
    pub controller: Option<String>,
    /// Whether it goes already.
    pub deleting: bool,
    /// Whether somebody asks that it goes first.
    pub delete_first: bool,
    /// Whether its status has an error.
    pub failed: bool,
    /// When it was made; none when the API did not say yet.
    pub created: Option<Timestamp>,
    /// Whether it has a Node.
    pub has_node: bool,
    /// Whether its Node is ready.
    pub ready: NodeReady,
}

/// Whether the annotations of a Machine ask that it goes first.
pub fn asks_to_go_first<'a>(annotation: impl Fn(&str) -> Option<&'a str>) -> bool {
    [DELETE_MACHINE, OLD_DELETE_MACHINE]
        .into_iter()
        .any(|key| annotation(key).is_some_and(|value| !value.is_empty()))
}

/// What to do with the Machines of a set. Numbers are places in the list that came in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Those that belong to nobody and match: make the set their controller.
    pub adopt: Vec<usize>,
    /// Those that are the set's and match no longer: let them go, alive.
    pub release: Vec<usize>,
    /// Those that count, adopted ones included, by name.
    pub members: Vec<usize>,
    /// How many to make.
    pub create: usize,
    /// Whom to delete, the first first.
    pub delete: Vec<usize>,
}

/// Plans what a set needs. The Machines are all those of its namespace, or at least those that
/// match its selector or have it as their controller.
pub fn plan(set: &Set, machines: &[Replica], now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    if set.deleting {
        return plan;
    }
    for (place, machine) in machines.iter().enumerate() {
        match membership(set, machine) {
            Membership::Member => plan.members.push(place),
            Membership::Orphan => {
                plan.adopt.push(place);
                plan.members.push(place);
            }
            Membership::Stray => plan.release.push(place),
            Membership::Deleting | Membership::Foreign | Membership::Unmatched => {}
        }
    }
    plan.members.sort_by(|one, other| machines[*one].name.cmp(&machines[*other].name));
    let have = plan.members.len();
    plan.create = set.replicas.saturating_sub(have);
    let members: Vec<&Replica> = plan.members.iter().map(|place| &machines[*place]).collect();
    let chosen = victims(set.delete_policy, &members, have.saturating_sub(set.replicas), now);
    plan.delete = chosen.into_iter().map(|place| plan.members[place]).collect();
    // Who goes need not be adopted first.
    plan.adopt.retain(|place| !plan.delete.contains(place));
    plan
}

#[cfg(test)]
mod tests;
