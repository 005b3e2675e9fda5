//! Who goes first when a set shrinks.

use jiff::Timestamp;

use super::Replica;

/// Goes in any case.
const MUST_DELETE: f64 = 100.0;
/// Somebody asked, or it does not work.
const BETTER_DELETE: f64 = 50.0;
/// It has no Node, so nothing runs on it.
const PREFER_DELETE: f64 = 40.0;
/// Any other.
const COULD_DELETE: f64 = 20.0;
/// Its age is not known.
const MUST_NOT_DELETE: f64 = 0.0;
/// What ages are measured by: after so long, age tells Machines apart less and less.
const SECONDS_PER_HUNDRED_DAYS: f64 = 8_640_000.0;

/// Who goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeletePolicy {
    /// Whoever is missed least.
    #[default]
    Random,
    /// The youngest.
    Newest,
    /// The oldest.
    Oldest,
}

/// A policy that nobody knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unsupported delete policy {0}. Must be one of 'Random', 'Newest', or 'Oldest'")]
pub struct UnsupportedPolicy(String);

impl DeletePolicy {
    /// As the API writes it; empty is [`DeletePolicy::Random`].
    pub fn parse(text: &str) -> Result<Self, UnsupportedPolicy> {
        match text {
            "" | "Random" => Ok(Self::Random),
            "Newest" => Ok(Self::Newest),
            "Oldest" => Ok(Self::Oldest),
            other => Err(UnsupportedPolicy(other.to_owned())),
        }
    }
}

/// How much a Machine should go, from 0 to 100.
pub fn score(policy: DeletePolicy, machine: &Replica, now: Timestamp) -> f64 {
    let first = machine.delete_first || machine.failed;
    match policy {
        _ if machine.deleting => MUST_DELETE,
        DeletePolicy::Random if first => BETTER_DELETE,
        DeletePolicy::Random if !machine.has_node => PREFER_DELETE,
        DeletePolicy::Random => COULD_DELETE,
        DeletePolicy::Oldest | DeletePolicy::Newest if first => MUST_DELETE,
        DeletePolicy::Oldest => by_age(machine.created, now),
        DeletePolicy::Newest => MUST_DELETE - by_age(machine.created, now),
    }
}

/// From 0 for new to 50 for very old, so that no age comes near [`MUST_DELETE`].
fn by_age(created: Option<Timestamp>, now: Timestamp) -> f64 {
    let Some(created) = created.filter(|created| *created <= now) else { return MUST_NOT_DELETE };
    let seconds = now.duration_since(created).as_secs_f64();
    BETTER_DELETE * (1.0 - (-seconds / SECONDS_PER_HUNDRED_DAYS).exp())
}

/// Chooses `count` of the Machines, those first that should go most; among equals those that come
/// first in the list.
pub fn victims(
    policy: DeletePolicy,
    machines: &[&Replica],
    count: usize,
    now: Timestamp,
) -> Vec<usize> {
    let mut places: Vec<(usize, f64)> = machines
        .iter()
        .enumerate()
        .map(|(place, machine)| (place, score(policy, machine, now)))
        .collect();
    places.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    places.into_iter().take(count).map(|(place, _)| place).collect()
}
