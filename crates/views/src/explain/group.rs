//! Why a placement group is as it is.

use fleetwright_api::{names::group, placement::AWSPlacementGroup};
use jiff::Timestamp;
use kube::ResourceExt;

use super::line;
use crate::{
    Snapshot,
    history::{Moment, life, lines},
    span::ago,
    waiting::group_of,
};

pub(super) fn explain(object: &AWSPlacementGroup, snapshot: &Snapshot, now: Timestamp) -> String {
    let name = object.name_any();
    let status = object.status.clone().unwrap_or_default();
    let find = |type_: &str| status.conditions.iter().find(|c| c.type_ == type_);
    let ready = find(group::READY);
    let state = match ready {
        Some(ready) if ready.status == "True" => "ready",
        Some(_) => "not ready",
        None => "not observed yet",
    };
    let born = object.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let age = born.map(|born| format!(", {} old", ago(born, now))).unwrap_or_default();
    let mut text = format!("AWSPlacementGroup {name} is {state}{age}\n");
    let managed = &object.spec.management_spec;
    text += &line("managed", managed.management_state.as_str());
    if let Some(observed) = &status.observed_configuration {
        let count = observed.partition.as_ref().and_then(|partition| partition.count);
        let count = count.map(|count| format!(", {count} partitions")).unwrap_or_default();
        text += &line("observed", &format!("{}{count}", observed.group_type));
    }
    if let Some(members) = status.replicas {
        text += &line("instances", &members.to_string());
    }
    if let Some(expires) = &status.expires_at {
        let stale = if expires.0 < now { " (expired: it is looked at again)" } else { "" };
        text += &line("valid until", &format!("{}{stale}", expires.0.strftime("%H:%M:%S")));
    }
    if let Some(deleting) = find(group::DELETING) {
        text += &line("waits for", "the group to be empty and gone");
        text += &line("because", &format!("{}: {}", deleting.reason, deleting.message));
    } else if let Some(ready) = ready.filter(|ready| ready.status != "True") {
        text += &line("because", &format!("{}: {}", ready.reason, ready.message));
    }
    let users: Vec<String> = snapshot
        .machines
        .iter()
        .filter(|machine| group_of(machine).as_deref() == Some(name.as_str()))
        .map(ResourceExt::name_any)
        .collect();
    text += &line("machines", &users.join(", "));
    let mut moments = life(snapshot, AWSPlacementGroup::KIND, &name, born);
    for condition in &status.conditions {
        moments.push(Moment::new(
            condition.last_transition_time.0,
            format!(
                "{}={} {}: {}",
                condition.type_, condition.status, condition.reason, condition.message
            ),
        ));
    }
    text + "History\n" + &lines(moments)
}
