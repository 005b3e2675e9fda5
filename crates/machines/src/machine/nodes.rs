//! What a Machine does to its Node: finds it, labels it, empties it, removes it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use fleetwright_api::{
    machine::Machine,
    names::{annotation, condition, label},
};
use fleetwright_clock::Clock;
use fleetwright_lifecycle::{
    conditions::{self, Condition},
    drain::{
        Options,
        deadline::{AtDeadline, drain_by},
    },
    replicas::NodeReady,
};
use fleetwright_nodes::{
    drain::{Advance, DrainError, Drainer},
    link::{Ambiguous, Claim, NodeIndex, words},
    propagate::{self, Wanted},
};
use fleetwright_runtime::{
    Informer, ObjectKey,
    config::{DrainConfig, WhenNodeDies},
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, ObjectReference};
use kube::{
    Api, Client, Resource as _, ResourceExt as _,
    api::{DeleteParams, Preconditions},
};

use super::{FIELD_MANAGER, notice};

/// Something about a Node could not be done.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// It is not clear which Node it is.
    #[error(transparent)]
    Ambiguous(#[from] Ambiguous),
    /// It could not be labelled.
    #[error("cannot write Node {0}")]
    Write(String, #[source] kube::Error),
    /// It could not be removed.
    #[error("cannot delete Node {0}")]
    Delete(String, #[source] kube::Error),
    /// It could not be emptied.
    #[error(transparent)]
    Drain(#[from] DrainError),
}

/// Nodes of the cluster that the Machines are for.
pub struct Nodes {
    api: Api<Node>,
    index: NodeIndex,
    drainer: Drainer,
    config: DrainConfig,
    clock: Clock,
}

impl Nodes {
    /// Looks after the Nodes of an informer. The client should not retry by itself.
    pub fn new(client: Client, nodes: Informer<Node>, config: DrainConfig, clock: Clock) -> Self {
        Self {
            api: Api::all(client.clone()),
            index: NodeIndex::new(nodes),
            drainer: Drainer::new(client, clock.clone(), FIELD_MANAGER),
            config,
            clock,
        }
    }

    /// The same with a drainer of one's own.
    #[must_use]
    pub fn with_drainer(mut self, drainer: Drainer) -> Self {
        self.drainer = drainer;
        self
    }

    /// The informer.
    pub fn informer(&self) -> &Informer<Node> {
        self.index.informer()
    }

    /// The Node of a Machine: by provider ID, else by address.
    pub fn find(&self, machine: &Machine) -> Result<Option<Arc<Node>>, NodeError> {
        Ok(self.index.find(&claim(machine))?)
    }

    /// The Node that a Machine is linked to, if it is still there.
    pub fn linked(&self, reference: &ObjectReference) -> Option<Arc<Node>> {
        let node = self.informer().get(&ObjectKey::cluster(reference.name.as_deref()?))?;
        let same = reference.uid.is_none() || reference.uid == node.meta().uid;
        same.then_some(node)
    }

    /// Whether a Node is there and its kubelet says that it works.
    pub fn is_ready(&self, reference: &ObjectReference) -> bool {
        self.linked(reference)
            .is_some_and(|node| !matches!(crate::set::decide::node_ready(&node), NodeReady::No))
    }

    /// Gives a Node the labels, annotations and taints of its Machine.
    pub async fn label(&self, machine: &Machine, node: &Node) -> Result<(), NodeError> {
        let applied = propagate::apply(&self.api, node, &wanted(machine), FIELD_MANAGER).await;
        applied.map_err(|error| NodeError::Write(node.name_any(), error))?;
        Ok(())
    }

    /// Takes the next step of the drain of a Node that began at `started`.
    pub async fn drain(
        &self,
        machine: &Machine,
        node: &str,
        started: Timestamp,
    ) -> Result<Advance, NodeError> {
        let own =
            machine.annotations().get(annotation::DRAIN_TIMEOUT).and_then(|text| text.parse().ok());
        let timeout = own.unwrap_or(self.config.timeout).0;
        let mut options = Options::machine_api();
        options.timeout = (!timeout.is_zero()).then_some(timeout);
        let known = self.informer().get(&ObjectKey::cluster(node));
        if let Some(notice) = known.as_deref().and_then(notice::of) {
            options = options.until(drain_by(notice.ends));
            options.at_deadline = match self.config.when_node_dies {
                WhenNodeDies::RespectBudgets => AtDeadline::RespectBudgets,
                WhenNodeDies::DeleteWhatBlocks => AtDeadline::DeleteWhatBlocks,
            };
        }
        Ok(self.drainer.advance(node, &options, started).await?)
    }

    /// How long until a drain is to be looked at again.
    pub fn again(&self, advance: &Advance) -> Option<Duration> {
        advance.after(self.clock.now())
    }

    /// Removes the pods of a Node whose instance is gone, so that their volumes are let go. Says
    /// which are left.
    pub async fn clean_up(&self, node: &str) -> Result<Vec<String>, NodeError> {
        Ok(self.drainer.clean_up(node).await?)
    }

    /// Removes a Node whose instance is gone. One that is gone, or another one of its name, is no
    /// error.
    pub async fn remove(&self, reference: &ObjectReference) -> Result<(), NodeError> {
        let Some(name) = reference.name.as_deref() else { return Ok(()) };
        self.drainer.forget(name);
        let preconditions = reference
            .uid
            .clone()
            .map(|uid| Preconditions { uid: Some(uid), resource_version: None });
        let params = DeleteParams { preconditions, ..DeleteParams::default() };
        match self.api.delete(name, &params).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => {
                Ok(())
            }
            Err(error) => Err(NodeError::Delete(name.to_owned(), error)),
        }
    }
}

/// A reference to a Node, as Machines have it.
pub fn reference(node: &Node) -> ObjectReference {
    ObjectReference {
        kind: Some("Node".to_owned()),
        name: Some(node.name_any()),
        uid: node.uid(),
        ..ObjectReference::default()
    }
}

fn claim(machine: &Machine) -> Claim {
    let addresses = machine.status.iter().flat_map(|status| &status.addresses);
    Claim {
        provider_id: machine.spec.provider_id.clone(),
        addresses: addresses
            .map(|address| (address.type_.clone(), address.address.clone()))
            .collect(),
    }
}

/// The words by which a Node finds its Machine.
pub(crate) fn index(machine: &Machine) -> Vec<String> {
    words(&claim(machine))
}

/// What the Node of a Machine should have.
fn wanted(machine: &Machine) -> Wanted {
    let own = &machine.spec.metadata;
    let mut labels = own.labels.clone();
    for key in [label::PLACEMENT_GROUP, label::PARTITION] {
        if let Some(value) = machine.labels().get(key) {
            labels.insert(key.to_owned(), value.clone());
        }
    }
    let mut annotations: BTreeMap<String, String> = own.annotations.clone();
    annotations.insert(annotation::MACHINE.to_owned(), ObjectKey::of(machine).to_string());
    Wanted { labels, annotations, taints: machine.spec.taints.clone() }
}

/// When the drain of a Machine could begin: when it was deleted and nobody held it back.
pub(crate) fn drain_start(machine: &Machine, now: Timestamp, said: &[Condition]) -> Timestamp {
    let deleted = machine.meta().deletion_timestamp.as_ref().map_or(now, |time| time.0);
    let free = conditions::get(said, condition::DRAINABLE).and_then(|drainable| drainable.since);
    deleted.max(free.unwrap_or(deleted))
}

/// Whether a change of a Node is of interest to its Machine; heartbeats are not.
pub(crate) fn differs(old: &Node, new: &Node) -> bool {
    old.spec != new.spec
        || old.metadata.labels != new.metadata.labels
        || old.metadata.annotations != new.metadata.annotations
        || old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
        || fleetwright_nodes::link::words_of_node(old)
            != fleetwright_nodes::link::words_of_node(new)
}
