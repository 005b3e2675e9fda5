#![expect(clippy::needless_pass_by_value, reason = "tables of JSON read better by value")]

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::UncountedTerminatedPods;
use serde_json::{Value, json};

use super::*;

const START: &str = "2026-01-01T00:00:00Z";

fn job(spec: Value, status: Value) -> Job {
    let mut full = json!({"template": {}, "parallelism": 2, "completions": 3, "backoffLimit": 2});
    for (key, value) in spec.as_object().unwrap() {
        full[key] = value.clone();
    }
    serde_json::from_value(json!({"metadata": {"name": "j"}, "spec": full, "status": status}))
        .unwrap()
}

/// `name` and a mark: `r` running, `s` succeeded, `f` failed, `x` terminating; `'` without the
/// finalizer.
fn pods(text: &str) -> Vec<Arc<Pod>> {
    let pod = |word: &str| {
        let phase = match &word[1..2] {
            "s" => "Succeeded",
            "f" => "Failed",
            _ => "Running",
        };
        let finalizers = if word.ends_with('\'') { json!([]) } else { json!([FINALIZER]) };
        let deleted = (&word[1..2] == "x").then_some(START);
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {
                "name": &word[..1], "uid": &word[..1], "finalizers": finalizers,
                "deletionTimestamp": deleted,
                "annotations": {INDEX_ANNOTATION: &word[..1]},
            },
            "status": {"phase": phase, "containerStatuses": [{
                "name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
                "state": {"terminated": {"exitCode": 1, "finishedAt": START}},
            }]},
        }))
        .unwrap();
        Arc::new(pod)
    };
    text.split_whitespace().map(pod).collect()
}

fn at(seconds: i64) -> Timestamp {
    START.parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds)
}

fn conditions(plan: &Plan) -> Vec<&str> {
    plan.status.conditions.iter().flatten().map(|condition| condition.type_.as_str()).collect()
}

#[test]
fn how_many_pods_are_made() {
    for (spec, have, created) in [
        (json!({}), "", 2),
        (json!({}), "1r", 1),
        (json!({}), "1r 2r", 0),
        (json!({}), "1s 2r", 1),
        (json!({}), "1s 2s", 1),
        (json!({}), "1s 2s 3s", 0),
        (json!({"completions": null}), "1s 2r", 0),
        (json!({"completions": null}), "1r", 1),
        (json!({"suspend": true}), "", 0),
    ] {
        let plan = decide(&job(spec.clone(), json!({})), &pods(have), at(0));
        assert_eq!(plan.create.len(), created, "{spec} {have}");
    }
}

#[test]
fn a_pod_counts_once() {
    let first = decide(&job(json!({}), json!({})), &pods("1s 2r"), at(0));
    let uncounted = first.status.uncounted_terminated_pods.clone().unwrap();
    assert_eq!(uncounted.succeeded, Some(vec!["1".to_owned()]));
    assert_eq!((first.status.succeeded, first.let_go.len()), (None, 1));
    // Told twice, it is written down once; without its finalizer it is in the sum.
    let status = serde_json::to_value(&first.status).unwrap();
    let again = decide(&job(json!({}), status.clone()), &pods("1s 2r"), at(0));
    assert_eq!(again.status.uncounted_terminated_pods, first.status.uncounted_terminated_pods);
    let then = decide(&job(json!({}), status.clone()), &pods("1s' 2r"), at(0));
    assert_eq!(then.status.succeeded, Some(1));
    assert_eq!(then.status.uncounted_terminated_pods, Some(UncountedTerminatedPods::default()));
    let gone = decide(&job(json!({}), status), &pods("2r"), at(0));
    assert_eq!(gone.status.succeeded, Some(1));
}

#[test]
fn the_end_comes_when_everything_is_counted() {
    let plan = decide(&job(json!({}), json!({"succeeded": 2})), &pods("3s"), at(0));
    assert!(conditions(&plan).is_empty());
    let plan = decide(&job(json!({}), json!({"succeeded": 3})), &[], at(5));
    assert_eq!(conditions(&plan), ["SuccessCriteriaMet", "Complete"]);
    assert!(plan.status.completion_time.is_some());

    let failing = decide(&job(json!({}), json!({"failed": 3})), &pods("1r"), at(0));
    assert_eq!((conditions(&failing), failing.delete.len()), (vec!["FailureTarget"], 1));
    let failed = decide(&job(json!({}), json!({"failed": 3})), &[], at(0));
    assert_eq!(conditions(&failed), ["FailureTarget", "Failed"]);
    assert_eq!(failed.event.unwrap().1, "BackoffLimitExceeded");

    let late = job(json!({"activeDeadlineSeconds": 10}), json!({"startTime": START}));
    assert_eq!(decide(&late, &pods("1r"), at(9)).wake, Some(at(10)));
    assert_eq!(conditions(&decide(&late, &pods("1r"), at(10))), ["FailureTarget"]);
}

#[test]
fn failures_are_not_repeated_at_once() {
    let plan = decide(&job(json!({}), json!({})), &pods("1f"), at(3));
    assert_eq!((plan.create.len(), plan.wake), (0, Some(at(10))));
    assert_eq!(decide(&job(json!({}), json!({})), &pods("1f 2f"), at(3)).wake, Some(at(20)));
    assert_eq!(decide(&job(json!({}), json!({})), &pods("1f"), at(10)).create.len(), 2);
}

#[test]
fn indexes_are_handed_out_once() {
    let indexed = json!({"completionMode": "Indexed", "parallelism": 3, "completions": 4});
    let plan = decide(&job(indexed.clone(), json!({"completedIndexes": "0"})), &pods("2r"), at(0));
    assert_eq!(plan.create, [Some(1), Some(3)]);
    let plan = decide(&job(indexed, json!({"completedIndexes": "0"})), &pods("1s 2s 3s"), at(0));
    assert_eq!(plan.status.completed_indexes.as_deref(), Some("0-3"));
}

#[test]
fn a_finished_job_goes_when_its_time_is_up() {
    let status = json!({"conditions": [
        {"type": "Complete", "status": "True", "lastTransitionTime": START},
    ]});
    let job = job(json!({"ttlSecondsAfterFinished": 60}), status);
    let plan = decide(&job, &[], at(59));
    assert_eq!((plan.expired, plan.wake), (false, Some(at(60))));
    assert!(decide(&job, &[], at(60)).expired);
}
