//! What is written when the cloud gives notice.

use fleetwright_api::names::{annotation, condition};
use fleetwright_node::aws::AwsSettings;
use fleetwright_simcloud::aws::model::{lifecycle::Strike, maintenance::Code};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::yard::{NODE, Yard};

#[tokio::test(start_paused = true)]
async fn a_notice_becomes_the_exact_condition_with_its_deadline() {
    let yard = Yard::new().await;
    assert!(!yard.is_marked().await);
    yard.interrupt();
    yard.pass(3).await;
    let node = yard.node().await;
    let found = yard.condition(condition::TERMINATING).await.unwrap();
    assert_eq!(
        (found.status.as_str(), found.reason.as_deref(), found.message.as_deref()),
        (
            "True",
            Some("TerminationRequested"),
            Some("The cloud provider has marked this instance for termination")
        )
    );
    assert_eq!(found.last_heartbeat_time, found.last_transition_time);
    assert_eq!(yard.deadline().await.as_deref(), Some("2026-01-01T00:02:10Z"));
    assert_eq!(node.annotations()[annotation::TERMINATION_SOURCE], "aws/spot-instance-action");
    assert_eq!(node.spec.as_ref().unwrap().unschedulable, Some(true));
    assert_eq!(yard.condition("Ready").await.unwrap().status, "True", "others stay");
    assert_eq!(yard.metric("marked"), Some(1.0));
    assert_eq!(yard.metric("deadline_timestamp_seconds"), Some(1_767_225_730.0));
    // It keeps running, and changes nothing more.
    let before = yard.node().await;
    yard.pass(60).await;
    assert_eq!(yard.node().await, before);
    assert_eq!(yard.metric("notices_total{kind=\"termination\"}"), Some(1.0));
}

#[tokio::test(start_paused = true)]
async fn the_control_plane_is_marked_and_not_cordoned() {
    let mut yard = Yard::without_handler(json!({"node-role.kubernetes.io/master": ""})).await;
    yard.start(AwsSettings::default());
    yard.pass(5).await;
    yard.interrupt();
    yard.pass(3).await;
    assert!(yard.is_marked().await);
    assert_eq!(yard.node().await.spec.unwrap_or_default().unschedulable, None);
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_that_registers_anew_is_marked_again() {
    let yard = Yard::new().await;
    yard.interrupt();
    yard.pass(3).await;
    yard.nodes().delete(NODE, &DeleteParams::default()).await.unwrap();
    yard.pass(15).await;
    let node: Node = serde_json::from_value(json!({"metadata": {"name": NODE}})).unwrap();
    yard.nodes().create(&PostParams::default(), &node).await.unwrap();
    yard.pass(15).await;
    assert!(yard.is_marked().await);
}

#[tokio::test(start_paused = true)]
async fn a_rebalance_recommendation_is_off_by_default_and_a_condition_of_its_own() {
    let mut yard = Yard::without_handler(json!({})).await;
    yard.start(AwsSettings::default());
    yard.pass(5).await;
    yard.aws.with(|region, now| region.strike(now, &yard.instance, Strike::Rebalance)).unwrap();
    yard.pass(5).await;
    assert_eq!(yard.condition(condition::REBALANCE_RECOMMENDED).await, None);

    let yard = Yard::new().await;
    yard.aws.with(|region, now| region.strike(now, &yard.instance, Strike::Rebalance)).unwrap();
    yard.pass(5).await;
    let found = yard.condition(condition::REBALANCE_RECOMMENDED).await.unwrap();
    assert_eq!(found.status, "True");
    assert!(!yard.is_marked().await);
    assert_eq!(yard.node().await.spec.unwrap_or_default().unschedulable, None);
}

#[tokio::test(start_paused = true)]
async fn a_retirement_counts_when_it_is_near_and_can_be_cancelled() {
    let yard = Yard::new().await;
    let at = "2026-01-01T01:00:00Z".parse().unwrap();
    let plan = |code| {
        yard.aws.with(|region, _| region.schedule_event(&yard.instance, code, at, at)).unwrap()
    };
    plan(Code::SystemReboot);
    plan(Code::InstanceRetirement);
    yard.pass(60).await;
    assert!(!yard.is_marked().await, "an hour is far");
    yard.pass(50 * 60).await;
    assert!(yard.is_marked().await);
    assert_eq!(yard.deadline().await.as_deref(), Some("2026-01-01T01:00:00Z"));
    yard.aws.with(|region, _| region.cancel_events(&yard.instance));
    yard.pass(5).await;
    let found = yard.condition(condition::TERMINATING).await.unwrap();
    assert_eq!(
        (found.status.as_str(), found.reason.as_deref()),
        ("False", Some("TerminationCancelled"))
    );
    let node = yard.node().await;
    assert_eq!(node.spec.unwrap_or_default().unschedulable, None);
    assert_eq!(yard.deadline().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_reboot_is_no_termination() {
    let yard = Yard::new().await;
    let at = yard.clock.now();
    for code in [Code::SystemReboot, Code::InstanceReboot, Code::SystemMaintenance] {
        yard.aws.with(|region, _| region.schedule_event(&yard.instance, code, at, at)).unwrap();
    }
    yard.pass(10).await;
    assert!(!yard.is_marked().await);
}

/// What the handler may do as the kubelet, and what not: NodeRestriction.
#[tokio::test(start_paused = true)]
async fn the_rights_of_a_kubelet_reach_no_further() {
    let yard = Yard::new().await;
    let node: Node = serde_json::from_value(json!({"metadata": {"name": "other"}})).unwrap();
    yard.nodes().create(&PostParams::default(), &node).await.unwrap();
    let api: Api<Node> = Api::all(yard.kubelet(NODE));
    let condition = json!({"status": {"conditions": [{"type": "Terminating", "status": "True"}]}});
    let params = PatchParams::default();
    let refused = |result: Result<Node, kube::Error>| match result {
        Err(kube::Error::Api(status)) => status.code,
        other => panic!("{other:?}"),
    };
    let other = api.patch_status("other", &params, &Patch::Strategic(&condition)).await;
    assert_eq!(refused(other), 403);
    let taint = json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}});
    assert_eq!(refused(api.patch(NODE, &params, &Patch::Strategic(&taint)).await), 403);
    assert!(api.patch_status(NODE, &params, &Patch::Strategic(&condition)).await.is_ok());
}
