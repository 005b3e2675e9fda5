//! The fleet as a tree: the cluster, its placement groups, its MachineSets and their Machines.

use fleetwright_api::{
    aws::AWSMachineProviderStatus,
    config::Infrastructure,
    machine::{Machine, MachineSet},
    names::{annotation, group, label},
    placement::AWSPlacementGroup,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use crate::{
    Snapshot,
    snapshot::controller,
    span::ago,
    table::aligned,
    waiting::{find, waiting},
};

/// One line, and what hangs from it.
#[derive(Debug, Default)]
struct Branch {
    name: String,
    ready: String,
    reason: String,
    since: Option<Timestamp>,
    place: String,
    message: String,
    children: Vec<Branch>,
}

/// The tree as text.
pub fn tree(snapshot: &Snapshot, now: Timestamp) -> String {
    let root = cluster(snapshot);
    let mut rows = vec![cells(&root, String::new(), now)];
    add(&root.children, "", now, &mut rows);
    aligned(&["NAME", "READY", "REASON", "SINCE", "WHERE", "MESSAGE"], &rows)
}

fn add(branches: &[Branch], indent: &str, now: Timestamp, rows: &mut Vec<Vec<String>>) {
    for (index, branch) in branches.iter().enumerate() {
        let last = index + 1 == branches.len();
        rows.push(cells(branch, format!("{indent}{}", if last { "└─" } else { "├─" }), now));
        let deeper = format!("{indent}{}", if last { "  " } else { "│ " });
        add(&branch.children, &deeper, now, rows);
    }
}

fn cells(branch: &Branch, prefix: String, now: Timestamp) -> Vec<String> {
    vec![
        prefix + &branch.name,
        branch.ready.clone(),
        branch.reason.clone(),
        branch.since.map(|since| ago(since, now)).unwrap_or_default(),
        branch.place.clone(),
        // A table has one line per object.
        branch.message.lines().collect::<Vec<_>>().join(" "),
    ]
}

fn cluster(snapshot: &Snapshot) -> Branch {
    let infrastructure = snapshot.infrastructure.as_ref();
    let name = infrastructure.and_then(Infrastructure::cluster).unwrap_or("(no Infrastructure)");
    let platform = infrastructure.and_then(Infrastructure::platform);
    let region = infrastructure.and_then(Infrastructure::aws).map(|aws| aws.region.as_str());
    let orphans = snapshot.machines.iter().filter(|machine| {
        !snapshot.sets.iter().any(|set| set.uid().as_deref() == controller(machine))
    });
    Branch {
        name: format!("Cluster/{name}"),
        place: [platform.map(fleetwright_api::config::PlatformType::as_str), region]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" "),
        children: (snapshot.groups.iter().map(placement_group))
            .chain(snapshot.sets.iter().map(|set| machine_set(set, snapshot)))
            .chain(orphans.map(|machine| self::machine(machine, snapshot)))
            .collect(),
        ..Branch::default()
    }
}

fn placement_group(object: &AWSPlacementGroup) -> Branch {
    let status = object.status.as_ref();
    let conditions = status.map_or(&[][..], |status| &status.conditions);
    let of_type = |type_: &str| conditions.iter().find(|condition| condition.type_ == type_);
    let shown = of_type(group::DELETING).or_else(|| of_type(group::READY));
    let kind = status.and_then(|status| status.observed_configuration.as_ref());
    let kind = kind.or(object.spec.management_spec.managed.as_ref());
    let instances = status.and_then(|status| status.replicas).map(|count| match count {
        1 => "1 instance".to_owned(),
        count => format!("{count} instances"),
    });
    let partitions = kind
        .and_then(|kind| kind.partition.as_ref())
        .and_then(|partition| partition.count)
        .map(|count| format!("{count} partitions"));
    let healthy = shown.is_none_or(|condition| condition.status == "True")
        && of_type(group::DELETING).is_none();
    Branch {
        name: format!("{}/{}", AWSPlacementGroup::KIND, object.name_any()),
        ready: of_type(group::READY).map_or("Unknown", |ready| ready.status.as_str()).to_owned(),
        reason: shown.map(|condition| condition.reason.clone()).unwrap_or_default(),
        since: shown.map(|condition| condition.last_transition_time.0),
        place: [kind.map(|kind| kind.group_type.as_str().to_owned()), partitions, instances]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(", "),
        message: shown
            .filter(|_| !healthy)
            .map(|condition| condition.message.clone())
            .unwrap_or_default(),
        children: Vec::new(),
    }
}

fn machine_set(set: &MachineSet, snapshot: &Snapshot) -> Branch {
    let status = set.status.clone().unwrap_or_default();
    let wanted = set.spec.replicas.unwrap_or(1);
    let trouble = status.conditions.iter().find(|condition| !condition.is_true());
    let message = status
        .error_message
        .clone()
        .or_else(|| trouble.and_then(|condition| condition.message.clone()));
    Branch {
        name: format!("{}/{}", MachineSet::KIND, set.name_any()),
        ready: format!("{}/{wanted}", status.ready_replicas.unwrap_or(0)),
        reason: status
            .error_reason
            .clone()
            .or_else(|| trouble.and_then(|condition| condition.reason.clone()))
            .unwrap_or_default(),
        since: trouble.map(|condition| condition.last_transition_time.0),
        message: message.unwrap_or_default(),
        children: snapshot
            .machines_of(set)
            .map(|machine| self::machine(machine, snapshot))
            .collect(),
        ..Branch::default()
    }
}

fn machine(machine: &Machine, snapshot: &Snapshot) -> Branch {
    let status = machine.status.clone().unwrap_or_default();
    let phase = status.phase.as_ref().map_or("", |phase| phase.as_str()).to_owned();
    let waiting = waiting(machine, snapshot);
    let node = status.node_ref.as_ref().and_then(|node| node.name.clone());
    let reason = match &waiting {
        Some(waiting) if waiting.reason != phase && !waiting.reason.is_empty() => {
            format!("{phase}, {}", waiting.reason)
        }
        _ => phase,
    };
    let message = match &waiting {
        Some(waiting) if waiting.why.is_empty() => format!("waits for {}", waiting.for_what),
        Some(waiting) => waiting.why.clone(),
        None => String::new(),
    };
    let ready = if waiting.is_none() { "True" } else { "False" };
    Branch {
        name: format!("{}/{}", Machine::KIND, machine.name_any()),
        ready: ready.to_owned(),
        reason: reason.trim_start_matches(", ").to_owned(),
        since: since(machine),
        place: place(machine),
        message: message.trim().to_owned(),
        children: node.map(|node| node_branch(&node, snapshot)).into_iter().collect(),
    }
}

/// When the Machine came into its present state: the latest change of a condition, else of the
/// status, else its birth.
fn since(machine: &Machine) -> Option<Timestamp> {
    let status = machine.status.as_ref();
    let created = find(machine, fleetwright_api::names::condition::MACHINE_CREATED);
    created
        .filter(|condition| !condition.is_true())
        .map(|condition| &condition.last_transition_time)
        .or_else(|| status.and_then(|status| status.last_updated.as_ref()))
        .or(machine.metadata.creation_timestamp.as_ref())
        .map(|Time(time)| *time)
}

/// Zone, type, instance and its state, placement.
fn place(machine: &Machine) -> String {
    let label = |key: &str| machine.labels().get(key).cloned();
    let provider = AWSMachineProviderStatus::read(
        machine.status.as_ref().and_then(|status| status.provider_status.as_ref()),
    );
    let state = machine.annotations().get(annotation::INSTANCE_STATE).cloned();
    let instance = provider.instance_id.map(|id| match state {
        Some(state) if state != "running" => format!("{id} ({state})"),
        _ => id,
    });
    let partition = label(label::PARTITION).map(|partition| format!("partition {partition}"));
    [label(label::ZONE), label(label::INSTANCE_TYPE), instance, partition]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ")
}

fn node_branch(name: &str, snapshot: &Snapshot) -> Branch {
    let node = snapshot.node(name);
    let ready = node
        .and_then(|node| node.status.as_ref())
        .and_then(|status| status.conditions.as_ref())
        .and_then(|conditions| conditions.iter().find(|condition| condition.type_ == "Ready"));
    let cordoned = node
        .and_then(|node| node.spec.as_ref())
        .is_some_and(|spec| spec.unschedulable == Some(true));
    Branch {
        name: format!("Node/{name}"),
        ready: ready.map_or("Unknown", |ready| ready.status.as_str()).to_owned(),
        reason: [
            ready.and_then(|ready| ready.reason.clone()),
            cordoned.then(|| "cordoned".to_owned()),
        ]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(", "),
        since: ready.and_then(|ready| ready.last_transition_time.as_ref()).map(|time| time.0),
        ..Branch::default()
    }
}
