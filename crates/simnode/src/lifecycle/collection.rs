//! Pods of nodes that do not exist are removed: no kubelet will ever do it.

use std::sync::Arc;

use fleetwright_runtime::{Action, ObjectKey};
use k8s_openapi::{
    api::core::v1::{Node, Pod},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::Api;
use parking_lot::Mutex;
use serde_json::json;
use std::collections::BTreeMap;
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

use super::MANAGER;
use crate::{
    cluster::{BY_NODE, SharedCluster},
    error::{Failure, Outcome},
    facts,
    settings::{LifecycleSettings, POD_COLLECTION},
};

struct Collector {
    cluster: SharedCluster,
    settings: LifecycleSettings,
    /// Since when pods of a node that is not there have been seen.
    missing: Mutex<BTreeMap<String, Instant>>,
}

pub(super) fn spawn(
    cluster: &SharedCluster,
    settings: LifecycleSettings,
    tasks: &mut JoinSet<()>,
    stop: &CancellationToken,
) {
    let controller = cluster
        .controller(POD_COLLECTION)
        .watches(&cluster.nodes, |node| [ObjectKey::of(node)])
        .watches(&cluster.pods, |pod| facts::pod::node_name(pod).map(ObjectKey::cluster));
    let missing = Mutex::default();
    let collector = Arc::new(Collector { cluster: Arc::clone(cluster), settings, missing });
    tasks.spawn(super::run(controller, stop.clone(), move |key| {
        let collector = Arc::clone(&collector);
        async move { collector.reconcile(&key).await }
    }));
}

impl Collector {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, Failure> {
        let pods = self.cluster.pods.by_index(BY_NODE, &key.name);
        if self.cluster.nodes.get(key).is_some() || pods.is_empty() {
            self.missing.lock().remove(&key.name);
            return Ok(Action::await_change());
        }
        let since = *self.missing.lock().entry(key.name.clone()).or_insert_with(Instant::now);
        let left = self.settings.quarantine.saturating_sub(since.elapsed());
        if !left.is_zero() {
            return Ok(Action::requeue_after(left));
        }
        // The copy may be old; pods are removed for ever.
        let nodes: Api<Node> = Api::all(self.cluster.client.clone());
        if nodes.get_opt(&key.name).await.trying("read node", key)?.is_some() {
            return Ok(Action::requeue_after(self.settings.quarantine));
        }
        for pod in pods {
            self.collect(&pod).await?;
        }
        Ok(Action::await_change())
    }

    async fn collect(&self, pod: &Pod) -> Result<(), Failure> {
        if !facts::pod::is_over(pod) {
            let condition = json!({
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "DeletionByPodGC",
                "message": "PodGC: node no longer exists",
                "lastTransitionTime": Time(self.cluster.now()),
            });
            let status = json!({"phase": facts::pod::FAILED, "conditions": [condition]});
            self.cluster.patch_pod_status(pod, MANAGER, status).await?;
        }
        self.cluster.delete_pod(pod, Some(0)).await
    }
}
