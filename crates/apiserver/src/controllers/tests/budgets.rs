//! Disruption budgets and evictions.

use super::*;

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

fn budget(rule: &Value) -> Value {
    let mut budget = json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}},
    });
    for (field, value) in rule.as_object().unwrap() {
        budget["spec"][field] = value.clone();
    }
    budget
}

async fn status(cluster: &Cluster) -> Value {
    cluster.settle().await;
    cluster.get(&format!("{BUDGETS}/b")).await.unwrap()["status"].clone()
}

/// Expected, desired, healthy, allowed.
fn numbers(status: &Value) -> [i64; 4] {
    ["expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed"]
        .map(|field| object::integer(status, &[field]).unwrap())
}

fn reason(status: &Value) -> &str {
    object::text(&status["conditions"][0], &["reason"])
}

async fn evict(cluster: &Cluster, name: &str) -> Result<Value> {
    let eviction = json!({
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": "default"},
    });
    cluster.client.post(&format!("{PODS}/{name}/eviction"), &eviction).await
}

async fn ready_pod(cluster: &Cluster, name: &str, owner: Option<&Value>) {
    let mut pod = pod(name, &json!({"app": "a"}));
    if let Some(owner) = owner {
        let mut reference = reference(owner, true);
        reference["controller"] = true.into();
        pod["metadata"]["ownerReferences"] = json!([reference]);
    }
    cluster.create(PODS, &pod).await;
    make_ready(cluster, &format!("{PODS}/{name}")).await;
}

#[tokio::test(start_paused = true)]
async fn evictions_go_by_the_budget() {
    let cluster = Cluster::start().await;
    cluster.create(BUDGETS, &budget(&json!({"minAvailable": 2}))).await;
    let empty = status(&cluster).await;
    assert_eq!(numbers(&empty), [0, 2, 0, 0]);
    assert_eq!(reason(&empty), "InsufficientPods");
    let events = cluster.get("/api/v1/namespaces/default/events").await.unwrap();
    let [event] = object::list(&events, &["items"]) else { panic!("{events}") };
    assert_eq!(event["reason"], "NoPods");
    assert_eq!(event["source"], json!({"component": "controllermanager"}));
    assert_eq!(event["involvedObject"]["kind"], "PodDisruptionBudget");
    assert_eq!(event["count"], 2, "told again after the status was written");
    for name in ["p", "q", "r"] {
        ready_pod(&cluster, name, None).await;
    }
    let full = status(&cluster).await;
    assert_eq!(numbers(&full), [3, 2, 3, 1]);
    assert_eq!(reason(&full), "SufficientPods");
    evict(&cluster, "p").await.unwrap_or_else(|error| panic!("{}", error.message()));
    let (code, message) = refusal(evict(&cluster, "q").await);
    assert_eq!(code, 429, "{message}");
    let after = status(&cluster).await;
    assert_eq!(numbers(&after), [3, 2, 2, 0]);
    assert_eq!(after.get("disruptedPods"), None, "its deletion was seen");
    let found = cluster.get(&format!("{BUDGETS}/b")).await.unwrap();
    let managed = object::list(&found, &["metadata", "managedFields"]);
    assert!(
        managed.iter().any(|entry| {
            entry["manager"] == "kube-controller-manager" && entry["subresource"] == "status"
        }),
        "{managed:?}"
    );
    cluster.merge(&format!("{BUDGETS}/b"), &json!({"spec": {"minAvailable": 1}})).await;
    let relaxed = status(&cluster).await;
    assert_eq!(numbers(&relaxed), [3, 1, 2, 1]);
    assert_eq!(relaxed["observedGeneration"], 2);
}

#[tokio::test(start_paused = true)]
async fn shares_are_of_what_controllers_want() {
    let cluster = Cluster::start().await;
    let workload = |kind: &str, name: &str, replicas: i64| {
        json!({
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": "a"}},
                "template": {
                    "metadata": {"labels": {"app": "a"}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                },
            },
        })
    };
    let apps = "/apis/apps/v1/namespaces/default";
    let deployment =
        cluster.create(&format!("{apps}/deployments"), &workload("Deployment", "d", 7)).await;
    let mut set = workload("ReplicaSet", "s", 4);
    let mut owner = reference(&deployment, true);
    owner["controller"] = true.into();
    set["metadata"]["ownerReferences"] = json!([owner]);
    let set = cluster.create(&format!("{apps}/replicasets"), &set).await;
    for name in ["p", "q"] {
        ready_pod(&cluster, name, Some(&set)).await;
    }
    cluster.create(BUDGETS, &budget(&json!({"maxUnavailable": "30%"}))).await;
    assert_eq!(numbers(&status(&cluster).await), [7, 4, 2, 0]);
    // A pod whose controller has no scale spoils the sum.
    let mut keeper = workload("DaemonSet", "k", 0);
    object::remove(&mut keeper, &["spec", "replicas"]);
    let keeper = cluster.create(&format!("{apps}/daemonsets"), &keeper).await;
    ready_pod(&cluster, "odd", Some(&keeper)).await;
    let failed = status(&cluster).await;
    assert_eq!(reason(&failed), "SyncFailed");
    assert_eq!(
        failed["conditions"][0]["message"],
        "daemonsets.apps does not implement the scale subresource"
    );
    assert_eq!(failed["disruptionsAllowed"], 0);
}

#[tokio::test(start_paused = true)]
async fn an_eviction_that_does_not_happen_is_forgotten_after_two_minutes() {
    let cluster = Cluster::start().await;
    cluster.create(BUDGETS, &budget(&json!({"minAvailable": 1}))).await;
    for name in ["p", "q"] {
        ready_pod(&cluster, name, None).await;
    }
    assert_eq!(numbers(&status(&cluster).await), [2, 1, 2, 1]);
    // What the eviction handler writes before it deletes.
    let now = "2025-06-01T00:00:05Z";
    let charged = json!({"status": {"disruptionsAllowed": 0, "disruptedPods": {"p": now}}});
    cluster.merge(&format!("{BUDGETS}/b/status"), &charged).await;
    let announced = json!({"status": {"conditions": [
        {"type": "Ready", "status": "True"},
        {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
         "lastTransitionTime": now},
    ]}});
    cluster.merge(&format!("{PODS}/p/status"), &announced).await;
    let waiting = status(&cluster).await;
    assert_eq!(numbers(&waiting), [2, 1, 1, 0]);
    assert_eq!(waiting["disruptedPods"], json!({"p": now}));
    tokio::time::sleep(Duration::from_mins(3)).await;
    let over = status(&cluster).await;
    assert_eq!(numbers(&over), [2, 1, 2, 1]);
    assert_eq!(over.get("disruptedPods"), None);
    let pod = cluster.get(&format!("{PODS}/p")).await.unwrap();
    let condition = object::list(&pod, &["status", "conditions"])
        .iter()
        .find(|condition| condition["type"] == "DisruptionTarget")
        .cloned()
        .unwrap();
    assert_eq!(condition["status"], "False");
}
