//! Machines that are launched together.

use std::collections::BTreeMap;

use fleetwright_api::machine::MachineSet;
use fleetwright_cloud::Instance;

use super::*;
use crate::launch::intent::Intent;

/// A MachineSet of a gang; its Machines are made by hand, since its controller does not run here.
async fn set(yard: &Yard, replicas: u32, policy: &str) -> MachineSet {
    yard.bed
        .create(json!({
            "metadata": {"name": "set", "annotations": {"fleetwright.dev/gang": policy}},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"set": "set"}},
                "template": {"metadata": {"labels": {"set": "set"}}, "spec": {"providerSpec": {}}},
            },
        }))
        .await
}

fn owned(set: &MachineSet) -> Value {
    json!({"metadata": {"ownerReferences": [{
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet", "name": "set",
        "uid": set.uid(), "controller": true, "blockOwnerDeletion": true,
    }]}})
}

pub(super) async fn gang(yard: &Yard, count: u32, policy: &str) -> MachineSet {
    let set = set(yard, count, policy).await;
    for number in 0..count {
        yard.create(&format!("m{number}"), owned(&set)).await;
    }
    set
}

/// Every Machine has the instance of its index, tagged as its own, disks included.
pub(super) async fn assert_one_to_one(yard: &Yard, count: u32) {
    let instances: BTreeMap<String, Instance> =
        yard.ec2.alive().into_iter().map(|instance| (instance.id.clone(), instance)).collect();
    let mut taken = BTreeSet::new();
    for number in 0..count {
        let name = format!("m{number}");
        let machine = yard.get(&name).await.unwrap();
        let instance = &instances[&id_of(&machine)];
        let intent = Intent::of(&machine).unwrap().unwrap();
        assert_eq!(instance.token.as_deref(), Some(intent.token.as_str()));
        assert_eq!(instance.launch_index, Some(intent.index));
        assert_eq!(instance.tags["Name"], name);
        assert_eq!(Some(&instance.tags["fleetwright-machine-uid"]), machine.uid().as_ref());
        if intent.is_shared() {
            assert_eq!(yard.ec2.state().volume_tags[&instance.volumes[0]]["Name"], name);
        }
        assert!(taken.insert(instance.id.clone()), "two Machines have {}", instance.id);
    }
    assert_eq!(instances.len(), taken.len());
}

#[tokio::test(start_paused = true)]
async fn a_gang_is_launched_in_one_request() {
    let yard = Yard::started().await;
    gang(&yard, 5, "true").await;
    for number in 0..5 {
        yard.phase(&format!("m{number}"), "Running").await;
    }
    sleep(Duration::from_mins(1)).await;
    assert_one_to_one(&yard, 5).await;
    let launches = yard.ec2.state().launches.clone();
    assert_eq!(launches.iter().map(|(_, min, max)| (*min, *max)).collect::<Vec<_>>(), [(5, 5)]);
    sleep(Duration::from_hours(1)).await;
    assert_eq!(yard.ec2.calls("tag"), 5, "each is tagged once");
}

#[tokio::test(start_paused = true)]
async fn a_gang_waits_for_late_members_and_then_goes_without_them() {
    let yard = Yard::started().await;
    let set = set(&yard, 3, "all-or-nothing").await;
    yard.create("m0", owned(&set)).await;
    sleep(Duration::from_secs(5)).await;
    yard.create("m1", owned(&set)).await;
    sleep(Duration::from_secs(5)).await;
    assert_eq!(yard.ec2.calls("launch"), 0);
    for name in ["m0", "m1"] {
        yard.phase(name, "Running").await;
    }
    yard.create("m2", owned(&set)).await;
    yard.phase("m2", "Running").await;
    let counts: Vec<u32> = yard.ec2.state().launches.iter().map(|(_, _, max)| *max).collect();
    assert_eq!(counts, [2, 1]);
}

#[tokio::test(start_paused = true)]
async fn all_or_nothing_takes_nothing_until_there_is_enough_for_all() {
    let yard = Yard::started().await;
    yard.ec2.state().capacity.insert(ZONE.to_owned(), 3);
    gang(&yard, 4, "all-or-nothing").await;
    for number in 0..4 {
        yard.says(&format!("m{number}"), "InsufficientCapacity").await;
    }
    sleep(Duration::from_mins(5)).await;
    assert!(yard.ec2.all().is_empty());
    yard.ec2.state().capacity.insert(ZONE.to_owned(), 4);
    for number in 0..4 {
        yard.phase(&format!("m{number}"), "Running").await;
    }
    sleep(Duration::from_mins(1)).await;
    assert_one_to_one(&yard, 4).await;
}

#[tokio::test(start_paused = true)]
async fn all_or_nothing_fails_together_at_the_deadline() {
    let yard = Yard::started().await;
    yard.ec2.state().capacity.insert(ZONE.to_owned(), 3);
    gang(&yard, 4, "all-or-nothing").await;
    for number in 0..4 {
        let machine = yard.phase(&format!("m{number}"), "Failed").await;
        assert_eq!(error(&machine).0, "InsufficientResources");
    }
    yard.ec2.state().capacity.insert(ZONE.to_owned(), 100);
    sleep(Duration::from_hours(1)).await;
    assert!(yard.ec2.all().is_empty(), "nothing is launched for those who gave up");
    for number in 0..4 {
        yard.delete(&format!("m{number}")).await;
        yard.gone(&format!("m{number}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn best_effort_takes_what_there_is() {
    let yard = Yard::started().await;
    yard.ec2.state().capacity.insert(ZONE.to_owned(), 3);
    gang(&yard, 8, "best-effort").await;
    yard.bed
        .until("three run", || async {
            let machines = yard.bed.machines().await;
            (machines.iter().filter(|m| phase_of(m) == "Running").count() == 3).then_some(())
        })
        .await;
    let launches = yard.ec2.state().launches.clone();
    assert_eq!(launches.iter().map(|(_, min, max)| (*min, *max)).collect::<Vec<_>>(), [(2, 8)]);
    yard.ec2.state().capacity.insert(ZONE.to_owned(), 5);
    for number in 0..8 {
        yard.phase(&format!("m{number}"), "Running").await;
    }
    sleep(Duration::from_mins(1)).await;
    assert_one_to_one(&yard, 8).await;
}

#[tokio::test(start_paused = true)]
async fn what_comes_up_short_is_launched_again_by_itself() {
    let yard = Yard::started().await;
    yard.ec2.state().capacity.insert(ZONE.to_owned(), 2);
    for number in 0..5 {
        yard.create(&format!("m{number}"), json!({})).await;
    }
    yard.bed
        .until("two run", || async {
            let machines = yard.bed.machines().await;
            (machines.iter().filter(|m| phase_of(m) == "Running").count() == 2).then_some(())
        })
        .await;
    for number in 2..5 {
        yard.says(&format!("m{number}"), "InsufficientCapacity").await;
    }
    yard.ec2.state().capacity.insert(ZONE.to_owned(), 3);
    for number in 0..5 {
        yard.phase(&format!("m{number}"), "Running").await;
    }
    sleep(Duration::from_mins(1)).await;
    assert_one_to_one(&yard, 5).await;
}

/// (a) A member that is deleted while the launch is under way takes its own instance with it.
#[tokio::test(start_paused = true)]
async fn a_a_member_that_leaves_takes_its_instance_along() {
    for wait in [0, 250, 300, 1_000, 4_000, 10_000] {
        let yard = Yard::started().await;
        gang(&yard, 3, "true").await;
        sleep(Duration::from_millis(wait)).await;
        yard.delete("m1").await;
        yard.gone("m1").await;
        for name in ["m0", "m2"] {
            yard.phase(name, "Running").await;
        }
        sleep(Duration::from_mins(3)).await;
        let alive = yard.ec2.alive();
        assert_eq!(alive.len(), 2, "after {wait} ms");
        let names: BTreeSet<_> =
            alive.iter().map(|instance| instance.tags["Name"].clone()).collect();
        assert_eq!(names, BTreeSet::from(["m0".to_owned(), "m2".to_owned()]));
    }
}

/// (l) One that dies at birth is Failed, and the gang is not filled up.
#[tokio::test(start_paused = true)]
async fn l_one_that_dies_at_birth_is_failed() {
    let yard = Yard::started().await;
    yard.ec2.state().end = Duration::ZERO;
    gang(&yard, 3, "true").await;
    let id = yard
        .bed
        .until("it is launched", || async {
            let all = yard.ec2.all();
            Some(all.iter().find(|instance| instance.launch_index == Some(1))?.id.clone())
        })
        .await;
    yard.ec2.kill(&id);
    let machine = yard.phase("m1", "Failed").await;
    assert_eq!(error(&machine).1, "can't find created instance");
    for name in ["m0", "m2"] {
        yard.phase(name, "Running").await;
    }
    assert_eq!(yard.ec2.all().len(), 3);
}

/// (d) Parameters that change after a launch whose answer was lost.
#[tokio::test(start_paused = true)]
async fn d_a_gang_is_found_when_it_cannot_be_sent_again() {
    let yard = Yard::started().await;
    // Finalizers and phases of three, their intents, the launch.
    let before = yard.bed.writes.count();
    yard.bed.writes.harm(before + 12, crate::group::testbed::Harm::CrashAfter);
    gang(&yard, 3, "true").await;
    yard.bed
        .until("the launch is sent", || async { (yard.ec2.all().len() == 3).then_some(()) })
        .await;
    let secret = json!({"stringData": {"userData": "other"}});
    yard.bed.merge::<Secret>("worker-user-data", secret).await;
    for number in 0..3 {
        yard.phase(&format!("m{number}"), "Running").await;
    }
    sleep(Duration::from_mins(1)).await;
    assert_one_to_one(&yard, 3).await;
    assert_eq!(yard.ec2.all().len(), 3);
}

/// An instance of a gang whose Machine was torn out by hand before it could take it.
#[tokio::test(start_paused = true)]
async fn what_nobody_takes_is_terminated() {
    let yard = Yard::started().await;
    yard.ec2.refuse("tag", 1000, &ec2::error(fleetwright_cloud::ErrorClass::Credentials, "No"));
    gang(&yard, 2, "true").await;
    yard.bed
        .until("both are launched", || async { (yard.ec2.all().len() == 2).then_some(()) })
        .await;
    let yard = yard.stop().await;
    let free = json!({"metadata": {"finalizers": null}});
    yard.bed.merge::<Machine>("m1", free).await;
    yard.delete("m1").await;
    yard.gone("m1").await;
    let yard = yard.start();
    sleep(Duration::from_mins(30)).await;
    let alive: Vec<_> = yard.ec2.alive().into_iter().map(|i| i.launch_index).collect();
    assert_eq!(alive, [Some(0)]);
}

/// (g) User data is the same for all that are launched together: Machines with other user data are
/// launched apart, and each boots with its own.
#[tokio::test(start_paused = true)]
async fn g_who_boots_with_something_else_is_launched_apart() {
    let yard = Yard::started().await;
    let other = json!({"metadata": {"name": "other"}, "stringData": {"userData": "other"}});
    yard.bed.create::<Secret>(other).await;
    let set = set(&yard, 4, "true").await;
    let mut differs = owned(&set);
    merge(&mut differs, provider(&json!({"userDataSecret": {"name": "other"}})));
    for number in 0..4 {
        let more = if number < 2 { owned(&set) } else { differs.clone() };
        yard.create(&format!("m{number}"), more).await;
    }
    for number in 0..4 {
        let machine = yard.phase(&format!("m{number}"), "Running").await;
        let wanted: &[u8] = if number < 2 { b"#!/bin/true" } else { b"other" };
        assert_eq!(yard.ec2.state().user_data[&id_of(&machine)], json!(wanted), "m{number}");
    }
    let sizes: Vec<u32> = yard.ec2.state().launches.iter().map(|(_, _, max)| *max).collect();
    assert_eq!(sizes, [2, 2]);
    sleep(Duration::from_mins(1)).await;
    assert_one_to_one(&yard, 4).await;
}

/// (h) Load balancers and provider IDs stay each Machine's own.
#[tokio::test(start_paused = true)]
async fn h_each_is_balanced_and_known_by_itself() {
    let yard = Yard::started().await;
    let set = set(&yard, 3, "true").await;
    let mut more = owned(&set);
    let balanced = json!({"loadBalancers": [{"name": "n", "type": "network"}]});
    merge(&mut more, provider(&balanced));
    for number in 0..3 {
        yard.create(&format!("m{number}"), more.clone()).await;
    }
    let mut ids = BTreeSet::new();
    for number in 0..3 {
        let machine = yard.phase(&format!("m{number}"), "Running").await;
        let id = id_of(&machine);
        let provider_id = machine.spec.provider_id.unwrap_or_default();
        assert_eq!(provider_id, format!("aws:///{ZONE}/{id}"));
        ids.insert(id);
    }
    assert_eq!(yard.ec2.state().launches.len(), 1);
    yard.bed
        .until("all are behind the load balancer", || async {
            (yard.ec2.state().balanced == ids).then_some(())
        })
        .await;
    assert_eq!(yard.ec2.calls("register"), 3);
    let gone = id_of(&yard.get("m1").await.unwrap());
    yard.delete("m1").await;
    yard.gone("m1").await;
    ids.remove(&gone);
    assert_eq!(yard.ec2.state().balanced, ids, "the others stay behind it");
}
