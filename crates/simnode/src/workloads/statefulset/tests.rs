#![expect(clippy::needless_pass_by_value, reason = "tables of JSON read better by value")]

use serde_json::json;

use super::*;

fn set(replicas: i32, more: serde_json::Value) -> StatefulSet {
    let mut spec = json!({
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "db"}},
        "template": {},
    });
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    serde_json::from_value(json!({"metadata": {"name": "db", "uid": "db"}, "spec": spec})).unwrap()
}

/// `ordinal`, `version` and a mark: `+` available, `-` not, `x` terminating, `f` failed.
fn pods(text: &str) -> Vec<Arc<Pod>> {
    let pod = |word: &str| {
        let (number, rest) = word.split_at(1);
        let (version, mark) = rest.split_at(1);
        let ready = if mark == "+" { "True" } else { "False" };
        let phase = if mark == "f" { "Failed" } else { "Running" };
        let gone = (mark == "x").then_some("2026-01-01T00:00:00Z");
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {
                "name": format!("db-{number}"),
                "labels": {VERSION_LABEL: version},
                "deletionTimestamp": gone,
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "db",
                    "controller": true,
                }],
            },
            "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]},
        }))
        .unwrap();
        Arc::new(pod)
    };
    text.split_whitespace().map(pod).collect()
}

#[test]
fn one_step_at_a_time() {
    let parallel = json!({"podManagementPolicy": "Parallel"});
    let partition = json!({"updateStrategy": {"rollingUpdate": {"partition": 1}}});
    let on_delete = json!({"updateStrategy": {"type": "OnDelete"}});
    for (replicas, more, have, expected) in [
        (3, json!({}), "", "+0b"),
        (3, parallel.clone(), "", "+0b +1b +2b"),
        (3, json!({}), "0b-", ""),
        (3, json!({}), "0b+", "+1b"),
        (3, json!({}), "0b+ 2b+", "+1b"),
        (3, json!({}), "0bx 1b+", ""),
        (3, json!({}), "0bf 1b+", "-0"),
        (2, json!({}), "0b+ 1b+ 2b+ 3b+", "-3"),
        (2, json!({}), "0b+ 1b+ 2b+ 3bx", ""),
        (2, json!({}), "0b+ 1b- 2b+", ""),
        (1, parallel, "0b+ 1b+ 2b+", "-2 -1"),
        (3, json!({}), "0a+ 1a+ 2a+", "-2"),
        (3, json!({}), "0a+ 1a+ 2b-", ""),
        (3, json!({}), "0a+ 1a+ 2b+", "-1"),
        (3, partition.clone(), "0a+ 1b+ 2b+", ""),
        (3, partition, "1b+ 2b+", "+0a"),
        (3, on_delete, "0a+ 1a+ 2a+", ""),
        (2, json!({"ordinals": {"start": 5}}), "5b+", "+6b"),
    ] {
        let plan = decide(&set(replicas, more), &pods(have), "a", "b", jiff::Timestamp::MAX);
        let created = plan.create.iter().map(|(ordinal, version)| format!("+{ordinal}{version}"));
        let deleted = plan
            .delete
            .iter()
            .map(|pod| pod.metadata.name.clone().unwrap_or_default().replace("db", ""));
        let steps: Vec<String> = created.chain(deleted).collect();
        assert_eq!(steps.join(" "), expected, "{replicas} of {have}");
    }
}

#[test]
fn a_rollout_that_is_done_makes_the_new_version_current() {
    let status =
        |have| decide(&set(2, json!({})), &pods(have), "a", "b", jiff::Timestamp::MAX).status;
    assert_eq!(status("0a+ 1b+").current_revision.as_deref(), Some("a"));
    let done = status("0b+ 1b+");
    assert_eq!(done.current_revision.as_deref(), Some("b"));
    assert_eq!((done.replicas, done.ready_replicas, done.updated_replicas), (2, Some(2), Some(2)));
}
