//! Instances that the cloud takes back: the drain fits into the time that is left, and nothing waits
//! for the dead.

use std::{sync::Arc, time::Duration};

use fleetwright_api::machine::Machine;
use fleetwright_runtime::Metrics;
use k8s_openapi::api::{
    core::v1::{Node, Pod},
    policy::v1::PodDisruptionBudget,
};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Yard, controllers, id_of, reasons};
use crate::launch::settings::LaunchConfig;

fn params() -> PostParams {
    PostParams::default()
}

/// A pod on the Node of an instance, held by a budget or not.
async fn pod(yard: &Yard, name: &str, node: &str, grace: i64, held: bool) -> Api<Pod> {
    let pods: Api<Pod> = Api::namespaced(yard.bed.user.clone(), "default");
    let object = json!({
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "nodeName": node, "terminationGracePeriodSeconds": grace,
            "containers": [{"name": "c", "image": "i"}],
        },
    });
    pods.create(&params(), &serde_json::from_value(object).unwrap()).await.unwrap();
    let running = json!({"status": {
        "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
    }});
    pods.patch_status(name, &PatchParams::default(), &Patch::Merge(running)).await.unwrap();
    if held {
        let budgets: Api<PodDisruptionBudget> = Api::namespaced(yard.bed.user.clone(), "default");
        let budget = json!({
            "metadata": {"name": name},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}},
        });
        budgets.create(&params(), &serde_json::from_value(budget).unwrap()).await.unwrap();
        sleep(Duration::from_secs(1)).await;
    }
    pods
}

/// The cloud tells that the instance goes.
async fn tell(yard: &Yard, node: &str, seconds: u64) {
    let now = yard.bed.clock.now();
    let ends = now + Duration::from_secs(seconds);
    let patch: Value = json!({
        "metadata": {"annotations": {
            "machine.openshift.io/termination-deadline": ends,
            "machine.openshift.io/termination-source": "aws/spot-instance-action",
        }},
        "status": {"conditions": [{
            "type": "Terminating", "status": "True", "reason": "TerminationRequested",
            "lastTransitionTime": fleetwright_lifecycle::conditions::whole_second(now),
        }]},
    });
    let nodes: Api<Node> = Api::all(yard.bed.user.clone());
    nodes.patch_status(node, &PatchParams::default(), &Patch::Strategic(patch)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_drain_fits_into_the_time_that_is_left() {
    let yard = Yard::started().await;
    yard.create("m", json!({})).await;
    let machine = yard.phase("m", "Running").await;
    let node = format!("node-{}", id_of(&machine));
    let pods = pod(&yard, "slow", &node, 300, false).await;
    pod(&yard, "quick", &node, 10, false).await;
    tell(&yard, &node, 60).await;
    yard.delete("m").await;
    let grace = |name: &'static str| {
        let pods = pods.clone();
        async move { pods.get(name).await.unwrap().metadata.deletion_grace_period_seconds }
    };
    yard.bed
        .until("both go", || async {
            (grace("slow").await.is_some() && grace("quick").await.is_some()).then_some(())
        })
        .await;
    let clamped = grace("slow").await.unwrap();
    assert!((45..=55).contains(&clamped), "not 300 seconds, but what is left: {clamped}");
    assert_eq!(grace("quick").await, Some(10));
    let events = yard.bed.events("m").await;
    let told = events.iter().find(|(reason, _)| reason == "TerminationNotice");
    assert!(told.is_some_and(|(_, text)| text.contains("aws/spot-instance-action")), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn nothing_waits_for_the_pods_of_an_instance_that_is_gone() {
    let yard = Yard::started().await;
    yard.create("m", json!({})).await;
    let machine = yard.phase("m", "Running").await;
    let id = id_of(&machine);
    let node = format!("node-{id}");
    let pods = pod(&yard, "held", &node, 10, true).await;
    tell(&yard, &node, 30).await;
    yard.delete("m").await;
    sleep(Duration::from_secs(20)).await;
    assert!(yard.get("m").await.is_some(), "the budget holds the pod, and so the Machine");
    yard.ec2.kill(&id);
    yard.gone("m").await;
    assert!(pods.get_opt("held").await.unwrap().is_none(), "volumes can be let go");
    yard.assert_clean(1).await;
    let events = yard.bed.events("m").await;
    let reasons = reasons(&events);
    for reason in ["DrainSkipped", "InstanceGone"] {
        assert!(reasons.contains(&reason), "{reasons:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn how_long_a_place_was_empty_is_counted_when_it_is_taken() {
    let yard = Yard::new().await;
    let (ec2, writes) = (yard.ec2.clone(), yard.bed.writes.clone());
    let metrics: Arc<Mutex<Metrics>> = Arc::default();
    let kept = Arc::clone(&metrics);
    let process = yard.bed.process(move |process| {
        *kept.lock() = process.metrics.clone();
        controllers(process, ec2.harmed_by(writes.clone()), LaunchConfig::default());
    });
    yard.create("m", json!({})).await;
    yard.create("other", json!({})).await;
    let since = yard.bed.clock.now() - Duration::from_secs(100);
    let taken = json!({"metadata": {"annotations": {"fleetwright.dev/replaces-since": since}}});
    yard.bed.merge::<Machine>("m", taken).await;
    yard.phase("m", "Running").await;
    yard.phase("other", "Running").await;
    let text = metrics.lock().text().unwrap();
    let told = |what: &str| {
        let name = format!(
            "fleetwright_machine_ending_seconds_{what}{{hop=\"end_to_replacement_running\"}} "
        );
        let line = text.lines().find_map(|line| line.strip_prefix(&name)).unwrap_or_default();
        line.parse::<f64>().unwrap()
    };
    assert!(told("count") > 0.5 && told("count") < 1.5 && told("sum") >= 100.0, "{text}");
    process.stop().await;
}
