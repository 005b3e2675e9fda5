//! Repairs that do not help wait.

use std::time::Duration;

use fleetwright_api::{
    machine::{Machine, MachineHealthCheck, MachineSet},
    names::condition::REMEDIATION_BACKOFF,
};
use fleetwright_lifecycle::backoff::BACKOFF_ANNOTATION;
use kube::{
    ResourceExt,
    api::{DeleteParams, ListParams},
};
use serde_json::json;
use tokio::time::sleep;

use super::{check, condition, counts, living, machine, says, set, start};
use crate::group::testbed::Bed;

/// A Machine that could not be launched.
async fn failed(bed: &Bed, name: &str, owner: &MachineSet) {
    bed.create::<Machine>(json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": {
            "name": name, "labels": {"role": "worker"},
            "ownerReferences": [crate::set::decide::owner_reference(owner)],
        },
        "spec": {},
    }))
    .await;
    bed.merge_status::<Machine>(name, json!({"status": {"phase": "Failed"}})).await;
}

#[tokio::test(start_paused = true)]
async fn a_set_that_cannot_be_launched_makes_no_storm() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    let owner = set(&bed, "s").await;
    bed.create::<MachineHealthCheck>(check("c", "100%")).await;
    // As the set controller does: whenever there is none, it makes one, and that fails.
    let began = bed.clock.now();
    let mut made = 0;
    while bed.clock.now().duration_since(began).as_secs() < 4 * 3600 {
        if living(&bed).await.is_empty() {
            made += 1;
            failed(&bed, &format!("m{made}"), &owner).await;
        }
        sleep(Duration::from_secs(1)).await;
    }
    // 0, 30, 60, 120, ... up to half an hour each: four hours hold about thirteen.
    assert!((11..=15).contains(&made), "{made}");
    let found = bed.api::<MachineHealthCheck>().get("c").await.unwrap();
    let (status, reason, message) = says(&found, REMEDIATION_BACKOFF).unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("True", "ReplacementsFail"));
    assert!(message.contains("1 of MachineSet s (launch-failed) until 2026-01-01T0"), "{message}");
    let remembered = found.annotations().get(BACKOFF_ANNOTATION).unwrap();
    assert!(remembered.contains("launch-failed"), "{remembered}");
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_waits_goes_on_waiting_after_a_restart_and_not_when_the_template_changes() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    let owner = set(&bed, "s").await;
    bed.create::<MachineHealthCheck>(check("c", "100%")).await;
    for round in 0..4 {
        failed(&bed, &format!("m{round}"), &owner).await;
        sleep(Duration::from_secs(150)).await;
    }
    failed(&bed, "last", &owner).await;
    sleep(Duration::from_secs(5)).await;
    assert_eq!(living(&bed).await, ["last"]);
    process.stop().await;
    let process = bed.process(start);
    sleep(Duration::from_secs(5)).await;
    assert_eq!(living(&bed).await, ["last"], "a restart is no reason to hurry");
    let fixed = json!({"spec": {"template": {"spec": {"metadata": {"labels": {"a": "b"}}}}}});
    bed.merge::<MachineSet>("s", fixed).await;
    bed.merge::<Machine>("last", json!({"metadata": {"labels": {"touched": ""}}})).await;
    sleep(Duration::from_secs(2)).await;
    assert!(living(&bed).await.is_empty(), "another template is another attempt");
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn interruptions_never_wait_while_launches_do() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    let owner = set(&bed, "s").await;
    bed.create::<MachineHealthCheck>(check("c", "100%")).await;
    for round in 0..3 {
        failed(&bed, &format!("f{round}"), &owner).await;
        sleep(Duration::from_secs(70)).await;
    }
    failed(&bed, "waits", &owner).await;
    sleep(Duration::from_secs(1)).await;
    for name in ["a", "b"] {
        machine(&bed, name, Some(&owner)).await;
    }
    counts(&bed, "c", 3, 2).await;
    condition(&bed, "a", "Terminating", "True").await;
    bed.merge_status::<Machine>("b", json!({"status": {"phase": "Failed"}})).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(living(&bed).await, ["waits"]);
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_replacement_that_works_ends_it() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    let owner = set(&bed, "s").await;
    bed.create::<MachineHealthCheck>(check("c", "100%")).await;
    for round in 0..3 {
        failed(&bed, &format!("f{round}"), &owner).await;
        sleep(Duration::from_secs(70)).await;
    }
    machine(&bed, "works", Some(&owner)).await;
    sleep(Duration::from_mins(11)).await;
    // Something happens, and what is old is forgotten.
    bed.merge::<Machine>("works", json!({"metadata": {"labels": {"touched": ""}}})).await;
    sleep(Duration::from_secs(1)).await;
    let found = bed.api::<MachineHealthCheck>().get("c").await.unwrap();
    assert!(!found.annotations().contains_key(BACKOFF_ANNOTATION));
    let all = bed.api::<Machine>().list(&ListParams::default()).await.unwrap();
    assert_eq!(all.items.len(), 1);
    bed.api::<MachineSet>().delete("s", &DeleteParams::default()).await.unwrap();
    process.stop().await;
}
