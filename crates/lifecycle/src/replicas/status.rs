//! What a set's status counts.

use std::time::Duration;

use jiff::Timestamp;

use super::{Replica, Set};
use crate::{moment::after, selector::has_all};

/// Whether a Node is ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeReady {
    /// It is not, or there is none.
    #[default]
    No,
    /// It is, since this time where it says so.
    Since(Option<Timestamp>),
}

/// The counts of a status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Machines that count.
    pub replicas: usize,
    /// Those with every label of the template.
    pub fully_labeled: usize,
    /// Those with a ready Node.
    pub ready: usize,
    /// Those whose Node has been ready long enough.
    pub available: usize,
    /// When the next one becomes available, if nothing else happens.
    pub next_check: Option<Timestamp>,
}

/// Counts the members of a set.
pub fn counts<'a>(
    set: &Set,
    members: impl IntoIterator<Item = &'a Replica>,
    now: Timestamp,
) -> Counts {
    let wait = Duration::from_secs(set.min_ready_seconds.into());
    let mut counts = Counts::default();
    for member in members {
        counts.replicas += 1;
        counts.fully_labeled += usize::from(has_all(&member.labels, &set.template_labels));
        let NodeReady::Since(since) = member.ready else { continue };
        counts.ready += 1;
        match since.map(|since| after(since, wait)) {
            _ if wait.is_zero() => counts.available += 1,
            Some(available_at) if available_at <= now => counts.available += 1,
            // A Node that does not say since when is not known to be ready long enough.
            available_at => {
                counts.next_check = counts.next_check.into_iter().chain(available_at).min();
            }
        }
    }
    counts
}
