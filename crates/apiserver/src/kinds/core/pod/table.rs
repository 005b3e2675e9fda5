//! The row of a pod: how many containers are ready, and one word for its state.

use jiff::Timestamp;
use serde_json::Value;

use super::super::super::{
    age::{age, between, time},
    check::flag,
    tables,
};
use crate::object;

/// The reason that the node controller gives pods of lost nodes.
const NODE_LOST: &str = "NodeLost";

#[derive(Default)]
struct Summary {
    reason: String,
    ready: usize,
    restarts: i64,
    last_restart: Option<Timestamp>,
}

/// The cells of a pod's row.
pub(super) fn cells(pod: &Value, now: Timestamp) -> Vec<Value> {
    let summary = summarize(pod);
    let sidecars = object::list(pod, &["spec", "initContainers"]).iter().filter(|c| is_sidecar(c));
    let total = object::list(pod, &["spec", "containers"]).len() + sidecars.count();
    let restarts = match summary.last_restart {
        Some(last) if summary.restarts != 0 => {
            format!("{} ({} ago)", summary.restarts, between(last, now))
        }
        _ => summary.restarts.to_string(),
    };
    let ip =
        object::list(pod, &["status", "podIPs"]).first().map_or("", |ip| object::text(ip, &["ip"]));
    vec![
        tables::name(pod),
        format!("{}/{total}", summary.ready).into(),
        summary.reason.into(),
        restarts.into(),
        age(pod, now),
        if ip.is_empty() { "<none>" } else { ip }.into(),
        tables::text_or(pod, &["spec", "nodeName"], "<none>"),
        tables::text_or(pod, &["status", "nominatedNodeName"], "<none>"),
        readiness_gates(pod).into(),
    ]
}

fn is_sidecar(container: &Value) -> bool {
    object::text(container, &["restartPolicy"]) == "Always"
}

fn summarize(pod: &Value) -> Summary {
    let phase = object::text(pod, &["status", "phase"]);
    let own_reason = object::text(pod, &["status", "reason"]);
    let reason = if own_reason.is_empty() { phase } else { own_reason }.to_owned();
    let mut summary = Summary { reason, ..Summary::default() };
    let gated = object::list(pod, &["status", "conditions"]).iter().any(|condition| {
        object::text(condition, &["type"]) == "PodScheduled"
            && object::text(condition, &["reason"]) == "SchedulingGated"
    });
    if gated {
        "SchedulingGated".clone_into(&mut summary.reason);
    }
    let mut sidecars = Summary::default();
    let initializing = initialize(pod, &mut summary, &mut sidecars);
    if !initializing || condition_is_true(pod, "Initialized") {
        summary.restarts = sidecars.restarts;
        summary.last_restart = sidecars.last_restart;
        run(pod, &mut summary);
    }
    if object::is_terminating(pod) {
        if own_reason == NODE_LOST {
            "Unknown".clone_into(&mut summary.reason);
        } else if !matches!(phase, "Failed" | "Succeeded") {
            "Terminating".clone_into(&mut summary.reason);
        }
    }
    summary
}

impl Summary {
    fn count_restarts(&mut self, status: &Value) {
        self.restarts += object::integer(status, &["restartCount"]).unwrap_or_default();
        let finished = time(status, &["lastState", "terminated", "finishedAt"]);
        self.last_restart = self.last_restart.max(finished);
    }
}

/// Looks at the init containers up to the first that is not done. Tells whether there is one.
fn initialize(pod: &Value, summary: &mut Summary, sidecars: &mut Summary) -> bool {
    let specs = object::list(pod, &["spec", "initContainers"]);
    let statuses = object::list(pod, &["status", "initContainerStatuses"]);
    for (i, status) in statuses.iter().enumerate() {
        let name = object::text(status, &["name"]);
        let sidecar = specs.iter().any(|c| object::text(c, &["name"]) == name && is_sidecar(c));
        summary.count_restarts(status);
        if sidecar {
            sidecars.count_restarts(status);
        }
        let terminated = object::get(status, &["state", "terminated"]);
        let waiting = object::text(status, &["state", "waiting", "reason"]);
        if terminated.is_some_and(|t| exit_code(t) == 0) {
            continue;
        }
        if sidecar && flag(status, &["started"]) {
            summary.ready += usize::from(flag(status, &["ready"]));
            continue;
        }
        summary.reason = match terminated {
            Some(terminated) => format!("Init:{}", end(terminated)),
            None if !waiting.is_empty() && waiting != "PodInitializing" => {
                format!("Init:{waiting}")
            }
            None => format!("Init:{i}/{}", specs.len()),
        };
        return true;
    }
    false
}

fn run(pod: &Value, summary: &mut Summary) {
    let mut running = false;
    let mut error = String::new();
    for status in object::list(pod, &["status", "containerStatuses"]).iter().rev() {
        summary.count_restarts(status);
        let waiting = object::text(status, &["state", "waiting", "reason"]);
        if !waiting.is_empty() {
            waiting.clone_into(&mut summary.reason);
        } else if let Some(terminated) = object::get(status, &["state", "terminated"]) {
            summary.reason = end(terminated);
            if exit_code(terminated) != 0 {
                error.clone_from(&summary.reason);
            }
        } else if flag(status, &["ready"]) && object::get(status, &["state", "running"]).is_some() {
            running = true;
            summary.ready += 1;
        }
    }
    if summary.reason == "Completed" {
        if running && condition_is_true(pod, "Ready") {
            "Running".clone_into(&mut summary.reason);
        } else if !error.is_empty() {
            summary.reason = error;
        } else if running {
            "NotReady".clone_into(&mut summary.reason);
        }
    }
}

fn exit_code(terminated: &Value) -> i64 {
    object::integer(terminated, &["exitCode"]).unwrap_or_default()
}

/// One word for how a container ended.
fn end(terminated: &Value) -> String {
    let reason = object::text(terminated, &["reason"]);
    let signal = object::integer(terminated, &["signal"]).unwrap_or_default();
    if !reason.is_empty() {
        reason.to_owned()
    } else if signal != 0 {
        format!("Signal:{signal}")
    } else {
        format!("ExitCode:{}", exit_code(terminated))
    }
}

fn condition_is_true(pod: &Value, kind: &str) -> bool {
    object::list(pod, &["status", "conditions"]).iter().any(|condition| {
        object::text(condition, &["type"]) == kind && object::text(condition, &["status"]) == "True"
    })
}

fn readiness_gates(pod: &Value) -> String {
    let gates = object::list(pod, &["spec", "readinessGates"]);
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let open = gates
        .iter()
        .filter(|gate| condition_is_true(pod, object::text(gate, &["conditionType"])))
        .count();
    format!("{open}/{}", gates.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(pod: &Value) -> Vec<Value> {
        let now = "2026-01-01T00:10:00Z".parse().unwrap();
        cells(pod, now).into_iter().skip(1).take(3).collect()
    }

    fn pod(status: &Value) -> Value {
        json!({
            "metadata": {"name": "p"},
            "spec": {
                "containers": [{"name": "a"}, {"name": "b"}],
                "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}],
            },
            "status": status,
        })
    }

    #[test]
    fn one_word_tells_the_state() {
        let running = json!({"name": "a", "ready": true, "state": {"running": {}}});
        let done = json!({"name": "i", "state": {"terminated": {"exitCode": 0}}});
        let cases = [
            (json!({"phase": "Pending"}), ["0/3", "Pending", "0"]),
            (json!({"phase": "Failed", "reason": "Evicted"}), ["0/3", "Evicted", "0"]),
            (
                json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"waiting": {"reason": "PodInitializing"}}}]}),
                ["0/3", "Init:0/2", "0"],
            ),
            (
                json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}),
                ["0/3", "Init:CrashLoopBackOff", "2"],
            ),
            (
                json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"terminated": {"exitCode": 3}}}]}),
                ["0/3", "Init:ExitCode:3", "0"],
            ),
            (
                json!({
                    "phase": "Running",
                    "initContainerStatuses": [done, {"name": "s", "started": true, "ready": true, "state": {"running": {}}}],
                    "containerStatuses": [running, {"name": "b", "restartCount": 4, "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"finishedAt": "2026-01-01T00:09:00Z"}}}],
                }),
                ["2/3", "CrashLoopBackOff", "4 (60s ago)"],
            ),
            (
                json!({
                    "phase": "Running",
                    "containerStatuses": [running, {"name": "b", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}],
                }),
                ["1/3", "NotReady", "0"],
            ),
            (
                json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}),
                ["0/3", "SchedulingGated", "0"],
            ),
        ];
        for (status, expected) in cases {
            assert_eq!(row(&pod(&status)), expected.map(Value::from), "{status}");
        }
        let mut terminating = pod(&json!({"phase": "Running"}));
        terminating["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert_eq!(row(&terminating)[1], "Terminating");
        terminating["status"]["reason"] = NODE_LOST.into();
        assert_eq!(row(&terminating)[1], "Unknown");
    }
}
