//! Nodes come, go silent, come back, and go for ever.

use std::time::Duration;

use fleetwright_simnode::{KubeletSettings, Settings};
use k8s_openapi::api::{apps::v1::Deployment, coordination::v1::Lease, core::v1::Pod};
use kube::{Api, ResourceExt, api::DeleteParams};
use serde_json::json;

use crate::{
    workloads::deployment,
    world::{World, host, is_ready},
};

async fn ready(world: &World, name: &str) -> (String, String) {
    let status = world.node(name).await.unwrap().status.unwrap();
    let found = status.conditions.unwrap().into_iter().find(|c| c.type_ == "Ready").unwrap();
    (found.status, found.reason.unwrap())
}

async fn taints(world: &World, name: &str) -> Vec<String> {
    let spec = world.node(name).await.unwrap().spec.unwrap();
    spec.taints.iter().flatten().map(|taint| format!("{}:{}", taint.key, taint.effect)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_boots_becomes_a_ready_node() {
    let world = World::start().await;
    let mut machine = host("n1", "a");
    machine.boot_delay = Duration::from_secs(30);
    machine.gpus = 2;
    machine.labels.insert("pool".to_owned(), "blue".to_owned());
    world.hosts.started(machine);
    world.wait(29).await;
    assert!(world.node("n1").await.is_none());
    world.wait(2).await;
    assert_eq!(ready(&world, "n1").await, ("False".into(), "KubeletNotReady".into()));
    assert_eq!(taints(&world, "n1").await[0], "node.kubernetes.io/not-ready:NoSchedule");
    world.wait(3).await;
    assert_eq!(ready(&world, "n1").await, ("True".into(), "KubeletReady".into()));
    assert_eq!(taints(&world, "n1").await, Vec::<String>::new());
    let node = world.node("n1").await.unwrap();
    assert_eq!(node.spec.as_ref().unwrap().provider_id.as_deref(), Some("aws:///a/i-n1"));
    for (key, value) in [
        ("kubernetes.io/hostname", "n1"),
        ("kubernetes.io/arch", "amd64"),
        ("kubernetes.io/os", "linux"),
        ("topology.kubernetes.io/zone", "a"),
        ("topology.kubernetes.io/region", "sim-1"),
        ("node.kubernetes.io/instance-type", "m6i.xlarge"),
        ("node-role.kubernetes.io/worker", ""),
        ("pool", "blue"),
    ] {
        assert_eq!(node.labels().get(key).map(String::as_str), Some(value), "{key}");
    }
    let allocatable = node.status.unwrap().allocatable.unwrap();
    assert_eq!(allocatable["nvidia.com/gpu"].0, "2");
    assert_eq!(allocatable["pods"].0, "250");
    let leases: Api<Lease> = Api::namespaced(world.client.clone(), "kube-node-lease");
    let before = leases.get("n1").await.unwrap().spec.unwrap().renew_time;
    world.wait(11).await;
    assert!(leases.get("n1").await.unwrap().spec.unwrap().renew_time > before);
    assert_eq!(leases.get("n1").await.unwrap().owner_references()[0].kind, "Node");
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_silent_node_are_replaced() {
    let world = World::with_nodes(2).await;
    world.create::<Deployment>(deployment("web", 2, json!({}))).await;
    world.wait(5).await;
    assert_eq!((world.ready_on("n1").await, world.ready_on("n2").await), (1, 1));
    world.hosts.stopped("n1");
    world.wait(30).await;
    assert_eq!(ready(&world, "n1").await.0, "True", "silence is not noticed at once");
    world.wait(30).await;
    assert_eq!(ready(&world, "n1").await, ("Unknown".into(), "NodeStatusUnknown".into()));
    assert_eq!(
        taints(&world, "n1").await,
        ["node.kubernetes.io/unreachable:NoSchedule", "node.kubernetes.io/unreachable:NoExecute"]
    );
    assert_eq!(world.ready_on("n1").await, 0, "nobody can say that they are ready");
    assert_eq!(world.pods().await.len(), 2, "they have five minutes");
    world.wait(310).await;
    assert_eq!(world.ready_on("n2").await, 2, "{:?}", world.overview().await);
    let overview = world.overview().await;
    assert_eq!(overview.len(), 3, "the old one cannot end while its node is silent: {overview:?}");
    // The node comes back, and what was to end there ends.
    world.hosts.restarted("n1");
    world.wait(20).await;
    assert_eq!(ready(&world, "n1").await.0, "True");
    assert_eq!(taints(&world, "n1").await, Vec::<String>::new());
    assert_eq!(world.pods().await.len(), 2, "{:?}", world.overview().await);
}

#[tokio::test(start_paused = true)]
async fn a_short_silence_only_restarts_containers() {
    let world = World::with_nodes(1).await;
    world.create::<Deployment>(deployment("web", 1, json!({}))).await;
    world.wait(5).await;
    world.hosts.restarted("n1");
    world.wait(60).await;
    let pods = world.pods().await;
    assert_eq!((pods.len(), is_ready(&pods[0])), (1, true), "{:?}", world.overview().await);
    let status = pods[0].status.as_ref().unwrap().container_statuses.as_ref().unwrap()[0].clone();
    assert_eq!(status.restart_count, 1);
    assert_eq!(status.last_state.unwrap().terminated.unwrap().exit_code, 137);
}

#[tokio::test(start_paused = true)]
async fn what_is_left_of_a_machine_that_is_gone_is_cleared_up() {
    let world = World::with_nodes(2).await;
    world.create::<Deployment>(deployment("web", 2, json!({}))).await;
    world.wait(5).await;
    world.hosts.gone("n1");
    world.wait(60).await;
    assert!(world.node("n1").await.is_none(), "the cloud's node controller removed it");
    world.wait(60).await;
    assert_eq!(world.ready_on("n2").await, 2, "{:?}", world.overview().await);
    assert_eq!(world.pods().await.len(), 2);
    assert_eq!(
        world.events("DeletingNode").await,
        ["Deleting node n1 because it does not exist in the cloud provider"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_deleted_does_not_come_back_by_itself() {
    let world = World::with_nodes(1).await;
    world.delete_node("n1").await;
    world.wait(60).await;
    assert!(world.node("n1").await.is_none());
    world.hosts.restarted("n1");
    world.wait(10).await;
    assert_eq!(ready(&world, "n1").await.0, "True");
}

#[tokio::test(start_paused = true)]
async fn the_grace_period_is_respected() {
    let world = World::with_nodes(1).await;
    let pod = |name: &str, takes: &str| {
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "annotations": {fleetwright_simnode::TERMINATES_IN: takes},
            },
            "spec": {
                "terminationGracePeriodSeconds": 20,
                "containers": [{"name": "c", "image": "i"}],
            },
        })
    };
    world.create::<Pod>(pod("quick", "5s")).await;
    world.create::<Pod>(pod("stubborn", "1h")).await;
    world.wait(5).await;
    for name in ["quick", "stubborn"] {
        world.api::<Pod>().delete(name, &DeleteParams::default()).await.unwrap();
    }
    world.wait(3).await;
    assert_eq!(world.overview().await, ["quick n1 Running*", "stubborn n1 Running*"]);
    world.wait(4).await;
    assert_eq!(world.overview().await, ["stubborn n1 Running*"]);
    world.wait(10).await;
    assert_eq!(world.overview().await.len(), 1, "it is given all its time");
    world.wait(6).await;
    assert_eq!(world.overview().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn at_rest_there_are_only_lease_renewals() {
    const NODES: usize = 100;
    let kubelet = KubeletSettings {
        status_interval: Duration::from_hours(1),
        ..KubeletSettings::immediate()
    };
    let world = World::with(Settings { kubelet, ..Settings::default() }).await;
    for number in 0..NODES {
        let mut machine = host(&format!("n{number}"), "a");
        machine.boot_delay = Duration::ZERO;
        world.hosts.started(machine);
    }
    world.create::<Deployment>(deployment("web", 200, json!({}))).await;
    world.wait(120).await;
    assert_eq!(world.pods().await.iter().filter(|pod| is_ready(pod)).count(), 200);
    world.requests();
    world.wait(60).await;
    let requests = world.requests();
    assert_eq!(requests.keys().collect::<Vec<_>>(), ["PATCH leases"], "{requests:?}");
    let renewals = requests["PATCH leases"];
    assert!((5 * NODES..=7 * NODES).contains(&renewals), "{renewals}");
}
