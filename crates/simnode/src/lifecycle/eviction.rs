//! Pods leave nodes whose `NoExecute` taints they do not tolerate, or no longer.

use std::{sync::Arc, time::Duration};

use fleetwright_runtime::{Action, EventType, ObjectKey};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, Taint};
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::MANAGER;
use crate::{
    cluster::{BY_NODE, SharedCluster, after, at, until},
    error::Failure,
    facts::{
        self,
        taints::{NO_EXECUTE, tolerates},
    },
    settings::TAINT_EVICTION,
};

pub(super) fn spawn(cluster: &SharedCluster, tasks: &mut JoinSet<()>, stop: &CancellationToken) {
    let controller = cluster
        .controller(TAINT_EVICTION)
        .watches(&cluster.nodes, |node| [ObjectKey::of(node)])
        .watches(&cluster.pods, |pod| facts::pod::node_name(pod).map(ObjectKey::cluster));
    let cluster = Arc::clone(cluster);
    tasks.spawn(super::run(controller, stop.clone(), move |key| {
        let cluster = Arc::clone(&cluster);
        async move { reconcile(&cluster, &key).await }
    }));
}

async fn reconcile(cluster: &SharedCluster, key: &ObjectKey) -> Result<Action, Failure> {
    let Some(node) = cluster.nodes.get(key) else { return Ok(Action::await_change()) };
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let taints: Vec<&Taint> = taints.filter(|taint| taint.effect == NO_EXECUTE).collect();
    if taints.is_empty() {
        return Ok(Action::await_change());
    }
    let now = cluster.now();
    let mut next = None;
    for pod in cluster.pods.by_index(BY_NODE, &key.name) {
        match leaves_at(&pod, &taints, now) {
            Some(time) if time <= now => evict(cluster, &pod).await?,
            time => next = next.into_iter().chain(time).min(),
        }
    }
    Ok(next.map_or(Action::await_change(), |next| Action::requeue_after(until(now, next))))
}

/// When a pod must leave; `None` if it may stay or is leaving already.
pub(super) fn leaves_at(pod: &Pod, taints: &[&Taint], now: Timestamp) -> Option<Timestamp> {
    let spec = pod.spec.as_ref()?;
    if facts::pod::is_terminating(pod) || facts::pod::is_over(pod) {
        return None;
    }
    let mut earliest = None;
    for taint in taints {
        let covering: Vec<_> =
            facts::pod::tolerations(spec).iter().filter(|t| tolerates(t, taint)).collect();
        if covering.is_empty() {
            return Some(now);
        }
        let seconds = covering.iter().filter_map(|toleration| toleration.toleration_seconds).min();
        if let Some(seconds) = seconds {
            let wait = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
            let since = at(taint.time_added.as_ref()).unwrap_or(now);
            earliest = earliest.into_iter().chain([after(since, wait)]).min();
        }
    }
    earliest
}

async fn evict(cluster: &SharedCluster, pod: &Pod) -> Result<(), Failure> {
    let message = format!("Marking for deletion Pod {}", ObjectKey::of(pod));
    let normal = EventType::Normal;
    cluster.tell("taint-eviction-controller", pod, normal, "TaintManagerEviction", &message);
    let condition = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByTaintManager",
        "message": "Taint manager: deleting due to NoExecute taint",
        "lastTransitionTime": k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(cluster.now()),
    });
    cluster.patch_pod_status(pod, MANAGER, json!({"conditions": [condition]})).await?;
    cluster.delete_pod(pod, None).await
}
