//! Whose Machine it is.

use super::{Replica, Set};

/// What a Machine is to a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Membership {
    /// Its own, and it counts.
    Member,
    /// Nobody's, and it matches: the set takes it.
    Orphan,
    /// Its own, but it matches no longer: the set lets it go.
    Stray,
    /// Its own or nobody's, on its way out.
    Deleting,
    /// Another's.
    Foreign,
    /// Nobody's, and it does not match.
    Unmatched,
}

impl Membership {
    /// Whether it counts as a replica.
    pub fn counts(self) -> bool {
        matches!(self, Self::Member | Self::Orphan)
    }
}

/// What a Machine is to a set.
pub fn membership(set: &Set, machine: &Replica) -> Membership {
    let own = match &machine.controller {
        Some(controller) if *controller != set.uid => return Membership::Foreign,
        controller => controller.is_some(),
    };
    // A selector that asks for nothing would take everybody's Machines.
    let matches = !set.selector.is_empty() && set.selector.matches(&machine.labels);
    match (own, matches) {
        (false, false) => Membership::Unmatched,
        _ if machine.deleting => Membership::Deleting,
        (true, true) => Membership::Member,
        (false, true) => Membership::Orphan,
        (true, false) => Membership::Stray,
    }
}
