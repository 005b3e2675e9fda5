//! Workloads become pods, and pods that are gone come back.

use std::collections::BTreeSet;

use k8s_openapi::api::{
    apps::v1::{ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet},
    batch::v1::Job,
    core::v1::{PersistentVolumeClaim, Pod},
};
use kube::{
    ResourceExt,
    api::{DeleteParams, EvictParams, ListParams},
};
use serde_json::{Value, json};

use crate::world::{World, host, is_ready, phase};

pub(crate) fn deployment(name: &str, replicas: i32, pod: Value) -> Value {
    let mut spec = json!({"containers": [{"name": "c", "image": "registry.example/app:1"}]});
    for (key, value) in pod.as_object().unwrap() {
        spec[key] = value.clone();
    }
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    })
}

#[tokio::test(start_paused = true)]
async fn a_deployment_of_three_becomes_running() {
    let world = World::with_nodes(3).await;
    world.create::<Deployment>(deployment("web", 3, json!({}))).await;
    world.wait(5).await;
    let pods = world.pods().await;
    assert_eq!(pods.len(), 3);
    assert!(pods.iter().all(is_ready), "{:?}", world.overview().await);
    let nodes: BTreeSet<_> = pods.iter().map(|pod| pod.spec.clone().unwrap().node_name).collect();
    assert_eq!(nodes.len(), 3, "one on each node: {:?}", world.overview().await);
    let ips: BTreeSet<_> = pods.iter().map(|pod| pod.status.clone().unwrap().pod_ip).collect();
    assert!(ips.len() == 3 && !ips.contains(&None), "{ips:?}");
    let status = world.get::<Deployment>("web").await.status.unwrap();
    assert_eq!(
        (
            status.replicas,
            status.ready_replicas,
            status.available_replicas,
            status.updated_replicas
        ),
        (Some(3), Some(3), Some(3), Some(3))
    );
    let conditions: Vec<_> = status
        .conditions
        .unwrap()
        .into_iter()
        .map(|c| (c.type_.unwrap(), c.status.unwrap(), c.reason.unwrap()))
        .collect();
    let expected = [
        ("Available", "True", "MinimumReplicasAvailable"),
        ("Progressing", "True", "NewReplicaSetAvailable"),
    ];
    assert_eq!(conditions, expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned())));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn evicted_pods_come_back_elsewhere() {
    let world = World::with_nodes(2).await;
    world.create::<Deployment>(deployment("web", 4, json!({}))).await;
    world.wait(5).await;
    assert_eq!((world.ready_on("n1").await, world.ready_on("n2").await), (2, 2));
    world.patch_node("n1", json!({"spec": {"unschedulable": true}})).await;
    for pod in world.pods().await {
        if pod.spec.as_ref().unwrap().node_name.as_deref() == Some("n1") {
            world.api::<Pod>().evict(&pod.name_any(), &EvictParams::default()).await.unwrap();
        }
    }
    world.wait(10).await;
    assert_eq!((world.ready_on("n1").await, world.ready_on("n2").await), (0, 4));
    assert_eq!(world.pods().await.len(), 4, "{:?}", world.overview().await);
}

#[tokio::test(start_paused = true)]
async fn a_rollout_keeps_enough_pods_and_ends() {
    let world = World::with_nodes(3).await;
    world.create::<Deployment>(deployment("web", 4, json!({}))).await;
    world.wait(5).await;
    let patch = json!({"spec": {"template": {"spec": {
        "containers": [{"name": "c", "image": "registry.example/app:2"}],
    }}}});
    world.merge::<Deployment>("web", patch).await;
    let mut least = 4;
    let mut most = 4;
    for _ in 0..40 {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        let pods = world.pods().await;
        let alive = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        most = most.max(alive.clone().count());
        least = least.min(alive.filter(|pod| is_ready(pod)).count());
    }
    assert!(least >= 3, "a quarter may be missing, rounded down: {least}");
    assert!(most <= 5, "a quarter may be too many, rounded up: {most}");
    let pods = world.pods().await;
    let images: BTreeSet<_> =
        pods.iter().map(|pod| pod.spec.clone().unwrap().containers[0].image.clone()).collect();
    assert_eq!(images, BTreeSet::from([Some("registry.example/app:2".to_owned())]));
    let sets = world.api::<ReplicaSet>().list(&ListParams::default()).await.unwrap().items;
    let mut sizes: Vec<_> = sets
        .iter()
        .map(|set| {
            let revision = set.annotations()["deployment.kubernetes.io/revision"].clone();
            (revision, set.spec.replicas)
        })
        .collect();
    sizes.sort();
    assert_eq!(sizes, [("1".to_owned(), Some(0)), ("2".to_owned(), Some(4))]);

    world.merge::<Deployment>("web", json!({"spec": {"replicas": 1}})).await;
    world.wait(10).await;
    assert_eq!(world.pods().await.len(), 1);
    world.delete::<Deployment>("web").await;
    world.wait(60).await;
    assert_eq!(world.overview().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn orphans_are_taken_in_and_strangers_let_go() {
    let world = World::with_nodes(1).await;
    world.create::<Deployment>(deployment("web", 2, json!({}))).await;
    world.wait(5).await;
    let names: Vec<String> = world.pods().await.iter().map(ResourceExt::name_any).collect();
    // Another label takes a pod out of the set, which makes a new one.
    world.merge::<Pod>(&names[0], json!({"metadata": {"labels": {"app": "other"}}})).await;
    world.wait(5).await;
    assert_eq!(world.pods().await.len(), 3);
    assert!(world.get::<Pod>(&names[0]).await.owner_references().is_empty());
    // The old label brings it back, and one too many goes.
    world.merge::<Pod>(&names[0], json!({"metadata": {"labels": {"app": "web"}}})).await;
    world.wait(5).await;
    assert_eq!(world.pods().await.len(), 2, "{:?}", world.overview().await);
    // Without its set, a pod that is deleted stays away.
    let sets = world.api::<ReplicaSet>();
    let set = sets.list(&ListParams::default()).await.unwrap().items.remove(0);
    let before: BTreeSet<String> = world.pods().await.iter().map(ResourceExt::name_any).collect();
    sets.delete(&set.name_any(), &DeleteParams::orphan()).await.unwrap();
    world.wait(10).await;
    let after: BTreeSet<String> = world.pods().await.iter().map(ResourceExt::name_any).collect();
    assert_eq!(before, after, "the new set took the pods of the old one");
    assert_eq!(sets.list(&ListParams::default()).await.unwrap().items.len(), 1);
}

fn stateful_set(name: &str, replicas: i32) -> Value {
    let mut set = deployment(name, replicas, json!({}));
    set["kind"] = json!("StatefulSet");
    set["spec"]["serviceName"] = json!(name);
    set["spec"]["volumeClaimTemplates"] = json!([{
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }]);
    set
}

#[tokio::test(start_paused = true)]
async fn a_stateful_set_goes_step_by_step() {
    let world = World::with_nodes(3).await;
    world.create::<StatefulSet>(stateful_set("db", 3)).await;
    let mut seen = Vec::new();
    for _ in 0..40 {
        tokio::time::sleep(std::time::Duration::from_millis(250)).await;
        let pods = world.pods().await;
        let ready = pods.iter().filter(|pod| is_ready(pod)).count();
        assert!(pods.len() <= ready + 1, "one at a time: {:?}", world.overview().await);
        if seen.last() != Some(&pods.len()) {
            seen.push(pods.len());
        }
    }
    assert_eq!(seen, [1, 2, 3]);
    let names: Vec<String> = world.pods().await.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["db-0", "db-1", "db-2"]);
    let pod = world.get::<Pod>("db-1").await;
    assert_eq!(pod.labels()["apps.kubernetes.io/pod-index"], "1");
    assert_eq!(pod.labels()["statefulset.kubernetes.io/pod-name"], "db-1");
    let claims = world.api::<PersistentVolumeClaim>().list(&ListParams::default()).await.unwrap();
    let claims: Vec<String> = claims.items.iter().map(ResourceExt::name_any).collect();
    assert_eq!(claims, ["data-db-0", "data-db-1", "data-db-2"]);

    // The same name comes back.
    world.delete::<Pod>("db-1").await;
    world.wait(10).await;
    assert!(is_ready(&world.get::<Pod>("db-1").await));

    // The highest are updated first.
    let patch = json!({"spec": {"template": {"spec": {
        "containers": [{"name": "c", "image": "registry.example/app:2"}],
    }}}});
    world.merge::<StatefulSet>("db", patch).await;
    world.wait(4).await;
    let image = |pod: &Pod| pod.spec.as_ref().unwrap().containers[0].image.clone().unwrap();
    assert!(image(&world.get::<Pod>("db-0").await).ends_with(":1"));
    world.wait(20).await;
    let status = world.get::<StatefulSet>("db").await.status.unwrap();
    assert_eq!((status.updated_replicas, status.ready_replicas), (Some(3), Some(3)));
    assert_eq!(status.current_revision, status.update_revision);
    assert!(world.pods().await.iter().all(|pod| image(pod).ends_with(":2")));
    let versions = world.api::<ControllerRevision>().list(&ListParams::default()).await.unwrap();
    assert_eq!(versions.items.len(), 2);

    world.merge::<StatefulSet>("db", json!({"spec": {"replicas": 1}})).await;
    world.wait(20).await;
    assert_eq!(
        world.overview().await,
        ["db-0 n1 Running!".replace("n1", &node_of(&world, "db-0").await)]
    );
}

async fn node_of(world: &World, name: &str) -> String {
    world.get::<Pod>(name).await.spec.unwrap().node_name.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_daemon_set_follows_the_nodes() {
    let world = World::with_nodes(2).await;
    let mut set = deployment("agent", 0, json!({"nodeSelector": {"kubernetes.io/os": "linux"}}));
    set["kind"] = json!("DaemonSet");
    set["spec"].as_object_mut().unwrap().remove("replicas");
    world.create::<DaemonSet>(set).await;
    world.wait(5).await;
    assert_eq!((world.ready_on("n1").await, world.ready_on("n2").await), (1, 1));
    // A new node gets one, a cordoned node keeps it, one that must not have it loses it.
    world.hosts.started(host("n3", "c"));
    world.patch_node("n1", json!({"spec": {"unschedulable": true}})).await;
    world.wait(10).await;
    assert_eq!((world.ready_on("n1").await, world.ready_on("n3").await), (1, 1));
    let taint = json!([{"key": "dedicated", "value": "x", "effect": "NoExecute"}]);
    world.patch_node("n2", json!({"spec": {"taints": taint}})).await;
    world.wait(10).await;
    assert_eq!(world.ready_on("n2").await, 0);
    let status = world.get::<DaemonSet>("agent").await.status.unwrap();
    assert_eq!((status.desired_number_scheduled, status.number_ready), (2, 2));
    // An update goes node by node.
    let patch = json!({"spec": {"template": {"spec": {
        "containers": [{"name": "c", "image": "registry.example/app:2"}],
    }}}});
    world.merge::<DaemonSet>("agent", patch).await;
    let mut least = 2;
    for _ in 0..60 {
        tokio::time::sleep(std::time::Duration::from_millis(250)).await;
        least = least.min(world.pods().await.iter().filter(|pod| is_ready(pod)).count());
    }
    assert_eq!(least, 1);
    let status = world.get::<DaemonSet>("agent").await.status.unwrap();
    assert_eq!((status.updated_number_scheduled, status.number_available), (Some(2), Some(2)));
    // The pod of a node that is gone goes too.
    world.hosts.gone("n3");
    world.wait(120).await;
    assert_eq!(world.pods().await.len(), 1, "{:?}", world.overview().await);
}

fn job(name: &str, command: Value, spec: Value) -> Value {
    let mut full = json!({"template": {"spec": {
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "i", "command": command}],
    }}});
    for (key, value) in spec.as_object().unwrap() {
        full[key] = value.clone();
    }
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": full})
}

fn conditions(job: &Job) -> Vec<String> {
    let conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.filter(|c| c.status == "True").map(|c| c.type_.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_job_completes() {
    let world = World::with_nodes(2).await;
    let spec = json!({"completions": 5, "parallelism": 2});
    world.create::<Job>(job("work", json!(["sleep", "10"]), spec)).await;
    let mut most = 0;
    for _ in 0..50 {
        world.wait(1).await;
        let running = world.pods().await.iter().filter(|pod| phase(pod) == "Running").count();
        most = most.max(running);
    }
    assert_eq!(most, 2);
    let done = world.get::<Job>("work").await;
    assert_eq!(conditions(&done), ["SuccessCriteriaMet", "Complete"]);
    let status = done.status.unwrap();
    assert_eq!((status.succeeded, status.failed, status.active), (Some(5), None, None));
    assert!(status.completion_time.is_some());
    let pods = world.pods().await;
    assert_eq!(pods.len(), 5);
    assert!(pods.iter().all(|pod| phase(pod) == "Succeeded" && pod.finalizers().is_empty()));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_fails_too_often_is_given_up() {
    let world = World::with_nodes(1).await;
    let spec = json!({"backoffLimit": 2, "ttlSecondsAfterFinished": 100});
    world.create::<Job>(job("bad", json!(["false"]), spec)).await;
    world.wait(60).await;
    let failed = world.get::<Job>("bad").await;
    assert_eq!(conditions(&failed), ["FailureTarget", "Failed"], "{:?}", world.overview().await);
    assert_eq!(failed.status.unwrap().failed, Some(3));
    world.wait(200).await;
    assert!(world.api::<Job>().get_opt("bad").await.unwrap().is_none(), "its time was up");
}

#[tokio::test(start_paused = true)]
async fn an_indexed_job_survives_the_loss_of_a_node() {
    let world = World::with_nodes(2).await;
    let spec =
        json!({"completions": 4, "parallelism": 4, "completionMode": "Indexed", "backoffLimit": 6});
    world.create::<Job>(job("shards", json!(["sleep", "60"]), spec)).await;
    world.wait(10).await;
    assert_eq!(world.ready_on("n1").await, 2);
    world.hosts.gone("n1");
    world.delete_node("n1").await;
    world.wait(300).await;
    let done = world.get::<Job>("shards").await;
    assert_eq!(
        conditions(&done),
        ["SuccessCriteriaMet", "Complete"],
        "{:?}",
        world.overview().await
    );
    let status = done.status.unwrap();
    assert_eq!((status.completed_indexes.as_deref(), status.failed), (Some("0-3"), Some(2)));
}
