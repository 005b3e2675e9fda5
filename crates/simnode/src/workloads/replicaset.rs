//! ReplicaSets: as many pods as asked for.

use std::{cmp::Ordering, collections::BTreeMap, sync::Arc};

use fleetwright_runtime::{Action, Informer, ObjectKey};
use jiff::Timestamp;
use k8s_openapi::{
    api::{
        apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus},
        core::v1::Pod,
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{
    children::{BURST, from_template},
    family::Family,
};
use crate::{
    cluster::{SharedCluster, generated, until},
    error::Failure,
    facts::{self, pod::RUNNING, selectors},
};

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const REPLICA_FAILURE: &str = "ReplicaFailure";

pub(super) fn spawn(
    cluster: &SharedCluster,
    sets: &Informer<ReplicaSet>,
    tasks: &mut JoinSet<()>,
    stop: &CancellationToken,
) {
    let family = Family::new(cluster, sets, &cluster.pods);
    family.spawn(
        tasks,
        stop,
        |controller| controller,
        |family, set, key| async move { reconcile(&family, &set, &key).await },
    );
}

async fn reconcile(
    family: &Family<ReplicaSet, Pod>,
    set: &ReplicaSet,
    key: &ObjectKey,
) -> Result<Action, Failure> {
    let wait = family.expectations.time_left(key);
    let pods = family.claim(set).await?;
    let active: Vec<Arc<Pod>> =
        pods.iter().filter(|pod| facts::pod::is_active(pod)).cloned().collect();
    let wanted = usize::try_from(set.spec.replicas.unwrap_or(1)).unwrap_or_default();
    let mut outcome = Ok(());
    if wait.is_none() && set.metadata.deletion_timestamp.is_none() {
        outcome = match active.len().cmp(&wanted) {
            Ordering::Less => {
                let count = (wanted - active.len()).min(BURST);
                family.create(set, key, new_pods(family, set, count)).await
            }
            Ordering::Greater => {
                let count = (active.len() - wanted).min(BURST);
                family.delete(set, key, &victims(active.clone(), count)).await
            }
            Ordering::Equal => Ok(()),
        };
    }
    let now = family.cluster.now();
    let (status, wake) = status(set, &pods, &active, outcome.as_ref().err(), now);
    if set.status.as_ref() != Some(&status) {
        family.report(set, &status).await?;
    }
    outcome?;
    let next = wake.map(|wake| until(now, wake)).into_iter().chain(wait).min();
    Ok(next.map_or(Action::await_change(), Action::requeue_after))
}

fn new_pods(family: &Family<ReplicaSet, Pod>, set: &ReplicaSet, count: usize) -> Vec<Pod> {
    let template = set.spec.template.clone().unwrap_or_default();
    let base = format!("{}-", set.metadata.name.as_deref().unwrap_or_default());
    let one = |_| from_template(set, &template, generated(&family.cluster.random, &base));
    (0..count).map(one).collect()
}

fn status(
    set: &ReplicaSet,
    pods: &[Arc<Pod>],
    active: &[Arc<Pod>],
    failure: Option<&Failure>,
    now: Timestamp,
) -> (ReplicaSetStatus, Option<Timestamp>) {
    let min_ready = set.spec.min_ready_seconds.unwrap_or_default();
    let available: Vec<Timestamp> =
        active.iter().filter_map(|pod| facts::pod::available_at(pod, min_ready)).collect();
    let wake = available.iter().copied().filter(|time| *time > now).min();
    let template = set.spec.template.as_ref().and_then(|template| template.metadata.as_ref());
    let labels = LabelSelector {
        match_labels: template.and_then(|meta| meta.labels.clone()),
        match_expressions: None,
    };
    let fully = |pod: &&Arc<Pod>| selectors::matches(&labels, facts::labels(&pod.metadata));
    let terminating =
        |pod: &&Arc<Pod>| facts::pod::is_terminating(pod) && !facts::pod::is_over(pod);
    let known = set.status.clone().unwrap_or_default();
    let mut conditions: Vec<ReplicaSetCondition> = known.conditions.unwrap_or_default();
    let is_failure =
        |condition: &ReplicaSetCondition| condition.type_.as_deref() == Some(REPLICA_FAILURE);
    let failing = conditions.iter().any(is_failure);
    match failure {
        None => conditions.retain(|condition| !is_failure(condition)),
        Some(_) if failing => {}
        Some(failure) => conditions.push(ReplicaSetCondition {
            type_: Some(REPLICA_FAILURE.to_owned()),
            status: Some("True".to_owned()),
            reason: Some("FailedCreate".to_owned()),
            message: Some(failure.to_string()),
            last_transition_time: Some(now.into()),
        }),
    }
    let status = ReplicaSetStatus {
        replicas: count(active.len()),
        fully_labeled_replicas: some(active.iter().filter(fully).count()),
        ready_replicas: some(active.iter().filter(|pod| facts::pod::is_ready(pod)).count()),
        available_replicas: some(available.iter().filter(|time| **time <= now).count()),
        terminating_replicas: Some(count(pods.iter().filter(terminating).count())),
        observed_generation: set.metadata.generation,
        conditions: Some(conditions).filter(|conditions| !conditions.is_empty()),
    };
    (status, wake)
}

pub(super) fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// A count as the server stores it, which leaves zero out.
pub(super) fn some(number: usize) -> Option<i32> {
    Some(count(number)).filter(|number| *number != 0)
}

/// The pods that go first: those that cost the least to lose.
pub(super) fn victims(mut pods: Vec<Arc<Pod>>, count: usize) -> Vec<Arc<Pod>> {
    let mut ready_on: BTreeMap<String, usize> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| facts::pod::is_ready(pod)) {
        let node = facts::pod::node_name(pod).unwrap_or_default();
        *ready_on.entry(node.to_owned()).or_default() += 1;
    }
    pods.sort_by(|one, other| dearer(one, other, &ready_on));
    pods.truncate(count);
    pods
}

/// Less means that the first goes first.
fn dearer(one: &Pod, other: &Pod, ready_on: &BTreeMap<String, usize>) -> Ordering {
    let assigned = |pod: &Pod| facts::pod::node_name(pod).is_some();
    let running = |pod: &Pod| facts::pod::phase(pod) == RUNNING;
    let cost = |pod: &Pod| {
        let cost = facts::annotation(&pod.metadata, DELETION_COST);
        cost.and_then(|cost| cost.parse::<i32>().ok()).unwrap_or_default()
    };
    let crowd = |pod: &Pod| {
        facts::pod::node_name(pod).and_then(|node| ready_on.get(node)).copied().unwrap_or_default()
    };
    let restarts = |pod: &Pod| {
        let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_deref());
        statuses.unwrap_or_default().iter().map(|status| status.restart_count).max()
    };
    assigned(one)
        .cmp(&assigned(other))
        .then_with(|| running(one).cmp(&running(other)))
        .then_with(|| facts::pod::is_ready(one).cmp(&facts::pod::is_ready(other)))
        .then_with(|| cost(one).cmp(&cost(other)))
        .then_with(|| crowd(other).cmp(&crowd(one)))
        // The newer go first.
        .then_with(|| facts::pod::ready_since(other).cmp(&facts::pod::ready_since(one)))
        .then_with(|| restarts(other).cmp(&restarts(one)))
        .then_with(|| facts::pod::created(other).cmp(&facts::pod::created(one)))
        .then_with(|| one.metadata.uid.cmp(&other.metadata.uid))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_goes_first() {
        let pod = |name: &str, node: &str, phase: &str, ready: &str, created: &str, cost: &str| {
            let pod: Pod = serde_json::from_value(json!({
                "metadata": {
                    "name": name, "uid": name, "creationTimestamp": created,
                    "annotations": {DELETION_COST: cost},
                },
                "spec": {"nodeName": node, "containers": []},
                "status": {"phase": phase, "conditions": [
                    {"type": "Ready", "status": ready, "lastTransitionTime": created},
                ]},
            }))
            .unwrap();
            Arc::new(pod)
        };
        let (old, new) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
        let pods = vec![
            pod("g-old", "b", "Running", "True", old, "0"),
            pod("f-new", "b", "Running", "True", new, "0"),
            pod("e-crowded-old", "a", "Running", "True", old, "0"),
            pod("d-cheap", "c", "Running", "True", old, "-5"),
            pod("c-unready", "a", "Running", "False", old, "0"),
            pod("b-pending", "a", "Pending", "False", old, "0"),
            pod("a-unassigned", "", "Pending", "False", old, "0"),
            pod("e-crowded-new", "a", "Running", "True", new, "0"),
            pod("e-crowded-x", "a", "Running", "True", old, "0"),
        ];
        let order: Vec<String> = victims(pods, 9)
            .iter()
            .map(|pod| pod.metadata.name.clone().unwrap_or_default())
            .collect();
        assert_eq!(
            order,
            [
                "a-unassigned",
                "b-pending",
                "c-unready",
                "d-cheap",
                "e-crowded-new",
                "e-crowded-old",
                "e-crowded-x",
                "f-new",
                "g-old"
            ]
        );
    }
}
