//! Which of the nodes that a pod can be on suits it best, by kube-scheduler's scores and weights.

use std::collections::BTreeMap;

use super::{
    filter::includes,
    pod::{PodFacts, Spread, Term},
    state::{NodeFacts, State},
};
use crate::facts::{
    self,
    resources::{CPU, MEMORY},
    selectors,
    taints::{PREFER_NO_SCHEDULE, tolerates},
};

const HOSTNAME: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";
const MOST: i64 = 100;

const TAINTS_WEIGHT: i64 = 3;
const AFFINITY_WEIGHT: i64 = 2;
const SPREAD_WEIGHT: i64 = 2;
const PODS_WEIGHT: i64 = 2;

/// How Kubernetes spreads the pods of a controller that says nothing: topology key and skew.
const UNSAID: [(&str, i64); 2] = [(HOSTNAME, 3), (ZONE, 5)];

/// The score of each node.
pub(crate) fn scores(pod: &PodFacts, state: &State, nodes: &[(&str, &NodeFacts)]) -> Vec<i64> {
    let mut totals: Vec<i64> =
        nodes.iter().map(|(_, node)| least_allocated(pod, node) + balanced(pod, node)).collect();
    let mut add = |scores: Vec<i64>, weight: i64| {
        for (total, score) in totals.iter_mut().zip(scores) {
            *total += weight * score;
        }
    };
    add(by_taints(pod, nodes), TAINTS_WEIGHT);
    add(by_affinity(pod, nodes), AFFINITY_WEIGHT);
    add(by_spread(pod, state, nodes), SPREAD_WEIGHT);
    add(by_pods(pod, state, nodes), PODS_WEIGHT);
    totals
}

/// Processors and memory with the pod, as parts of what there is.
fn used(pod: &PodFacts, node: &NodeFacts) -> [(i64, i64); 2] {
    [
        (node.weights.0 + pod.weights.0, node.allocatable.get(CPU)),
        (node.weights.1 + pod.weights.1, node.allocatable.get(MEMORY)),
    ]
}

fn least_allocated(pod: &PodFacts, node: &NodeFacts) -> i64 {
    let free = |(used, has): (i64, i64)| {
        if has <= 0 || used > has { 0 } else { (has - used).saturating_mul(MOST) / has }
    };
    let [cpu, memory] = used(pod, node).map(free);
    i64::midpoint(cpu, memory)
}

/// Nodes on which processors and memory are used alike.
fn balanced(pod: &PodFacts, node: &NodeFacts) -> i64 {
    #[expect(clippy::cast_precision_loss, reason = "a share needs no more precision")]
    let share = |(used, has): (i64, i64)| {
        if has <= 0 { 1.0 } else { (used as f64 / has as f64).min(1.0) }
    };
    let [cpu, memory] = used(pod, node).map(share);
    let deviation = (cpu - memory).abs() / 2.0;
    rounded((1.0 - deviation) * 100.0)
}

#[expect(clippy::cast_possible_truncation, reason = "scores are small")]
fn rounded(score: f64) -> i64 {
    score.round() as i64
}

fn by_taints(pod: &PodFacts, nodes: &[(&str, &NodeFacts)]) -> Vec<i64> {
    let Some(spec) = pod.spec() else { return vec![0; nodes.len()] };
    let tolerations = facts::pod::tolerations(spec);
    let bothering = |node: &NodeFacts| {
        let soft = node.taints().iter().filter(|taint| taint.effect == PREFER_NO_SCHEDULE);
        let bad = soft.filter(|taint| !tolerations.iter().any(|t| tolerates(t, taint)));
        i64::try_from(bad.count()).unwrap_or(i64::MAX)
    };
    let counts: Vec<i64> = nodes.iter().map(|(_, node)| bothering(node)).collect();
    normalised(&counts, true)
}

fn by_affinity(pod: &PodFacts, nodes: &[(&str, &NodeFacts)]) -> Vec<i64> {
    let affinity = pod.spec().and_then(|spec| spec.affinity.as_ref()?.node_affinity.as_ref());
    let wishes =
        affinity.and_then(|a| a.preferred_during_scheduling_ignored_during_execution.as_ref());
    let Some(wishes) = wishes else { return vec![0; nodes.len()] };
    let weight_on = |node: &NodeFacts| {
        let Some(object) = &node.node else { return 0 };
        let met = wishes.iter().filter(|wish| selectors::term_fits(&wish.preference, object));
        met.map(|wish| i64::from(wish.weight)).sum()
    };
    let sums: Vec<i64> = nodes.iter().map(|(_, node)| weight_on(node)).collect();
    normalised(&sums, false)
}

/// From 0 to 100, the largest at one end.
fn normalised(counts: &[i64], reverse: bool) -> Vec<i64> {
    let most = counts.iter().copied().max().unwrap_or_default();
    let scale = |count: &i64| {
        if most == 0 {
            return if reverse { MOST } else { 0 };
        }
        let score = MOST * count / most;
        if reverse { MOST - score } else { score }
    };
    counts.iter().map(scale).collect()
}

/// Fewer pods of the same kind in the same place score higher.
fn by_spread(pod: &PodFacts, state: &State, nodes: &[(&str, &NodeFacts)]) -> Vec<i64> {
    let says_something = !(pod.soft_spread.is_empty() && pod.hard_spread.is_empty());
    let raw = if says_something {
        if pod.soft_spread.is_empty() {
            return vec![0; nodes.len()];
        }
        said_spread(pod, state, nodes)
    } else {
        let Some(controller) = &pod.controller else { return vec![0; nodes.len()] };
        unsaid_spread(controller, state, nodes)
    };
    let known: Vec<i64> = raw.iter().flatten().copied().collect();
    let least = known.iter().copied().min().unwrap_or_default();
    let most = known.iter().copied().max().unwrap_or_default();
    let score = |raw: &Option<i64>| match raw {
        None => 0,
        Some(_) if most == 0 => MOST,
        Some(raw) => MOST * (most + least - raw) / most,
    };
    raw.iter().map(score).collect()
}

/// The more domains there are, the more a pod in one weighs.
#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn weighed(count: i64, max_skew: i64, domains: usize) -> f64 {
    count as f64 * (domains as f64 + 2.0).ln() + (max_skew - 1) as f64
}

fn said_spread(pod: &PodFacts, state: &State, nodes: &[(&str, &NodeFacts)]) -> Vec<Option<i64>> {
    let constraints = &pod.soft_spread;
    let has_all = |node: &NodeFacts| {
        constraints.iter().all(|constraint| node.labels().contains_key(&constraint.topology_key))
    };
    let domains: Vec<BTreeMap<&str, i64>> = constraints
        .iter()
        .map(|constraint| count_domains(constraint, pod, state, nodes, &has_all))
        .collect();
    let score = |node: &NodeFacts| {
        let sum: f64 = constraints
            .iter()
            .zip(&domains)
            .map(|(constraint, domains)| {
                let value = node.labels()[&constraint.topology_key].as_str();
                let count = domains.get(value).copied().unwrap_or_default();
                weighed(count, constraint.max_skew, domains.len())
            })
            .sum();
        rounded(sum)
    };
    nodes.iter().map(|(_, node)| has_all(node).then(|| score(node))).collect()
}

fn count_domains<'a>(
    constraint: &Spread,
    pod: &PodFacts,
    state: &'a State,
    nodes: &[(&str, &'a NodeFacts)],
    has_all: &impl Fn(&NodeFacts) -> bool,
) -> BTreeMap<&'a str, i64> {
    let mut domains = BTreeMap::new();
    for (_, node) in nodes.iter().filter(|(_, node)| has_all(node)) {
        domains.entry(node.labels()[&constraint.topology_key].as_str()).or_default();
    }
    for (node, other) in state.of_namespace(&pod.namespace) {
        let Some(value) = node.labels().get(&constraint.topology_key) else { continue };
        if let Some(count) = domains.get_mut(value.as_str())
            && !facts::pod::is_terminating(&other.pod)
            && constraint.counts(other)
            && includes(constraint, pod, node)
        {
            *count += 1;
        }
    }
    domains
}

fn unsaid_spread(
    controller: &str,
    state: &State,
    nodes: &[(&str, &NodeFacts)],
) -> Vec<Option<i64>> {
    let mut totals = vec![0.0; nodes.len()];
    for (key, max_skew) in UNSAID {
        let mut domains: BTreeMap<&str, i64> = BTreeMap::new();
        for (_, node) in nodes {
            if let Some(value) = node.labels().get(key) {
                domains.entry(value).or_default();
            }
        }
        for (name, count) in state.of_controller(controller) {
            let value = state.node(name).and_then(|node| node.labels().get(key));
            if let Some(sum) = value.and_then(|value| domains.get_mut(value.as_str())) {
                *sum += count;
            }
        }
        for (total, (_, node)) in totals.iter_mut().zip(nodes) {
            if let Some(count) = node.labels().get(key).and_then(|v| domains.get(v.as_str())) {
                *total += weighed(*count, max_skew, domains.len());
            }
        }
    }
    totals.into_iter().map(|total| Some(rounded(total))).collect()
}

/// Wishes to be near pods or far from them, of this pod and of those that are there.
fn by_pods(pod: &PodFacts, state: &State, nodes: &[(&str, &NodeFacts)]) -> Vec<i64> {
    let mut places: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    if !pod.preferred.is_empty() {
        for (node, other) in state.placed() {
            for (weight, term) in &pod.preferred {
                wish(&mut places, *weight, term, node, other, state);
            }
        }
    }
    for (node, other) in state.minding() {
        for (weight, term) in &other.preferred {
            wish(&mut places, *weight, term, node, pod, state);
        }
        // Who must be near others likes others to be near.
        for term in &other.affinity {
            wish(&mut places, 1, term, node, pod, state);
        }
    }
    if places.is_empty() {
        return vec![0; nodes.len()];
    }
    let sum_on = |node: &NodeFacts| {
        let here = places.iter().filter(|((key, value), _)| {
            node.labels().get(*key).is_some_and(|actual| actual == value)
        });
        here.map(|(_, weight)| *weight).sum::<i64>()
    };
    let sums: Vec<i64> = nodes.iter().map(|(_, node)| sum_on(node)).collect();
    let least = sums.iter().copied().min().unwrap_or_default();
    let range = sums.iter().copied().max().unwrap_or_default() - least;
    sums.iter().map(|sum| if range == 0 { 0 } else { MOST * (sum - least) / range }).collect()
}

/// Adds the weight to where the term is met: the domain of the node, if it is about the pod.
fn wish<'a>(
    places: &mut BTreeMap<(&'a str, &'a str), i64>,
    weight: i64,
    term: &'a Term,
    node: &'a NodeFacts,
    about: &PodFacts,
    state: &State,
) {
    if let Some(value) = node.labels().get(&term.topology_key)
        && term.is_about(about, &state.namespaces)
    {
        *places.entry((&term.topology_key, value)).or_default() += weight;
    }
}
