//! Why a MachineSet is as it is.

use std::collections::BTreeMap;

use fleetwright_api::machine::MachineSet;
use jiff::Timestamp;
use kube::ResourceExt;

use super::line;
use crate::{
    Snapshot,
    history::{Moment, life, lines},
    span::ago,
    waiting::waiting,
};

pub(super) fn explain(set: &MachineSet, snapshot: &Snapshot, now: Timestamp) -> String {
    let status = set.status.clone().unwrap_or_default();
    let wanted = set.spec.replicas.unwrap_or(1);
    let born = set.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let age = born.map(|born| format!(", {} old", ago(born, now))).unwrap_or_default();
    let mut text = format!(
        "MachineSet {} has {} of {wanted} Machines, {} ready, {} available{age}\n",
        set.name_any(),
        status.replicas,
        status.ready_replicas.unwrap_or(0),
        status.available_replicas.unwrap_or(0),
    );
    if status.observed_generation != set.metadata.generation {
        text += &line("waits for", "the controller to see the latest change of its spec");
    }
    let mut reasons: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for machine in snapshot.machines_of(set) {
        if let Some(waiting) = waiting(machine, snapshot) {
            let why = if waiting.why.is_empty() { waiting.for_what } else { waiting.why };
            reasons.entry((waiting.reason, why)).or_default().push(machine.name_any());
        }
    }
    if reasons.is_empty() && status.replicas == wanted {
        text += &line("waits for", "nothing: every Machine is as it should be");
    }
    for ((reason, why), machines) in reasons {
        text += &line("because", &format!("{reason}: {why}"));
        text += &line("", &format!("({})", machines.join(", ")));
    }
    let mut moments = life(snapshot, MachineSet::KIND, &set.name_any(), born);
    for condition in &status.conditions {
        let reason = condition.reason.as_deref().unwrap_or_default();
        let message = condition.message.as_deref().unwrap_or_default();
        moments.push(Moment::new(
            condition.last_transition_time.0,
            format!("{}={} {reason} {message}", condition.type_, condition.status),
        ));
    }
    text + "History\n" + &lines(moments)
}
