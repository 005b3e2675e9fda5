//! A small scheduler with kube-scheduler's rules: it looks at pods that wait for a node, the most
//! important first, finds the best node for each, and says in kube-scheduler's words why there is
//! none.
//!
//! It does not look at volumes, and it sends no pod away for a more important one.

mod decide;
mod filter;
mod pod;
mod queue;
mod score;
mod state;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use fleetwright_clock::Random;
use fleetwright_runtime::{Change, EventType, ObjectKey};
use k8s_openapi::{
    api::core::v1::{Binding, Namespace, Node, ObjectReference, Pod},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use kube::Api;
use serde_json::json;
use tokio::{
    sync::mpsc::UnboundedReceiver,
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use self::{
    decide::{Unschedulable, choose},
    filter::check_node,
    pod::PodFacts,
    queue::Queue,
    state::State,
};
use crate::{
    cluster::{SharedCluster, posted},
    error::{Failure, Outcome},
    facts,
    settings::SCHEDULER,
};

/// The scheduler that pods ask for when they ask for none.
const NAME: &str = "default-scheduler";
const SCHEDULED: &str = "PodScheduled";
const UNSCHEDULABLE: &str = "Unschedulable";
/// How many placements are told to the server at the same time.
const AT_ONCE: usize = 32;
/// Events are cut to this many characters, as kube-scheduler does.
const NOTE_LIMIT: usize = 1024;

/// The scheduler.
pub(crate) struct Scheduler {
    cluster: SharedCluster,
    state: State,
    queue: Queue,
    random: Random,
    /// Where the next look at the nodes begins.
    start: usize,
    tellings: JoinSet<Told>,
}

/// What has become of a decision.
enum Told {
    Bound,
    /// The pod has no place after all.
    NotBound {
        pod: Arc<PodFacts>,
        attempts: u32,
    },
    Explained,
}

struct Feeds {
    pods: UnboundedReceiver<Change<Pod>>,
    nodes: UnboundedReceiver<Change<Node>>,
    namespaces: UnboundedReceiver<Change<Namespace>>,
}

/// Starts the scheduler.
pub(crate) fn spawn(cluster: &SharedCluster, tasks: &mut JoinSet<()>, stop: &CancellationToken) {
    let namespaces = cluster.informer::<Namespace>("simnode-namespaces", tasks, stop);
    let feeds = Feeds {
        pods: cluster.pods.subscribe(),
        nodes: cluster.nodes.subscribe(),
        namespaces: namespaces.subscribe(),
    };
    let scheduler = Scheduler {
        random: cluster.random.fork(),
        cluster: Arc::clone(cluster),
        state: State::default(),
        queue: Queue::default(),
        start: 0,
        tellings: JoinSet::new(),
    };
    let stop = stop.clone();
    tasks.spawn(async move {
        let (cluster, known) = (Arc::clone(&scheduler.cluster), namespaces);
        let synced = async {
            cluster.pods.wait_synced().await;
            cluster.nodes.wait_synced().await;
            known.wait_synced().await;
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = synced => {}
        }
        scheduler.run(feeds, stop).await;
    });
}

impl Scheduler {
    async fn run(mut self, mut feeds: Feeds, stop: CancellationToken) {
        loop {
            self.take_in(&mut feeds);
            // Many decisions must not keep the thread from everything else.
            tokio::task::coop::consume_budget().await;
            if self.tellings.len() < AT_ONCE
                && let Some((pod, attempts)) = self.queue.pop(Instant::now())
            {
                self.decide(pod, attempts);
                continue;
            }
            let wake = self.queue.next_time();
            let timer = async {
                match wake {
                    Some(time) => sleep_until(time).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(told) = self.tellings.join_next() => {
                    if let Ok(told) = told {
                        self.hear(told);
                    }
                }
                Some(change) = feeds.nodes.recv() => self.node_changed(&change),
                Some(change) = feeds.namespaces.recv() => self.namespace_changed(&change),
                Some(change) = feeds.pods.recv() => self.pod_changed(&change),
                () = timer => {}
            }
        }
        self.tellings.shutdown().await;
    }

    fn take_in(&mut self, feeds: &mut Feeds) {
        while let Ok(change) = feeds.nodes.try_recv() {
            self.node_changed(&change);
        }
        while let Ok(change) = feeds.namespaces.try_recv() {
            self.namespace_changed(&change);
        }
        while let Ok(change) = feeds.pods.try_recv() {
            self.pod_changed(&change);
        }
    }

    fn namespace_changed(&mut self, change: &Change<Namespace>) {
        let namespace = change.object();
        let name = namespace.metadata.name.as_deref().unwrap_or_default();
        match change {
            Change::Deleted { .. } => self.state.namespaces.remove(name),
            _ => self.state.namespaces.set(name, facts::labels(&namespace.metadata).clone()),
        }
    }

    fn node_changed(&mut self, change: &Change<Node>) {
        let node = change.object();
        let name = node.metadata.name.as_deref().unwrap_or_default();
        match change {
            Change::Deleted { .. } => {
                self.state.remove_node(name);
                // The domains of spreading may have changed.
                let now = Instant::now();
                self.queue.wake(now, |pod, _| pod.minds_others());
            }
            Change::Modified { old, new } => {
                self.state.set_node(node);
                if matters(old, new) {
                    self.wake_for(name, true);
                }
            }
            Change::Added(_) => {
                self.state.set_node(node);
                self.wake_for(name, true);
            }
        }
    }

    fn pod_changed(&mut self, change: &Change<Pod>) {
        let pod = change.object();
        let uid = facts::uid(&pod.metadata);
        let gone = matches!(change, Change::Deleted { .. }) || facts::pod::is_over(pod);
        if gone {
            self.queue.forget(uid);
            if let Some(node) = self.state.remove_pod(uid) {
                self.wake_for(&node, true);
            }
            return;
        }
        if let Some(node) = facts::pod::node_name(pod) {
            self.queue.forget(uid);
            let known = self.state.place_of(uid) == Some(node);
            if let Change::Modified { old, new } = change
                && known
                && same_to_us(old, new)
            {
                return;
            }
            self.state.place(&Arc::new(PodFacts::read(pod)), node);
            self.wake_for(node, false);
            return;
        }
        if facts::pod::is_terminating(pod) || !is_ours(pod) {
            self.queue.forget(uid);
            return;
        }
        // What has been placed already only has to be told; what waits has only been explained.
        let same = |known: &Arc<PodFacts>| same_to_us(&known.pod, pod);
        let explained = self.queue.waiting(uid).is_some_and(same);
        if self.state.place_of(uid).is_none() && !explained {
            self.queue.offer(Arc::new(PodFacts::read(pod)));
        }
    }

    /// Something about a node has changed: who could be there now, or minds who is there?
    fn wake_for(&mut self, node: &str, has_room: bool) {
        let Some(node) = self.state.node(node) else { return };
        self.queue.wake(Instant::now(), |pod, why| {
            if has_room && check_node(pod, node).is_ok() {
                return true;
            }
            why.because_of_others && pod.minds_others()
        });
    }

    fn decide(&mut self, pod: Arc<PodFacts>, attempts: u32) {
        let random = &self.random;
        let draw = |count: usize| {
            let drawn = random.below(u64::try_from(count).unwrap_or(1));
            usize::try_from(drawn).unwrap_or_default()
        };
        match choose(&pod, &self.state, &mut self.start, draw) {
            Ok(node) => {
                self.state.place(&pod, &node);
                let cluster = Arc::clone(&self.cluster);
                self.tellings.spawn(async move {
                    match bind(&cluster, &pod, &node).await {
                        Ok(true) => Told::Bound,
                        Ok(false) => Told::NotBound { pod, attempts },
                        Err(error) => {
                            tracing::debug!(%error, "binding failed");
                            Told::NotBound { pod, attempts }
                        }
                    }
                });
            }
            Err(why) => {
                self.queue.park(Arc::clone(&pod), attempts, why.clone(), Instant::now());
                let cluster = Arc::clone(&self.cluster);
                self.tellings.spawn(async move {
                    if let Err(error) = explain(&cluster, &pod, &why).await {
                        tracing::debug!(%error, "explaining failed");
                    }
                    Told::Explained
                });
            }
        }
    }

    fn hear(&mut self, told: Told) {
        let Told::NotBound { pod, attempts } = told else { return };
        // The copy knows what has become of the pod in the meantime.
        let current = self.cluster.pods.get(&ObjectKey::of(&*pod.pod));
        let current = current.filter(|current| facts::uid(&current.metadata) == pod.uid);
        if current.as_ref().is_some_and(|current| facts::pod::node_name(current).is_some()) {
            return;
        }
        self.state.remove_pod(&pod.uid);
        if current.is_some_and(|current| !facts::pod::is_terminating(&current)) {
            self.queue.retry(pod, attempts, Instant::now());
        }
    }
}

/// Whether this scheduler is to place the pod.
fn is_ours(pod: &Pod) -> bool {
    pod.spec.as_ref().is_some_and(|spec| {
        let gates = spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty());
        !gates && spec.scheduler_name.as_deref().is_none_or(|name| name == NAME || name.is_empty())
    })
}

/// Whether a change of a pod makes no difference to where pods go.
fn same_to_us(old: &Pod, new: &Pod) -> bool {
    old.spec == new.spec
        && old.metadata.labels == new.metadata.labels
        && old.metadata.owner_references == new.metadata.owner_references
        && old.metadata.deletion_timestamp == new.metadata.deletion_timestamp
        && facts::pod::is_over(old) == facts::pod::is_over(new)
}

/// Whether a change of a node can make room for somebody.
fn matters(old: &Node, new: &Node) -> bool {
    let room = |node: &Node| node.status.as_ref().and_then(|status| status.allocatable.clone());
    old.spec != new.spec || old.metadata.labels != new.metadata.labels || room(old) != room(new)
}

/// Tells the server where the pod goes; false if it refuses.
async fn bind(cluster: &SharedCluster, pod: &PodFacts, node: &str) -> Result<bool, Failure> {
    let key = ObjectKey::of(&*pod.pod);
    let binding = Binding {
        metadata: ObjectMeta {
            name: Some(key.name.clone()),
            namespace: Some(key.namespace.clone()),
            uid: Some(pod.uid.clone()),
            ..ObjectMeta::default()
        },
        target: ObjectReference {
            kind: Some("Node".to_owned()),
            name: Some(node.to_owned()),
            ..ObjectReference::default()
        },
    };
    let pods: Api<Pod> = cluster.of_namespace(&key.namespace);
    let bound: Result<serde_json::Value, _> =
        pods.create_subresource("binding", &key.name, &posted(SCHEDULER), &binding).await;
    if bound.unless_gone().trying("bind pod", &key)?.is_none() {
        return Ok(false);
    }
    let message = format!("Successfully assigned {key} to {node}");
    cluster.tell(NAME, &*pod.pod, EventType::Normal, "Scheduled", &message);
    Ok(true)
}

async fn explain(
    cluster: &SharedCluster,
    pod: &PodFacts,
    why: &Unschedulable,
) -> Result<(), Failure> {
    let note: String = why.message.chars().take(NOTE_LIMIT).collect();
    cluster.tell(NAME, &*pod.pod, EventType::Warning, "FailedScheduling", &note);
    // The copy is newer than the pod that was tried.
    let current = cluster.pods.get(&ObjectKey::of(&*pod.pod));
    let known = current.as_ref().and_then(|pod| facts::pod::condition(pod, SCHEDULED));
    let since = known.filter(|known| known.status == "False");
    if since.is_some_and(|known| known.message.as_ref() == Some(&why.message)) {
        return Ok(());
    }
    let since = since.and_then(|known| known.last_transition_time.clone());
    let condition = json!({
        "type": SCHEDULED,
        "status": "False",
        "reason": UNSCHEDULABLE,
        "message": why.message,
        "lastTransitionTime": since.unwrap_or_else(|| Time(cluster.now())),
    });
    cluster.patch_pod_status(&pod.pod, SCHEDULER, json!({"conditions": [condition]})).await
}
