//! What is kept in every namespace, aggregated roles, and old events.

use super::*;

#[tokio::test(start_paused = true)]
async fn every_namespace_has_its_account_and_the_authority() {
    let cluster = Cluster::start().await;
    for namespace in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        let root = format!("/api/v1/namespaces/{namespace}");
        let account = format!("{root}/serviceaccounts/default");
        let authority = format!("{root}/configmaps/kube-root-ca.crt");
        let map = cluster.get(&authority).await.unwrap();
        assert_eq!(map["data"], json!({"ca.crt": "the authority"}));
        assert_eq!(map["metadata"]["managedFields"][0]["manager"], "kube-controller-manager");
        let first = cluster.get(&account).await.unwrap();
        cluster.delete(&account, "Background").await;
        cluster.merge(&authority, &json!({"data": {"ca.crt": "another", "more": "x"}})).await;
        cluster.settle().await;
        assert_ne!(
            cluster.get(&account).await.unwrap()["metadata"]["uid"],
            first["metadata"]["uid"]
        );
        let restored = cluster.get(&authority).await.unwrap();
        assert_eq!(restored["data"], json!({"ca.crt": "the authority"}));
        cluster.delete(&authority, "Background").await;
        cluster.settle().await;
        assert!(cluster.get(&authority).await.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn aggregated_roles_follow_their_parts() {
    let cluster = Cluster::start().await;
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let role = |name: &str, verb: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name, "labels": {"part": "of-whole"}},
            "rules": [{"apiGroups": ["example.com"], "resources": ["things"], "verbs": [verb]}],
        })
    };
    let whole = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "whole"},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"part": "of-whole"}}]},
        "rules": [],
    });
    cluster.create(roles, &whole).await;
    cluster.create(roles, &role("b", "list")).await;
    cluster.create(roles, &role("a", "get")).await;
    cluster.settle().await;
    let path = format!("{roles}/whole");
    let verbs = |role: &Value| -> Vec<Value> {
        object::list(role, &["rules"]).iter().map(|rule| rule["verbs"][0].clone()).collect()
    };
    let found = cluster.get(&path).await.unwrap();
    assert_eq!(verbs(&found), ["get", "list"]);
    let managed = object::list(&found, &["metadata", "managedFields"]);
    assert!(
        managed.iter().any(|entry| {
            entry["manager"] == "clusterrole-aggregation-controller"
                && entry["operation"] == "Apply"
        }),
        "{managed:?}"
    );
    cluster.delete(&format!("{roles}/a"), "Background").await;
    cluster.settle().await;
    assert_eq!(verbs(&cluster.get(&path).await.unwrap()), ["list"]);
    let view = cluster.get(&format!("{roles}/view")).await.unwrap();
    assert!(!object::list(&view, &["rules"]).is_empty());
}

#[tokio::test(start_paused = true)]
async fn events_last_an_hour() {
    let cluster = Cluster::start().await;
    let events = "/api/v1/namespaces/default/events";
    for name in ["told-once", "told-again"] {
        let event = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name},
            "involvedObject": {"kind": "ConfigMap", "name": "x", "namespace": "default"},
            "reason": "Because",
            "message": "of that",
            "type": "Normal",
            "source": {"component": "test"},
            "count": 1,
        });
        cluster.create(events, &event).await;
    }
    let minutes = |minutes| tokio::time::sleep(Duration::from_mins(minutes));
    minutes(40).await;
    cluster.merge(&format!("{events}/told-again"), &json!({"count": 2})).await;
    minutes(19).await;
    assert!(cluster.get(&format!("{events}/told-once")).await.is_some());
    minutes(2).await;
    assert!(cluster.get(&format!("{events}/told-once")).await.is_none());
    assert!(cluster.get(&format!("{events}/told-again")).await.is_some());
    minutes(40).await;
    assert!(cluster.get(&format!("{events}/told-again")).await.is_none());
}
