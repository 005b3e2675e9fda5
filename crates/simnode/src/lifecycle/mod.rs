//! What the control plane does about nodes: it declares silent ones unreachable, keeps the taints
//! that follow from conditions, evicts what does not tolerate them, and clears up after nodes
//! that are gone.
//!
//! The real controller limits how fast it taints the nodes of a zone, and stops when most of a
//! zone is silent. Here every node is judged by itself: simulated fleets are there to see what
//! failures lead to.

mod collection;
mod decide;
mod eviction;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use fleetwright_runtime::{Action, EventType, Informer, ObjectKey, Selection};
use k8s_openapi::{
    api::{
        coordination::v1::Lease,
        core::v1::{Node, Pod},
    },
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{Api, api::Patch};
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    cluster::{BY_NODE, Cluster, SharedCluster, managed, of_same, until},
    error::{Failure, Outcome},
    facts,
    kubelet::{LEASES, is_ready},
    settings::{LifecycleSettings, NODE_LIFECYCLE, POD_COLLECTION, Settings, TAINT_EVICTION},
};

/// The name of these parts in events and managed fields.
pub(crate) const MANAGER: &str = "kube-controller-manager";
const COMPONENT: &str = "node-controller";

/// Starts the wanted parts.
pub(crate) fn spawn(
    cluster: &SharedCluster,
    settings: &Settings,
    tasks: &mut JoinSet<()>,
    stop: &CancellationToken,
) {
    let wanted = |name| (settings.wanted)(name);
    if wanted(NODE_LIFECYCLE) {
        spawn_judge(cluster, settings.lifecycle, tasks, stop);
    }
    if wanted(TAINT_EVICTION) {
        eviction::spawn(cluster, tasks, stop);
    }
    if wanted(POD_COLLECTION) {
        collection::spawn(cluster, settings.lifecycle, tasks, stop);
    }
}

/// Declares nodes unreachable and keeps their taints.
struct Judge {
    cluster: SharedCluster,
    leases: Informer<Lease>,
    settings: LifecycleSettings,
}

fn spawn_judge(
    cluster: &SharedCluster,
    settings: LifecycleSettings,
    tasks: &mut JoinSet<()>,
    stop: &CancellationToken,
) {
    let api = Api::namespaced(cluster.client.clone(), LEASES);
    let leases = Informer::selecting("simnode-leases", api, Selection::default(), &cluster.metrics);
    tasks.spawn(leases.clone().run(cluster.random.fork(), stop.clone()));
    let controller = cluster
        .controller(NODE_LIFECYCLE)
        .waits_for(&leases)
        .waits_for(&cluster.pods)
        .watches(&cluster.nodes, |node| [ObjectKey::of(node)]);
    let judge = Arc::new(Judge { cluster: Arc::clone(cluster), leases, settings });
    tasks.spawn(run(controller, stop.clone(), move |key| {
        let judge = Arc::clone(&judge);
        async move { judge.reconcile(&key).await }
    }));
}

/// Runs a controller to its end.
pub(crate) async fn run<K, R, F>(
    controller: fleetwright_runtime::Controller<K>,
    stop: CancellationToken,
    reconcile: R,
) where
    K: fleetwright_runtime::Key,
    R: Fn(K) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Action, Failure>> + Send + 'static,
{
    if let Err(cut_off) = controller.run(reconcile, stop).await {
        tracing::warn!(%cut_off, "did not stop in time");
    }
}

impl Judge {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, Failure> {
        let Some(node) = self.cluster.nodes.get(key) else { return Ok(Action::await_change()) };
        let lease = self.leases.get(&ObjectKey::new(LEASES, &key.name));
        let renewed = lease.and_then(|lease| lease.spec.as_ref()?.renew_time.clone());
        let now = self.cluster.now();
        let renewed = renewed.map(|MicroTime(time)| time);
        let verdict = decide::judge(&node, renewed, self.settings.grace, now);
        let nodes: Api<Node> = Api::all(self.cluster.client.clone());
        if let Some(conditions) = &verdict.conditions {
            let patch = of_same(&node.metadata, "status", json!({"conditions": conditions}));
            let patched =
                nodes.patch_status(&key.name, &managed(MANAGER), &Patch::Strategic(patch)).await;
            patched.unless_gone().trying("report the status of node", key)?;
            if is_ready(&node) {
                let message = format!("Node {} status is now: NodeNotReady", key.name);
                let normal = EventType::Normal;
                self.cluster.tell(COMPONENT, &*node, normal, "NodeNotReady", &message);
            }
            // The echo brings the taints.
            return Ok(Action::await_change());
        }
        if let Some(taints) = &verdict.taints {
            // The version guards the taints of others.
            let patch = json!({
                "metadata": {"resourceVersion": node.metadata.resource_version},
                "spec": {"taints": taints},
            });
            let patched = nodes.patch(&key.name, &managed(MANAGER), &Patch::Merge(patch)).await;
            patched.unless_gone().trying("taint node", key)?;
        }
        if !is_ready(&node) {
            for pod in self.cluster.pods.by_index(BY_NODE, &key.name) {
                mark_not_ready(&self.cluster, &pod).await?;
            }
        }
        Ok(Action::requeue_after(until(now, verdict.next)))
    }
}

/// Nobody can say that a pod of a silent node is ready.
async fn mark_not_ready(cluster: &Cluster, pod: &Pod) -> Result<(), Failure> {
    if !facts::pod::is_ready(pod) {
        return Ok(());
    }
    let Some(ready) = facts::pod::condition(pod, facts::pod::READY) else { return Ok(()) };
    let mut ready = ready.clone();
    "False".clone_into(&mut ready.status);
    ready.last_transition_time = Some(cluster.now().into());
    cluster.patch_pod_status(pod, MANAGER, json!({"conditions": [ready]})).await
}
