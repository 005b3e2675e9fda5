//! A real program on simulated nodes: what a DaemonSet with a node selector would run.

use std::{collections::BTreeMap, fmt, sync::Arc};

use fleetwright_runtime::{Change, Informer, ObjectKey};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinSet},
};
use tokio_util::sync::CancellationToken;

use super::{host::Host, hosts::Hosts};

/// Starts a program on a machine.
pub type Program = dyn Fn(&Host) -> BoxFuture<'static, ()> + Send + Sync;

/// A program, and the nodes on which it runs.
#[derive(Clone)]
pub struct Agent {
    /// It runs on nodes with this label.
    pub label: String,
    /// Runs it. It is cut off without warning when the machine goes.
    pub run: Arc<Program>,
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("label", &self.label).finish_non_exhaustive()
    }
}

/// Starts and stops the agents of all nodes.
pub(super) struct Agents {
    agent: Agent,
    hosts: Hosts,
    nodes: Informer<Node>,
    changes: mpsc::UnboundedReceiver<String>,
    /// By node: its boot, and the way to cut it off.
    running: BTreeMap<String, (String, AbortHandle)>,
    tasks: JoinSet<()>,
}

impl Agents {
    pub(super) fn new(
        agent: Agent,
        hosts: Hosts,
        nodes: Informer<Node>,
        changed: mpsc::UnboundedSender<String>,
        changes: mpsc::UnboundedReceiver<String>,
    ) -> Self {
        let label = agent.label.clone();
        let has = move |node: &Node| node.labels().contains_key(&label);
        nodes.on_change(move |change| {
            let matters = match change {
                Change::Added(node) | Change::Deleted { last: node } => has(node),
                Change::Modified { old, new } => has(old) != has(new),
            };
            if matters {
                let _ = changed.send(change.object().name_any());
            }
        });
        Self { agent, hosts, nodes, changes, running: BTreeMap::new(), tasks: JoinSet::new() }
    }

    pub(super) async fn run(mut self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                Some(name) = self.changes.recv() => self.look_at(&name),
                Some(ended) = self.tasks.join_next() => {
                    if let Err(error) = ended && error.is_panic() {
                        tracing::error!(%error, "an agent ended badly");
                    }
                }
            }
        }
    }

    fn look_at(&mut self, name: &str) {
        let node = self.nodes.get(&ObjectKey::cluster(name));
        let wanted = node.is_some_and(|node| node.labels().contains_key(&self.agent.label));
        let wanted = self.hosts.running(name).filter(|_| wanted);
        let boot = wanted.as_ref().map(|(_, boot)| boot);
        if self.running.get(name).map(|(boot, _)| boot) == boot {
            return;
        }
        if let Some((_, handle)) = self.running.remove(name) {
            handle.abort();
        }
        if let Some((host, boot)) = wanted {
            let handle = self.tasks.spawn((self.agent.run)(&host));
            self.running.insert(name.to_owned(), (boot, handle));
        }
    }
}
