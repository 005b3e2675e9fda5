#![expect(clippy::needless_pass_by_value, reason = "tables of JSON read better by value")]

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use serde_json::{Value, json};

use super::{decide::judge, eviction::leaves_at};

const START: &str = "2026-01-01T00:00:00Z";
const GRACE: Duration = Duration::from_secs(40);

fn at(seconds: i64) -> Timestamp {
    START.parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds)
}

fn node(ready: Option<&str>, spec: Value) -> Node {
    let conditions: Vec<Value> = ready
        .into_iter()
        .map(|status| json!({"type": "Ready", "status": status, "lastHeartbeatTime": START}))
        .collect();
    serde_json::from_value(json!({
        "metadata": {"name": "n", "creationTimestamp": START},
        "spec": spec,
        "status": {"conditions": conditions},
    }))
    .unwrap()
}

fn keys(taints: &[Taint]) -> Vec<String> {
    taints.iter().map(|taint| format!("{}:{}", taint.key, taint.effect)).collect()
}

#[test]
fn silence() {
    for (ready, renewed, now, silent, next) in [
        (Some("True"), Some(0), 39, false, 40),
        (Some("True"), Some(0), 40, true, 80),
        (Some("True"), Some(30), 40, false, 70),
        (Some("True"), None, 39, false, 40),
        (None, None, 59, false, 60),
        (None, None, 60, true, 100),
        (Some("Unknown"), Some(0), 90, false, 130),
    ] {
        let verdict = judge(&node(ready, json!({})), renewed.map(at), GRACE, at(now));
        let found =
            verdict.conditions.as_ref().is_some_and(|c| c.iter().any(|c| c.type_ == "Ready"));
        assert_eq!((found, verdict.next), (silent, at(next)), "{ready:?} {renewed:?} {now}");
    }
    let verdict = judge(&node(Some("True"), json!({})), None, GRACE, at(40));
    let changed = verdict.conditions.unwrap();
    assert!(changed.iter().all(|condition| condition.status == "Unknown"));
    let reasons: Vec<_> = changed.iter().map(|c| c.reason.clone().unwrap()).collect();
    let never = "NodeStatusNeverUpdated";
    assert_eq!(reasons, ["NodeStatusUnknown", never, never, never]);
}

#[test]
fn taints_follow_conditions_and_leave_others_alone() {
    let foreign = json!({"key": "mine", "effect": "NoSchedule"});
    let stale = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"});
    let wanted = |ready: &str, spec: Value| {
        judge(&node(Some(ready), spec), Some(at(0)), GRACE, at(1)).taints.map(|t| keys(&t))
    };
    assert_eq!(wanted("True", json!({})), None);
    assert_eq!(wanted("True", json!({"taints": [foreign]})), None);
    assert_eq!(
        wanted("True", json!({"taints": [stale, foreign]})),
        Some(vec!["mine:NoSchedule".to_owned()])
    );
    let not_ready =
        ["NoSchedule", "NoExecute"].map(|e| format!("node.kubernetes.io/not-ready:{e}"));
    assert_eq!(wanted("False", json!({})), Some(not_ready.to_vec()));
    let mut expected = vec!["mine:NoSchedule".to_owned()];
    expected
        .extend(["NoSchedule", "NoExecute"].map(|e| format!("node.kubernetes.io/unreachable:{e}")));
    expected.push("node.kubernetes.io/unschedulable:NoSchedule".to_owned());
    assert_eq!(
        wanted("Unknown", json!({"taints": [foreign], "unschedulable": true})),
        Some(expected)
    );
}

#[test]
fn when_a_pod_must_leave() {
    let pod = |tolerations: Value| -> Pod {
        let spec = json!({"containers": [], "tolerations": tolerations});
        serde_json::from_value(json!({"spec": spec})).unwrap()
    };
    let taint = Taint {
        key: "k".to_owned(),
        effect: "NoExecute".to_owned(),
        time_added: Some(at(10).into()),
        value: None,
    };
    for (tolerations, expected) in [
        (json!([]), Some(50)),
        (json!([{"operator": "Exists"}]), None),
        (json!([{"key": "k", "operator": "Exists", "tolerationSeconds": 300}]), Some(310)),
        (
            json!([
                {"key": "k", "operator": "Exists", "tolerationSeconds": 300},
                {"operator": "Exists", "tolerationSeconds": 5},
            ]),
            Some(15),
        ),
        (json!([{"key": "other", "operator": "Exists"}]), Some(50)),
    ] {
        let found = leaves_at(&pod(tolerations.clone()), &[&taint], at(50));
        assert_eq!(found, expected.map(at), "{tolerations}");
    }
    let mut going = pod(json!([]));
    going.metadata.deletion_timestamp = Some(at(0).into());
    assert_eq!(leaves_at(&going, &[&taint], at(50)), None);
}
