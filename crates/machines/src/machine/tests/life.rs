//! The life of a Machine when nothing goes wrong, and its end in every phase.

use fleetwright_api::names::{annotation, label};

use super::*;

#[tokio::test(start_paused = true)]
async fn a_machine_becomes_an_instance_and_a_node_and_goes() {
    let yard = Yard::started().await;
    yard.create(
        "m",
        json!({"spec": {
            "metadata": {"labels": {"node-role": "worker"}},
            "taints": [{"key": "t", "effect": "NoSchedule"}],
        }}),
    )
    .await;
    let machine = yard.phase("m", "Provisioned").await;
    let machine_now = yard.phase("m", "Running").await;
    let instance = yard.ec2.alive().remove(0);
    assert_eq!(id_of(&machine), instance.id);
    assert_eq!(machine.spec.provider_id.as_deref(), Some(instance.provider_id.as_str()));
    assert_eq!(instance.tags["Name"], "m");
    assert_eq!(Some(&instance.tags["fleetwright-machine-uid"]), machine.uid().as_ref());
    let labels = machine.labels();
    assert_eq!(labels[label::REGION], "us-east-1");
    assert_eq!(labels[label::ZONE], ZONE);
    assert_eq!(labels[label::INSTANCE_TYPE], "m5.large");
    assert!(!labels.contains_key(label::INTERRUPTIBLE));
    let said_all: Vec<(String, String)> = machine_now
        .status
        .as_ref()
        .unwrap()
        .conditions
        .iter()
        .map(|condition| (condition.type_.clone(), condition.status.clone()))
        .collect();
    let holds = |kind: &str| (kind.to_owned(), "True".to_owned());
    assert_eq!(
        said_all,
        ["Drainable", "InstanceExists", "MachineCreated", "Terminable"].map(holds)
    );
    let status = machine_now.status.as_ref().unwrap().provider_status.as_ref().unwrap();
    assert_eq!(status["instanceState"], "running");
    assert_eq!(status["conditions"][0]["type"], "MachineCreation");
    assert_eq!(status["conditions"][0]["reason"], "MachineCreationSucceeded");
    assert_eq!(machine_now.annotations()[annotation::INSTANCE_STATE], "running");
    let node = yard
        .bed
        .until("the Node is labelled", || async {
            yard.nodes().await.into_iter().find(|node| node.labels().contains_key("node-role"))
        })
        .await;
    assert_eq!(node.annotations()["machine.openshift.io/machine"], "openshift-machine-api/m");
    assert!(node.spec.unwrap().taints.unwrap().iter().any(|taint| taint.key == "t"));

    yard.delete("m").await;
    yard.gone("m").await;
    yard.assert_clean(1).await;
    let events = yard.bed.events("m").await;
    let reasons = reasons(&events);
    for reason in ["Create", "DrainProceeds", "DrainSucceeded", "Delete"] {
        assert!(reasons.contains(&reason), "{reason} in {events:?}");
    }
    assert!(events.contains(&("Create".to_owned(), "Created Machine m".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn an_identifier_that_is_saved_is_believed_until_it_shows() {
    let yard = Yard::new().await;
    yard.ec2.state().lag = Duration::from_secs(30);
    let yard = yard.start();
    yard.create("m", json!({})).await;
    yard.bed
        .until("an instance is recorded", || async {
            yard.get("m").await.filter(|machine| super::super::instance_id(machine).is_some())
        })
        .await;
    assert!(yard.bed.clock.now() < "2026-01-01T00:00:10Z".parse().unwrap(), "before it shows");
    // A process that knows nothing but the identifier waits for it to show.
    let yard = yard.restart().await;
    yard.phase("m", "Running").await;
    assert_eq!(yard.ec2.calls("launch"), 1);
}

#[tokio::test(start_paused = true)]
async fn spot_machines_say_so_on_machine_and_node() {
    let yard = Yard::started().await;
    yard.create("m", provider(&json!({"spotMarketOptions": {}}))).await;
    let machine = yard.phase("m", "Running").await;
    assert_eq!(machine.labels()[label::INTERRUPTIBLE], "");
    assert_eq!(machine.spec.metadata.labels[label::INTERRUPTIBLE], "");
    assert!(yard.nodes().await[0].labels().contains_key(label::INTERRUPTIBLE));
}

#[tokio::test(start_paused = true)]
async fn hooks_hold_the_drain_and_the_end() {
    let yard = Yard::started().await;
    let hook = |name: &str| json!([{"name": name, "owner": "test"}]);
    yard.create(
        "m",
        json!({"spec": {"lifecycleHooks": {
            "preDrain": hook("hold-drain"), "preTerminate": hook("hold-end"),
        }}}),
    )
    .await;
    yard.phase("m", "Running").await;
    yard.delete("m").await;
    let machine = yard.phase("m", "Deleting").await;
    assert_eq!(
        said(&machine, "Drainable").unwrap().message.as_deref(),
        Some("Drain operation currently blocked by: [{Name:hold-drain Owner:test}]")
    );
    sleep(Duration::from_mins(5)).await;
    assert!(yard.nodes().await[0].spec.as_ref().unwrap().unschedulable.is_none());
    let free = json!({"spec": {"lifecycleHooks": {"preDrain": null}}});
    yard.bed.merge::<Machine>("m", free).await;
    yard.bed
        .until("it is drained", || async {
            let machine = yard.get("m").await?;
            said(&machine, "Drained")?.is_true().then_some(())
        })
        .await;
    sleep(Duration::from_mins(5)).await;
    assert_eq!(yard.ec2.alive().len(), 1);
    let free = json!({"spec": {"lifecycleHooks": null}});
    yard.bed.merge::<Machine>("m", free).await;
    yard.gone("m").await;
    yard.assert_clean(1).await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_can_go_in_every_phase() {
    // Before anything was done; while it is launched; before it shows; before it is a Node.
    for wait in [0, 100, 250, 300, 1_000, 5_000, 25_000, 60_000] {
        let yard = Yard::started().await;
        yard.create("m", json!({})).await;
        sleep(Duration::from_millis(wait)).await;
        yard.delete("m").await;
        yard.gone("m").await;
        assert!(yard.ec2.alive().is_empty(), "after {wait} ms");
        assert!(yard.ec2.all().len() <= 1);
    }
}

#[tokio::test(start_paused = true)]
async fn load_balancers_get_and_lose_the_instance() {
    let yard = Yard::started().await;
    yard.create("m", provider(&json!({"loadBalancers": [{"name": "n", "type": "network"}]}))).await;
    yard.bed
        .until("it is behind the load balancer", || async {
            (yard.ec2.state().balanced.len() == 1).then_some(())
        })
        .await;
    yard.delete("m").await;
    yard.gone("m").await;
    assert!(yard.ec2.state().balanced.is_empty());
    assert_eq!(yard.ec2.calls("register"), 1, "once is enough");
}

#[tokio::test(start_paused = true)]
async fn a_resting_fleet_costs_one_read_a_minute() {
    let yard = Yard::started().await;
    for number in 0..20 {
        yard.create(&format!("m{number}"), json!({})).await;
    }
    for number in 0..20 {
        yard.phase(&format!("m{number}"), "Running").await;
    }
    sleep(Duration::from_mins(3)).await;
    yard.ec2.state().calls.clear();
    yard.bed.requests.lock().clear();
    sleep(Duration::from_hours(1)).await;
    let calls = yard.ec2.state().calls.clone();
    assert!(calls.iter().all(|call| call == "inventory"), "{calls:?}");
    assert!((55..=65).contains(&calls.len()), "{}", calls.len());
    let requests = yard.bed.requests.lock().clone();
    let written: Vec<_> = requests.iter().filter(|request| !request.starts_with("GET")).collect();
    assert!(written.is_empty(), "{written:?}");
    assert_eq!(yard.ec2.state().launches.len(), 1, "all in one request");
    for number in 0..20 {
        yard.delete(&format!("m{number}")).await;
    }
    for number in 0..20 {
        yard.gone(&format!("m{number}")).await;
    }
    yard.assert_clean(20).await;
    assert!(yard.ec2.calls("retire") < 10, "crowds go in few requests");
}

#[tokio::test(start_paused = true)]
async fn a_restart_with_nothing_to_do_does_nothing() {
    let yard = Yard::started().await;
    for number in 0..5 {
        yard.create(&format!("m{number}"), json!({})).await;
    }
    for number in 0..5 {
        yard.phase(&format!("m{number}"), "Running").await;
    }
    sleep(Duration::from_mins(1)).await;
    let versions = |machines: Vec<Machine>| -> Vec<_> {
        machines.iter().map(kube::ResourceExt::resource_version).collect()
    };
    let before = versions(yard.bed.machines().await);
    let yard = yard.restart().await;
    sleep(Duration::from_mins(2)).await;
    assert_eq!(versions(yard.bed.machines().await), before);
    assert_eq!(yard.ec2.calls("launch"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_another_api_looks_after_is_left_alone_and_says_so() {
    let yard = Yard::started().await;
    yard.create("m", json!({})).await;
    yard.phase("m", "Running").await;
    let hand_over = async |api: &str| {
        let status = json!({"status": {"authoritativeAPI": api}});
        yard.bed.merge_status::<Machine>("m", status).await;
    };
    let says = async |status: &str| {
        let reached = || async {
            let machine = yard.get("m").await?;
            said(&machine, "Paused").filter(|paused| paused.status == status)?.reason.clone()
        };
        yard.bed.until("Paused is said", reached).await
    };
    hand_over("ClusterAPI").await;
    assert_eq!(says("True").await, "AuthoritativeAPINotMachineAPI");
    yard.delete("m").await;
    sleep(Duration::from_mins(10)).await;
    let machine = yard.get("m").await.unwrap();
    assert_eq!(phase_of(&machine), "Running");
    assert_eq!(yard.ec2.alive().len(), 1, "its instance is the other API's business");
    hand_over("MachineAPI").await;
    yard.gone("m").await;
    yard.assert_clean(1).await;

    yard.create("n", json!({})).await;
    let status = json!({"status": {"authoritativeAPI": "MachineAPI"}});
    yard.bed.merge_status::<Machine>("n", status).await;
    let machine = yard.phase("n", "Running").await;
    let paused = said(&machine, "Paused").unwrap();
    assert_eq!(paused.reason.as_deref(), Some("AuthoritativeAPIMachineAPI"));
    assert_eq!(
        paused.message.as_deref(),
        Some("The AuthoritativeAPI status is set to 'MachineAPI'")
    );
}

#[tokio::test(start_paused = true)]
async fn tags_are_kept_as_the_machine_wants_them() {
    let yard = Yard::started().await;
    let tags = |value: &str| provider(&json!({"tags": [{"name": "team", "value": value}]}));
    yard.create("m", tags("one")).await;
    let machine = yard.phase("m", "Running").await;
    sleep(Duration::from_mins(2)).await;
    assert_eq!(yard.ec2.calls("tag"), 0, "it was launched with them");
    yard.bed.merge::<Machine>("m", tags("two")).await;
    let tag = |key: &str| {
        let tags = yard.ec2.state().instances[&id_of(&machine)].instance.tags.clone();
        tags.get(key).cloned()
    };
    yard.bed.until("it is tagged", || async { (tag("team")? == "two").then_some(()) }).await;
    yard.ec2.state().instances.get_mut(&id_of(&machine)).unwrap().instance.tags.remove("Name");
    yard.bed.until("it has its name", || async { (tag("Name")? == "m").then_some(()) }).await;
    sleep(Duration::from_hours(1)).await;
    assert_eq!(yard.ec2.calls("tag"), 2, "once each");
}
