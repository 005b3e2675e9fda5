//! What a MachineSet needs, as plain data.

use std::collections::BTreeMap;

use fleetwright_api::{
    machine::{Condition, Machine, MachineSet, MachineSetStatus, Severity},
    names,
};
use fleetwright_lifecycle::{
    replicas::{
        Counts, DeletePolicy, NodeReady, Plan, Replica, Set, UnsupportedPolicy, asks_to_go_first,
        counts, plan,
    },
    selector::{Selector, SelectorError},
};
use fleetwright_runtime::ObjectKey;
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::Node,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time},
};
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::{authority, conditions::upsert, machine::status::write_condition};

/// Condition of a MachineSet: none of its Machines is kept from coming into being.
pub const MACHINES_CREATED: &str = "MachinesCreated";
/// Reason of the condition while it holds.
pub const AS_EXPECTED: &str = "AsExpected";
/// Longest prefix of a generated name, as in Kubernetes.
const LONGEST_PREFIX: usize = 58;

/// Why a MachineSet cannot be worked on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSet {
    /// Its selector is none.
    #[error("could not convert label selector to selector: {0}")]
    Selector(#[from] SelectorError),
    /// Its own Machines would not belong to it, and it would make more and more.
    #[error("`selector` does not match template `labels`")]
    Template,
    /// Nobody knows its delete policy.
    #[error(transparent)]
    Policy(#[from] UnsupportedPolicy),
}

/// Whether there is anything to do for a set: the Machines of one that is being deleted are garbage
/// collection's business, and those of one that was handed over to Cluster API are no more ours.
pub fn is_ours(set: &MachineSet) -> bool {
    let owner = set.status.as_ref().and_then(|status| status.authoritative_api.as_ref());
    set.metadata.deletion_timestamp.is_none() && authority::is_ours(owner)
}

/// The controller of a Machine.
pub fn controller_of(machine: &Machine) -> Option<&OwnerReference> {
    machine.owner_references().iter().find(|owner| owner.controller == Some(true))
}

/// The MachineSet that controls a Machine.
pub fn owner(machine: &Machine) -> Option<ObjectKey> {
    let controller = controller_of(machine)?;
    let group = controller.api_version.split('/').next();
    (controller.kind == MachineSet::KIND && group == Some(MachineSet::GROUP))
        .then(|| ObjectKey::new(machine.namespace().unwrap_or_default(), &controller.name))
}

/// The Node of a Machine.
pub fn node_name(machine: &Machine) -> Option<String> {
    machine.status.as_ref()?.node_ref.as_ref()?.name.clone().filter(|name| !name.is_empty())
}

/// Whether a Node is ready, and since when.
pub fn node_ready(node: &Node) -> NodeReady {
    let conditions = node.status.iter().filter_map(|status| status.conditions.as_ref()).flatten();
    let mut ready = conditions.filter(|condition| condition.type_ == "Ready");
    match ready.next() {
        Some(condition) if condition.status == "True" => {
            NodeReady::Since(condition.last_transition_time.as_ref().map(|time| time.0))
        }
        _ => NodeReady::No,
    }
}

fn created_condition(machine: &Machine) -> Option<&Condition> {
    let conditions = &machine.status.as_ref()?.conditions;
    conditions.iter().find(|condition| condition.type_ == names::condition::MACHINE_CREATED)
}

fn has_failed(machine: &Machine) -> bool {
    machine
        .status
        .as_ref()
        .is_some_and(|status| status.error_reason.is_some() || status.error_message.is_some())
}

fn goes_first(machine: &Machine) -> bool {
    asks_to_go_first(|key| machine.annotations().get(key).map(String::as_str))
}

/// All that a set reads of a Machine: changes of anything else are none of its business.
#[derive(Debug, PartialEq)]
pub struct Standing<'a> {
    labels: &'a BTreeMap<String, String>,
    owners: &'a [OwnerReference],
    deleting: bool,
    goes_first: bool,
    failed: bool,
    node: Option<String>,
    created: Option<&'a Condition>,
}

/// See [`Standing`].
pub fn standing(machine: &Machine) -> Standing<'_> {
    Standing {
        labels: machine.labels(),
        owners: machine.owner_references(),
        deleting: machine.metadata.deletion_timestamp.is_some(),
        goes_first: goes_first(machine),
        failed: has_failed(machine),
        node: node_name(machine),
        created: created_condition(machine),
    }
}

/// A Machine as the shared rules see it.
pub fn replica(machine: &Machine, node: Option<&Node>) -> Replica {
    Replica {
        name: machine.name_any(),
        labels: machine.labels().clone(),
        controller: controller_of(machine).map(|controller| controller.uid.clone()),
        deleting: machine.metadata.deletion_timestamp.is_some(),
        delete_first: goes_first(machine),
        failed: has_failed(machine),
        created: machine.creation_timestamp().map(|time| time.0),
        has_node: node_name(machine).is_some(),
        ready: node.map_or(NodeReady::No, node_ready),
    }
}

/// The selector of a set.
pub fn selector(set: &MachineSet) -> Result<Selector, SelectorError> {
    crate::selecting::selector(&set.spec.selector)
}

/// A set as the shared rules see it.
pub fn rules(set: &MachineSet) -> Result<Set, InvalidSet> {
    let spec = &set.spec;
    let selector = selector(set)?;
    let template_labels = spec.template.metadata.labels.clone();
    if selector.is_empty() || !selector.matches(&template_labels) {
        return Err(InvalidSet::Template);
    }
    let policy = spec.delete_policy.as_ref().map_or("", |policy| policy.as_str());
    Ok(Set {
        uid: set.uid().unwrap_or_default(),
        deleting: set.metadata.deletion_timestamp.is_some(),
        // The schema says 1 where nothing is said.
        replicas: usize::try_from(spec.replicas.unwrap_or(1)).unwrap_or_default(),
        selector,
        template_labels,
        min_ready_seconds: u32::try_from(spec.min_ready_seconds.unwrap_or(0)).unwrap_or_default(),
        delete_policy: DeletePolicy::parse(policy)?,
    })
}

/// What to do about a set, and what to say of it.
#[derive(Clone, Debug)]
pub struct Decision {
    /// Which Machines to adopt, release, make and delete.
    pub plan: Plan,
    /// What its status is to say.
    pub status: MachineSetStatus,
    /// When a Machine becomes available without anything else happening.
    pub next_check: Option<Timestamp>,
    /// What to tell the user once the status is written: reason and message.
    pub news: Option<(String, String)>,
}

/// Decides. `machines` are those that the set controls and those that nobody does; `replicas` are
/// the same, in the same order, as the rules see them.
pub fn decide(
    set: &MachineSet,
    rules: &Set,
    machines: &[&Machine],
    replicas: &[Replica],
    now: Timestamp,
) -> Decision {
    let plan = plan(rules, replicas, now);
    let counts = counts(rules, plan.members.iter().map(|place| &replicas[*place]), now);
    let members = plan.members.iter().map(|place| machines[*place]);
    let condition = machines_created(members, counts.replicas);
    let known = set.status.clone().unwrap_or_default();
    let before =
        known.conditions.iter().find(|condition| condition.type_ == MACHINES_CREATED).cloned();
    let news = condition
        .reason
        .clone()
        .filter(|reason| {
            condition.status == Condition::FALSE
                && before.as_ref().and_then(|before| before.reason.as_ref()) != Some(reason)
        })
        .map(|reason| (reason, condition.message.clone().unwrap_or_default()));
    let status = status(known, set, rules, &counts, condition, now);
    Decision { plan, status, next_check: counts.next_check, news }
}

fn status(
    known: MachineSetStatus,
    set: &MachineSet,
    rules: &Set,
    counts: &Counts,
    condition: Condition,
    now: Timestamp,
) -> MachineSetStatus {
    let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    let mut conditions = known.conditions;
    upsert(&mut conditions, condition, now);
    if let Some(paused) = authority::paused(known.authoritative_api.as_ref()) {
        upsert(&mut conditions, write_condition(&paused, now), now);
    }
    MachineSetStatus {
        replicas: number(counts.replicas),
        fully_labeled_replicas: Some(number(counts.fully_labeled)),
        ready_replicas: Some(number(counts.ready)),
        available_replicas: Some(number(counts.available)),
        observed_generation: set.metadata.generation,
        label_selector: Some(rules.selector.to_string()),
        conditions,
        ..known
    }
}

/// Says on the set what keeps Machines from coming into being, from what they say themselves.
fn machines_created<'a>(members: impl Iterator<Item = &'a Machine>, all: usize) -> Condition {
    let mut short: BTreeMap<&str, Vec<(&Machine, &Condition)>> = BTreeMap::new();
    for machine in members {
        if let Some(condition) = created_condition(machine)
            && condition.status == Condition::FALSE
        {
            let reason = condition.reason.as_deref().unwrap_or_default();
            short.entry(reason).or_default().push((machine, condition));
        }
    }
    // The most frequent first; of equals the first by name.
    let most = short
        .iter()
        .max_by(|one, other| one.1.len().cmp(&other.1.len()).then_with(|| other.0.cmp(one.0)));
    let condition = |status: &str, severity, reason: &str, message: Option<String>| Condition {
        type_: MACHINES_CREATED.to_owned(),
        status: status.to_owned(),
        severity,
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
        reason: Some(reason.to_owned()),
        message,
    };
    let Some((reason, _)) = most else {
        return condition(Condition::TRUE, None, AS_EXPECTED, None);
    };
    let parts: Vec<String> = short
        .iter()
        .map(|(reason, machines)| {
            let since = machines.iter().map(|(_, said)| said.last_transition_time.0).min();
            let since = since.map(|since| format!(" since {since}")).unwrap_or_default();
            let (first, said) = machines[0];
            format!(
                "{} with {reason}{since}: {}: {}",
                machines.len(),
                first.name_any(),
                said.message.as_deref().unwrap_or_default()
            )
        })
        .collect();
    let total: usize = short.values().map(Vec::len).sum();
    let message = format!("{total} of {all} Machines have no instance: {}", parts.join("; "));
    condition(Condition::FALSE, Some(Severity::Warning), reason, Some(message))
}

/// The patch that says of a set that was handed over that it was; none when it says so already.
pub fn pause_patch(set: &MachineSet, now: Timestamp) -> Option<Value> {
    let known = set.status.as_ref()?;
    let paused = authority::paused(known.authoritative_api.as_ref())?;
    let mut conditions = known.conditions.clone();
    upsert(&mut conditions, write_condition(&paused, now), now);
    (conditions != known.conditions).then(|| json!({"status": {"conditions": conditions}}))
}

/// The patch that makes a status from what it says now; none when it says so already.
pub fn status_patch(known: Option<&MachineSetStatus>, wanted: &MachineSetStatus) -> Option<Value> {
    if known == Some(wanted) {
        return None;
    }
    Some(json!({"status": {
        "replicas": wanted.replicas,
        "fullyLabeledReplicas": wanted.fully_labeled_replicas,
        "readyReplicas": wanted.ready_replicas,
        "availableReplicas": wanted.available_replicas,
        "observedGeneration": wanted.observed_generation,
        "labelSelector": wanted.label_selector,
        "conditions": wanted.conditions,
    }}))
}

/// The reference that makes a set the controller of a Machine.
pub fn owner_reference(set: &MachineSet) -> OwnerReference {
    OwnerReference {
        api_version: MachineSet::API_VERSION.to_owned(),
        kind: MachineSet::KIND.to_owned(),
        name: set.name_any(),
        uid: set.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// A new Machine of a set. The name is chosen here rather than by the server, so that a create
/// whose answer is lost can be repeated.
pub fn machine(set: &MachineSet, suffix: &str) -> Machine {
    let template = &set.spec.template;
    let prefix = format!("{}-", set.name_any());
    let mut start = prefix.clone();
    start.truncate(LONGEST_PREFIX);
    Machine {
        metadata: ObjectMeta {
            name: Some(format!("{start}{suffix}")),
            generate_name: Some(prefix),
            namespace: set.namespace(),
            labels: Some(template.metadata.labels.clone()),
            annotations: Some(template.metadata.annotations.clone()),
            owner_references: Some(vec![owner_reference(set)]),
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    }
}
