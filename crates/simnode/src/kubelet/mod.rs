//! Simulated kubelets: they register Nodes, renew Leases, and run what is bound to them.
//!
//! All kubelets share one work queue. A kubelet costs something when its node or one of its pods
//! changes, when a container starts or ends, and when a heartbeat is due; nothing walks over the
//! fleet.

mod agents;
mod host;
mod hosts;
mod node;
mod pod;
mod script;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc};

use fleetwright_runtime::{Action, Change, EventType, ObjectKey};
use jiff::Timestamp;
use k8s_openapi::{
    api::{
        coordination::v1::{Lease, LeaseSpec},
        core::v1::{Node, Pod},
    },
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference},
};
use kube::{
    Api,
    api::{DeleteParams, Patch},
};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::{
    agents::Agents,
    hosts::{Done, Duties, Plan},
};
use crate::{
    cluster::{BY_NODE, SharedCluster, managed, of_same, posted, until},
    error::{Failure, Outcome, exists_already},
    facts,
    settings::{KUBELET, KubeletSettings},
};

pub use agents::{Agent, Program};
pub use host::Host;
pub use hosts::Hosts;
pub(crate) use hosts::is_ready;
pub(crate) use node::{PRESSURES, READY};
pub use script::{EXIT_CODE, READY_AFTER, RUNS_FOR, TERMINATES_IN};

/// Where the Leases of nodes are.
pub(crate) const LEASES: &str = "kube-node-lease";
/// How much longer a node may be silent than between two renewals: four renewals.
const LEASE_SECONDS: i32 = 40;
const CLOUD: &str = "cloud-node-lifecycle-controller";

/// One thing to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Work {
    /// The kubelet of a host.
    Node(String),
    /// A machine that is gone for ever.
    Gone(String),
    /// A pod that is bound to a host.
    Pod(ObjectKey),
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(name) => write!(f, "node {name}"),
            Self::Gone(name) => write!(f, "gone node {name}"),
            Self::Pod(key) => write!(f, "pod {key}"),
        }
    }
}

#[derive(Clone)]
pub(crate) struct Kubelets {
    cluster: SharedCluster,
    hosts: Hosts,
    settings: KubeletSettings,
    /// Whether Nodes of machines that are gone are removed.
    removes_gone: bool,
}

/// The kubelets, not started yet.
pub(crate) struct Prepared {
    kubelets: Kubelets,
    controller: fleetwright_runtime::Controller<Work>,
    agents: Option<Agents>,
}

impl Prepared {
    pub(crate) fn new(
        cluster: SharedCluster,
        settings: KubeletSettings,
        removes_gone: bool,
        agent: Option<Agent>,
    ) -> Self {
        let controller =
            cluster.controller(KUBELET).waits_for(&cluster.pods).waits_for(&cluster.nodes);
        let (changed, changes) = mpsc::unbounded_channel();
        let hosts = Hosts::new(
            controller.queue(),
            cluster.clock.clone(),
            cluster.random.fork(),
            changed.clone(),
        );
        let agents = agent.map(|agent| {
            Agents::new(agent, hosts.clone(), cluster.nodes.clone(), changed, changes)
        });
        let kubelets = Kubelets { cluster, hosts, settings, removes_gone };
        Self { kubelets, controller, agents }
    }

    pub(crate) fn hosts(&self) -> Hosts {
        self.kubelets.hosts.clone()
    }

    /// Changes of pods and nodes become work.
    fn listen(&self) {
        let of_pods = self.hosts();
        self.kubelets.cluster.pods.on_change(move |change| match change {
            Change::Deleted { last } => of_pods.release(last),
            change if facts::pod::node_name(change.object()).is_some() => {
                of_pods.look_at(change.object());
            }
            _ => {}
        });
        let (of_nodes, queue) = (self.hosts(), self.controller.queue());
        self.kubelets.cluster.nodes.on_change(move |change| {
            let node = change.object();
            let name = node.metadata.name.clone().unwrap_or_default();
            match change {
                Change::Deleted { .. } => of_nodes.forget(&name),
                Change::Added(_) => {
                    of_nodes.occupy(node);
                    queue.add(Work::Node(name.clone()));
                }
                Change::Modified { .. } => {}
            }
            if of_nodes.is_gone(&name) {
                queue.add(Work::Gone(name));
            }
        });
    }

    pub(crate) async fn run(self, stop: CancellationToken) {
        self.listen();
        let agents = self.agents.map(|agents| agents.run(stop.clone()));
        let kubelets = Arc::new(self.kubelets);
        let reconcile = move |work| {
            let kubelets = Arc::clone(&kubelets);
            async move { kubelets.reconcile(work).await }
        };
        let agents = async {
            if let Some(agents) = agents {
                agents.await;
            }
        };
        let (ended, ()) = tokio::join!(self.controller.run(reconcile, stop), agents);
        if let Err(cut_off) = ended {
            tracing::warn!(%cut_off, "kubelets did not stop in time");
        }
    }
}

impl Kubelets {
    async fn reconcile(&self, work: Work) -> Result<Action, Failure> {
        match work {
            Work::Node(name) => self.tend_node(&name).await,
            Work::Gone(name) => self.remove_gone(&name).await,
            Work::Pod(key) => self.tend_pod(&key).await,
        }
    }

    async fn tend_node(&self, name: &str) -> Result<Action, Failure> {
        loop {
            let node = self.cluster.nodes.get(&ObjectKey::cluster(name));
            match self.hosts.plan(name, node.as_deref(), &self.settings) {
                Plan::Rest => return Ok(Action::await_change()),
                Plan::Wait(time) => return Ok(Action::requeue_after(time)),
                Plan::Act(duties) if duties.register => {
                    self.register(&duties, node.as_deref()).await?;
                    self.hosts.note(name, &duties.boot_id, &Done::Registered);
                    // What it must do next shows when its Node has come in.
                    for pod in self.cluster.pods.by_index(BY_NODE, name) {
                        self.hosts.look_at(&pod);
                    }
                }
                Plan::Act(duties) => {
                    let Some(node) = node else { return Ok(Action::await_change()) };
                    if duties.renew {
                        self.renew(&node).await?;
                        self.hosts.note(name, &duties.boot_id, &Done::Renewed);
                    }
                    if let Some(ready) = duties.post {
                        self.post(&duties, &node, ready).await?;
                        self.hosts.note(name, &duties.boot_id, &Done::Posted);
                        // The echo of the report is worth a look, not worth waiting for.
                        return Ok(Action::requeue_after(self.settings.lease_interval));
                    }
                }
            }
        }
    }

    /// A Node of the same name is this one after a restart, or that of another machine which had
    /// the name before.
    async fn register(&self, duties: &Duties, known: Option<&Node>) -> Result<(), Failure> {
        let host = &duties.host;
        let nodes: Api<Node> = Api::all(self.cluster.client.clone());
        let mut found = known.cloned();
        for _ in 0..3 {
            if let Some(node) = &found {
                let provider_id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
                if provider_id.is_none_or(|id| id == host.provider_id) {
                    self.hosts.network(&host.name, Some(node));
                    let ready = self.settings.ready_delay.is_zero();
                    return self.post(duties, node, ready).await;
                }
                let deleted = nodes.delete(&host.name, &DeleteParams::default()).await;
                deleted.unless_gone().trying("replace node", &host.name)?;
            }
            let network = self.hosts.network(&host.name, None);
            let ready = self.settings.ready_delay.is_zero();
            let now = self.cluster.now();
            let node = node::node(host, &duties.boot_id, network, ready, &self.settings, now);
            match nodes.create(&posted(KUBELET), &node).await {
                Ok(node) => {
                    self.renew(&node).await?;
                    self.hosts.note(&host.name, &duties.boot_id, &Done::Posted);
                    self.hosts.note(&host.name, &duties.boot_id, &Done::Renewed);
                    let message = "Starting kubelet.";
                    self.cluster.tell(KUBELET, &node, EventType::Normal, "Starting", message);
                    return Ok(());
                }
                Err(error) if exists_already(&error) => {
                    found = nodes.get_opt(&host.name).await.trying("read node", &host.name)?;
                }
                Err(error) => return Err(error).trying("register node", &host.name),
            }
        }
        Ok(())
    }

    async fn post(&self, duties: &Duties, node: &Node, ready: bool) -> Result<(), Failure> {
        let name = &duties.host.name;
        let conditions = node.status.as_ref().and_then(|status| status.conditions.clone());
        let status = node::status(
            &duties.host,
            &duties.boot_id,
            &conditions.unwrap_or_default(),
            ready,
            &self.settings,
            self.cluster.now(),
        );
        let nodes: Api<Node> = Api::all(self.cluster.client.clone());
        let patch = Patch::Strategic(of_same(&node.metadata, "status", status));
        let posted = nodes.patch_status(name, &managed(KUBELET), &patch).await;
        posted.unless_gone().trying("report the status of node", name)?;
        let was_ready = is_ready(node);
        if ready && !was_ready {
            let message = format!("Node {name} status is now: NodeReady");
            self.cluster.tell(KUBELET, node, EventType::Normal, "NodeReady", &message);
        }
        Ok(())
    }

    async fn renew(&self, node: &Node) -> Result<(), Failure> {
        let name = node.metadata.name.clone().unwrap_or_default();
        let leases: Api<Lease> = Api::namespaced(self.cluster.client.clone(), LEASES);
        let now = MicroTime(self.cluster.now());
        let patch = Patch::Merge(json!({"spec": {"renewTime": now}}));
        let renewed = leases.patch(&name, &managed(KUBELET), &patch).await;
        if renewed.unless_gone().trying("renew the lease of node", &name)?.is_some() {
            return Ok(());
        }
        let lease = lease(node, &name, now.0);
        match leases.create(&posted(KUBELET), &lease).await {
            Err(error) if !exists_already(&error) => {
                Err(error).trying("create the lease of node", &name)
            }
            _ => Ok(()),
        }
    }

    /// As the cloud's node controller does: the Node of a machine that is gone goes when it is
    /// no longer ready.
    async fn remove_gone(&self, name: &str) -> Result<Action, Failure> {
        let Some(node) = self.cluster.nodes.get(&ObjectKey::cluster(name)) else {
            self.hosts.forget(name);
            return Ok(Action::await_change());
        };
        if !self.removes_gone || !self.hosts.is_gone(name) || is_ready(&node) {
            return Ok(Action::await_change());
        }
        let message =
            format!("Deleting node {name} because it does not exist in the cloud provider");
        self.cluster.tell(CLOUD, &*node, EventType::Normal, "DeletingNode", &message);
        let nodes: Api<Node> = Api::all(self.cluster.client.clone());
        let deleted = nodes.delete(name, &DeleteParams::default()).await;
        deleted.unless_gone().trying("delete node", name)?;
        Ok(Action::await_change())
    }

    async fn tend_pod(&self, key: &ObjectKey) -> Result<Action, Failure> {
        let Some(pod) = self.cluster.pods.get(key) else { return Ok(Action::await_change()) };
        let Some(around) = self.hosts.surroundings(&pod) else {
            return Ok(Action::await_change());
        };
        let now = self.cluster.now();
        let next = pod::next(&pod, &around, &self.settings, now);
        if let Some(status) = &next.status {
            self.tell_start(&pod, status);
            let patch = pod::patch(pod.status.as_ref(), status);
            self.cluster.patch_pod_status(&pod, KUBELET, patch).await?;
        }
        if next.delete {
            self.cluster.delete_pod(&pod, Some(0)).await?;
        }
        Ok(next.wake.map_or(Action::await_change(), |wake| Action::requeue_after(until(now, wake))))
    }

    fn tell_start(&self, pod: &Pod, status: &k8s_openapi::api::core::v1::PodStatus) {
        if facts::pod::phase(pod) != facts::pod::RUNNING
            && status.phase.as_deref() == Some(facts::pod::RUNNING)
        {
            self.cluster.tell(KUBELET, pod, EventType::Normal, "Started", "Container started");
        }
    }
}

fn lease(node: &Node, name: &str, now: Timestamp) -> Lease {
    Lease {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(LEASES.to_owned()),
            owner_references: Some(vec![OwnerReference {
                api_version: "v1".to_owned(),
                kind: "Node".to_owned(),
                name: name.to_owned(),
                uid: facts::uid(&node.metadata).to_owned(),
                ..OwnerReference::default()
            }]),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(name.to_owned()),
            lease_duration_seconds: Some(LEASE_SECONDS),
            renew_time: Some(MicroTime(now)),
            ..LeaseSpec::default()
        }),
    }
}
