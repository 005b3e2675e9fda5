//! Machines and their Nodes.

use std::collections::BTreeMap;

use fleetwright_clock::Random;
use fleetwright_nodes::{
    link::{Claim, NodeIndex},
    propagate::{MACHINE_ANNOTATION, Wanted, apply},
};
use fleetwright_runtime::{Informer, Metrics};
use k8s_openapi::api::core::v1::Taint;
use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::cluster::{Cluster, create};

#[tokio::test(start_paused = true)]
async fn a_node_is_found_as_soon_as_it_says_who_it_is() {
    let cluster = Cluster::start().await;
    let informer = Informer::new("nodes", cluster.nodes(), &Metrics::default());
    let index = NodeIndex::new(informer.clone());
    let stop = CancellationToken::new();
    let tasks = tokio::task::LocalSet::new();
    tasks.spawn_local(informer.clone().run(Random::seeded(1), stop.clone()));
    let claim = Claim {
        provider_id: Some("aws:///us-east-1a/i-1".to_owned()),
        addresses: vec![("InternalIP".to_owned(), "10.0.0.1".to_owned())],
    };
    let settle = || tokio::time::sleep(std::time::Duration::from_secs(1));
    tasks
        .run_until(async {
            informer.wait_synced().await;
            assert_eq!(index.find(&claim).unwrap(), None);
            create(&cluster.nodes(), json!({"metadata": {"name": "n1"}})).await;
            settle().await;
            assert_eq!(index.find(&claim).unwrap(), None);
            let status = json!({"status": {
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            }});
            let params = PatchParams::default();
            cluster.nodes().patch_status("n1", &params, &Patch::Merge(status)).await.unwrap();
            settle().await;
            assert_eq!(index.find(&claim).unwrap().unwrap().name_any(), "n1");
            let other = json!({"spec": {"providerID": "aws:///us-east-1a/i-2"}});
            cluster.nodes().patch("n1", &params, &Patch::Merge(other)).await.unwrap();
            settle().await;
            assert_eq!(index.find(&claim).unwrap(), None, "the address is another's now");
            let own = json!({
                "metadata": {"name": "n2"},
                "spec": {"providerID": "aws:///us-east-1a/i-1"},
            });
            create(&cluster.nodes(), own).await;
            settle().await;
            assert_eq!(index.find(&claim).unwrap().unwrap().name_any(), "n2");
            stop.cancel();
        })
        .await;
    tasks.await;
}

#[tokio::test(start_paused = true)]
async fn a_node_gets_what_its_machine_says_once() {
    let cluster = Cluster::start().await;
    let node = cluster.node("n1", "True", json!({"kept": "yes"})).await;
    let wanted = Wanted {
        labels: BTreeMap::from([("role".to_owned(), "worker".to_owned())]),
        annotations: BTreeMap::from([(MACHINE_ANNOTATION.to_owned(), "ns/m1".to_owned())]),
        taints: vec![Taint {
            key: "spot".to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Taint::default()
        }],
    };
    let nodes = cluster.nodes();
    assert!(apply(&nodes, &node, &wanted, "test").await.unwrap());
    let after = nodes.get("n1").await.unwrap();
    assert_eq!(after.labels()["kept"], "yes");
    assert_eq!(after.labels()["role"], "worker");
    assert_eq!(after.annotations()[MACHINE_ANNOTATION], "ns/m1");
    assert!(!apply(&nodes, &after, &wanted, "test").await.unwrap(), "there is nothing to write");
    assert_eq!(nodes.get("n1").await.unwrap().resource_version(), after.resource_version());
    // Decided on an old Node, the list of taints would undo what others wrote.
    let error = apply(&nodes, &node, &wanted, "test").await.unwrap_err();
    assert!(matches!(error, kube::Error::Api(status) if status.is_conflict()));
}
