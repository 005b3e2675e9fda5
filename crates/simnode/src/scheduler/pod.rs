//! What the scheduler needs to know of a pod, read once for every version of it.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::{
    api::core::v1::{Pod, PodAffinityTerm, PodSpec, TopologySpreadConstraint},
    apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement},
};

use super::state::Namespaces;
use crate::facts::{
    self, Texts,
    resources::{self, Resources},
    selectors,
};

/// A pod to place, or one that has its place.
#[derive(Debug)]
pub(crate) struct PodFacts {
    pub(crate) pod: Arc<Pod>,
    pub(crate) namespace: String,
    pub(crate) uid: String,
    pub(crate) priority: i32,
    pub(crate) requests: Resources,
    /// Processors and memory as they count in scores.
    pub(crate) weights: (i64, i64),
    pub(crate) ports: BTreeSet<HostPort>,
    pub(crate) controller: Option<String>,
    pub(crate) affinity: Vec<Term>,
    pub(crate) anti_affinity: Vec<Term>,
    pub(crate) preferred: Vec<(i64, Term)>,
    pub(crate) hard_spread: Vec<Spread>,
    pub(crate) soft_spread: Vec<Spread>,
}

/// A port of the node that a pod takes: protocol, address, number.
pub(crate) type HostPort = (String, String, i32);

/// A term of affinity or anti-affinity between pods.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    selector: Option<LabelSelector>,
    namespaces: BTreeSet<String>,
    namespace_selector: Option<LabelSelector>,
    pub(crate) topology_key: String,
}

/// A topology spread constraint.
#[derive(Clone, Debug)]
pub(crate) struct Spread {
    pub(crate) topology_key: String,
    pub(crate) max_skew: i64,
    pub(crate) min_domains: i64,
    selector: Option<LabelSelector>,
    pub(crate) honors_affinity: bool,
    pub(crate) honors_taints: bool,
}

impl PodFacts {
    pub(crate) fn read(pod: &Arc<Pod>) -> Self {
        let empty = PodSpec::default();
        let spec = pod.spec.as_ref().unwrap_or(&empty);
        let labels = facts::labels(&pod.metadata);
        let namespace = pod.metadata.namespace.clone().unwrap_or_default();
        let affinity = spec.affinity.as_ref();
        let with = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
        let without = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
        let term = |term: &PodAffinityTerm| Term::read(term, &namespace, labels);
        let required =
            with.and_then(|with| with.required_during_scheduling_ignored_during_execution.as_ref());
        let refused = without.and_then(|without| {
            without.required_during_scheduling_ignored_during_execution.as_ref()
        });
        let wished = with
            .and_then(|with| with.preferred_during_scheduling_ignored_during_execution.as_ref())
            .into_iter()
            .flatten()
            .map(|wish| (i64::from(wish.weight), term(&wish.pod_affinity_term)));
        let disliked = without
            .and_then(|without| {
                without.preferred_during_scheduling_ignored_during_execution.as_ref()
            })
            .into_iter()
            .flatten()
            .map(|wish| (-i64::from(wish.weight), term(&wish.pod_affinity_term)));
        let spread = |when: &str| {
            let all = spec.topology_spread_constraints.iter().flatten();
            all.filter(|constraint| constraint.when_unsatisfiable == when)
                .map(|constraint| Spread::read(constraint, labels))
                .collect::<Vec<_>>()
        };
        Self {
            uid: facts::uid(&pod.metadata).to_owned(),
            priority: spec.priority.unwrap_or_default(),
            requests: resources::requests(pod),
            weights: resources::weights(pod),
            ports: host_ports(spec),
            controller: facts::controller_uid(&pod.metadata).map(ToOwned::to_owned),
            affinity: required.into_iter().flatten().map(term).collect(),
            anti_affinity: refused.into_iter().flatten().map(term).collect(),
            preferred: wished.chain(disliked).collect(),
            hard_spread: spread("DoNotSchedule"),
            soft_spread: spread("ScheduleAnyway"),
            namespace,
            pod: Arc::clone(pod),
        }
    }

    pub(crate) fn labels(&self) -> &Texts {
        facts::labels(&self.pod.metadata)
    }

    pub(crate) fn spec(&self) -> Option<&PodSpec> {
        self.pod.spec.as_ref()
    }

    /// Whether other pods matter to where this one can be.
    pub(crate) fn minds_others(&self) -> bool {
        !(self.affinity.is_empty() && self.anti_affinity.is_empty() && self.hard_spread.is_empty())
    }
}

fn host_ports(spec: &PodSpec) -> BTreeSet<HostPort> {
    let ports = spec.containers.iter().flat_map(|container| container.ports.iter().flatten());
    ports
        .filter_map(|port| {
            let number = port.host_port.filter(|number| *number > 0)?;
            let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".to_owned());
            Some((protocol, port.host_ip.clone().unwrap_or_default(), number))
        })
        .collect()
}

/// Whether two ports cannot be had at once: an empty address is all addresses.
pub(crate) fn clash(one: &HostPort, other: &HostPort) -> bool {
    let any = |address: &str| address.is_empty() || address == "0.0.0.0";
    one.0 == other.0 && one.2 == other.2 && (one.1 == other.1 || any(&one.1) || any(&other.1))
}

impl Term {
    fn read(term: &PodAffinityTerm, own_namespace: &str, own_labels: &Texts) -> Self {
        let mut namespaces: BTreeSet<String> = term.namespaces.iter().flatten().cloned().collect();
        if namespaces.is_empty() && term.namespace_selector.is_none() {
            namespaces.insert(own_namespace.to_owned());
        }
        let same = with_keys(
            term.label_selector.clone(),
            term.match_label_keys.as_deref(),
            own_labels,
            "In",
        );
        let selector = with_keys(same, term.mismatch_label_keys.as_deref(), own_labels, "NotIn");
        Self {
            selector,
            namespaces,
            namespace_selector: term.namespace_selector.clone(),
            topology_key: term.topology_key.clone(),
        }
    }

    /// Whether the term is about a pod.
    pub(crate) fn is_about(&self, pod: &PodFacts, namespaces: &Namespaces) -> bool {
        let in_namespace = self.namespaces.contains(&pod.namespace)
            || self.namespace_selector.as_ref().is_some_and(|selector| {
                selectors::matches(selector, namespaces.labels_of(&pod.namespace))
            });
        in_namespace && fits(self.selector.as_ref(), pod.labels())
    }
}

impl Spread {
    fn read(constraint: &TopologySpreadConstraint, own_labels: &Texts) -> Self {
        let keys = constraint.match_label_keys.as_deref();
        Self {
            topology_key: constraint.topology_key.clone(),
            max_skew: constraint.max_skew.into(),
            min_domains: constraint.min_domains.unwrap_or(1).into(),
            selector: with_keys(constraint.label_selector.clone(), keys, own_labels, "In"),
            // What is not said: affinity is honoured, taints are ignored.
            honors_affinity: constraint.node_affinity_policy.as_deref() != Some("Ignore"),
            honors_taints: constraint.node_taints_policy.as_deref() == Some("Honor"),
        }
    }

    /// Whether a pod counts: one of the same namespace that the selector fits.
    pub(crate) fn counts(&self, pod: &PodFacts) -> bool {
        fits(self.selector.as_ref(), pod.labels())
    }
}

/// No selector fits nothing, an empty one everything.
fn fits(selector: Option<&LabelSelector>, labels: &Texts) -> bool {
    selector.is_some_and(|selector| selectors::matches(selector, labels))
}

/// The selector and the pod's own values of some labels.
fn with_keys(
    selector: Option<LabelSelector>,
    keys: Option<&[String]>,
    own_labels: &Texts,
    operator: &str,
) -> Option<LabelSelector> {
    let mut selector = selector?;
    for key in keys.unwrap_or_default() {
        if let Some(value) = own_labels.get(key) {
            selector.match_expressions.get_or_insert_default().push(LabelSelectorRequirement {
                key: key.clone(),
                operator: operator.to_owned(),
                values: Some(vec![value.clone()]),
            });
        }
    }
    Some(selector)
}
