//! A Machine that is gone: what its events still tell.

use fleetwright_api::{machine::Machine, names::event};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;

use super::{line, replaced};
use crate::{
    Snapshot,
    history::{life, lines, time_of},
    span::ago,
};

/// Events that tell of the end, the first of which is when it began.
const ENDS: [&str; 4] = [
    event::MACHINE_DELETED,
    event::TERMINATION_NOTICE,
    event::DRAIN_PROCEEDS,
    event::DRAIN_SKIPPED,
];

/// Explains a Machine that is gone, if anything is told of it.
pub(super) fn explain(name: &str, snapshot: &Snapshot, now: Timestamp) -> Option<String> {
    let moments = life(snapshot, Machine::KIND, name, None);
    let last = moments.iter().map(|moment| moment.time).max()?;
    let mut text = format!("Machine {name} is gone, last heard of {} ago\n", ago(last, now));
    // A set names its Machines after itself.
    let set = name.rsplit_once('-').map_or("", |(set, _)| set);
    let began = snapshot.events.iter().filter(|event| ends(event, name)).filter_map(time_of).min();
    let replacement = began.and_then(|began| replaced::by(snapshot, set, name, began));
    let mut moments = moments;
    if let Some(replacement) = replacement {
        text += &line("successor", &replacement.text);
        moments.extend(replacement.moments);
    }
    Some(text + "History\n" + &lines(moments))
}

fn ends(event: &Event, name: &str) -> bool {
    event.involved_object.name.as_deref() == Some(name)
        && event.involved_object.kind.as_deref() == Some(Machine::KIND)
        && event.reason.as_deref().is_some_and(|reason| ENDS.contains(&reason))
}
