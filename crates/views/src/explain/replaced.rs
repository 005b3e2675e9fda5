//! Who takes the place of a Machine that goes.

use fleetwright_api::{
    machine::{Machine, Phase},
    names::annotation,
};
use jiff::Timestamp;
use kube::ResourceExt;

use crate::{Snapshot, history::Moment, span::ago};

/// The Machine that took the place of another.
pub(super) struct Replacement {
    /// In a few words.
    pub(super) text: String,
    /// What happened to it.
    pub(super) moments: Vec<Moment>,
}

/// The Machine that a set made in the place of another: the one that says so, else the first after
/// the deletion.
pub(super) fn by(
    snapshot: &Snapshot,
    set: &str,
    name: &str,
    deleted: Timestamp,
) -> Option<Replacement> {
    let set = snapshot.sets.iter().find(|known| known.name_any() == set)?;
    let born = |machine: &Machine| machine.creation_timestamp().map(|time| time.0);
    let says = |machine: &Machine| {
        machine.annotations().get(annotation::REPLACES).is_some_and(|replaced| replaced == name)
    };
    let later = |machine: &Machine| born(machine).is_some_and(|born| born >= deleted);
    let machine = snapshot
        .machines_of(set)
        .filter(|machine| says(machine) || later(machine))
        .min_by_key(|machine| (!says(machine), born(machine), machine.name_any()))?;
    let name = machine.name_any();
    let status = machine.status.as_ref();
    let phase = status.and_then(|status| status.phase.clone());
    let mut moments = vec![Moment::new(born(machine)?, format!("replacement {name} created"))];
    let running = (phase == Some(Phase::Running)).then(|| ready_since(machine, snapshot)).flatten();
    let text = if let Some(running) = running {
        moments.push(Moment::new(running, format!("replacement {name} Running")));
        format!("{name}, Running {} after the deletion", ago(deleted, running))
    } else {
        let phase = phase.map_or("not yet seen".to_owned(), |phase| phase.to_string());
        format!("{name}, {phase}")
    };
    Some(Replacement { text, moments })
}

/// Since when the Node of a Machine is ready.
fn ready_since(machine: &Machine, snapshot: &Snapshot) -> Option<Timestamp> {
    let node = snapshot.node(machine.status.as_ref()?.node_ref.as_ref()?.name.as_deref()?)?;
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions.iter().find(|told| told.type_ == "Ready" && told.status == "True")?;
    ready.last_transition_time.as_ref().map(|time| time.0)
}
