//! DaemonSets: a pod on every node that fits.
//!
//! An update replaces pods node by node. Pods are not doubled up during an update: a set that
//! allows a surge instead of missing pods is updated as if it allowed as many to be missing.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use fleetwright_runtime::{Action, Change, Informer, ObjectKey};
use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{ControllerRevision, DaemonSet, DaemonSetStatus},
    core::v1::{
        Affinity, Node, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod,
        PodSpec, Toleration,
    },
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{
    children::{BURST, from_template},
    family::Family,
    revisions::{self, VERSION_LABEL, Version},
    scaled,
};
use crate::{
    cluster::{SharedCluster, generated, until},
    error::Failure,
    facts::{
        self,
        selectors::{self, NODE_NAME_FIELD},
        taints::{
            DISK_PRESSURE, MEMORY_PRESSURE, NETWORK_UNAVAILABLE, NO_EXECUTE, NO_SCHEDULE,
            NOT_READY, PID_PRESSURE, UNREACHABLE, UNSCHEDULABLE, untolerated,
        },
    },
};

/// Nodes that come together are looked at together.
const GATHER: Duration = Duration::from_millis(50);
const GENERATION_LABEL: &str = "pod-template-generation";

pub(super) fn spawn(
    cluster: &SharedCluster,
    versions: &Informer<ControllerRevision>,
    tasks: &mut JoinSet<()>,
    stop: &CancellationToken,
) {
    let sets = cluster.informer::<DaemonSet>("simnode-daemonsets", tasks, stop);
    let family = Family::new(cluster, &sets, &cluster.pods);
    let (known, nodes) = (versions.clone(), cluster.nodes.clone());
    family.spawn(
        tasks,
        stop,
        |controller| {
            let queue = controller.queue();
            nodes.on_change(move |change| {
                if matters(change) {
                    for set in sets.list() {
                        queue.add_after(ObjectKey::of(&*set), GATHER);
                    }
                }
            });
            controller.waits_for(versions).waits_for(&nodes)
        },
        move |family, set, key| {
            let known = known.clone();
            async move { reconcile(&family, &known, &set, &key).await }
        },
    );
}

/// Heartbeats are no news to a DaemonSet.
fn matters(change: &Change<Node>) -> bool {
    match change {
        Change::Modified { old, new } => {
            old.metadata.labels != new.metadata.labels || old.spec != new.spec
        }
        _ => true,
    }
}

async fn reconcile(
    family: &Family<DaemonSet, Pod>,
    versions: &Informer<ControllerRevision>,
    set: &DaemonSet,
    key: &ObjectKey,
) -> Result<Action, Failure> {
    if let Some(wait) = family.expectations.time_left(key) {
        return Ok(Action::requeue_after(wait));
    }
    let pods = family.claim(set).await?;
    let used = pods.iter().filter_map(|pod| version_of(pod).map(ToOwned::to_owned));
    let in_use: Vec<String> = used.collect();
    let limit = set.spec.revision_history_limit;
    let (_, update) =
        revisions::sync(family, versions, set, &set.spec.template, limit, &in_use).await?;
    let now = family.cluster.now();
    let mut plan = decide(set, &pods, &family.cluster.nodes.list(), &update.hash, now);
    plan.create.truncate(BURST);
    let mut outcome = Ok(());
    if !plan.create.is_empty() {
        let base = format!("{}-", key.name);
        let new = |node: &String| {
            let name = generated(&family.cluster.random, &base);
            new_pod(set, &update, node, name)
        };
        outcome = family.create(set, key, plan.create.iter().map(new).collect()).await;
    }
    if outcome.is_ok() && !plan.delete.is_empty() {
        outcome = family.delete(set, key, &plan.delete).await;
    }
    if set.status.as_ref() != Some(&plan.status) {
        family.report(set, &plan.status).await?;
    }
    outcome?;
    Ok(plan.wake.map_or(Action::await_change(), |wake| Action::requeue_after(until(now, wake))))
}

/// What to do for a DaemonSet.
#[derive(Debug, Default)]
struct Plan {
    /// Nodes that lack a pod.
    create: Vec<String>,
    delete: Vec<Arc<Pod>>,
    status: DaemonSetStatus,
    wake: Option<Timestamp>,
}

fn version_of(pod: &Pod) -> Option<&str> {
    facts::labels(&pod.metadata).get(VERSION_LABEL).map(String::as_str)
}

/// The node that a pod is on, or is made for.
fn node_of(pod: &Pod) -> Option<&str> {
    facts::pod::node_name(pod)
        .or_else(|| selectors::only_nodes(pod.spec.as_ref()?)?.first().copied())
}

fn decide(
    set: &DaemonSet,
    pods: &[Arc<Pod>],
    nodes: &[Arc<Node>],
    hash: &str,
    now: Timestamp,
) -> Plan {
    let mut by_node: BTreeMap<&str, Vec<&Arc<Pod>>> = BTreeMap::new();
    for pod in pods {
        by_node.entry(node_of(pod).unwrap_or_default()).or_default().push(pod);
    }
    let min_ready = set.spec.min_ready_seconds.unwrap_or_default();
    let available_at = |pod: &Pod| facts::pod::available_at(pod, min_ready);
    let is_available = |pod: &Pod| available_at(pod).is_some_and(|time| time <= now);
    let deleting = set.metadata.deletion_timestamp.is_some();
    let mut spec = set.spec.template.spec.clone().unwrap_or_default();
    tolerate(&mut spec);
    let mut plan = Plan::default();
    let mut old_available = Vec::new();
    let mut missing = 0;
    let mut tally = DaemonSetStatus {
        observed_generation: set.metadata.generation,
        collision_count: set.status.as_ref().and_then(|status| status.collision_count),
        conditions: set.status.as_ref().and_then(|status| status.conditions.clone()),
        ..DaemonSetStatus::default()
    };
    let (mut updated, mut available) = (0, 0);
    for node in nodes {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let mut here = by_node.remove(name).unwrap_or_default();
        let (starts, stays) = fits(&spec, node);
        tally.desired_number_scheduled += i32::from(starts);
        tally.number_misscheduled += i32::from(!starts && !here.is_empty());
        let terminating = here.iter().any(|pod| facts::pod::is_terminating(pod));
        here.retain(|pod| !facts::pod::is_terminating(pod));
        let (over, mut running): (Vec<_>, Vec<_>) =
            here.into_iter().partition(|pod| facts::pod::is_over(pod));
        plan.delete.extend(over.iter().copied().cloned());
        if !stays {
            plan.delete.extend(running.into_iter().cloned());
            continue;
        }
        // Those that wait for a node go before those that have one, the newer before the older.
        running.sort_by_key(|pod| (facts::pod::node_name(pod).is_none(), facts::pod::created(pod)));
        plan.delete.extend(running.iter().skip(1).map(|pod| Arc::clone(pod)));
        let Some(pod) = running.first() else {
            missing += i32::from(starts);
            if starts && over.is_empty() && !terminating {
                plan.create.push(name.to_owned());
            }
            continue;
        };
        if starts {
            let current = version_of(pod) == Some(hash);
            tally.current_number_scheduled += 1;
            tally.number_ready += i32::from(facts::pod::is_ready(pod));
            available += i32::from(is_available(pod));
            updated += i32::from(current);
            match (current, is_available(pod)) {
                (true, true) => {}
                (true, false) => missing += 1,
                (false, true) => old_available.push(Arc::clone(pod)),
                (false, false) => {
                    missing += 1;
                    if rolls(set) {
                        plan.delete.push(Arc::clone(pod));
                    }
                }
            }
        }
    }
    // The node is gone: nothing will ever run there.
    plan.delete.extend(
        by_node.into_values().flatten().filter(|pod| !facts::pod::is_terminating(pod)).cloned(),
    );
    if rolls(set) {
        let room = usize::try_from(may_miss(set, tally.desired_number_scheduled) - missing);
        plan.delete.extend(old_available.into_iter().take(room.unwrap_or_default()));
    }
    if deleting {
        plan.create.clear();
        plan.delete.clear();
    }
    let nonzero = |number: i32| Some(number).filter(|number| *number != 0);
    tally.number_available = nonzero(available);
    tally.number_unavailable = nonzero(tally.desired_number_scheduled - available);
    tally.updated_number_scheduled = nonzero(updated);
    plan.status = tally;
    plan.wake = pods.iter().filter_map(|pod| available_at(pod)).filter(|time| *time > now).min();
    plan
}

fn rolls(set: &DaemonSet) -> bool {
    let strategy = set.spec.update_strategy.as_ref();
    strategy.and_then(|strategy| strategy.type_.as_deref()) != Some("OnDelete")
}

fn may_miss(set: &DaemonSet, desired: i32) -> i32 {
    let strategy = set.spec.update_strategy.as_ref();
    let Some(rolling) = strategy.and_then(|strategy| strategy.rolling_update.as_ref()) else {
        return 1;
    };
    let missing = scaled(rolling.max_unavailable.as_ref(), desired, true);
    if missing > 0 { missing } else { scaled(rolling.max_surge.as_ref(), desired, true).max(1) }
}

/// Whether a pod should start on a node, and whether one that is there may stay.
fn fits(spec: &PodSpec, node: &Node) -> (bool, bool) {
    let named = spec.node_name.as_deref().filter(|name| !name.is_empty());
    if named.is_some() && named != node.metadata.name.as_deref()
        || !selectors::node_fits(spec, node)
    {
        return (false, false);
    }
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    let tolerations = facts::pod::tolerations(spec);
    (
        untolerated(taints, tolerations, &[NO_SCHEDULE, NO_EXECUTE]).is_none(),
        untolerated(taints, tolerations, &[NO_EXECUTE]).is_none(),
    )
}

/// What all pods of DaemonSets tolerate.
fn tolerate(spec: &mut PodSpec) {
    let mut known = vec![
        (NOT_READY, NO_EXECUTE),
        (UNREACHABLE, NO_EXECUTE),
        (DISK_PRESSURE, NO_SCHEDULE),
        (MEMORY_PRESSURE, NO_SCHEDULE),
        (PID_PRESSURE, NO_SCHEDULE),
        (UNSCHEDULABLE, NO_SCHEDULE),
    ];
    if spec.host_network == Some(true) {
        known.push((NETWORK_UNAVAILABLE, NO_SCHEDULE));
    }
    let tolerations = spec.tolerations.get_or_insert_default();
    for (key, effect) in known {
        let toleration = Toleration {
            key: Some(key.to_owned()),
            operator: Some("Exists".to_owned()),
            effect: Some(effect.to_owned()),
            ..Toleration::default()
        };
        if !tolerations.contains(&toleration) {
            tolerations.push(toleration);
        }
    }
}

fn new_pod(set: &DaemonSet, version: &Version, node: &str, name: String) -> Pod {
    let mut pod = from_template(set, &version.template, name);
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(VERSION_LABEL.to_owned(), version.hash.clone());
    if let Some(generation) = set.metadata.generation {
        labels.insert(GENERATION_LABEL.to_owned(), generation.to_string());
    }
    let spec = pod.spec.get_or_insert_default();
    tolerate(spec);
    pin(spec, node);
    pod
}

/// Only that node will do, whatever else the pod wants of it.
fn pin(spec: &mut PodSpec, node: &str) {
    let affinity: &mut Affinity = spec.affinity.get_or_insert_default();
    let of_node: &mut NodeAffinity = affinity.node_affinity.get_or_insert_default();
    let required: &mut NodeSelector =
        of_node.required_during_scheduling_ignored_during_execution.get_or_insert_default();
    if required.node_selector_terms.is_empty() {
        required.node_selector_terms.push(NodeSelectorTerm::default());
    }
    for term in &mut required.node_selector_terms {
        term.match_fields = Some(vec![NodeSelectorRequirement {
            key: NODE_NAME_FIELD.to_owned(),
            operator: "In".to_owned(),
            values: Some(vec![node.to_owned()]),
        }]);
    }
}
