//! Machines and Nodes as the rules of health see them.

use fleetwright_api::{
    machine::{Machine, Phase},
    names::annotation,
};
use fleetwright_lifecycle::health::{NodeState, Seen, Target};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use kube::ResourceExt;

use super::rules::Repair;
use crate::set::decide::{controller_of, node_name};

/// Whether a Machine is Failed: it cannot come back.
pub fn is_failed(machine: &Machine) -> bool {
    machine.status.as_ref().is_some_and(|status| status.phase == Some(Phase::Failed))
}

/// Whether a Machine stands out of all checks.
pub fn is_skipped(machine: &Machine) -> bool {
    machine.annotations().contains_key(annotation::SKIP_REMEDIATION)
}

/// A Machine as the rules see it; `node` is what is known of the Node that it names.
pub fn target(machine: &Machine, node: Option<&Node>) -> Target {
    let named = node_name(machine).is_some();
    let annotated = |name: &str| machine.annotations().contains_key(name);
    Target {
        failed: is_failed(machine),
        had_instance: named || machine.spec.provider_id.as_ref().is_some_and(|id| !id.is_empty()),
        deleting: machine.metadata.deletion_timestamp.is_some(),
        repaired_by_others: annotated(annotation::EXTERNAL_REMEDIATION),
        repair_asked: annotated(annotation::REMEDIATE_MACHINE),
        started: machine
            .status
            .as_ref()
            .and_then(|status| status.last_updated.as_ref())
            .map(|time| time.0),
        node: match node {
            _ if !named => NodeState::None,
            None => NodeState::Missing,
            Some(node) => NodeState::Present(conditions(node)),
        },
        conditions: Vec::new(),
    }
}

/// What the conditions of a Node say. That a kubelet still says it is no news.
pub fn conditions(node: &Node) -> Vec<Seen> {
    let all = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    all.map(seen).collect()
}

fn seen(condition: &NodeCondition) -> Seen {
    Seen {
        kind: condition.type_.clone(),
        status: condition.status.clone(),
        // A condition that was always so lasts long enough.
        since: condition.last_transition_time.as_ref().map_or(Timestamp::MIN, |time| time.0),
    }
}

/// What to do about an unhealthy Machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// Nothing: it goes already, or somebody is at it.
    None,
    /// Nothing, since nobody would replace it.
    NoController,
    /// It is deleted.
    Delete,
    /// It is annotated.
    Annotate,
    /// A request is made from the template.
    Ask,
}

/// Chooses what to do about an unhealthy Machine.
pub fn treatment(machine: &Machine, repair: &Repair) -> Treatment {
    match repair {
        Repair::Ask(_) => Treatment::Ask,
        Repair::Annotate if !is_failed(machine) => {
            if machine.annotations().contains_key(annotation::EXTERNAL_REMEDIATION) {
                Treatment::None
            } else {
                Treatment::Annotate
            }
        }
        Repair::Annotate | Repair::Delete => {
            if controller_of(machine).is_none() {
                Treatment::NoController
            } else if machine.metadata.deletion_timestamp.is_some() {
                Treatment::None
            } else {
                Treatment::Delete
            }
        }
    }
}
