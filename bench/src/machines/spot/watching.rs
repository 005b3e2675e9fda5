//! What happens to Nodes, Machines and pods, with the moment at which a watch shows it.

use std::{fmt::Debug, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use fleetwright_api::{
    machine::{Machine, Phase},
    names::MACHINE_NAMESPACE,
};
use futures::StreamExt;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, WatchEvent, WatchParams},
};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use super::pods::NAMESPACE;

/// How often somebody who waits looks; moments are taken when they come.
const POLL: Duration = Duration::from_millis(20);

/// Something that was seen.
#[derive(Debug, Clone)]
pub(crate) struct Sighting {
    pub(crate) at: Instant,
    pub(crate) what: What,
}

/// What was seen. Pods are named by their UID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    Terminating { node: String },
    Cordoned { node: String },
    Deleted { machine: String },
    Gone { machine: String },
    Running { machine: String },
    PodTold { pod: String, node: String },
    PodEnded { pod: String, node: String },
}

/// Watches that go on as long as the value lives.
pub(crate) struct Watching {
    seen: Arc<Mutex<Vec<Sighting>>>,
    tasks: JoinSet<Result<()>>,
}

impl Watching {
    /// Begins.
    pub(crate) async fn begin(client: &Client) -> Result<Self> {
        let mut watching = Self { seen: Arc::default(), tasks: JoinSet::new() };
        let machines: Api<Machine> = Api::namespaced(client.clone(), MACHINE_NAMESPACE);
        watching.watch(Api::<Node>::all(client.clone()), of_node).await?;
        watching.watch(machines, of_machine).await?;
        watching.watch(Api::<Pod>::namespaced(client.clone(), NAMESPACE), of_pod).await?;
        Ok(watching)
    }

    async fn watch<K>(&mut self, api: Api<K>, read: fn(&K, bool) -> Vec<What>) -> Result<()>
    where
        K: Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let first = ListParams::default().limit(1);
        let now = api.list_metadata(&first).await.context("cannot list")?;
        let version = now.metadata.resource_version.unwrap_or_default();
        let params = WatchParams::default().timeout(290);
        let mut events = api.watch(&params, &version).await.context("cannot watch")?.boxed();
        let seen = Arc::clone(&self.seen);
        self.tasks.spawn(async move {
            while let Some(event) = events.next().await {
                let found = match event.context("a watch broke off")? {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                        read(&object, false)
                    }
                    WatchEvent::Deleted(object) => read(&object, true),
                    WatchEvent::Bookmark(_) => continue,
                    WatchEvent::Error(error) => bail!("a watch ended: {error:?}"),
                };
                let at = Instant::now();
                let mut seen = seen.lock();
                for what in found {
                    // Only the first time is news.
                    if seen.iter().all(|sighting| sighting.what != what) {
                        seen.push(Sighting { at, what });
                    }
                }
            }
            bail!("a watch ended")
        });
        Ok(())
    }

    /// What was seen so far.
    pub(crate) fn seen(&self) -> Vec<Sighting> {
        self.seen.lock().clone()
    }

    /// Waits until enough was seen, or for so long. Says whether it was.
    pub(crate) async fn until(
        &mut self,
        patience: Duration,
        enough: impl Fn(&[Sighting]) -> bool,
    ) -> Result<bool> {
        let end = Instant::now() + patience;
        while !enough(&self.seen.lock()) {
            if Instant::now() > end {
                return Ok(false);
            }
            if let Some(ended) = self.tasks.try_join_next() {
                ended.context("a watch was aborted")??;
            }
            sleep(POLL).await;
        }
        Ok(true)
    }
}

/// When something was first seen.
pub(crate) fn when(sightings: &[Sighting], what: &What) -> Option<Instant> {
    sightings.iter().find(|sighting| sighting.what == *what).map(|sighting| sighting.at)
}

fn of_node(node: &Node, gone: bool) -> Vec<What> {
    let name = node.name_any();
    let mut all = Vec::new();
    if gone {
        return all;
    }
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    if conditions.into_iter().any(|it| it.type_ == "Terminating" && it.status == "True") {
        all.push(What::Terminating { node: name.clone() });
    }
    if node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true) {
        all.push(What::Cordoned { node: name });
    }
    all
}

fn of_machine(machine: &Machine, gone: bool) -> Vec<What> {
    let name = machine.name_any();
    let mut all = Vec::new();
    if gone || machine.metadata.deletion_timestamp.is_some() {
        all.push(What::Deleted { machine: name.clone() });
    }
    if machine.status.as_ref().and_then(|status| status.phase.as_ref()) == Some(&Phase::Running) {
        all.push(What::Running { machine: name.clone() });
    }
    if gone {
        all.push(What::Gone { machine: name });
    }
    all
}

fn of_pod(pod: &Pod, gone: bool) -> Vec<What> {
    let Some(node) = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()) else {
        return Vec::new();
    };
    let uid = pod.uid().unwrap_or_default();
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let mut all = Vec::new();
    if gone || pod.metadata.deletion_timestamp.is_some() {
        all.push(What::PodTold { pod: uid.clone(), node: node.clone() });
    }
    if gone || matches!(phase, Some("Succeeded" | "Failed")) {
        all.push(What::PodEnded { pod: uid, node });
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nodes_tell_of_their_end_and_of_their_cordon() {
        let node: Node = serde_json::from_value(json!({
            "metadata": {"name": "n"},
            "spec": {"unschedulable": true},
            "status": {"conditions": [{"type": "Terminating", "status": "True"}]},
        }))
        .unwrap();
        let name = || "n".to_owned();
        let wanted = [What::Terminating { node: name() }, What::Cordoned { node: name() }];
        assert_eq!(of_node(&node, false), wanted);
        assert!(of_node(&node, true).is_empty());
        assert!(of_node(&Node::default(), false).is_empty());
    }

    #[test]
    fn pods_count_where_they_run_and_end_when_they_are_gone() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"uid": "u"}, "spec": {"nodeName": "n", "containers": []},
            "status": {"phase": "Running"},
        }))
        .unwrap();
        let told = What::PodTold { pod: "u".to_owned(), node: "n".to_owned() };
        let ended = What::PodEnded { pod: "u".to_owned(), node: "n".to_owned() };
        assert!(of_pod(&pod, false).is_empty());
        assert_eq!(of_pod(&pod, true), [told, ended.clone()]);
        let mut over = pod.clone();
        over.status.get_or_insert_default().phase = Some("Failed".to_owned());
        assert_eq!(of_pod(&over, false), [ended]);
        assert!(of_pod(&Pod::default(), true).is_empty());
    }
}
