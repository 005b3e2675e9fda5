//! The check of interruptible Machines is kept.

use std::time::Duration;

use fleetwright_api::machine::MachineHealthCheck;
use kube::{ResourceExt, api::DeleteParams};
use serde_json::json;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{
    group::testbed::{Bed, NAMESPACE, Process},
    health::termination::{NAME, TerminationCheck, is_as_wanted},
};

fn start(process: &mut Process) {
    let checks = process.informer("checks");
    let metrics = process.metrics.clone();
    let kept = TerminationCheck::new(process.client.clone(), checks, NAMESPACE, &metrics);
    process.run(async move {
        let _ = kept.run(CancellationToken::new()).await;
    });
}

async fn wanted(bed: &Bed) -> MachineHealthCheck {
    bed.until("the check is as wanted", || async {
        let found = bed.api::<MachineHealthCheck>().get_opt(NAME).await.unwrap()?;
        is_as_wanted(&found).then_some(found)
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn made_put_right_and_made_again() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    let made = wanted(&bed).await;
    assert_eq!(made.spec.node_startup_timeout.as_deref(), Some("0"));
    assert_eq!(made.labels()["k8s-app"], "termination-handler");
    sleep(Duration::from_secs(5)).await;
    let writes = bed.writes.count();
    sleep(Duration::from_hours(1)).await;
    assert_eq!(bed.writes.count(), writes, "what is right is left alone");
    bed.merge::<MachineHealthCheck>(NAME, json!({"spec": {"maxUnhealthy": 1}})).await;
    wanted(&bed).await;
    bed.api::<MachineHealthCheck>().delete(NAME, &DeleteParams::default()).await.unwrap();
    let again = wanted(&bed).await;
    assert_ne!(again.uid(), made.uid());
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn left_alone_when_it_is_unmanaged() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    wanted(&bed).await;
    let ours = json!({
        "metadata": {"annotations": {"fleetwright.dev/management-state": "Unmanaged"}},
        "spec": {"maxUnhealthy": "40%"},
    });
    bed.merge::<MachineHealthCheck>(NAME, ours).await;
    sleep(Duration::from_mins(5)).await;
    let found = bed.api::<MachineHealthCheck>().get(NAME).await.unwrap();
    assert!(!is_as_wanted(&found));
    process.stop().await;
}
