//! Where pods go, and what is said when they cannot go anywhere.

use std::collections::BTreeMap;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod, scheduling::v1::PriorityClass};
use kube::{Api, api::PostParams};
use serde_json::{Value, json};

use crate::{
    workloads::deployment,
    world::{World, condition, host, is_ready},
};

fn pod(name: &str, spec: Value) -> Value {
    let mut full = json!({"containers": [{"name": "c", "image": "registry.example/app:1"}]});
    for (key, value) in spec.as_object().unwrap() {
        full[key] = value.clone();
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": full})
}

fn asking(requests: Value) -> Value {
    let resources = json!({"requests": requests, "limits": requests});
    json!({"containers": [{"name": "c", "image": "i", "resources": resources}]})
}

async fn why(world: &World, name: &str) -> String {
    let pod: Pod = world.get(name).await;
    let (status, message) = condition(&pod, "PodScheduled").unwrap();
    assert_eq!(status, "False", "{:?}", world.overview().await);
    message
}

#[tokio::test(start_paused = true)]
async fn cordoned_nodes_get_nothing() {
    let world = World::with_nodes(2).await;
    world.patch_node("n1", json!({"spec": {"unschedulable": true}})).await;
    world.wait(1).await;
    world.create::<Deployment>(deployment("web", 6, json!({}))).await;
    world.wait(5).await;
    assert_eq!((world.ready_on("n1").await, world.ready_on("n2").await), (0, 6));
    world.patch_node("n1", json!({"spec": {"unschedulable": null}})).await;
    world.patch_node("n2", json!({"spec": {"unschedulable": true}})).await;
    world.wait(1).await;
    world.merge::<Deployment>("web", json!({"spec": {"replicas": 9}})).await;
    world.wait(5).await;
    assert_eq!((world.ready_on("n1").await, world.ready_on("n2").await), (3, 6));
}

#[tokio::test(start_paused = true)]
async fn three_shards_on_three_partitions() {
    const PARTITION: &str = "fleetwright.dev/partition";
    let world = World::start().await;
    for number in 1..=6 {
        let mut host = host(&format!("n{number}"), "a");
        host.labels.insert(PARTITION.to_owned(), format!("p{}", number % 3));
        world.hosts.started(host);
    }
    world.wait(5).await;
    let spread = json!({"topologySpreadConstraints": [{
        "topologyKey": PARTITION,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "shards"}},
    }]});
    world.create::<Deployment>(deployment("shards", 9, spread)).await;
    world.wait(5).await;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for pod in world.pods().await {
        assert!(is_ready(&pod));
        let node = world.node(&pod.spec.unwrap().node_name.unwrap()).await.unwrap();
        *counts.entry(node.metadata.labels.unwrap()[PARTITION].clone()).or_default() += 1;
    }
    assert_eq!(counts.into_values().collect::<Vec<_>>(), [3, 3, 3]);
}

#[tokio::test(start_paused = true)]
async fn why_a_pod_cannot_be_placed() {
    let world = World::start().await;
    world.create::<Pod>(pod("early", json!({}))).await;
    world.wait(1).await;
    assert_eq!(why(&world, "early").await, "no nodes available to schedule pods");
    for (name, zone) in [("n1", "a"), ("n2", "b"), ("n3", "c")] {
        world.hosts.started(host(name, zone));
    }
    world.wait(20).await;
    assert!(is_ready(&world.get::<Pod>("early").await), "the first node takes it");

    let taint = json!([{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]);
    for name in ["n2", "n3"] {
        world.patch_node(name, json!({"spec": {"taints": taint}})).await;
    }
    world.create::<Pod>(pod("large", asking(json!({"cpu": "100"})))).await;
    world.create::<Pod>(pod("gpu", asking(json!({"nvidia.com/gpu": "1"})))).await;
    world.create::<Pod>(pod("full", asking(json!({"cpu": "3500m"})))).await;
    world.create::<Pod>(pod("nowhere", json!({"nodeSelector": {"zone": "x"}}))).await;
    world.wait(5).await;
    let both_tainted = "2 node(s) had untolerated taint(s)";
    assert_eq!(
        why(&world, "large").await,
        format!(
            "0/3 nodes are available: 1 Insufficient cpu, {both_tainted}. preemption: 0/3 nodes \
             are available: 3 Preemption is not helpful for scheduling."
        )
    );
    assert_eq!(
        why(&world, "gpu").await,
        format!(
            "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, {both_tainted}. preemption: \
             0/3 nodes are available: 3 Preemption is not helpful for scheduling."
        )
    );
    assert_eq!(
        why(&world, "nowhere").await,
        format!(
            "0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, \
             {both_tainted}. preemption: 0/3 nodes are available: 3 Preemption is not helpful for \
             scheduling."
        )
    );
    assert!(is_ready(&world.get::<Pod>("full").await));
    world.create::<Pod>(pod("late", asking(json!({"cpu": "1"})))).await;
    world.wait(5).await;
    let message = why(&world, "late").await;
    assert_eq!(
        message,
        format!(
            "0/3 nodes are available: 1 Insufficient cpu, {both_tainted}. preemption: 0/3 nodes \
             are available: 1 No preemption victims found for incoming pod, 2 Preemption is not \
             helpful for scheduling."
        )
    );
    assert!(world.events("FailedScheduling").await.contains(&message));
    // Room is found as soon as there is some.
    world.delete::<Pod>("full").await;
    world.wait(15).await;
    assert!(is_ready(&world.get::<Pod>("late").await), "{:?}", world.overview().await);
    assert_eq!(
        world.events("Scheduled").await.iter().filter(|m| m.contains("default/late")).count(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn the_most_important_pod_goes_first() {
    let world = World::start().await;
    let class = json!({"metadata": {"name": "high"}, "value": 1000});
    let class: PriorityClass = serde_json::from_value(class).unwrap();
    let classes = Api::<PriorityClass>::all(world.client.clone());
    classes.create(&PostParams::default(), &class).await.unwrap();
    let two = asking(json!({"cpu": "2"}));
    let mut important = two.clone();
    important["priorityClassName"] = json!("high");
    important["priority"] = json!(1000);
    world.create::<Pod>(pod("first", two)).await;
    world.wait(1).await;
    world.create::<Pod>(pod("important", important)).await;
    // Both have paused long enough to be tried together.
    world.wait(30).await;
    world.hosts.started(host("n1", "a"));
    world.wait(30).await;
    assert_eq!(world.overview().await, ["first - Pending", "important n1 Running!"]);
}
