//! `aws-drain-controller.json`: whether a Machine is drained, and whether now.

use fleetwright_lifecycle::{
    conditions::Condition,
    drain::gate::{
        DRAIN_SKIPPED, DRAINED, EXCLUDE_NODE_DRAINING, Gate, MachineFacts, NOT_NOW, NodeFacts,
        gate, waits_for,
    },
};
use serde_json::{Value, json};

use super::{Outcome, Runner, Use};
use crate::row::Row;

pub(super) const RUNNER: Runner = Runner {
    file: "aws-drain-controller.json",
    tables: &[("drain_cases", Use::Rows(drain)), ("drain_allowed_cases", Use::Rows(allowed))],
};

fn drain(row: &Row<'_>) -> Outcome {
    let yes = |key: &str| row.get(key).as_bool().unwrap_or_default();
    let machine = MachineFacts {
        phase: row.get("phase").as_str().unwrap_or_default().to_owned(),
        deleting: yes("deleting"),
        drained: yes("drained"),
        excluded: row.get("annotations").get(EXCLUDE_NODE_DRAINING).is_some(),
        has_node: yes("nodeRef"),
        pre_drain_hooks: yes("preDrain"),
    };
    let found = match gate(&machine) {
        Gate::Ignore => json!({"events": [], "conditions": []}),
        Gate::Skip => {
            let drained = Condition::holds(DRAINED).with_message(DRAIN_SKIPPED);
            json!({
                "events": [DRAIN_SKIPPED],
                "conditions": [{
                    "type": drained.kind,
                    "status": drained.status.as_str(),
                    "message": drained.message,
                }],
            })
        }
        other => json!(format!("{other:?}")),
    };
    Outcome::equal(row.get("expect"), &found)
}

fn node(value: &Value) -> NodeFacts {
    let yes = |key: &str| value[key].as_bool().unwrap_or_default();
    NodeFacts {
        name: value["name"].as_str().unwrap_or_default().to_owned(),
        control_plane: yes("control_plane_label") || yes("master_label"),
        cordoned: yes("cordoned"),
    }
}

fn allowed(row: &Row<'_>) -> Outcome {
    let all: Vec<NodeFacts> =
        row.get("all_nodes").as_array().into_iter().flatten().map(node).collect();
    let found = match waits_for(&node(row.get("node")), &all) {
        None => json!({"allowed": true, "requeue_after_s": 0}),
        Some(_) => json!({"allowed": false, "requeue_after_s": NOT_NOW.as_secs()}),
    };
    Outcome::equal(row.get("expect"), &found)
}
