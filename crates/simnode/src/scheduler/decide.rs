//! Where a pod goes, or why it cannot go anywhere.

use std::collections::BTreeMap;

use super::{
    filter::{Prepared, Refusal},
    pod::PodFacts,
    score,
    state::{NodeFacts, State},
};
use crate::facts::selectors;

/// The message when there are no nodes at all.
pub(crate) const NO_NODES: &str = "no nodes available to schedule pods";
const ELSEWHERE: &str = "node(s) didn't satisfy plugin(s) [NodeAffinity]";
const NO_VICTIMS: &str = "No preemption victims found for incoming pod";
const NOT_HELPFUL: &str = "Preemption is not helpful for scheduling";
const NEVER_PREEMPTS: &str = "not eligible due to preemptionPolicy=Never.";

/// In a large cluster not all nodes are looked at: at least this many that fit.
const ENOUGH: usize = 100;
const LEAST_PERCENT: usize = 5;

/// Why a pod cannot be placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unschedulable {
    pub(crate) message: String,
    /// Whether other pods are part of the reason, so that a change of theirs may help.
    pub(crate) because_of_others: bool,
}

/// The best node for a pod. `start` is where to begin looking, so that all nodes get their turn;
/// `draw` picks among equals.
pub(crate) fn choose(
    pod: &PodFacts,
    state: &State,
    start: &mut usize,
    draw: impl FnOnce(usize) -> usize,
) -> Result<String, Unschedulable> {
    let total = state.names.len();
    if total == 0 {
        let message = NO_NODES.to_owned();
        return Err(Unschedulable { message, because_of_others: false });
    }
    let prepared = Prepared::new(pod, state);
    let only = pod.spec().and_then(selectors::only_nodes);
    let mut fitting = Vec::new();
    let mut refused = Vec::new();
    let mut check = |name: &'_ str, node| match prepared.check(node) {
        Ok(()) => fitting.push((name.to_owned(), node)),
        Err(refusal) => refused.push(refusal),
    };
    if let Some(only) = &only {
        for name in only {
            if let Some(node) = state.node(name) {
                check(name, node);
            }
        }
    } else {
        let enough = enough(total);
        for offset in 0..total {
            let name = &state.names[(*start + offset) % total];
            let Some(node) = state.node(name) else { continue };
            if let Ok(()) = prepared.check(node).map_err(|refusal| refused.push(refusal)) {
                fitting.push((name.clone(), node));
                if fitting.len() >= enough {
                    break;
                }
            }
        }
        *start = (*start + fitting.len() + refused.len()) % total;
    }
    if fitting.is_empty() {
        return Err(explain(pod, total, &refused));
    }
    let nodes: Vec<(&str, &NodeFacts)> =
        fitting.iter().map(|(name, node)| (name.as_str(), *node)).collect();
    let scores = score::scores(pod, state, &nodes);
    let best = scores.iter().copied().max().unwrap_or_default();
    let equals: Vec<&str> =
        nodes.iter().zip(&scores).filter(|(_, s)| **s == best).map(|((n, _), _)| *n).collect();
    Ok(equals[draw(equals.len()).min(equals.len() - 1)].to_owned())
}

fn enough(total: usize) -> usize {
    if total < ENOUGH {
        return total;
    }
    let percent = 50_usize.saturating_sub(total / 125).max(LEAST_PERCENT);
    (total * percent / 100).max(ENOUGH)
}

/// kube-scheduler's message: what is wrong with how many nodes, and that nobody can be sent away.
pub(crate) fn explain(pod: &PodFacts, total: usize, refused: &[Refusal]) -> Unschedulable {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in refused.iter().flat_map(|refusal| &refusal.reasons) {
        *reasons.entry(reason).or_default() += 1;
    }
    if refused.len() < total {
        reasons.insert(ELSEWHERE, total - refused.len());
    }
    let helped = refused.iter().filter(|refusal| refusal.others_help).count();
    let policy = pod.spec().and_then(|spec| spec.preemption_policy.as_deref());
    let preemption = if policy == Some("Never") {
        NEVER_PREEMPTS.to_owned()
    } else {
        let outlook = [(NO_VICTIMS, helped), (NOT_HELPFUL, total - helped)];
        unavailable(total, outlook.into_iter().filter(|(_, count)| *count > 0))
    };
    let message = format!("{} preemption: {preemption}", unavailable(total, reasons));
    Unschedulable { message, because_of_others: helped > 0 || pod.minds_others() }
}

fn unavailable<'a>(total: usize, reasons: impl IntoIterator<Item = (&'a str, usize)>) -> String {
    let mut parts: Vec<String> =
        reasons.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    // As text, by which 10 comes before 2.
    parts.sort();
    format!("0/{total} nodes are available: {}.", parts.join(", "))
}
