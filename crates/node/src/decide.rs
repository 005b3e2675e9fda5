//! What to write and when to look again: plain functions over a Node and the notices that stand.

use std::time::Duration;

use fleetwright_api::names::{annotation, condition, label, message, reason};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use kube::ResourceExt as _;
use serde_json::{Map, Value, json};

use crate::{
    notice::{Kind, Notice, origin},
    source::Looked,
};

/// The longest wait after a failure: a notice may be for thirty seconds only.
pub const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// The first wait after a failure.
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// How long to wait before the next look or attempt. `chance` is from 0 to 1 and spreads the
/// nodes of a fleet; the wait is never longer than `interval`, or [`LONGEST_WAIT`] after failures.
pub fn next_wait(interval: Duration, failures: u32, chance: f64) -> Duration {
    let longest = match failures {
        0 => interval,
        failures => {
            let doubled = FIRST_WAIT.saturating_mul(1 << (failures - 1).min(8));
            doubled.min(LONGEST_WAIT)
        }
    };
    longest.mul_f64(1.0 - 0.2 * chance.clamp(0.0, 1.0))
}

/// The notices that stand after a look: those that cannot be taken back stay, and those that can
/// stay until a look that succeeded does not find them. Time that was granted once is not counted
/// on to grow, as it seems to with a service that says the time of the question and two minutes.
pub fn standing(before: &[Notice], looked: &Looked) -> Vec<Notice> {
    let found = |notice: &Notice| looked.notices.iter().any(|other| other.id == notice.id);
    let unsure = !looked.troubles.is_empty();
    let kept = before.iter().filter(|notice| !found(notice) && (unsure || !notice.revocable));
    let earliest = |notice: &Notice| {
        let same = before.iter().find(|old| old.id == notice.id && !notice.revocable);
        let known = same.and_then(|old| old.deadline);
        let deadline = notice.deadline.into_iter().chain(known).min();
        Notice { deadline, ..notice.clone() }
    };
    kept.cloned().chain(looked.notices.iter().map(earliest)).collect()
}

/// What is to be written to a Node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// A strategic merge patch of its status, which carries annotations, too.
    pub status: Option<Value>,
    /// A strategic merge patch of the Node itself.
    pub node: Option<Value>,
}

impl Plan {
    /// Whether the Node is as it should be.
    pub fn is_empty(&self) -> bool {
        self.status.is_none() && self.node.is_none()
    }
}

/// What a Node lacks. `certain` says that the notices are all there are, so that a mark without a
/// notice may be taken back.
pub fn plan(node: &Node, notices: &[Notice], certain: bool, now: Timestamp) -> Plan {
    let ending = notices
        .iter()
        .filter(|notice| notice.kind == Kind::Termination)
        .min_by_key(|notice| notice.deadline.unwrap_or(Timestamp::MAX));
    let mut plan = match ending {
        Some(notice) => mark(node, notice, now),
        None if certain && is_revoked(node) => revoke(node, now),
        None => Plan::default(),
    };
    if notices.iter().any(|notice| notice.kind == Kind::Rebalance)
        && !is_true(node, condition::REBALANCE_RECOMMENDED)
    {
        let rebalance = entry(
            condition::REBALANCE_RECOMMENDED,
            ("True", reason::INTERRUPTION_LIKELY, message::REBALANCE_RECOMMENDED),
            now,
        );
        let status = plan.status.get_or_insert_with(|| of_same(node));
        match status["status"]["conditions"].as_array_mut() {
            Some(conditions) => conditions.push(rebalance),
            None => status["status"]["conditions"] = json!([rebalance]),
        }
    }
    plan
}

/// The condition goes first and alone: it starts everything else. A condition that is True
/// already is not touched.
fn mark(node: &Node, notice: &Notice, now: Timestamp) -> Plan {
    let mut status = of_same(node);
    let mut missing = Map::new();
    let deadline = notice.deadline.map(seconds);
    for (key, value) in [
        (annotation::TERMINATION_DEADLINE, deadline.as_deref()),
        (annotation::TERMINATION_SOURCE, Some(notice.origin)),
    ] {
        if let Some(value) = value
            && node.annotations().get(key).map(String::as_str) != Some(value)
        {
            missing.insert(key.to_owned(), value.into());
        }
    }
    let marked = is_true(node, condition::TERMINATING);
    let change = !marked || !missing.is_empty();
    if !missing.is_empty() {
        status["metadata"]["annotations"] = missing.into();
    }
    if !marked {
        let words = ("True", reason::TERMINATION_REQUESTED, message::TERMINATING);
        status["status"]["conditions"] = json!([entry(condition::TERMINATING, words, now)]);
    }
    // A node of the control plane that is cordoned would be drained without a second thought.
    let cordon = !is_control_plane(node) && !is_cordoned(node);
    let cordon = cordon.then(|| {
        let mut patch = of_same(node);
        patch["metadata"]["annotations"] = json!({annotation::CORDONED_BY_HANDLER: "true"});
        patch["spec"] = json!({"unschedulable": true});
        patch
    });
    Plan { status: change.then_some(status), node: cordon }
}

/// A mark that came from a notice which can be taken back.
fn is_revoked(node: &Node) -> bool {
    let source = node.annotations().get(annotation::TERMINATION_SOURCE).map(String::as_str);
    is_true(node, condition::TERMINATING)
        && matches!(source, Some(origin::AWS_SCHEDULED | origin::AZURE_REBALANCE))
}

fn revoke(node: &Node, now: Timestamp) -> Plan {
    let words = ("False", reason::TERMINATION_CANCELLED, message::TERMINATION_CANCELLED);
    let mut status = of_same(node);
    status["metadata"]["annotations"] = json!({
        annotation::TERMINATION_DEADLINE: null,
        annotation::TERMINATION_SOURCE: null,
    });
    status["status"]["conditions"] = json!([entry(condition::TERMINATING, words, now)]);
    let ours = node.annotations().contains_key(annotation::CORDONED_BY_HANDLER);
    let uncordon = ours.then(|| {
        let mut patch = of_same(node);
        patch["metadata"]["annotations"] = json!({annotation::CORDONED_BY_HANDLER: null});
        patch["spec"] = json!({"unschedulable": null});
        patch
    });
    Plan { status: Some(status), node: uncordon }
}

/// The beginning of a patch that fails on another Node of the same name.
fn of_same(node: &Node) -> Value {
    match &node.metadata.uid {
        Some(uid) => json!({"metadata": {"uid": uid}}),
        None => json!({"metadata": {}}),
    }
}

fn entry(kind: &str, (status, reason, message): (&str, &str, &str), now: Timestamp) -> Value {
    json!({
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": seconds(now),
        "lastTransitionTime": seconds(now),
    })
}

/// As Kubernetes writes times.
fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn is_true(node: &Node, kind: &str) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref());
    let is = |known: &NodeCondition| known.type_ == kind && known.status == "True";
    conditions.unwrap_or_default().iter().any(is)
}

fn is_control_plane(node: &Node) -> bool {
    [label::NODE_ROLE_MASTER, label::NODE_ROLE_CONTROL_PLANE]
        .iter()
        .any(|role| node.labels().contains_key(*role))
}

fn is_cordoned(node: &Node) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or_default()
}

/// What to do about an attempt to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// It is written.
    Done,
    /// Try again as it is.
    Again,
    /// Read the credentials again first: they may have been rotated.
    WithNewCredentials,
}

/// What to do by the status of an answer; none when there was no answer. Nothing is final: the
/// cause may pass before the instance does.
pub fn after_write(status: Option<u16>) -> Retry {
    match status {
        Some(200..=299) => Retry::Done,
        // A certificate that ended can show in the handshake, too.
        Some(401) | None => Retry::WithNewCredentials,
        Some(_) => Retry::Again,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + second).unwrap()
    }

    fn notice(origin: &'static str, deadline: i64) -> Notice {
        Notice {
            kind: Kind::Termination,
            deadline: Some(at(deadline)),
            id: format!("{origin}-{deadline}"),
            origin,
            revocable: origin == origin::AWS_SCHEDULED,
        }
    }

    fn rebalance() -> Notice {
        Notice {
            kind: Kind::Rebalance,
            deadline: None,
            id: "r".into(),
            origin: origin::AWS_REBALANCE,
            revocable: false,
        }
    }

    fn node(json: Value) -> Node {
        serde_json::from_value(json).unwrap()
    }

    /// A Node after a patch, as far as these tests need it.
    fn patched(node: &Node, plan: &Plan) -> Node {
        let mut value = serde_json::to_value(node).unwrap();
        for patch in [&plan.status, &plan.node].into_iter().flatten() {
            for (key, change) in patch["metadata"]["annotations"].as_object().into_iter().flatten()
            {
                value["metadata"]["annotations"][key] = change.clone();
            }
            for condition in patch["status"]["conditions"].as_array().into_iter().flatten() {
                let known = value["status"]["conditions"].as_array().cloned().unwrap_or_default();
                let mut kept: Vec<Value> =
                    known.into_iter().filter(|c| c["type"] != condition["type"]).collect();
                kept.push(condition.clone());
                value["status"]["conditions"] = kept.into();
            }
            if let Some(unschedulable) = patch["spec"].get("unschedulable") {
                value["spec"]["unschedulable"] = unschedulable.clone();
            }
        }
        let annotations = value["metadata"]["annotations"].as_object_mut();
        if let Some(annotations) = annotations {
            annotations.retain(|_, value| !value.is_null());
        }
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn waits_are_short_and_spread() {
        let interval = Duration::from_secs(5);
        assert_eq!(next_wait(interval, 0, 0.0), interval);
        assert_eq!(next_wait(interval, 0, 1.0), Duration::from_secs(4));
        let mut last = Duration::ZERO;
        for failures in 1..100 {
            let wait = next_wait(interval, failures, 0.0);
            assert!(wait >= last && wait <= LONGEST_WAIT, "{failures}: {wait:?}");
            assert!(next_wait(interval, failures, 1.0) < wait);
            last = wait;
        }
        assert_eq!((next_wait(interval, 1, 0.0), last), (FIRST_WAIT, LONGEST_WAIT));
    }

    #[test]
    fn the_mark_is_exact_and_made_once() {
        let worker = node(json!({"metadata": {"name": "n", "uid": "u"}}));
        let notices = [notice(origin::AWS_SPOT, 300), notice(origin::AWS_SCHEDULED, 120)];
        let made = plan(&worker, &notices, true, at(0));
        assert_eq!(
            made.status,
            Some(json!({
                "metadata": {"uid": "u", "annotations": {
                    "machine.openshift.io/termination-deadline": "2026-01-01T00:02:00Z",
                    "machine.openshift.io/termination-source": "aws/scheduled-event",
                }},
                "status": {"conditions": [{
                    "type": "Terminating",
                    "status": "True",
                    "reason": "TerminationRequested",
                    "message": "The cloud provider has marked this instance for termination",
                    "lastHeartbeatTime": "2026-01-01T00:00:00Z",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }]},
            }))
        );
        let marked = patched(&worker, &made);
        assert_eq!(marked.spec.as_ref().unwrap().unschedulable, Some(true));
        assert!(plan(&marked, &notices, true, at(9)).is_empty());
    }

    #[test]
    fn a_mark_by_somebody_else_is_left_and_the_deadline_added() {
        let marked = node(json!({"metadata": {"name": "n"}, "spec": {"unschedulable": true},
            "status": {"conditions": [{"type": "Terminating", "status": "True"}]}}));
        let made = plan(&marked, &[notice(origin::AWS_SPOT, 120)], true, at(0));
        assert_eq!(made.node, None);
        let status = made.status.unwrap();
        assert!(status.get("status").is_none(), "{status}");
        assert!(plan(&marked, &[], true, at(0)).is_empty());
    }

    #[test]
    fn nodes_of_the_control_plane_are_not_cordoned() {
        for role in ["master", "control-plane"] {
            let node = node(json!({"metadata": {"name": "n",
                "labels": {format!("node-role.kubernetes.io/{role}"): ""}}}));
            let made = plan(&node, &[notice(origin::AWS_SPOT, 120)], true, at(0));
            assert!(made.status.is_some() && made.node.is_none());
        }
    }

    #[test]
    fn a_rebalance_has_a_condition_of_its_own() {
        let worker = node(json!({"metadata": {"name": "n"}}));
        let made = plan(&worker, &[rebalance()], true, at(0));
        assert_eq!(made.node, None);
        let conditions = made.status.as_ref().unwrap()["status"]["conditions"].clone();
        assert_eq!(conditions.as_array().unwrap().len(), 1);
        assert_eq!(conditions[0]["type"], "RebalanceRecommended");
        assert!(plan(&patched(&worker, &made), &[rebalance()], true, at(1)).is_empty());
        let both = [rebalance(), notice(origin::AWS_SPOT, 120)];
        let made = plan(&worker, &both, true, at(0)).status.unwrap();
        assert_eq!(made["status"]["conditions"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn what_was_cancelled_is_taken_back() {
        let worker = node(json!({"metadata": {"name": "n"}}));
        let scheduled = [notice(origin::AWS_SCHEDULED, 120)];
        let marked = patched(&worker, &plan(&worker, &scheduled, true, at(0)));
        assert!(plan(&marked, &[], false, at(1)).is_empty(), "nothing is known for certain");
        let made = plan(&marked, &[], true, at(1));
        let back = patched(&marked, &made);
        assert!(!is_true(&back, condition::TERMINATING) && !is_cordoned(&back));
        assert!(back.annotations().is_empty());
        assert!(plan(&back, &[], true, at(2)).is_empty());
        // The spot market does not change its mind.
        let spot = patched(&worker, &plan(&worker, &[notice(origin::AWS_SPOT, 1)], true, at(0)));
        assert!(plan(&spot, &[], true, at(1)).is_empty());
        // Somebody else's cordon stays.
        let cordoned = node(json!({"metadata": {"name": "n"}, "spec": {"unschedulable": true}}));
        let marked = patched(&cordoned, &plan(&cordoned, &scheduled, true, at(0)));
        assert_eq!(plan(&marked, &[], true, at(1)).node, None);
    }

    #[test]
    fn which_notices_stand() {
        let (spot, event) = (notice(origin::AWS_SPOT, 1), notice(origin::AWS_SCHEDULED, 2));
        let before = [spot.clone(), event.clone()];
        let failed = Looked {
            notices: vec![],
            troubles: vec![crate::trouble::Trouble::unreadable("x", "y")],
        };
        assert_eq!(standing(&before, &failed), before);
        assert_eq!(standing(&before, &Looked::default()), std::slice::from_ref(&spot));
        let again = Looked { notices: vec![event.clone()], troubles: vec![] };
        assert_eq!(standing(&before, &again), [spot.clone(), event.clone()]);
        // Another time for the same: sooner counts, later only of what can be taken back.
        let later = |notice: &Notice| Notice { deadline: Some(at(99)), ..notice.clone() };
        let moved = Looked { notices: vec![later(&spot), later(&event)], troubles: vec![] };
        assert_eq!(standing(&before, &moved), [spot.clone(), later(&event)]);
        let before = [later(&spot)];
        let sooner = Looked { notices: vec![spot.clone()], troubles: vec![] };
        assert_eq!(standing(&before, &sooner), [spot]);
    }
}
