//! The whole MachineSet controller on an embedded API server.

mod crashes;
mod example;
mod garbage;
mod rules;
mod whole;

use fleetwright_api::machine::{Machine, MachineSet};
use k8s_openapi::api::core::v1::Node;
use kube::{Api, ResourceExt, api::DeleteParams};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Parts, SetController};
use crate::group::testbed::{Bed, Process};

/// Starts the controller in a process.
fn start(process: &mut Process) {
    let parts = Parts {
        client: process.client.clone(),
        sets: process.informer("sets"),
        machines: process.informer("machines"),
        nodes: process.watch("nodes", Api::<Node>::all(process.client.clone())),
        clock: process.clock.clone(),
        random: process.random.fork(),
        events: process.events.clone(),
        metrics: process.metrics.clone(),
    };
    let controller = SetController::new(parts);
    process.run(async move {
        let _ = controller.run(CancellationToken::new()).await;
    });
}

fn manifest(name: &str, replicas: i32) -> Value {
    json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"set": name}},
            "template": {
                "metadata": {"labels": {"set": name, "role": "worker"}, "annotations": {"a": "b"}},
                "spec": {"providerSpec": {"value": {"instanceType": "m5.large", "odd": [1]}}},
            },
        },
    })
}

/// Waits until the status counts so many replicas, and nothing else is under way.
async fn replicas(bed: &Bed, name: &str, count: i32) -> MachineSet {
    bed.until(&format!("{name} has {count} replicas"), || async {
        let set = bed.api::<MachineSet>().get(name).await.unwrap();
        let status = set.status.clone()?;
        (status.replicas == count && status.observed_generation == set.metadata.generation)
            .then_some(set)
    })
    .await
}

async fn scale(bed: &Bed, name: &str, replicas: i32) {
    bed.merge::<MachineSet>(name, json!({"spec": {"replicas": replicas}})).await;
}

/// Machines that are not on their way out.
async fn living(bed: &Bed) -> Vec<Machine> {
    let machines = bed.machines().await.into_iter();
    machines.filter(|machine| machine.metadata.deletion_timestamp.is_none()).collect()
}

async fn delete_machine(bed: &Bed, name: &str) {
    bed.api::<Machine>().delete(name, &DeleteParams::default()).await.unwrap();
}

fn names(machines: &[Machine]) -> Vec<String> {
    machines.iter().map(ResourceExt::name_any).collect()
}
