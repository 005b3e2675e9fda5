//! Which nodes a pod can be on, and why it cannot be on the others, in kube-scheduler's words.

use std::collections::BTreeMap;

use super::{
    pod::{PodFacts, Spread, Term, clash},
    state::{NodeFacts, State},
};
use crate::facts::{
    self, selectors,
    taints::{self, NO_EXECUTE, NO_SCHEDULE, UNSCHEDULABLE, taint, untolerated},
};

pub(crate) const UNSCHEDULABLE_NODE: &str = "node(s) were unschedulable";
pub(crate) const UNTOLERATED: &str = "node(s) had untolerated taint(s)";
pub(crate) const NO_AFFINITY: &str = "node(s) didn't match Pod's node affinity/selector";
pub(crate) const NO_PORTS: &str = "node(s) didn't have free ports for the requested pod ports";
pub(crate) const TOO_MANY_PODS: &str = "Too many pods";
pub(crate) const SPREAD: &str = "node(s) didn't match pod topology spread constraints";
pub(crate) const SPREAD_LABEL: &str =
    "node(s) didn't match pod topology spread constraints (missing required label)";
pub(crate) const POD_AFFINITY: &str = "node(s) didn't match pod affinity rules";
pub(crate) const POD_ANTI_AFFINITY: &str = "node(s) didn't match pod anti-affinity rules";
pub(crate) const EXISTING_ANTI_AFFINITY: &str =
    "node(s) didn't satisfy existing pods anti-affinity rules";

/// Why a pod cannot be on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) reasons: Vec<String>,
    /// Whether it would help if other pods were not there.
    pub(crate) others_help: bool,
}

impl Refusal {
    fn for_good(reason: &str) -> Self {
        Self { reasons: vec![reason.to_owned()], others_help: false }
    }

    fn for_others(reason: &str) -> Self {
        Self { reasons: vec![reason.to_owned()], others_help: true }
    }
}

/// What the whole cluster has to say about a pod, counted once for all nodes.
pub(crate) struct Prepared<'a> {
    pod: &'a PodFacts,
    spread: Vec<Counted<'a>>,
    /// Pods that satisfy each affinity term, by the value of its topology key.
    affinity: Vec<(&'a Term, BTreeMap<&'a str, i64>)>,
    /// The pod may be the first of those that want to be together.
    first_of_its_kind: bool,
    anti_affinity: Vec<(&'a Term, BTreeMap<&'a str, i64>)>,
    /// Where existing pods do not want this one: topology key and value.
    refused: BTreeMap<(&'a str, &'a str), i64>,
}

/// A spread constraint with the pods that count, by domain.
struct Counted<'a> {
    constraint: &'a Spread,
    domains: BTreeMap<&'a str, i64>,
    itself: i64,
}

impl Counted<'_> {
    fn minimum(&self) -> i64 {
        let known = i64::try_from(self.domains.len()).unwrap_or(i64::MAX);
        if known < self.constraint.min_domains {
            return 0;
        }
        self.domains.values().copied().min().unwrap_or_default()
    }
}

impl<'a> Prepared<'a> {
    pub(crate) fn new(pod: &'a PodFacts, state: &'a State) -> Self {
        let spread = count_spread(&pod.hard_spread, pod, state);
        let affinity = count_terms(&pod.affinity, state);
        let nobody = affinity.iter().all(|(_, counts)| counts.is_empty());
        let itself = pod.affinity.iter().all(|term| term.is_about(pod, &state.namespaces));
        let mut refused = BTreeMap::new();
        for (node, other) in state.minding() {
            for term in &other.anti_affinity {
                if let Some(value) = node.labels().get(&term.topology_key)
                    && term.is_about(pod, &state.namespaces)
                {
                    let place = (term.topology_key.as_str(), value.as_str());
                    *refused.entry(place).or_default() += 1;
                }
            }
        }
        Self {
            pod,
            spread,
            anti_affinity: count_any(&pod.anti_affinity, state),
            affinity,
            first_of_its_kind: nobody && itself,
            refused,
        }
    }

    /// Whether the pod can be on a node.
    pub(crate) fn check(&self, node: &NodeFacts) -> Result<(), Refusal> {
        check_node(self.pod, node)?;
        self.check_spread(node)?;
        self.check_affinity(node)
    }

    fn check_spread(&self, node: &NodeFacts) -> Result<(), Refusal> {
        for counted in &self.spread {
            let Some(value) = node.labels().get(&counted.constraint.topology_key) else {
                return Err(Refusal::for_good(SPREAD_LABEL));
            };
            let here = counted.domains.get(value.as_str()).copied().unwrap_or_default();
            if here + counted.itself - counted.minimum() > counted.constraint.max_skew {
                return Err(Refusal::for_others(SPREAD));
            }
        }
        Ok(())
    }

    fn check_affinity(&self, node: &NodeFacts) -> Result<(), Refusal> {
        let labels = node.labels();
        let has_keys =
            self.affinity.iter().all(|(term, _)| labels.contains_key(&term.topology_key));
        let satisfied = self.affinity.iter().all(|(term, counts)| {
            labels.get(&term.topology_key).is_some_and(|value| counts.contains_key(value.as_str()))
        });
        if !has_keys || !(satisfied || self.first_of_its_kind) {
            return Err(Refusal::for_good(POD_AFFINITY));
        }
        for (term, counts) in &self.anti_affinity {
            let here = labels.get(&term.topology_key);
            if here.is_some_and(|value| counts.contains_key(value.as_str())) {
                return Err(Refusal::for_others(POD_ANTI_AFFINITY));
            }
        }
        let refused = |(key, value): &(&str, &str)| {
            labels.get(*key).is_some_and(|here| here.as_str() == *value)
        };
        if self.refused.keys().any(refused) {
            return Err(Refusal::for_others(EXISTING_ANTI_AFFINITY));
        }
        Ok(())
    }
}

/// What a node itself has to say, other nodes aside.
pub(crate) fn check_node(pod: &PodFacts, node: &NodeFacts) -> Result<(), Refusal> {
    let (Some(spec), Some(object)) = (pod.spec(), &node.node) else {
        return Err(Refusal::for_good(NO_AFFINITY));
    };
    let tolerations = facts::pod::tolerations(spec);
    let cordon = taint(UNSCHEDULABLE, NO_SCHEDULE);
    if node.is_unschedulable() && !tolerations.iter().any(|t| taints::tolerates(t, &cordon)) {
        return Err(Refusal::for_good(UNSCHEDULABLE_NODE));
    }
    if untolerated(node.taints(), tolerations, &[NO_SCHEDULE, NO_EXECUTE]).is_some() {
        return Err(Refusal::for_good(UNTOLERATED));
    }
    if !selectors::node_fits(spec, object) {
        return Err(Refusal::for_good(NO_AFFINITY));
    }
    if pod.ports.iter().any(|port| node.ports.iter().any(|taken| clash(port, taken))) {
        return Err(Refusal::for_others(NO_PORTS));
    }
    check_resources(pod, node)
}

fn check_resources(pod: &PodFacts, node: &NodeFacts) -> Result<(), Refusal> {
    let mut refusal = Refusal { reasons: Vec::new(), others_help: true };
    if i64::try_from(node.pods.len()).unwrap_or(i64::MAX) >= node.pod_limit() {
        refusal.reasons.push(TOO_MANY_PODS.to_owned());
    }
    for (name, asked) in pod.requests.iter().filter(|(_, asked)| *asked > 0) {
        let has = node.allocatable.get(name);
        if asked > has - node.requested.get(name) {
            refusal.reasons.push(format!("Insufficient {name}"));
            refusal.others_help &= asked <= has;
        }
    }
    if refusal.reasons.is_empty() { Ok(()) } else { Err(refusal) }
}

fn count_spread<'a>(
    constraints: &'a [Spread],
    pod: &'a PodFacts,
    state: &'a State,
) -> Vec<Counted<'a>> {
    if constraints.is_empty() {
        return Vec::new();
    }
    let mut counted: Vec<Counted> = constraints
        .iter()
        .map(|constraint| Counted {
            constraint,
            domains: BTreeMap::new(),
            itself: i64::from(constraint.counts(pod)),
        })
        .collect();
    let has_all = |node: &NodeFacts| {
        constraints.iter().all(|constraint| node.labels().contains_key(&constraint.topology_key))
    };
    for (_, node) in state.nodes().filter(|(_, node)| has_all(node)) {
        for counted in &mut counted {
            if includes(counted.constraint, pod, node) {
                let value = node.labels()[&counted.constraint.topology_key].as_str();
                counted.domains.entry(value).or_default();
            }
        }
    }
    for (node, other) in state.of_namespace(&pod.namespace).filter(|(node, _)| has_all(node)) {
        if facts::pod::is_terminating(&other.pod) {
            continue;
        }
        for counted in &mut counted {
            if counted.constraint.counts(other) && includes(counted.constraint, pod, node) {
                let value = node.labels()[&counted.constraint.topology_key].as_str();
                *counted.domains.entry(value).or_default() += 1;
            }
        }
    }
    counted
}

/// Whether a node counts for a constraint.
pub(crate) fn includes(constraint: &Spread, pod: &PodFacts, node: &NodeFacts) -> bool {
    let (Some(spec), Some(object)) = (pod.spec(), &node.node) else { return false };
    if constraint.honors_affinity && !selectors::node_fits(spec, object) {
        return false;
    }
    let tolerations = facts::pod::tolerations(spec);
    !(constraint.honors_taints
        && untolerated(node.taints(), tolerations, &[NO_SCHEDULE, NO_EXECUTE]).is_some())
}

/// Pods that satisfy all terms together, as affinity asks for.
fn count_terms<'a>(terms: &'a [Term], state: &'a State) -> Vec<(&'a Term, BTreeMap<&'a str, i64>)> {
    count(terms, state, |terms, other, state| {
        terms.iter().all(|term| term.is_about(other, &state.namespaces))
    })
}

/// Pods that satisfy each term by itself, as anti-affinity asks for.
fn count_any<'a>(terms: &'a [Term], state: &'a State) -> Vec<(&'a Term, BTreeMap<&'a str, i64>)> {
    count(terms, state, |_, _, _| true)
}

fn count<'a>(
    terms: &'a [Term],
    state: &'a State,
    also: impl Fn(&[Term], &PodFacts, &State) -> bool,
) -> Vec<(&'a Term, BTreeMap<&'a str, i64>)> {
    let mut counted: Vec<_> = terms.iter().map(|term| (term, BTreeMap::new())).collect();
    if terms.is_empty() {
        return counted;
    }
    for (node, other) in state.placed() {
        if !also(terms, other, state) {
            continue;
        }
        for (term, counts) in &mut counted {
            if let Some(value) = node.labels().get(&term.topology_key)
                && term.is_about(other, &state.namespaces)
            {
                *counts.entry(value.as_str()).or_insert(0) += 1;
            }
        }
    }
    counted
}
