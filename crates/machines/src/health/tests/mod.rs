//! The whole MachineHealthCheck controller on an embedded API server.

mod backoff;
mod external;
mod kept;
mod reading;
mod whole;

use fleetwright_api::machine::{Machine, MachineHealthCheck, MachineSet};
use fleetwright_runtime::config::RepairConfig;
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{HealthController, Parts};
use crate::group::testbed::{Bed, Process};

/// Starts the controller in a process.
fn start(process: &mut Process) {
    let parts = Parts {
        client: process.client.clone(),
        checks: process.informer("checks"),
        machines: process.informer("machines"),
        sets: process.informer("sets"),
        nodes: process.watch("nodes", Api::<Node>::all(process.client.clone())),
        config: RepairConfig::default(),
        clock: process.clock.clone(),
        random: process.random.fork(),
        events: process.events.clone(),
        metrics: process.metrics.clone(),
    };
    let controller = HealthController::new(parts);
    process.run(async move {
        let _ = controller.run(CancellationToken::new()).await;
    });
}

/// A check of all Machines with `role: worker`.
fn check(name: &str, max_unhealthy: &str) -> Value {
    json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineHealthCheck",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"role": "worker"}},
            "maxUnhealthy": max_unhealthy,
            "nodeStartupTimeout": "15m",
            "unhealthyConditions": [
                {"type": "Ready", "status": "Unknown", "timeout": "300s"},
                {"type": "Ready", "status": "False", "timeout": "300s"},
                {"type": "Terminating", "status": "True", "timeout": "0s"},
            ],
        },
    })
}

/// A set, to be the owner of Machines.
async fn set(bed: &Bed, name: &str) -> MachineSet {
    bed.create(json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": 0, "selector": {"matchLabels": {"set": name}},
            "template": {"metadata": {"labels": {"set": name}}, "spec": {}},
        },
    }))
    .await
}

/// A Machine with a Node of the same name, both healthy.
async fn machine(bed: &Bed, name: &str, owner: Option<&MachineSet>) {
    let owners: Vec<_> = owner.into_iter().map(crate::set::decide::owner_reference).collect();
    bed.create::<Machine>(json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": {
            "name": name, "labels": {"role": "worker"}, "ownerReferences": owners,
            "finalizers": ["machine.machine.openshift.io"],
        },
        "spec": {"providerID": format!("aws:///us-east-1a/{name}")},
    }))
    .await;
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
    let nodes: Api<Node> = Api::all(bed.user.clone());
    nodes.create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await.unwrap();
    condition(bed, name, "Ready", "True").await;
    let status = json!({"status": {
        "phase": "Running", "nodeRef": {"kind": "Node", "name": name}, "lastUpdated": bed.clock.now(),
    }});
    bed.merge_status::<Machine>(name, status).await;
}

/// Sets a condition of a Node, as of now.
async fn condition(bed: &Bed, node: &str, kind: &str, status: &str) {
    let now = fleetwright_lifecycle::conditions::whole_second(bed.clock.now());
    let patch = json!({"status": {"conditions": [{
        "type": kind, "status": status, "lastTransitionTime": now, "lastHeartbeatTime": now,
    }]}});
    let nodes: Api<Node> = Api::all(bed.user.clone());
    nodes.patch_status(node, &PatchParams::default(), &Patch::Strategic(patch)).await.unwrap();
}

/// Names of Machines that are not on their way out.
async fn living(bed: &Bed) -> Vec<String> {
    let machines = bed.machines().await;
    let living = machines.iter().filter(|machine| machine.metadata.deletion_timestamp.is_none());
    living.map(ResourceExt::name_any).collect()
}

/// Waits until the status of a check counts so many and so many healthy.
async fn counts(bed: &Bed, name: &str, all: i64, healthy: i64) -> MachineHealthCheck {
    bed.until(&format!("{name} counts {healthy} of {all}"), || async {
        let check = bed.api::<MachineHealthCheck>().get(name).await.unwrap();
        let status = check.status.clone()?;
        (status.expected_machines == Some(all) && status.current_healthy == Some(healthy))
            .then_some(check)
    })
    .await
}

/// Status, reason and message of a condition of a check.
fn says(check: &MachineHealthCheck, kind: &str) -> Option<(String, String, String)> {
    let condition = super::status::find(check.status.as_ref()?, kind)?;
    Some((
        condition.status.clone(),
        condition.reason.clone().unwrap_or_default(),
        condition.message.clone().unwrap_or_default(),
    ))
}
