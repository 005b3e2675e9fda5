//! Who is repaired, and who is not.

use std::{sync::Arc, time::Duration};

use fleetwright_api::{
    machine::{Machine, MachineHealthCheck},
    names::{condition::REMEDIATION_ALLOWED, event},
};
use k8s_openapi::api::core::v1::Node;
use kube::{Api, api::DeleteParams};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::sleep;

use super::{check, condition, counts, living, machine, says, set, start};
use crate::group::testbed::{Bed, Harm};

#[tokio::test(start_paused = true)]
async fn a_node_that_is_not_ready_for_too_long() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    let owner = set(&bed, "s").await;
    for name in ["a", "b"] {
        machine(&bed, name, Some(&owner)).await;
    }
    bed.create::<MachineHealthCheck>(check("c", "50%")).await;
    let found = counts(&bed, "c", 2, 2).await;
    assert_eq!(found.status.unwrap().remediations_allowed, 1);
    condition(&bed, "a", "Ready", "Unknown").await;
    counts(&bed, "c", 2, 1).await;
    sleep(Duration::from_secs(299)).await;
    assert_eq!(living(&bed).await, ["a", "b"], "not yet");
    sleep(Duration::from_secs(3)).await;
    assert_eq!(living(&bed).await, ["b"]);
    let events = bed.events("a").await;
    let wanted = [
        (event::DETECTED_UNHEALTHY, "Machine openshift-machine-api/c/a/a has unhealthy node a"),
        (
            event::MACHINE_DELETED,
            "Machine openshift-machine-api/c/a/a has been remediated by requesting to delete \
             Machine object (condition:Ready=Unknown)",
        ),
    ];
    for (reason, message) in wanted {
        assert!(events.contains(&(reason.to_owned(), message.to_owned())), "{events:?}");
    }
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_the_cloud_takes_back_goes_at_once_and_together() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    let owner = set(&bed, "s").await;
    for number in 0..50 {
        machine(&bed, &format!("m{number:02}"), Some(&owner)).await;
    }
    bed.create::<MachineHealthCheck>(check("c", "100%")).await;
    counts(&bed, "c", 50, 50).await;
    for number in 0..50 {
        condition(&bed, &format!("m{number:02}"), "Terminating", "True").await;
    }
    sleep(Duration::from_secs(2)).await;
    assert!(living(&bed).await.is_empty());
    let deletes = |requests: &[String]| {
        requests.iter().filter(|request| request.starts_with("DELETE ")).count()
    };
    assert_eq!(deletes(&bed.requests.lock()), 50, "each once");
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_change_costs_one_evaluation_and_no_news_none() {
    let bed = Bed::start().await;
    let metrics = Arc::new(Mutex::new(None));
    let process = bed.process({
        let metrics = Arc::clone(&metrics);
        move |process| {
            *metrics.lock() = Some(process.metrics.clone());
            start(process);
        }
    });
    let owner = set(&bed, "s").await;
    for number in 0..10 {
        machine(&bed, &format!("m{number}"), Some(&owner)).await;
    }
    bed.create::<MachineHealthCheck>(check("c", "100%")).await;
    counts(&bed, "c", 10, 10).await;
    sleep(Duration::from_secs(1)).await;
    let evaluations = || {
        let text = metrics.lock().as_ref().unwrap().text().unwrap();
        let of_all = "mapi_machinehealthcheck_evaluations_total";
        let line = text.lines().find(|line| line.starts_with(of_all)).unwrap();
        line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    let before = evaluations();
    condition(&bed, "m3", "Ready", "False").await;
    counts(&bed, "c", 10, 9).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(evaluations(), before + 1);
    condition(&bed, "m3", "OutOfInterest", "True").await;
    sleep(Duration::from_secs(1)).await;
    let with_another = evaluations();
    assert!(with_another <= before + 2, "{with_another}");
    sleep(Duration::from_mins(1)).await;
    assert_eq!(evaluations(), with_another, "nothing changed");
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn too_many_at_once_are_left_alone_without_a_storm() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    let owner = set(&bed, "s").await;
    for name in ["a", "b", "c"] {
        machine(&bed, name, Some(&owner)).await;
    }
    bed.create::<MachineHealthCheck>(check("c", "1")).await;
    counts(&bed, "c", 3, 3).await;
    for name in ["a", "b"] {
        condition(&bed, name, "Terminating", "True").await;
    }
    let found = counts(&bed, "c", 3, 1).await;
    let message = "Remediation is not allowed, the number of not started or unhealthy machines \
                   exceeds maxUnhealthy (total: 3, unhealthy: 2, maxUnhealthy: 1)";
    assert_eq!(
        says(&found, REMEDIATION_ALLOWED).unwrap(),
        ("False".to_owned(), "TooManyUnhealthy".to_owned(), message.to_owned())
    );
    sleep(Duration::from_secs(5)).await;
    let told = bed.events("c").await;
    assert_eq!(
        told,
        [(
            event::REMEDIATION_RESTRICTED.to_owned(),
            "Remediation restricted due to exceeded number of unhealthy machines (total: 3, \
             unhealthy: 2, maxUnhealthy: 1)"
                .to_owned()
        )]
    );
    let before = bed.requests.lock().len();
    sleep(Duration::from_hours(1)).await;
    let asked = bed.requests.lock().split_off(before);
    let asked: Vec<_> = asked.iter().filter(|request| !request.starts_with("GET ")).collect();
    assert!(asked.is_empty(), "nothing changes, so nothing is written: {asked:?}");
    condition(&bed, "a", "Terminating", "False").await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(living(&bed).await, ["a", "c"], "one may be repaired");
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn those_that_are_left_alone() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    let owner = set(&bed, "s").await;
    for (name, owner) in
        [("orphan", None), ("skipped", Some(&owner)), ("asked", Some(&owner)), ("ok", Some(&owner))]
    {
        machine(&bed, name, owner).await;
    }
    let annotate = |name: &str| json!({"metadata": {"annotations": {name: ""}}});
    bed.merge::<Machine>("skipped", annotate("cluster.x-k8s.io/skip-remediation")).await;
    bed.merge::<Machine>("asked", annotate("cluster.x-k8s.io/remediate-machine")).await;
    for name in ["orphan", "skipped"] {
        condition(&bed, name, "Terminating", "True").await;
    }
    bed.create::<MachineHealthCheck>(check("c", "100%")).await;
    let found = counts(&bed, "c", 3, 1).await;
    assert_eq!(says(&found, REMEDIATION_ALLOWED).unwrap().0, "True");
    sleep(Duration::from_secs(5)).await;
    assert_eq!(living(&bed).await, ["ok", "orphan", "skipped"]);
    let told = bed.events("orphan").await;
    assert!(told.iter().any(|(reason, _)| reason == event::SKIPPED_NO_CONTROLLER), "{told:?}");
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_check_does_nothing_until_it_is_not() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    let owner = set(&bed, "s").await;
    machine(&bed, "a", Some(&owner)).await;
    let mut paused = check("c", "100%");
    paused["metadata"]["annotations"] = json!({"cluster.x-k8s.io/paused": "test"});
    bed.create::<MachineHealthCheck>(paused).await;
    condition(&bed, "a", "Terminating", "True").await;
    sleep(Duration::from_mins(5)).await;
    assert_eq!(living(&bed).await, ["a"]);
    assert!(bed.api::<MachineHealthCheck>().get("c").await.unwrap().status.is_none());
    let resumed = json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": null}}});
    bed.merge::<MachineHealthCheck>("c", resumed).await;
    sleep(Duration::from_secs(1)).await;
    assert!(living(&bed).await.is_empty());
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nodes_that_never_came_and_nodes_that_went() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    let owner = set(&bed, "s").await;
    machine(&bed, "went", Some(&owner)).await;
    machine(&bed, "never", Some(&owner)).await;
    bed.merge_status::<Machine>("never", json!({"status": {"nodeRef": null}})).await;
    bed.create::<MachineHealthCheck>(check("c", "100%")).await;
    counts(&bed, "c", 2, 1).await;
    let nodes: Api<Node> = Api::all(bed.user.clone());
    nodes.delete("went", &DeleteParams::default()).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(living(&bed).await, ["never"]);
    sleep(Duration::from_mins(15)).await;
    assert!(living(&bed).await.is_empty());
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_check_without_sense_harms_no_other() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    let owner = set(&bed, "s").await;
    machine(&bed, "a", Some(&owner)).await;
    let mut odd = check("odd", "100%");
    // The schema lets both pass.
    odd["spec"]["nodeStartupTimeout"] = json!("abc10m");
    bed.create::<MachineHealthCheck>(odd).await;
    bed.create::<MachineHealthCheck>(check("good", "100%")).await;
    counts(&bed, "good", 1, 1).await;
    let odd = bed.api::<MachineHealthCheck>().get("odd").await.unwrap();
    let (status, reason, message) = says(&odd, REMEDIATION_ALLOWED).unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("False", "InvalidHealthCheck"));
    assert_eq!(
        message,
        "spec.nodeStartupTimeout: time: invalid duration \"abc10m\"; write a duration such as 5m"
    );
    bed.merge::<MachineHealthCheck>("odd", json!({"spec": {"nodeStartupTimeout": "-10m"}})).await;
    condition(&bed, "a", "Terminating", "True").await;
    sleep(Duration::from_secs(1)).await;
    assert!(living(&bed).await.is_empty(), "the good one works");
    let odd = bed.api::<MachineHealthCheck>().get("odd").await.unwrap();
    let (_, _, message) = says(&odd, REMEDIATION_ALLOWED).unwrap();
    assert!(message.contains("a duration cannot be negative: \"-10m\""), "{message}");
    process.stop().await;
}

/// Whatever write goes wrong, and how, in the end the sick are gone and the others are not.
#[tokio::test(start_paused = true)]
async fn any_write_may_fail() {
    for harm in [Harm::CrashBefore, Harm::CrashAfter, Harm::LoseAnswer, Harm::Refuse] {
        for write in 0..8 {
            let bed = Bed::start().await;
            let owner = set(&bed, "s").await;
            for name in ["a", "b", "c"] {
                machine(&bed, name, Some(&owner)).await;
            }
            bed.merge_status::<Machine>("b", json!({"status": {"phase": "Failed"}})).await;
            condition(&bed, "a", "Terminating", "True").await;
            bed.writes.harm(write, harm);
            let process = bed.process(start);
            bed.create::<MachineHealthCheck>(check("c", "100%")).await;
            sleep(Duration::from_mins(2)).await;
            assert_eq!(living(&bed).await, ["c"], "{harm:?} at {write}");
            counts(&bed, "c", 3, 1).await;
            process.stop().await;
        }
    }
}
