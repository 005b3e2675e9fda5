//! What users see when something is wrong.

use fleetwright_cloud::{CloudError, ErrorClass};

use super::{ec2::error as refusal, *};

#[tokio::test(start_paused = true)]
async fn wrong_configuration_fails_at_once_and_can_be_deleted() {
    let yard = Yard::started().await;
    yard.ec2.refuse("launch", 1, &refusal(ErrorClass::Configuration, "InvalidParameterValue"));
    yard.create("m", json!({})).await;
    let machine = yard.phase("m", "Failed").await;
    assert_eq!(
        error(&machine),
        (
            "InvalidConfiguration",
            "error launching instance: InvalidParameterValue: as the cloud says"
        )
    );
    sleep(Duration::from_hours(1)).await;
    assert_eq!(yard.ec2.calls("launch"), 1, "never again");
    yard.delete("m").await;
    yard.gone("m").await;
    yard.assert_clean(0).await;
}

#[tokio::test(start_paused = true)]
async fn no_capacity_is_waited_for_until_the_deadline() {
    let yard = Yard::started().await;
    yard.ec2.state().capacity.insert(ZONE.to_owned(), 0);
    yard.create("m", json!({})).await;
    let machine = yard.says("m", "InsufficientCapacity").await;
    assert_eq!((phase_of(&machine), error(&machine)), ("Provisioning", ("", "")));
    let message = created(&machine).unwrap().message.clone().unwrap();
    for part in ["InsufficientInstanceCapacity", "zone us-east-1a", "since 2026-01-01T00:"] {
        assert!(message.contains(part), "{message}");
    }
    sleep(Duration::from_mins(14)).await;
    let machine = yard.get("m").await.unwrap();
    assert_eq!((phase_of(&machine), error(&machine)), ("Provisioning", ("", "")));
    assert_eq!(created(&machine).unwrap().message.as_deref(), Some(message.as_str()));
    let asked = yard.ec2.calls("launch");
    assert!((8..20).contains(&asked), "{asked}");
    sleep(Duration::from_mins(2)).await;
    let machine = yard.phase("m", "Failed").await;
    let (reason, why) = error(&machine);
    assert_eq!(reason, "InsufficientResources");
    assert!(why.contains("InsufficientInstanceCapacity"), "{why}");
    let asked = yard.ec2.calls("launch");
    sleep(Duration::from_hours(1)).await;
    assert_eq!(yard.ec2.calls("launch"), asked);
    yard.delete("m").await;
    yard.gone("m").await;
    yard.assert_clean(0).await;
}

#[tokio::test(start_paused = true)]
async fn capacity_that_comes_back_is_used() {
    let yard = Yard::started().await;
    yard.ec2.state().capacity.insert(ZONE.to_owned(), 0);
    for name in ["a", "b", "c"] {
        yard.create(name, json!({})).await;
    }
    for name in ["a", "b", "c"] {
        yard.says(name, "InsufficientCapacity").await;
    }
    yard.ec2.state().capacity.insert(ZONE.to_owned(), 3);
    for name in ["a", "b", "c"] {
        let machine = yard.phase(name, "Running").await;
        assert!(created(&machine).unwrap().is_true());
    }
    assert_eq!(yard.ec2.alive().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_holds_across_restarts() {
    let yard = Yard::started().await;
    yard.ec2.state().capacity.insert(ZONE.to_owned(), 0);
    yard.create("m", json!({})).await;
    yard.says("m", "InsufficientCapacity").await;
    sleep(Duration::from_mins(10)).await;
    let yard = yard.restart().await;
    sleep(Duration::from_mins(6)).await;
    assert_eq!(phase_of(&yard.get("m").await.unwrap()), "Failed");
}

#[tokio::test(start_paused = true)]
async fn spot_without_capacity_fails_at_once() {
    let yard = Yard::started().await;
    yard.ec2.state().capacity.insert(ZONE.to_owned(), 0);
    yard.create("m", provider(&json!({"spotMarketOptions": {}}))).await;
    let machine = yard.phase("m", "Failed").await;
    assert_eq!(error(&machine).0, "InsufficientResources");
    assert_eq!(yard.ec2.calls("launch"), 1);
}

#[tokio::test(start_paused = true)]
async fn throttling_credentials_and_lost_answers_pass() {
    let yard = Yard::started().await;
    for (name, class, reason) in [
        ("throttled", ErrorClass::Throttled, "Throttled"),
        ("rejected", ErrorClass::Credentials, "CredentialsRejected"),
        ("down", ErrorClass::Transient, "MachineCreationFailed"),
    ] {
        yard.ec2.refuse("launch", 2, &refusal(class, "Code"));
        yard.create(name, json!({})).await;
        let machine = yard.says(name, reason).await;
        assert_eq!((phase_of(&machine), error(&machine)), ("Provisioning", ("", "")));
        yard.phase(name, "Running").await;
    }
    assert_eq!(yard.ec2.all().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_secret_may_come_later_but_not_much_later() {
    let yard = Yard::started().await;
    let spec = json!({"userDataSecret": {"name": "late"}});
    yard.create("early", provider(&spec)).await;
    let machine = yard.says("early", "MachineCreationFailed").await;
    let message = created(&machine).unwrap().message.as_deref();
    assert_eq!(message, Some("failed to get user data: secrets \"late\" not found"));
    assert_eq!(phase_of(&machine), "Provisioning");
    sleep(Duration::from_secs(90)).await;
    let secret = json!({"metadata": {"name": "late"}, "stringData": {"userData": "x"}});
    yard.bed.create::<Secret>(secret).await;
    yard.phase("early", "Running").await;

    yard.create("never", provider(&json!({"userDataSecret": {"name": "never"}}))).await;
    yard.says("never", "MachineCreationFailed").await;
    sleep(Duration::from_secs(110)).await;
    assert_eq!(phase_of(&yard.get("never").await.unwrap()), "Provisioning");
    sleep(Duration::from_secs(20)).await;
    let machine = yard.phase("never", "Failed").await;
    assert_eq!(
        error(&machine),
        ("InvalidConfiguration", "failed to get user data: secrets \"never\" not found")
    );

    let secret = json!({"metadata": {"name": "empty"}, "stringData": {"other": "x"}});
    yard.bed.create::<Secret>(secret).await;
    yard.create("empty", provider(&json!({"userDataSecret": {"name": "empty"}}))).await;
    let machine = yard.says("empty", "MachineCreationFailed").await;
    assert_eq!(
        created(&machine).unwrap().message.as_deref(),
        Some("failed to get user data: secret openshift-machine-api/empty missing userData key")
    );
}

#[tokio::test(start_paused = true)]
async fn a_group_gates_the_launch() {
    let yard = Yard::started().await;
    let spec = json!({"placement": {"group": {"name": "g"}}});
    yard.create("m", provider(&spec)).await;
    let machine = yard.says("m", "MachineCreationFailed").await;
    assert_eq!(
        created(&machine).unwrap().message.as_deref(),
        Some(
            "AWSPlacementGroup \"g\" not found. Please create an AWSPlacementGroup before setting placement.group.name"
        )
    );
    yard.bed
        .create::<fleetwright_api::placement::AWSPlacementGroup>(json!({
            "apiVersion": "machine.openshift.io/v1", "kind": "AWSPlacementGroup",
            "metadata": {"name": "g"},
            "spec": {"managementSpec": {"managementState": "Managed",
                "managed": {"groupType": "Spread"}}},
        }))
        .await;
    yard.says("m", "PlacementGroupNotReady").await;
    sleep(Duration::from_mins(30)).await;
    let machine = yard.get("m").await.unwrap();
    assert_eq!(phase_of(&machine), "Provisioning", "this is nobody's fault");
    assert_eq!(yard.ec2.calls("launch"), 0);
    let until = yard.bed.clock.now() + Duration::from_mins(2);
    yard.bed
        .merge_status::<fleetwright_api::placement::AWSPlacementGroup>(
            "g",
            json!({"status": {
                "expiresAt": until.to_string(),
                "observedConfiguration": {"groupType": "Spread"},
                "conditions": [{"type": "Ready", "status": "True", "reason": "ConfigurationInSync",
                    "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
            }}),
        )
        .await;
    yard.phase("m", "Running").await;
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_somebody_ends_is_never_replaced() {
    let yard = Yard::started().await;
    yard.create("m", json!({})).await;
    let machine = yard.phase("m", "Running").await;
    yard.ec2.kill(&id_of(&machine));
    let machine = yard.phase("m", "Failed").await;
    assert_eq!(error(&machine).1, "can't find created instance");
    let exists = said(&machine, "InstanceExists").unwrap();
    assert_eq!(exists.reason.as_deref(), Some("InstanceMissing"));
    assert_eq!(exists.message.as_deref(), Some("Instance not found on provider"));
    sleep(Duration::from_hours(1)).await;
    assert_eq!(yard.ec2.all().len(), 1);
    assert!(yard.nodes().await.is_empty(), "its Node went with it");
    yard.delete("m").await;
    yard.gone("m").await;
    yard.assert_clean(1).await;
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_vanishes_or_dies_at_birth_is_never_replaced() {
    for vanishes in [true, false] {
        let yard = Yard::started().await;
        yard.create("m", json!({})).await;
        let id =
            yard.bed.until("it is launched", || async { Some(yard.ec2.all().pop()?.id) }).await;
        if vanishes {
            yard.ec2.vanish(&id);
        } else {
            yard.ec2.state().end = Duration::ZERO;
            yard.ec2.kill(&id);
        }
        let machine = yard.phase("m", "Failed").await;
        assert_eq!(error(&machine).1, "can't find created instance");
        assert_eq!(yard.ec2.state().launches.len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn user_data_that_changes_before_the_answer_is_known_makes_no_second_instance() {
    let yard = Yard::started().await;
    let lost = CloudError::new(ErrorClass::AnswerLost, "RunInstances", "", "no answer");
    for happened in [true, false] {
        let name = if happened { "launched" } else { "not-launched" };
        if happened {
            // The launch has its effect, its answer is lost.
            let writes = yard.bed.writes.count();
            // Finalizer, phase, intent, launch.
            yard.bed.writes.harm(writes + 4, crate::group::testbed::Harm::LoseAnswer);
        } else {
            yard.ec2.refuse("launch", 1, &lost);
        }
        yard.create(name, json!({})).await;
        yard.bed
            .until("the launch is sent", || async {
                (yard.ec2.calls("launch") > usize::from(!happened)).then_some(())
            })
            .await;
        let secret = json!({"stringData": {"userData": format!("other for {name}")}});
        yard.bed.merge::<Secret>("worker-user-data", secret).await;
        yard.phase(name, "Running").await;
    }
    assert_eq!(yard.ec2.all().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_launch_that_is_too_big_is_split() {
    let yard = Yard::started().await;
    yard.ec2.state().max_batch = 3;
    for number in 0..8 {
        yard.create(&format!("m{number}"), json!({})).await;
    }
    for number in 0..8 {
        yard.phase(&format!("m{number}"), "Running").await;
    }
    assert_eq!(yard.ec2.all().len(), 8);
    let sizes: Vec<u32> = yard.ec2.state().launches.iter().map(|(_, _, max)| *max).collect();
    assert!(sizes.iter().all(|size| *size <= 3), "{sizes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_machine_without_its_cluster_label_is_left_alone() {
    let yard = Yard::started().await;
    yard.create("m", json!({"metadata": {"labels": null}})).await;
    sleep(Duration::from_mins(5)).await;
    assert_eq!(yard.ec2.calls("launch"), 0);
    assert!(reasons(&yard.bed.events("m").await).contains(&"FailedValidate"));
}

#[tokio::test(start_paused = true)]
async fn a_host_goes_with_a_machine_that_never_got_its_instance() {
    let yard = Yard::started().await;
    yard.ec2.state().capacity.insert(ZONE.to_owned(), 0);
    yard.create("m", on_own_host()).await;
    yard.says("m", "InsufficientCapacity").await;
    assert_eq!(yard.ec2.state().hosts.len(), 1);
    yard.delete("m").await;
    yard.gone("m").await;
    yard.assert_clean(0).await;
}

#[tokio::test(start_paused = true)]
async fn a_host_goes_with_a_machine_whose_instance_is_lost() {
    let yard = Yard::started().await;
    yard.create("m", on_own_host()).await;
    let machine = yard.phase("m", "Running").await;
    yard.ec2.vanish(&id_of(&machine));
    yard.phase("m", "Failed").await;
    assert_eq!(yard.ec2.state().hosts.len(), 1);
    yard.ec2.refuse("release", 1, &refusal(ErrorClass::InUse, "InvalidHost.Occupied"));
    yard.ec2.refuse("release", 1, &refusal(ErrorClass::Credentials, "UnauthorizedOperation"));
    yard.delete("m").await;
    yard.gone("m").await;
    yard.assert_clean(0).await;
    let events = yard.bed.events("m").await;
    let told = |(reason, text): &(String, String)| {
        reason == "FailedDelete" && text.contains("UnauthorizedOperation")
    };
    assert!(events.iter().any(told), "{events:?}");
}

/// Whoever removes a finalizer by hand keeps an instance that works, and hears of it; one that
/// nobody uses goes.
#[tokio::test(start_paused = true)]
async fn an_instance_whose_machine_was_torn_out_goes_unless_it_is_a_node() {
    let yard = Yard::started().await;
    yard.create("m", json!({})).await;
    let machine = yard.phase("m", "Running").await;
    let yard = yard.stop().await;
    yard.bed.merge::<Machine>("m", json!({"metadata": {"finalizers": null}})).await;
    yard.delete("m").await;
    yard.gone("m").await;
    // Others keep the account open.
    yard.create("other", json!({})).await;
    let yard = yard.start();
    yard.phase("other", "Running").await;
    sleep(Duration::from_mins(30)).await;
    assert_eq!(yard.ec2.alive().len(), 2, "a Node runs on it");
    let api: Api<k8s_openapi::api::core::v1::Event> = Api::all(yard.bed.user.clone());
    let events = api.list(&ListParams::default()).await.unwrap().items;
    let told: Vec<_> = events
        .iter()
        .filter(|event| event.reason.as_deref() == Some("InstanceWithoutMachine"))
        .filter_map(|event| event.message.clone())
        .collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains(&id_of(&machine)) && told[0].contains("a Node runs on it"),
        "{told:?}"
    );
    let node = machine.status.unwrap().node_ref.unwrap().name.unwrap();
    let nodes: Api<Node> = Api::all(yard.bed.user.clone());
    nodes.delete(&node, &DeleteParams::default()).await.unwrap();
    yard.bed
        .until("nobody's instance goes", || async { (yard.ec2.alive().len() == 1).then_some(()) })
        .await;
    assert_eq!(phase_of(&yard.get("other").await.unwrap()), "Running");
}

/// Another cluster of the same name, in the same account.
#[tokio::test(start_paused = true)]
async fn what_another_cluster_of_this_name_launched_is_never_touched() {
    let yard = Yard::started().await;
    let account = Some(yard.ec2.clone());
    let other = Yard::on(Bed::seeded(2).await, account).await.start();
    other.create("theirs", json!({})).await;
    yard.create("ours", json!({})).await;
    other.phase("theirs", "Running").await;
    yard.phase("ours", "Running").await;
    // Not even when its Machine is torn out.
    let other = other.stop().await;
    other.bed.merge::<Machine>("theirs", json!({"metadata": {"finalizers": null}})).await;
    other.delete("theirs").await;
    sleep(Duration::from_hours(1)).await;
    assert_eq!(yard.ec2.alive().len(), 2);
    assert_eq!(phase_of(&yard.get("ours").await.unwrap()), "Running");
}
