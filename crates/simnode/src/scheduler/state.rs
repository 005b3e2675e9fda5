//! The cluster as the scheduler sees it: nodes with what is on them, including what it has placed
//! there a moment ago and the server has not confirmed yet.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::api::core::v1::{Node, Taint};

use super::pod::{HostPort, PodFacts};
use crate::facts::{
    self, Texts,
    resources::{PODS, Resources},
};

/// The labels of namespaces.
#[derive(Debug, Default)]
pub(crate) struct Namespaces(BTreeMap<String, Texts>);

impl Namespaces {
    pub(crate) fn set(&mut self, name: &str, labels: Texts) {
        self.0.insert(name.to_owned(), labels);
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    pub(crate) fn labels_of(&self, name: &str) -> &Texts {
        static NONE: Texts = BTreeMap::new();
        self.0.get(name).unwrap_or(&NONE)
    }
}

/// A node and what is on it.
#[derive(Debug, Default)]
pub(crate) struct NodeFacts {
    /// `None` for a node that is gone and still has pods.
    pub(crate) node: Option<Arc<Node>>,
    pub(crate) allocatable: Resources,
    pub(crate) requested: Resources,
    pub(crate) weights: (i64, i64),
    pub(crate) ports: Vec<HostPort>,
    pub(crate) pods: BTreeMap<String, Arc<PodFacts>>,
}

impl NodeFacts {
    pub(crate) fn labels(&self) -> &Texts {
        static NONE: Texts = BTreeMap::new();
        self.node.as_ref().map_or(&NONE, |node| facts::labels(&node.metadata))
    }

    pub(crate) fn taints(&self) -> &[Taint] {
        let spec = self.node.as_ref().and_then(|node| node.spec.as_ref());
        spec.and_then(|spec| spec.taints.as_deref()).unwrap_or_default()
    }

    pub(crate) fn is_unschedulable(&self) -> bool {
        let spec = self.node.as_ref().and_then(|node| node.spec.as_ref());
        spec.is_some_and(|spec| spec.unschedulable == Some(true))
    }

    /// How many pods it takes.
    pub(crate) fn pod_limit(&self) -> i64 {
        self.allocatable.get(PODS)
    }

    fn put(&mut self, pod: &Arc<PodFacts>) {
        self.requested.add(&pod.requests);
        self.weights.0 += pod.weights.0;
        self.weights.1 += pod.weights.1;
        self.ports.extend(pod.ports.iter().cloned());
        self.pods.insert(pod.uid.clone(), Arc::clone(pod));
    }

    fn take(&mut self, uid: &str) -> Option<Arc<PodFacts>> {
        let pod = self.pods.remove(uid)?;
        self.requested.subtract(&pod.requests);
        self.weights.0 -= pod.weights.0;
        self.weights.1 -= pod.weights.1;
        for port in &pod.ports {
            if let Some(at) = self.ports.iter().position(|taken| taken == port) {
                self.ports.swap_remove(at);
            }
        }
        Some(pod)
    }
}

/// All nodes, and where pods are.
#[derive(Debug, Default)]
pub(crate) struct State {
    nodes: BTreeMap<String, NodeFacts>,
    /// Names of nodes that exist, in order.
    pub(crate) names: Vec<String>,
    /// Where each placed pod is, by UID.
    places: BTreeMap<String, String>,
    by_namespace: BTreeMap<String, BTreeSet<(String, String)>>,
    by_controller: BTreeMap<String, BTreeMap<String, i64>>,
    /// Placed pods with (anti-)affinity: node and UID.
    minding: BTreeSet<(String, String)>,
    pub(crate) namespaces: Namespaces,
}

impl State {
    /// A node that exists.
    pub(crate) fn node(&self, name: &str) -> Option<&NodeFacts> {
        self.nodes.get(name).filter(|node| node.node.is_some())
    }

    /// All nodes that exist, by name.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (&str, &NodeFacts)> {
        let exists = |(_, node): &(&String, &NodeFacts)| node.node.is_some();
        self.nodes.iter().filter(exists).map(|(name, node)| (name.as_str(), node))
    }

    pub(crate) fn set_node(&mut self, node: &Arc<Node>) {
        let name = node.metadata.name.clone().unwrap_or_default();
        let known = self.nodes.entry(name.clone()).or_default();
        let is_new = known.node.is_none();
        let status = node.status.as_ref();
        known.allocatable = Resources::of(status.and_then(|status| status.allocatable.as_ref()));
        known.node = Some(Arc::clone(node));
        if is_new && let Err(at) = self.names.binary_search(&name) {
            self.names.insert(at, name);
        }
    }

    pub(crate) fn remove_node(&mut self, name: &str) {
        if let Ok(at) = self.names.binary_search_by(|known| known.as_str().cmp(name)) {
            self.names.remove(at);
        }
        if let Some(node) = self.nodes.get_mut(name) {
            node.node = None;
            if node.pods.is_empty() {
                self.nodes.remove(name);
            }
        }
    }

    /// A pod is on a node, for certain or as good as.
    pub(crate) fn place(&mut self, pod: &Arc<PodFacts>, node: &str) {
        self.remove_pod(&pod.uid);
        self.nodes.entry(node.to_owned()).or_default().put(pod);
        self.places.insert(pod.uid.clone(), node.to_owned());
        let of_namespace = self.by_namespace.entry(pod.namespace.clone()).or_default();
        of_namespace.insert((node.to_owned(), pod.uid.clone()));
        if let Some(controller) = &pod.controller {
            let counts = self.by_controller.entry(controller.clone()).or_default();
            *counts.entry(node.to_owned()).or_default() += 1;
        }
        if !(pod.affinity.is_empty() && pod.anti_affinity.is_empty() && pod.preferred.is_empty()) {
            self.minding.insert((node.to_owned(), pod.uid.clone()));
        }
    }

    /// A pod is on no node any more. Answers where it was.
    pub(crate) fn remove_pod(&mut self, uid: &str) -> Option<String> {
        let node = self.places.remove(uid)?;
        let place = (node.clone(), uid.to_owned());
        self.minding.remove(&place);
        let facts = self.nodes.get_mut(&node)?;
        let pod = facts.take(uid)?;
        if facts.node.is_none() && facts.pods.is_empty() {
            self.nodes.remove(&node);
        }
        if let Some(all) = self.by_namespace.get_mut(&pod.namespace) {
            all.remove(&place);
            if all.is_empty() {
                self.by_namespace.remove(&pod.namespace);
            }
        }
        if let Some(controller) = &pod.controller
            && let Some(counts) = self.by_controller.get_mut(controller)
        {
            if let Some(count) = counts.get_mut(&node) {
                *count -= 1;
            }
            counts.retain(|_, count| *count > 0);
            if counts.is_empty() {
                self.by_controller.remove(controller);
            }
        }
        Some(node)
    }

    pub(crate) fn place_of(&self, uid: &str) -> Option<&str> {
        self.places.get(uid).map(String::as_str)
    }

    /// The placed pods of a namespace, with the nodes that they are on.
    pub(crate) fn of_namespace(
        &self,
        namespace: &str,
    ) -> impl Iterator<Item = (&NodeFacts, &Arc<PodFacts>)> {
        let places = self.by_namespace.get(namespace).into_iter().flatten();
        places.filter_map(|(node, uid)| self.at(node, uid))
    }

    /// All placed pods.
    pub(crate) fn placed(&self) -> impl Iterator<Item = (&NodeFacts, &Arc<PodFacts>)> {
        self.nodes().flat_map(|(_, node)| node.pods.values().map(move |pod| (node, pod)))
    }

    /// The placed pods that have affinity or anti-affinity of their own.
    pub(crate) fn minding(&self) -> impl Iterator<Item = (&NodeFacts, &Arc<PodFacts>)> {
        self.minding.iter().filter_map(|(node, uid)| self.at(node, uid))
    }

    /// How many pods of a controller there are on each node.
    pub(crate) fn of_controller(&self, controller: &str) -> impl Iterator<Item = (&str, i64)> {
        let counts = self.by_controller.get(controller).into_iter().flatten();
        counts.map(|(node, count)| (node.as_str(), *count))
    }

    fn at(&self, node: &str, uid: &str) -> Option<(&NodeFacts, &Arc<PodFacts>)> {
        let node = self.node(node)?;
        Some((node, node.pods.get(uid)?))
    }
}
