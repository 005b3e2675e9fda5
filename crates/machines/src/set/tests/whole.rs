//! Scaling, adopting, counting.

use std::time::Duration;

use fleetwright_api::machine::{Machine, MachineSet};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::time::sleep;

use fleetwright_cloud::InstanceType;
use tokio_util::sync::CancellationToken;

use super::{delete_machine, living, manifest, names, replicas, scale, start};
use crate::{
    group::testbed::{Bed, Harm, throttled},
    set::{capacity, replacing},
};

#[tokio::test(start_paused = true)]
async fn up_to_a_thousand_and_down_again() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    bed.create::<MachineSet>(manifest("s", 0)).await;
    replicas(&bed, "s", 0).await;
    let before = bed.writes.count();
    scale(&bed, "s", 1000).await;
    replicas(&bed, "s", 1000).await;
    let machines = living(&bed).await;
    assert_eq!(machines.len(), 1000);
    let writes = bed.writes.count() - before;
    assert!(writes < 1020, "one for each Machine, and few for the status: {writes}");
    let before = bed.writes.count();
    scale(&bed, "s", 3).await;
    replicas(&bed, "s", 3).await;
    assert_eq!(bed.machines().await.len(), 3);
    assert!(bed.writes.count() - before < 1017);
    sleep(Duration::from_mins(30)).await;
    assert_eq!(bed.machines().await.len(), 3);
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn at_rest_nothing_is_asked() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    bed.create::<MachineSet>(manifest("s", 5)).await;
    replicas(&bed, "s", 5).await;
    sleep(Duration::from_secs(10)).await;
    let quiet =
        |requests: &[String]| requests.iter().filter(|request| !request.starts_with("GET")).count();
    let before = quiet(&bed.requests.lock());
    sleep(Duration::from_hours(1)).await;
    assert_eq!(quiet(&bed.requests.lock()), before);
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_scale_subresource_shows_and_sets_replicas() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    bed.create::<MachineSet>(manifest("s", 2)).await;
    replicas(&bed, "s", 2).await;
    let api = bed.api::<MachineSet>();
    let scale = api.get_scale("s").await.unwrap();
    let status = scale.status.unwrap();
    assert_eq!((status.replicas, status.selector.as_deref()), (2, Some("set=s")));
    let patch = Patch::Merge(json!({"spec": {"replicas": 4}}));
    api.patch_scale("s", &PatchParams::default(), &patch).await.unwrap();
    let set = replicas(&bed, "s", 4).await;
    let status = set.status.unwrap();
    assert_eq!(status.fully_labeled_replicas, Some(4));
    assert_eq!((status.ready_replicas, status.available_replicas), (Some(0), Some(0)));
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn those_that_are_marked_or_failed_go_first_and_failed_ones_count() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    bed.create::<MachineSet>(manifest("s", 5)).await;
    replicas(&bed, "s", 5).await;
    let all = names(&living(&bed).await);
    let failed = json!({"status": {"phase": "Failed", "errorReason": "InsufficientResources",
        "errorMessage": "none left"}});
    bed.merge_status::<Machine>(&all[3], failed).await;
    sleep(Duration::from_mins(1)).await;
    assert_eq!(living(&bed).await.len(), 5, "not replaced");
    let mark = json!({"metadata": {"annotations": {"machine.openshift.io/delete-machine": "x"}}});
    bed.merge::<Machine>(&all[1], mark).await;
    scale(&bed, "s", 3).await;
    replicas(&bed, "s", 3).await;
    assert_eq!(names(&living(&bed).await), [&*all[0], &*all[2], &*all[4]]);
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_deleted_is_replaced_while_it_still_drains() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    bed.create::<MachineSet>(manifest("s", 2)).await;
    replicas(&bed, "s", 2).await;
    let first = names(&living(&bed).await)[0].clone();
    let hold = json!({"metadata": {"finalizers": ["machine.machine.openshift.io"]}});
    bed.merge::<Machine>(&first, hold).await;
    let worked = Patch::Merge(json!({"status": {"nodeRef": {"kind": "Node", "name": "n"}}}));
    bed.api::<Machine>().patch_status(&first, &PatchParams::default(), &worked).await.unwrap();
    delete_machine(&bed, &first).await;
    bed.until("it is replaced", || async { (bed.machines().await.len() == 3).then_some(()) }).await;
    replicas(&bed, "s", 2).await;
    let now = living(&bed).await;
    assert!(!names(&now).contains(&first));
    // The new one says whose place it takes, the other nothing.
    let says = |machine: &Machine| machine.annotations().get("fleetwright.dev/replaces").cloned();
    assert_eq!(now.iter().filter_map(says).collect::<Vec<_>>(), [first]);
    assert_eq!(now.iter().filter(|machine| replacing::since(machine).is_some()).count(), 1);
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn orphans_are_adopted_and_strays_let_go() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    bed.create::<Machine>(
        json!({"metadata": {"name": "orphan", "labels": {"set": "s"}}, "spec": {}}),
    )
    .await;
    bed.create::<Machine>(json!({"metadata": {"name": "foreign", "labels": {"set": "s"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p",
            "controller": true}]}, "spec": {}}))
        .await;
    bed.create::<MachineSet>(manifest("s", 2)).await;
    let set = replicas(&bed, "s", 2).await;
    let machines = living(&bed).await;
    assert!(machines.len() <= 3, "the orphan counts");
    let orphan = bed.api::<Machine>().get("orphan").await.unwrap();
    let owner = &orphan.owner_references()[0];
    assert_eq!((Some(owner.uid.clone()), owner.controller), (set.uid(), Some(true)));
    assert_eq!(owner.block_owner_deletion, Some(true));
    // An orphan that comes later is one too many: it goes, or another does.
    bed.merge::<Machine>("orphan", json!({"metadata": {"labels": {"set": null}}})).await;
    bed.until("it is let go", || async {
        let orphan = bed.api::<Machine>().get("orphan").await.unwrap();
        orphan.owner_references().is_empty().then_some(())
    })
    .await;
    replicas(&bed, "s", 2).await;
    bed.merge::<Machine>("orphan", json!({"metadata": {"labels": {"set": "s"}}})).await;
    sleep(Duration::from_secs(5)).await;
    replicas(&bed, "s", 2).await;
    let foreign = bed.api::<Machine>().get_opt("foreign").await.unwrap();
    assert!(foreign.is_none_or(|machine| machine.owner_references()[0].kind == "Pod"));
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nodes_make_machines_ready_and_time_makes_them_available() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    let mut object = manifest("s", 2);
    object["spec"]["minReadySeconds"] = json!(60);
    bed.create::<MachineSet>(object).await;
    replicas(&bed, "s", 2).await;
    let machine = names(&living(&bed).await)[0].clone();
    bed.merge_status::<Machine>(&machine, json!({"status": {"nodeRef": {"name": "n"}}})).await;
    let nodes: Api<Node> = Api::all(bed.user.clone());
    let node: Node = serde_json::from_value(json!({"metadata": {"name": "n"}})).unwrap();
    nodes.create(&PostParams::default(), &node).await.unwrap();
    let ready = |status: &str| {
        let since = bed.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        Patch::Merge(json!({"status": {"conditions": [{"type": "Ready", "status": status,
            "lastTransitionTime": since}]}}))
    };
    nodes.patch_status("n", &PatchParams::default(), &ready("True")).await.unwrap();
    let counts = || async {
        let status = bed.api::<MachineSet>().get("s").await.unwrap().status.unwrap();
        (status.ready_replicas, status.available_replicas)
    };
    sleep(Duration::from_secs(5)).await;
    assert_eq!(counts().await, (Some(1), Some(0)));
    sleep(Duration::from_mins(1)).await;
    assert_eq!(counts().await, (Some(1), Some(1)));
    nodes.patch_status("n", &PatchParams::default(), &ready("False")).await.unwrap();
    sleep(Duration::from_secs(5)).await;
    assert_eq!(counts().await, (Some(0), Some(0)));
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_cannot_exist_is_told_on_the_set_and_as_an_event() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    bed.create::<MachineSet>(manifest("s", 8)).await;
    replicas(&bed, "s", 8).await;
    let eighth = names(&living(&bed).await)[7].clone();
    let condition = json!({"type": "MachineCreated", "status": "False",
        "reason": "SpreadLimitReached", "message": "seven are enough", "severity": "Warning",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    bed.merge_status::<Machine>(&eighth, json!({"status": {"conditions": [condition]}})).await;
    sleep(Duration::from_secs(5)).await;
    let set = bed.api::<MachineSet>().get("s").await.unwrap();
    let told = &set.status.unwrap().conditions[0];
    assert_eq!(told.reason.as_deref(), Some("SpreadLimitReached"));
    assert!(told.message.as_deref().unwrap().starts_with("1 of 8 Machines have no instance"));
    let events = bed.events("s").await;
    assert!(events.iter().any(|(reason, _)| reason == "SpreadLimitReached"), "{events:?}");
    delete_machine(&bed, &eighth).await;
    scale(&bed, "s", 7).await;
    replicas(&bed, "s", 7).await;
    sleep(Duration::from_secs(5)).await;
    let set = bed.api::<MachineSet>().get("s").await.unwrap();
    assert_eq!(set.status.unwrap().conditions[0].status, "True");
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_refusal_stops_the_crowd_and_is_told() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    bed.create::<MachineSet>(manifest("s", 0)).await;
    replicas(&bed, "s", 0).await;
    bed.writes.harm(bed.writes.count(), Harm::Refuse);
    let before = bed.writes.count();
    scale(&bed, "s", 100).await;
    bed.until("it is told", || async {
        let events = bed.events("s").await;
        events.into_iter().find(|(reason, _)| reason == "ReconcileError")
    })
    .await;
    assert!(bed.writes.count() - before <= 110);
    replicas(&bed, "s", 100).await;
    assert_eq!(living(&bed).await.len(), 100);
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_set_that_makes_no_sense_does_not_stop_others() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    let mut wrong = manifest("wrong", 3);
    wrong["spec"]["template"]["metadata"]["labels"] = json!({"set": "other"});
    bed.create::<MachineSet>(wrong).await;
    bed.create::<MachineSet>(manifest("right", 3)).await;
    replicas(&bed, "right", 3).await;
    assert_eq!(living(&bed).await.len(), 3);
    bed.until("it is told", || async {
        let events = bed.events("wrong").await;
        events.into_iter().find(|(_, message)| message.contains("does not match template"))
    })
    .await;
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn sets_are_shown_as_dashboards_know_them() {
    let bed = Bed::start().await;
    let (sender, receiver) = std::sync::mpsc::channel();
    let process = bed.process(move |process| {
        start(process);
        sender.send(process.metrics.clone()).unwrap();
    });
    bed.create::<MachineSet>(manifest("s", 2)).await;
    replicas(&bed, "s", 2).await;
    sleep(Duration::from_secs(1)).await;
    let text = receiver.recv().unwrap().text().unwrap();
    for line in [
        "mapi_machineset_items 1",
        "mapi_machineset_created_timestamp_seconds{name=\"s\",namespace=\"openshift-machine-api\",api_version=\"machine.openshift.io/v1beta1\"} 1767225601",
        "mapi_machine_set_status_replicas{name=\"s\",namespace=\"openshift-machine-api\"} 2",
        "mapi_machine_set_status_replicas_ready{name=\"s\",namespace=\"openshift-machine-api\"} 0",
    ] {
        assert!(text.contains(line), "no {line} in\n{text}");
    }
    let listed = bed.api::<MachineSet>().list(&ListParams::default()).await.unwrap();
    assert_eq!(listed.items.len(), 1);
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_empty_set_says_what_its_machines_would_be() {
    let bed = Bed::start().await;
    let type_ = InstanceType {
        name: "m5.large".to_owned(),
        vcpus: 2,
        memory_mib: 8192,
        gpus: 0,
        gpu_resource: None,
        architecture: "amd64".to_owned(),
        strategies: [].into(),
    };
    bed.cloud.state().types.insert("m5.large".to_owned(), type_);
    let process = bed.process(|process| {
        let parts = capacity::Parts {
            client: process.client.clone(),
            sets: process.informer("sets"),
            clouds: process.clouds(),
            events: process.events.clone(),
            metrics: process.metrics.clone(),
        };
        let controller = capacity::CapacityController::new(parts);
        process.run(async move {
            let _ = controller.run(CancellationToken::new()).await;
        });
    });
    let mut known = manifest("s", 0);
    known["spec"]["template"]["spec"]["providerSpec"]["value"]["placement"] =
        json!({"region": "us-east-1", "availabilityZone": "us-east-1a"});
    bed.create::<MachineSet>(known).await;
    let mut unknown = manifest("unknown", 0);
    unknown["spec"]["template"]["spec"]["providerSpec"]["value"]["instanceType"] = json!("x1.odd");
    bed.create::<MachineSet>(unknown).await;
    bed.cloud.refuse("DescribeInstanceTypes", 2, &throttled("DescribeInstanceTypes"));
    sleep(Duration::from_secs(10)).await;
    let annotations = bed.api::<MachineSet>().get("s").await.unwrap().annotations().clone();
    assert_eq!(annotations["machine.openshift.io/vCPU"], "2");
    assert_eq!(annotations["machine.openshift.io/memoryMb"], "8192");
    assert_eq!(annotations["machine.openshift.io/GPU"], "0");
    let labels = &annotations["capacity.cluster-autoscaler.kubernetes.io/labels"];
    assert_eq!(
        labels,
        "kubernetes.io/arch=amd64,topology.kubernetes.io/region=us-east-1,\
         topology.kubernetes.io/zone=us-east-1a"
    );
    assert_eq!(annotations["capacity.cluster-autoscaler.kubernetes.io/cpu"], "2");
    assert_eq!(annotations["capacity.cluster-autoscaler.kubernetes.io/memory"], "8192Mi");
    let told = bed.events("unknown").await;
    assert!(told.iter().any(|(reason, text)| reason == "FailedUpdate" && text.contains("x1.odd")));
    let writes = bed.writes.count();
    sleep(Duration::from_hours(1)).await;
    assert_eq!(bed.writes.count(), writes, "once");
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_set_that_was_handed_over_says_so_and_makes_nothing() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    bed.create::<MachineSet>(manifest("s", 2)).await;
    replicas(&bed, "s", 2).await;
    for (api, status, living_then) in [("ClusterAPI", "True", 2), ("MachineAPI", "False", 4)] {
        let authority = json!({"status": {"authoritativeAPI": api}});
        bed.merge_status::<MachineSet>("s", authority).await;
        bed.until("it says so", || async {
            let set = bed.api::<MachineSet>().get("s").await.ok()?;
            let conditions = set.status?.conditions;
            let paused = conditions.into_iter().find(|condition| condition.type_ == "Paused")?;
            (paused.status == status).then_some(())
        })
        .await;
        scale(&bed, "s", 4).await;
        sleep(Duration::from_mins(2)).await;
        assert_eq!(living(&bed).await.len(), living_then, "{api}");
    }
    process.stop().await;
}
