#![expect(clippy::needless_pass_by_value, reason = "tables of JSON read better by value")]

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::{
    pod::{Next, Surroundings, next},
    script::{READY_AFTER, TERMINATES_IN},
};
use crate::{facts, settings::KubeletSettings};

const START: &str = "2026-01-01T00:00:00Z";

fn at(seconds: i64) -> Timestamp {
    START.parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds)
}

fn pod(policy: &str, command: Value, annotations: Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": "p", "namespace": "n", "uid": "u", "annotations": annotations},
        "spec": {
            "nodeName": "node",
            "restartPolicy": policy,
            "containers": [{"name": "c", "image": "i", "command": command}],
        },
    }))
    .unwrap()
}

/// One look of the kubelet, stored as a server stores it.
fn look(pod: &mut Pod, up_since: i64, now: i64) -> Next {
    let around = Surroundings {
        up_since: at(up_since) + SignedDuration::from_millis(i64::from(up_since != 0)),
        host_ip: Some("10.0.0.1".to_owned()),
        pod_ip: Some("10.128.0.1".to_owned()),
    };
    let now = at(now) + SignedDuration::from_millis(2);
    let next = next(pod, &around, &KubeletSettings::default(), now);
    if let Some(status) = &next.status {
        pod.status = serde_json::from_value(serde_json::to_value(status).unwrap()).unwrap();
    }
    next
}

/// Phase, readiness, state of the container and how often it was restarted.
fn show(pod: &Pod) -> String {
    let status = pod.status.as_ref().unwrap();
    let container = &status.container_statuses.as_ref().unwrap()[0];
    let state = container.state.as_ref().unwrap();
    let state = if let Some(waiting) = &state.waiting {
        waiting.reason.clone().unwrap()
    } else if let Some(end) = &state.terminated {
        format!("ended {}", end.exit_code)
    } else {
        "running".to_owned()
    };
    let ready = if facts::pod::is_ready(pod) { "ready" } else { "unready" };
    format!("{} {ready} {state} {}", facts::pod::phase(pod), container.restart_count)
}

/// Looks whenever the kubelet wants to, up to a time.
fn run(pod: &mut Pod, from: i64, to: i64) -> Vec<String> {
    let mut shown = Vec::new();
    let mut now = from;
    while now <= to {
        let found = look(pod, 0, now);
        if found.status.is_some() {
            shown.push(format!("{now}: {}", show(pod)));
        }
        assert_eq!(look(pod, 0, now).status, None, "a second look at {now} changes nothing");
        let Some(wake) = found.wake else { break };
        now = (wake.as_second() - at(0).as_second()).max(now + 1);
    }
    shown
}

#[test]
fn containers_that_run_and_end() {
    for (policy, command, annotations, expected) in [
        (
            "Always",
            json!([]),
            json!({}),
            vec!["0: Pending unready ContainerCreating 0", "1: Running ready running 0"],
        ),
        (
            "Always",
            json!([]),
            json!({READY_AFTER: "10s"}),
            vec![
                "0: Pending unready ContainerCreating 0",
                "1: Running unready running 0",
                "11: Running ready running 0",
            ],
        ),
        (
            "Never",
            json!(["sleep", "5"]),
            json!({}),
            vec![
                "0: Pending unready ContainerCreating 0",
                "1: Running ready running 0",
                "6: Succeeded unready ended 0 0",
            ],
        ),
        (
            "Never",
            json!(["false"]),
            json!({}),
            vec!["0: Pending unready ContainerCreating 0", "1: Failed unready ended 1 0"],
        ),
        (
            "OnFailure",
            json!(["sh", "-c", "sleep 5; exit 2"]),
            json!({}),
            vec![
                "0: Pending unready ContainerCreating 0",
                "1: Running ready running 0",
                "6: Running ready running 1",
                "11: Running unready CrashLoopBackOff 1",
                "21: Running ready running 2",
                "26: Running unready CrashLoopBackOff 2",
            ],
        ),
    ] {
        let mut pod = pod(policy, command, annotations);
        assert_eq!(run(&mut pod, 0, 40), expected);
    }
}

#[test]
fn a_machine_that_restarts_restarts_its_containers_once() {
    let mut pod = pod("Always", json!([]), json!({}));
    run(&mut pod, 0, 10);
    assert!(look(&mut pod, 20, 22).status.is_some());
    assert_eq!(show(&pod), "Running ready running 1");
    assert_eq!(look(&mut pod, 20, 22), Next::default());
    assert_eq!(look(&mut pod, 20, 30), Next::default());
}

#[test]
fn how_long_a_pod_takes_to_stop() {
    for (annotation, grace, end) in [("5s", 30, 5), ("1h", 30, 30), ("0s", 30, 0)] {
        let mut pod = pod("Always", json!([]), json!({TERMINATES_IN: annotation}));
        run(&mut pod, 0, 10);
        pod.metadata.deletion_timestamp = Some(at(100 + grace).into());
        pod.metadata.deletion_grace_period_seconds = Some(grace);
        if end > 0 {
            let early = look(&mut pod, 0, 100);
            assert_eq!((early.delete, early.wake), (false, Some(at(100 + end))));
        }
        let next = look(&mut pod, 0, 100 + end);
        assert!(next.delete && next.status.is_none());
        // Somebody who keeps it sees how it ended.
        pod.metadata.finalizers = Some(vec!["keep".to_owned()]);
        assert!(look(&mut pod, 0, 100 + end).delete);
        assert_eq!(show(&pod), "Failed unready ended 137 0");
    }
}
