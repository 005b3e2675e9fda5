//! The end of namespaces.

use fleetwright_kstore::{Change, Expect, Key, Write};

use super::*;

const PATH: &str = "/api/v1/namespaces/short";

async fn start() -> Cluster {
    let cluster = Cluster::start().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "short"}});
    cluster.create("/api/v1/namespaces", &namespace).await;
    cluster.settle().await;
    cluster
}

fn condition(namespace: &Value, kind: &str) -> (String, String, String) {
    let found = object::list(namespace, &["status", "conditions"])
        .iter()
        .find(|condition| object::text(condition, &["type"]) == kind)
        .cloned()
        .unwrap_or_default();
    let text = |field| object::text(&found, &[field]).to_owned();
    (text("status"), text("reason"), text("message"))
}

#[tokio::test(start_paused = true)]
async fn an_ordinary_namespace_goes_with_all_it_has() {
    let cluster = start().await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    cluster.create(&format!("{PATH}/secrets"), &secret).await;
    cluster.delete(PATH, "Background").await;
    cluster.settle().await;
    assert_eq!(cluster.get(PATH).await, None);
    assert_eq!(cluster.get(&format!("{PATH}/secrets/s")).await, None);
    assert_eq!(cluster.get(&format!("{PATH}/serviceaccounts/default")).await, None);
    assert_eq!(cluster.get(&format!("{PATH}/configmaps/kube-root-ca.crt")).await, None);
    // It can be made anew.
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "short"}});
    cluster.create("/api/v1/namespaces", &namespace).await;
    cluster.settle().await;
    assert!(cluster.get(&format!("{PATH}/serviceaccounts/default")).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn finalizers_are_waited_for_and_named() {
    let cluster = start().await;
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "finalizers": ["example.com/hold"]},
    });
    cluster.create(&format!("{PATH}/secrets"), &secret).await;
    cluster.delete(PATH, "Background").await;
    cluster.settle().await;
    let namespace = cluster.get(PATH).await.unwrap();
    assert_eq!(namespace["status"]["phase"], "Terminating");
    let expect = |kind: &str, status: &str, reason: &str, message: &str| {
        let expected = (status.to_owned(), reason.to_owned(), message.to_owned());
        assert_eq!(condition(&namespace, kind), expected, "{kind}");
    };
    expect(
        "NamespaceDeletionDiscoveryFailure",
        "False",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    );
    expect(
        "NamespaceContentRemaining",
        "True",
        "SomeResourcesRemain",
        "Some resources are remaining: secrets. has 1 resource instances",
    );
    expect(
        "NamespaceFinalizersRemaining",
        "True",
        "SomeFinalizersRemain",
        "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
    );
    let managed = object::list(&namespace, &["metadata", "managedFields"]);
    assert!(
        managed.iter().any(|entry| {
            entry["manager"] == "kube-controller-manager" && entry["subresource"] == "status"
        }),
        "{managed:?}"
    );
    let secret = format!("{PATH}/secrets");
    let (code, message) = refusal(
        cluster
            .client
            .post(
                &secret,
                &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "t"}}),
            )
            .await,
    );
    assert_eq!(code, 403, "{message}");
    cluster.merge(&format!("{secret}/s"), &json!({"metadata": {"finalizers": null}})).await;
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(cluster.get(PATH).await, None);
}

#[tokio::test(start_paused = true)]
async fn pods_have_their_grace_and_go_first() {
    let cluster = start().await;
    cluster.create(&format!("{PATH}/pods"), &pod("p", &json!({}))).await;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
    cluster.create(&format!("{PATH}/configmaps"), &map).await;
    cluster.delete(PATH, "Background").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let left = cluster.get(&format!("{PATH}/pods/p")).await.unwrap();
    assert_eq!(left["metadata"]["deletionGracePeriodSeconds"], 30);
    assert!(cluster.get(&format!("{PATH}/configmaps/m")).await.is_some());
    // Its node is done with it.
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0});
    let path = format!("{PATH}/pods/p");
    let sent = cluster.client.send(http::Method::DELETE, &path, "application/json", Some(&options));
    sent.await.unwrap();
    cluster.settle().await;
    assert_eq!(cluster.get(PATH).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_with_finalizers_of_its_own_stays_until_they_are_gone() {
    let cluster = start().await;
    cluster.merge(PATH, &json!({"metadata": {"finalizers": ["example.com/mine"]}})).await;
    cluster.delete(PATH, "Background").await;
    cluster.settle().await;
    let namespace = cluster.get(PATH).await.unwrap();
    assert_eq!(object::list(&namespace, &["spec", "finalizers"]), &[] as &[Value]);
    cluster.merge(PATH, &json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(cluster.get(PATH).await, None);
}

#[tokio::test(start_paused = true)]
async fn what_came_too_late_goes_as_well() {
    let cluster = start().await;
    cluster.delete(PATH, "Background").await;
    cluster.settle().await;
    assert_eq!(cluster.get(PATH).await, None);
    // As if it had been with a webhook all the time.
    let stray = json!({"metadata": {"name": "s", "namespace": "short", "uid": "u"}});
    let write = Write {
        key: Key::new("/secrets", "short", "s"),
        expect: Expect::Absent,
        change: Change::Put(crate::storage::body(&stray).unwrap()),
    };
    cluster.running.server().storage().write(write).await.unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(cluster.get(&format!("{PATH}/secrets/s")).await, None);
}
