//! Why a Machine is as it is.

use fleetwright_api::{
    aws::{AWSMachineProviderConfig, AWSMachineProviderStatus},
    machine::Machine,
    names::{annotation, condition, label},
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use serde_json::Value;

use super::{line, replaced};
use crate::{
    Snapshot,
    history::{Moment, life, lines},
    span::ago,
    waiting::waiting,
};

pub(super) fn explain(machine: &Machine, snapshot: &Snapshot, now: Timestamp) -> String {
    let status = machine.status.clone().unwrap_or_default();
    let phase = status.phase.as_ref().map_or("not seen by the controller yet", |p| p.as_str());
    let born = machine.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let age = born.map(|born| format!(", {} old", ago(born, now))).unwrap_or_default();
    let mut text = format!("Machine {} is {phase}{age}\n", machine.name_any());
    let owner = machine.owner_references().iter().find(|owner| owner.controller == Some(true));
    if let Some(owner) = owner {
        text += &line("owner", &format!("{}/{}", owner.kind, owner.name));
    }
    text += &line("instance", &instance(machine));
    if let Some(node) = status.node_ref.as_ref().and_then(|node| node.name.as_ref()) {
        text += &line("node", node);
    }
    match waiting(machine, snapshot) {
        Some(waiting) => {
            text += &line("waits for", &waiting.for_what);
            text += &line("because", &reasoned(&waiting.reason, &waiting.why));
            text += &line("to do", &waiting.fix);
        }
        None => text += &line("waits for", "nothing: it is as it should be"),
    }
    text += &line("intent", &intent(machine));
    let deleted = machine.metadata.deletion_timestamp.as_ref().map(|time| time.0);
    let set = owner.map(|owner| owner.name.as_str()).unwrap_or_default();
    let replacement =
        deleted.and_then(|deleted| replaced::by(snapshot, set, &machine.name_any(), deleted));
    if let Some(replacement) = &replacement {
        text += &line("successor", &replacement.text);
    }
    for difference in differences(machine) {
        text += &line("differs", &difference);
    }
    let mut moments = life(snapshot, Machine::KIND, &machine.name_any(), born);
    if let Some(deleted) = deleted {
        moments.push(Moment::new(deleted, "deletion asked for"));
    }
    let node = status.node_ref.as_ref().and_then(|node| node.name.as_deref());
    moments.extend(node.and_then(|node| notice(snapshot.node(node)?)));
    moments.extend(replacement.into_iter().flat_map(|replacement| replacement.moments));
    for condition in &status.conditions {
        let reason = condition.reason.as_deref().unwrap_or_default();
        let message = condition.message.as_deref().unwrap_or_default();
        let said = reasoned(reason, message);
        let said = if said.is_empty() { said } else { format!(", {said}") };
        moments.push(Moment::new(
            condition.last_transition_time.0,
            format!("{}={}{said}", condition.type_, condition.status),
        ));
    }
    text + "History\n" + &lines(moments)
}

/// What the Node says of its end.
fn notice(node: &Node) -> Option<Moment> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    let told = conditions
        .iter()
        .find(|told| told.type_ == condition::TERMINATING && told.status == "True")?;
    let said = |name: &str| node.annotations().get(name).map(String::as_str).unwrap_or_default();
    let parts = [
        ("", "the cloud takes the instance back"),
        ("at ", said(annotation::TERMINATION_DEADLINE)),
        ("by ", said(annotation::TERMINATION_SOURCE)),
    ];
    let known = parts.iter().filter(|(_, value)| !value.is_empty());
    let text: Vec<String> = known.map(|(word, value)| format!("{word}{value}")).collect();
    Some(Moment::new(told.last_transition_time.as_ref()?.0, text.join(" ")))
}

fn reasoned(reason: &str, why: &str) -> String {
    match (reason.is_empty(), why.is_empty()) {
        (false, false) => format!("{reason}: {why}"),
        _ => format!("{reason}{why}"),
    }
}

fn instance(machine: &Machine) -> String {
    let provider = AWSMachineProviderStatus::read(
        machine.status.as_ref().and_then(|status| status.provider_status.as_ref()),
    );
    let state = machine.annotations().get(annotation::INSTANCE_STATE).cloned();
    let label = |key: &str| machine.labels().get(key).cloned();
    let group = label(label::PLACEMENT_GROUP).map(|group| format!("placement group {group}"));
    let partition = label(label::PARTITION).map(|partition| format!("partition {partition}"));
    [provider.instance_id, state, label(label::INSTANCE_TYPE), label(label::ZONE), group, partition]
        .into_iter()
        .flatten()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(", ")
}

/// The intent that is on record: what the controller set out to do, should it be stopped now.
fn intent(machine: &Machine) -> String {
    let Some(text) = machine.annotations().get(annotation::INTENT) else { return String::new() };
    let Ok(intent) = serde_json::from_str::<Value>(text) else {
        return format!("unreadable: {text}");
    };
    let field = |name: &str| intent.get(name).filter(|value| !value.is_null());
    let number = |name: &str| field(name).and_then(Value::as_u64);
    let word = |name: &str| field(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let said = format!("{} with token {}", word("op"), word("token"));
    if let (Some(index), Some(size)) = (number("index"), number("size"))
        && size > 1
    {
        return format!("{said}, number {} of {size} launched together", index + 1);
    }
    said
}

/// Where the instance is not what the spec now asks for. An instance is never moved: the Machine
/// has to be replaced.
fn differences(machine: &Machine) -> Vec<String> {
    let Ok(spec) = AWSMachineProviderConfig::read(&machine.spec.provider_spec) else {
        return Vec::new();
    };
    let Ok(placed) = spec.placed() else { return Vec::new() };
    let label = |key: &str| machine.labels().get(key).map(String::as_str);
    let mut differences = Vec::new();
    let mut compare = |field: &str, wanted: Option<&str>, found: Option<&str>| {
        if let (Some(wanted), Some(found)) = (wanted.filter(|wanted| !wanted.is_empty()), found)
            && wanted != found
        {
            differences.push(format!(
                "the spec now asks for {field} {wanted}, the instance has {found}: nothing \
                 moves; delete the Machine to have it replaced"
            ));
        }
    };
    compare("instance type", Some(&spec.instance_type), label(label::INSTANCE_TYPE));
    compare("zone", Some(&spec.placement.availability_zone), label(label::ZONE));
    compare("placement group", placed.group.as_deref(), label(label::PLACEMENT_GROUP));
    let partition = placed.partition.map(|number| number.to_string());
    let found = label(label::PARTITION).and_then(|label| label.rsplit('-').next());
    compare("partition", partition.as_deref(), found);
    differences
}
