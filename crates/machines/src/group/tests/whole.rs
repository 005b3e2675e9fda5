//! The whole controller on an embedded API server.

use std::time::Duration;

use fleetwright_api::{machine::Machine, placement::AWSPlacementGroup};
use fleetwright_cloud::{InstanceState, PlacementGroup, Strategy};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use serde_json::json;
use tokio::time::sleep;

use super::{
    condition, delete, foreign, gone, managed, manifest, ours, ready_with, start, unmanaged,
    without_rules,
};
use crate::group::testbed::{Bed, forbidden, member, throttled};

#[tokio::test(start_paused = true)]
async fn defect_a_to_j_every_strategy_is_made_ready_and_stays_so() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    let partitions = json!({"managementState": "Managed",
        "managed": {"groupType": "Partition", "partition": {"count": 3}}});
    let defaulted = json!({"managementState": "Managed",
        "managed": {"groupType": "Partition", "partition": {}}});
    let specs = [
        ("cluster", managed("Cluster")),
        ("spread", managed("Spread")),
        ("three", partitions),
        ("two", defaulted),
    ];
    for (name, spec) in &specs {
        bed.create::<AWSPlacementGroup>(manifest(name, spec)).await;
    }
    for (name, _) in &specs {
        let created = ready_with(&bed, name, "True", "CreationSucceeded").await;
        assert!(created.status.unwrap().observed_configuration.is_some(), "defect i");
    }
    bed.cloud.state().instances.push(member("i-1", "spread", "us-east-1a", InstanceState::Running));
    sleep(Duration::from_mins(5)).await;
    for (name, spec) in &specs {
        let group = ready_with(&bed, name, "True", "ConfigurationInSync").await;
        let status = group.status.clone().unwrap();
        assert_eq!(status.replicas, Some(i32::from(*name == "spread")), "defect b");
        assert_eq!(status.conditions[0].observed_generation, group.metadata.generation, "defect j");
        assert_eq!(status.management_state.unwrap().as_str(), "Managed");
        let observed = status.observed_configuration.unwrap();
        assert_eq!(observed.group_type.as_str(), spec["managed"]["groupType"].as_str().unwrap());
        let count = observed.partition.and_then(|partition| partition.count);
        let wanted = match *name {
            "three" => Some(3),
            "two" => Some(2),
            _ => None,
        };
        assert_eq!(count, wanted);
        assert!(status.expires_at.unwrap().0 > bed.clock.now(), "never expires while we run");
        let tags = bed.cloud.state().groups[*name].1.tags.clone();
        assert_eq!(tags["team"], "hpc");
        assert_eq!(tags["kubernetes.io/cluster/mycluster-abc12"], "owned");
        assert_eq!(tags["Name"], *name);
    }
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn all_groups_are_observed_together_and_at_rest_nothing_else_is_asked() {
    let bed = Bed::start().await;
    for number in 0..20 {
        bed.cloud.put_group(ours(&format!("g{number}"), Strategy::Spread));
        bed.create::<AWSPlacementGroup>(manifest(&format!("g{number}"), &managed("Spread"))).await;
    }
    let process = bed.process(start);
    for number in 0..20 {
        ready_with(&bed, &format!("g{number}"), "True", "ConfigurationInSync").await;
    }
    sleep(Duration::from_mins(2)).await;
    let (calls, writes) = (bed.cloud.state().calls.len(), bed.writes.count());
    sleep(Duration::from_hours(1)).await;
    let describes = bed.cloud.state().calls.len() - calls;
    // One describe and one read of members every 80 to 96 seconds, for all twenty.
    assert!((74..=92).contains(&describes), "{describes}");
    let each = (bed.writes.count() - writes) / 20;
    assert!((37..=46).contains(&each), "one status for each observation: {each}");
    assert_eq!(bed.cloud.calls("Create"), 0);
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn defect_c_machines_that_come_and_go_are_seen_soon_and_once_for_all() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    bed.create::<AWSPlacementGroup>(manifest("g", &managed("Cluster"))).await;
    ready_with(&bed, "g", "True", "CreationSucceeded").await;
    // A process that has just begun looks at everything.
    sleep(Duration::from_secs(10)).await;
    let before = bed.cloud.calls("DescribePlacementGroups");
    for number in 0..50 {
        bed.create::<Machine>(json!({
            "metadata": {"name": format!("m{number}")},
            "spec": {"providerSpec": {"value": {"placement": {"group": {"name": "g"}}}}},
        }))
        .await;
        let id = format!("i-{number}");
        bed.cloud.state().instances.push(member(&id, "g", "us-east-1a", InstanceState::Running));
    }
    sleep(Duration::from_secs(8)).await;
    assert_eq!(bed.group("g").await.unwrap().status.unwrap().replicas, Some(50));
    assert_eq!(bed.cloud.calls("DescribePlacementGroups") - before, 1);
    // What does not concern a group does not lead to calls.
    for number in 0..50 {
        bed.merge::<Machine>(&format!("m{number}"), json!({"metadata": {"labels": {"a": "b"}}}))
            .await;
    }
    sleep(Duration::from_secs(8)).await;
    assert_eq!(bed.cloud.calls("DescribePlacementGroups") - before, 1);
    bed.cloud.state().instances.clear();
    let api = bed.api::<Machine>();
    api.delete("m0", &kube::api::DeleteParams::default()).await.unwrap();
    sleep(Duration::from_secs(8)).await;
    assert_eq!(bed.group("g").await.unwrap().status.unwrap().replicas, Some(0));
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn defect_d_a_refused_read_never_lets_a_group_go() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    bed.create::<AWSPlacementGroup>(manifest("g", &managed("Cluster"))).await;
    ready_with(&bed, "g", "True", "CreationSucceeded").await;
    bed.cloud.refuse("DescribePlacementGroups", 1000, &forbidden("DescribePlacementGroups"));
    delete(&bed, "g").await;
    let blocked = bed
        .until("the refusal is told", || async {
            condition(&bed.group("g").await.unwrap(), "Deleting")
        })
        .await;
    assert_eq!((blocked.0.as_str(), blocked.1.as_str()), ("True", "DeletionFailed"));
    assert!(blocked.2.contains("ec2:DescribePlacementGroups"), "{}", blocked.2);
    let before = bed.cloud.calls("DescribePlacementGroups");
    sleep(Duration::from_mins(10)).await;
    assert!(bed.group("g").await.is_some() && bed.cloud.state().groups.contains_key("g"));
    let retries = bed.cloud.calls("DescribePlacementGroups") - before;
    assert!(retries < 20, "it backs off: {retries}");
    bed.cloud.state().refusals.clear();
    gone(&bed, "g").await;
    assert!(bed.cloud.state().groups.is_empty());
    let reasons: Vec<String> =
        bed.events("g").await.into_iter().map(|(reason, _)| reason).collect();
    assert!(reasons.contains(&"ReconcileError".to_owned()), "{reasons:?}");
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_group_that_cannot_be_made_says_why_and_recovers() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    bed.cloud.refuse("CreatePlacementGroup", 5, &forbidden("CreatePlacementGroup"));
    bed.cloud.refuse("DescribePlacementGroups", 3, &throttled("DescribePlacementGroups"));
    bed.create::<AWSPlacementGroup>(manifest("g", &managed("Cluster"))).await;
    ready_with(&bed, "g", "Unknown", "ObservationFailed").await;
    let group = ready_with(&bed, "g", "False", "CreationFailed").await;
    let message = condition(&group, "Ready").unwrap().2;
    assert!(message.contains("ec2:CreatePlacementGroup"), "{message}");
    ready_with(&bed, "g", "True", "CreationSucceeded").await;
    assert_eq!(bed.cloud.calls("CreatePlacementGroup"), 6);
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn defect_e_and_f_what_makes_no_sense_is_told_and_what_is_absent_is_not_wrong() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    without_rules(&bed).await;
    bed.create::<AWSPlacementGroup>(manifest("g", &json!({"managementState": "Managed"}))).await;
    let group = ready_with(&bed, "g", "False", "InvalidConfiguration").await;
    assert!(condition(&group, "Ready").unwrap().2.contains("managed must not be nil"));
    assert!(group.finalizers().is_empty() && bed.cloud.calls("Create") == 0);
    bed.merge::<AWSPlacementGroup>(
        "g",
        json!({"spec": {"managementSpec":
        {"managed": {"groupType": "Partition", "partition": {}}}}}),
    )
    .await;
    ready_with(&bed, "g", "True", "CreationSucceeded").await;
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn defect_g_a_group_that_somebody_else_made_at_the_same_moment() {
    let bed = Bed::start().await;
    // Made before, and not visible when we look first.
    let made = bed.clock.now();
    bed.cloud.state().groups.insert("g".to_owned(), (made, ours("g", Strategy::Cluster)));
    bed.cloud.state().lag = Duration::from_secs(30);
    let process = bed.process(start);
    bed.create::<AWSPlacementGroup>(manifest("g", &managed("Cluster"))).await;
    ready_with(&bed, "g", "False", "NotAvailable").await;
    ready_with(&bed, "g", "True", "ConfigurationInSync").await;
    assert!(bed.cloud.state().history.is_empty());
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn defect_h_a_foreign_group_is_told_not_taken_and_never_deleted() {
    let bed = Bed::start().await;
    bed.cloud.put_group(foreign("theirs", Strategy::Cluster));
    let other = [("kubernetes.io/cluster/other".to_owned(), "owned".to_owned())].into();
    bed.cloud.put_group(PlacementGroup { tags: other, ..foreign("others", Strategy::Cluster) });
    let process = bed.process(start);
    for name in ["theirs", "others"] {
        bed.create::<AWSPlacementGroup>(manifest(name, &managed("Cluster"))).await;
        let group = ready_with(&bed, name, "False", "ConfigurationMismatch").await;
        assert!(group.finalizers().is_empty());
        delete(&bed, name).await;
        gone(&bed, name).await;
    }
    sleep(Duration::from_mins(5)).await;
    assert_eq!(bed.cloud.calls("Delete") + bed.cloud.calls("Create"), 0);
    // One that was ours, and was replaced behind our back, holds the object until it is let go.
    bed.create::<AWSPlacementGroup>(manifest("ours", &managed("Spread"))).await;
    ready_with(&bed, "ours", "True", "CreationSucceeded").await;
    bed.cloud.put_group(foreign("ours", Strategy::Spread));
    delete(&bed, "ours").await;
    let blocked = bed
        .until("it is blocked", || async {
            condition(&bed.group("ours").await.unwrap(), "Deleting")
        })
        .await;
    assert!(blocked.2.ends_with("aws placement group was not created by machine-api"));
    let told = bed
        .until("the way out is told", || async {
            let events = bed.events("ours").await;
            events.into_iter().find(|(_, message)| message.contains("managementState to Unmanaged"))
        })
        .await;
    assert_eq!(told.0, "ReconcileError");
    bed.merge::<AWSPlacementGroup>("ours", json!({"spec": {"managementSpec": unmanaged()}})).await;
    gone(&bed, "ours").await;
    assert!(bed.cloud.state().groups.contains_key("ours"));
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn defect_k_unmanaged_groups_are_watched_and_never_touched() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    bed.create::<AWSPlacementGroup>(manifest("g", &unmanaged())).await;
    ready_with(&bed, "g", "False", "NotFound").await;
    bed.cloud.put_group(foreign("g", Strategy::Spread));
    bed.cloud.state().instances.push(member("i-1", "g", "us-east-1a", InstanceState::Stopped));
    let group = ready_with(&bed, "g", "True", "ConfigurationInSync").await;
    assert!(group.finalizers().is_empty());
    assert_eq!(group.status.unwrap().replicas, Some(1));
    bed.cloud.state().groups.clear();
    let group = ready_with(&bed, "g", "False", "NotFound").await;
    let status = group.status.unwrap();
    assert_eq!((status.observed_configuration, status.replicas), (None, None));
    bed.cloud.put_group(foreign("g", Strategy::Spread));
    delete(&bed, "g").await;
    gone(&bed, "g").await;
    assert_eq!(bed.cloud.calls("Delete") + bed.cloud.calls("Create"), 0);
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn from_managed_to_unmanaged_and_never_back() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    bed.create::<AWSPlacementGroup>(manifest("g", &managed("Cluster"))).await;
    ready_with(&bed, "g", "True", "CreationSucceeded").await;
    let tags = bed.cloud.state().groups["g"].1.tags.clone();
    bed.merge::<AWSPlacementGroup>(
        "g",
        json!({"spec": {"managementSpec": {"managementState": "Unmanaged"}}}),
    )
    .await;
    let memory = |group: &AWSPlacementGroup| {
        let status = group.status.clone().unwrap_or_default();
        status.management_state.map(|state| state.as_str().to_owned())
    };
    let group = bed
        .until("the group is unmanaged", || async {
            let group = bed.group("g").await?;
            (memory(&group).as_deref() == Some("Unmanaged")).then_some(group)
        })
        .await;
    assert!(group.finalizers().is_empty());
    assert_eq!(bed.cloud.state().groups["g"].1.tags, tags, "tags stay");
    // Our definition forbids the way back; the controller remembers in any case.
    let back = json!({"spec": {"managementSpec": {"managementState": "Managed"}}});
    let api = bed.api::<AWSPlacementGroup>();
    let (params, patch) = (kube::api::PatchParams::default(), kube::api::Patch::Merge(back));
    assert!(api.patch("g", &params, &patch).await.is_err());
    without_rules(&bed).await;
    api.patch("g", &params, &patch).await.unwrap();
    sleep(Duration::from_mins(2)).await;
    let group = bed.group("g").await.unwrap();
    assert_eq!(memory(&group).as_deref(), Some("Unmanaged"));
    assert!(group.finalizers().is_empty());
    assert!(condition(&group, "Ready").unwrap().2.contains("cannot be set to Managed once"));
    delete(&bed, "g").await;
    gone(&bed, "g").await;
    assert!(bed.cloud.state().groups.contains_key("g"));
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_group_with_members_waits_until_they_are_gone() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    bed.create::<AWSPlacementGroup>(manifest("g", &managed("Cluster"))).await;
    ready_with(&bed, "g", "True", "CreationSucceeded").await;
    let states = [InstanceState::Running, InstanceState::ShuttingDown, InstanceState::Stopped];
    for state in states {
        bed.cloud.state().instances = vec![member("i-1", "g", "us-east-1a", state)];
        if state == InstanceState::Running {
            delete(&bed, "g").await;
        }
        sleep(Duration::from_mins(1)).await;
        let group = bed.group("g").await.unwrap();
        assert_eq!(
            condition(&group, "Deleting").unwrap().2,
            "failed to delete aws placement group: aws placement group still contains 1 instances"
        );
        assert_eq!(group.status.unwrap().replicas, Some(1));
    }
    assert_eq!(bed.cloud.calls("DeletePlacementGroup"), 0, "EC2 would let a stopped one strand");
    bed.cloud.state().instances[0].state = InstanceState::Terminated;
    gone(&bed, "g").await;
    assert_eq!(bed.cloud.state().history, ["made g", "removed g"]);
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn credentials_come_from_the_secret_that_is_named() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    let mut object = manifest("g", &managed("Cluster"));
    object["spec"]["credentialsSecret"] = json!({"name": "aws"});
    bed.create::<AWSPlacementGroup>(object).await;
    let group = ready_with(&bed, "g", "Unknown", "ObservationFailed").await;
    assert!(
        condition(&group, "Ready")
            .unwrap()
            .2
            .contains("secret openshift-machine-api/aws not found")
    );
    assert!(bed.cloud.state().calls.is_empty());
    bed.create::<Secret>(
        json!({"metadata": {"name": "aws"}, "data": {"aws_access_key_id": "YQ=="}}),
    )
    .await;
    ready_with(&bed, "g", "True", "CreationSucceeded").await;
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_group_that_disappears_is_made_again() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    bed.create::<AWSPlacementGroup>(manifest("g", &managed("Cluster"))).await;
    ready_with(&bed, "g", "True", "CreationSucceeded").await;
    ready_with(&bed, "g", "True", "ConfigurationInSync").await;
    bed.cloud.state().groups.clear();
    bed.until("it is back", || async { bed.cloud.state().groups.contains_key("g").then_some(()) })
        .await;
    process.stop().await;
}
