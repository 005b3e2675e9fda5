//! Owners, dependents, and what becomes of them.

use super::*;

#[tokio::test(start_paused = true)]
async fn dependents_go_with_their_last_owner() {
    let cluster = Cluster::start().await;
    let a = cluster.map("a", &[]).await;
    let b = cluster.map("b", &[]).await;
    let only = cluster.map("only-a", &[reference(&a, false)]).await;
    cluster.map("both", &[reference(&a, false), reference(&b, true)]).await;
    cluster.map("grandchild", &[reference(&only, true)]).await;
    cluster.settle().await;
    cluster.delete(&map_path("a"), "Background").await;
    cluster.settle().await;
    assert_eq!(cluster.get(&map_path("only-a")).await, None);
    assert_eq!(cluster.get(&map_path("grandchild")).await, None);
    let both = cluster.get(&map_path("both")).await.unwrap();
    assert_eq!(both["metadata"]["ownerReferences"], json!([reference(&b, true)]));
    let managers: Vec<&str> = object::list(&both, &["metadata", "managedFields"])
        .iter()
        .map(|entry| object::text(entry, &["manager"]))
        .collect();
    assert_eq!(managers, ["kubectl"], "what is removed is owned by nobody");
}

#[tokio::test(start_paused = true)]
async fn references_are_checked_against_what_there_is() {
    let cluster = Cluster::start().await;
    let owner = cluster.map("owner", &[]).await;
    let with = |field: &str, value: &str| {
        let mut reference = reference(&owner, false);
        object::set(&mut reference, &[field], value);
        reference
    };
    cluster.map("no-such-uid", &[with("uid", "00000000-0000-0000-0000-000000000000")]).await;
    cluster.map("no-such-name", &[with("name", "other")]).await;
    cluster.map("no-such-kind", &[with("kind", "Unheard")]).await;
    cluster.map("right", &[reference(&owner, false)]).await;
    // An owner in another namespace is none; one without a namespace is one.
    let namespace = cluster.get("/api/v1/namespaces/default").await.unwrap();
    let elsewhere = "/api/v1/namespaces/kube-public/configmaps";
    let map = |name: &str, owner: Value| {
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "ownerReferences": [owner]},
        })
    };
    cluster.create(elsewhere, &map("stranger", reference(&owner, false))).await;
    cluster.create(elsewhere, &map("citizen", reference(&namespace, false))).await;
    // A namespaced owner of something without a namespace means nothing.
    let mut class = map("class", reference(&owner, false));
    class["apiVersion"] = "scheduling.k8s.io/v1".into();
    class["kind"] = "PriorityClass".into();
    class["value"] = 1.into();
    cluster.create("/apis/scheduling.k8s.io/v1/priorityclasses", &class).await;
    cluster.settle().await;
    for (name, stays) in
        [("no-such-uid", false), ("no-such-name", false), ("no-such-kind", true), ("right", true)]
    {
        assert_eq!(cluster.get(&map_path(name)).await.is_some(), stays, "{name}");
    }
    assert!(cluster.get(&format!("{elsewhere}/stranger")).await.is_none());
    assert!(cluster.get(&format!("{elsewhere}/citizen")).await.is_some());
    assert!(cluster.get("/apis/scheduling.k8s.io/v1/priorityclasses/class").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn foreground_deletion_waits_for_those_who_block_it() {
    let cluster = Cluster::start().await;
    let owner = cluster.map("owner", &[]).await;
    let child = cluster.map("child", &[reference(&owner, true)]).await;
    cluster.map("grandchild", &[reference(&child, true)]).await;
    cluster.map("free", &[reference(&owner, false)]).await;
    let held = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    cluster.merge(&map_path("grandchild"), &held).await;
    cluster.merge(&map_path("free"), &held).await;
    cluster.settle().await;
    cluster.delete(&map_path("owner"), "Foreground").await;
    cluster.settle().await;
    let finalizers = |object: &Value| object["metadata"]["finalizers"].clone();
    for name in ["owner", "child"] {
        let waiting = cluster.get(&map_path(name)).await.unwrap();
        assert!(object::is_terminating(&waiting));
        assert_eq!(finalizers(&waiting), json!(["foregroundDeletion"]), "{name}");
    }
    for name in ["grandchild", "free"] {
        let waiting = cluster.get(&map_path(name)).await.unwrap();
        assert!(object::is_terminating(&waiting), "{name}");
        assert_eq!(finalizers(&waiting), json!(["example.com/hold"]));
    }
    let freed = json!({"metadata": {"finalizers": null}});
    cluster.merge(&map_path("grandchild"), &freed).await;
    cluster.settle().await;
    for name in ["owner", "child", "grandchild"] {
        assert_eq!(cluster.get(&map_path(name)).await, None);
    }
    assert!(cluster.get(&map_path("free")).await.is_some(), "nobody waited for it");
}

#[tokio::test(start_paused = true)]
async fn circles_are_deleted_in_the_foreground_too() {
    let cluster = Cluster::start().await;
    let a = cluster.map("a", &[]).await;
    let b = cluster.map("b", &[reference(&a, true)]).await;
    let back = json!({"metadata": {"ownerReferences": [reference(&b, true)]}});
    cluster.merge(&map_path("a"), &back).await;
    cluster.settle().await;
    cluster.delete(&map_path("a"), "Foreground").await;
    cluster.settle().await;
    assert_eq!(cluster.get(&map_path("a")).await, None);
    assert_eq!(cluster.get(&map_path("b")).await, None);
}

#[tokio::test(start_paused = true)]
async fn orphans_stay() {
    let cluster = Cluster::start().await;
    let a = cluster.map("a", &[]).await;
    let b = cluster.map("b", &[]).await;
    cluster.map("child", &[reference(&a, true)]).await;
    cluster.map("both", &[reference(&a, true), reference(&b, false)]).await;
    cluster.delete(&map_path("a"), "Orphan").await;
    cluster.settle().await;
    assert_eq!(cluster.get(&map_path("a")).await, None);
    let child = cluster.get(&map_path("child")).await.unwrap();
    assert_eq!(child["metadata"].get("ownerReferences"), None);
    let both = cluster.get(&map_path("both")).await.unwrap();
    assert_eq!(both["metadata"]["ownerReferences"], json!([reference(&b, false)]));
}

#[tokio::test(start_paused = true)]
async fn kinds_may_come_later_and_go_again() {
    let cluster = Cluster::start().await;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "fleets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Fleet", "plural": "fleets", "singular": "fleet", "listKind": "FleetList"},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    });
    let early = json!({
        "apiVersion": "example.com/v1", "kind": "Fleet", "name": "f", "uid": "none",
    });
    cluster.map("early", &[early]).await;
    cluster.settle().await;
    assert!(cluster.get(&map_path("early")).await.is_some(), "who knows what a Fleet is");
    cluster.create(definitions, &definition).await;
    cluster.settle().await;
    assert_eq!(cluster.get(&map_path("early")).await, None);
    let fleet = json!({"apiVersion": "example.com/v1", "kind": "Fleet", "metadata": {"name": "f"}});
    let fleet = cluster.create("/apis/example.com/v1/namespaces/default/fleets", &fleet).await;
    cluster.map("late", &[reference(&fleet, false)]).await;
    cluster.settle().await;
    assert!(cluster.get(&map_path("late")).await.is_some());
    // The objects of a definition go with it, and what they own with them.
    cluster.delete(&format!("{definitions}/fleets.example.com"), "Background").await;
    cluster.settle().await;
    assert_eq!(cluster.get(&map_path("late")).await, None);
    assert_eq!(cluster.get(&format!("{definitions}/fleets.example.com")).await, None);
}

#[tokio::test(start_paused = true)]
async fn what_was_missed_is_made_up_for() {
    let cluster = Cluster::start().await;
    let owner = cluster.map("owner", &[]).await;
    cluster.map("child", &[reference(&owner, false)]).await;
    cluster.settle().await;
    // All of this happens before any controller gets to run, and then it is forgotten.
    let unseen = cluster.map("unseen", &[]).await;
    cluster.map("late", &[reference(&unseen, false)]).await;
    for name in ["owner", "unseen", "kube-root-ca.crt"] {
        cluster.delete(&map_path(name), "Background").await;
    }
    let account = "/api/v1/namespaces/default/serviceaccounts/default";
    cluster.delete(account, "Background").await;
    let storage = cluster.running.server().storage();
    storage.compact(storage.revision()).await.unwrap();
    cluster.settle().await;
    assert_eq!(cluster.get(&map_path("child")).await, None);
    assert_eq!(cluster.get(&map_path("late")).await, None);
    assert!(cluster.get(&map_path("kube-root-ca.crt")).await.is_some());
    assert!(cluster.get(account).await.is_some());
}
