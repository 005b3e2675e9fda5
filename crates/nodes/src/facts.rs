//! What matters of a Node.

use fleetwright_lifecycle::{
    drain::gate::{CONTROL_PLANE_LABEL, MASTER_LABEL, NodeFacts},
    replicas::NodeReady,
};
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use kube::ResourceExt;

/// The condition that says whether a Node works.
const READY: &str = "Ready";

fn ready_condition(node: &Node) -> Option<&NodeCondition> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == READY)
}

/// Whether it is ready, and since when.
pub fn ready(node: &Node) -> NodeReady {
    match ready_condition(node) {
        Some(condition) if condition.status == "True" => {
            NodeReady::Since(condition.last_transition_time.as_ref().map(|time| time.0))
        }
        _ => NodeReady::No,
    }
}

/// Whether its kubelet is not heard of: nobody would end its pods.
pub fn unreachable(node: &Node) -> bool {
    ready_condition(node).is_some_and(|condition| condition.status == "Unknown")
}

/// What the order of drains depends on.
pub fn for_drain(node: &Node) -> NodeFacts {
    let labels = node.labels();
    NodeFacts {
        name: node.name_any(),
        control_plane: [CONTROL_PLANE_LABEL, MASTER_LABEL]
            .iter()
            .any(|label| labels.contains_key(*label)),
        cordoned: node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or_default(),
    }
}

/// Its provider ID, unless it has none yet.
pub fn provider_id(node: &Node) -> Option<&str> {
    node.spec.as_ref()?.provider_id.as_deref().filter(|id| !id.is_empty())
}
