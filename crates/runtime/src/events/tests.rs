use http::Method;
use serde_json::Value;
use tokio::time::sleep;

use super::*;
use crate::fake_api::{FakeApi, Fault};

const EVENTS: &str = "/api/v1/namespaces/default/events";

fn about(name: &str) -> ObjectReference {
    ObjectReference {
        kind: Some("Machine".into()),
        api_version: Some("machine.openshift.io/v1beta1".into()),
        namespace: Some("default".into()),
        name: Some(name.into()),
        uid: Some(format!("uid-{name}")),
        ..ObjectReference::default()
    }
}

async fn recording(api: &FakeApi, metrics: &Metrics, test: impl AsyncFnOnce(&EventRecorder)) {
    let clock = Clock::simulated("2026-01-01T00:00:00Z".parse().unwrap());
    let (recorder, writer) = EventRecorder::new(
        api.client(),
        "machine-controller",
        "host-1",
        clock,
        &Random::seeded(1),
        metrics,
    );
    let stop = CancellationToken::new();
    let test = async {
        test(&recorder).await;
        stop.cancel();
    };
    tokio::join!(writer.run(stop.clone()), test);
}

fn count(metrics: &Metrics, name: &str) -> u64 {
    let text = metrics.text().unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().parse().unwrap()
}

fn messages(events: &[Value]) -> Vec<(String, u64)> {
    let text = |event: &Value| event["message"].as_str().unwrap().to_owned();
    events.iter().map(|event| (text(event), event["count"].as_u64().unwrap())).collect()
}

#[tokio::test(start_paused = true)]
async fn an_event_has_all_that_describe_shows() {
    let (api, metrics) = (FakeApi::new(), Metrics::new());
    recording(&api, &metrics, async |recorder| {
        recorder.record(&about("a"), EventType::Warning, "FailedCreate", "no capacity");
    })
    .await;
    let mut events = api.objects(EVENTS);
    assert_eq!(events.len(), 1);
    let event = &mut events[0];
    assert_eq!(event["metadata"]["name"], "a.18867251edfa0000");
    event["metadata"] = Value::Null;
    assert_eq!(
        *event,
        json!({
            "apiVersion": "v1", "kind": "Event", "metadata": null,
            "count": 1, "reason": "FailedCreate", "message": "no capacity", "type": "Warning",
            "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
            "involvedObject": {
                "kind": "Machine", "apiVersion": "machine.openshift.io/v1beta1",
                "name": "a", "namespace": "default", "uid": "uid-a",
            },
            "source": {"component": "machine-controller", "host": "host-1"},
            "reportingComponent": "machine-controller", "reportingInstance": "host-1",
        })
    );
}

#[tokio::test(start_paused = true)]
async fn the_same_again_raises_the_count() {
    let (api, metrics) = (FakeApi::new(), Metrics::new());
    recording(&api, &metrics, async |recorder| {
        for _ in 0..3 {
            recorder.record(&about("a"), EventType::Normal, "Created", "created");
            recorder.record(&about("b"), EventType::Normal, "Created", "created");
            sleep(Duration::from_secs(10)).await;
        }
    })
    .await;
    let events = api.objects(EVENTS);
    assert_eq!(messages(&events), [("created".into(), 3), ("created".into(), 3)]);
    assert_eq!(events[0]["firstTimestamp"], "2026-01-01T00:00:00Z");
    assert_eq!(events[0]["lastTimestamp"].as_str().unwrap()[..19], *"2026-01-01T00:00:20");
    let patches = api.requests().iter().filter(|line| line.starts_with("PATCH")).count();
    assert_eq!(patches, 4);
}

#[tokio::test(start_paused = true)]
async fn events_that_differ_only_in_their_message_become_one() {
    let (api, metrics) = (FakeApi::new(), Metrics::new());
    recording(&api, &metrics, async |recorder| {
        for attempt in 0..13 {
            let message = format!("attempt {attempt}");
            recorder.record(&about("a"), EventType::Warning, "Failed", &message);
            sleep(Duration::from_secs(1)).await;
        }
    })
    .await;
    let events = messages(&api.objects(EVENTS));
    assert_eq!(events.len(), 10);
    assert_eq!(events[9], ("(combined from similar events): attempt 12".into(), 4));
}

#[tokio::test(start_paused = true)]
async fn a_chatty_object_gets_its_share_and_no_more() {
    let (api, metrics) = (FakeApi::new(), Metrics::new());
    recording(&api, &metrics, async |recorder| {
        for _ in 0..40 {
            recorder.record(&about("a"), EventType::Normal, "Same", "same");
        }
        recorder.record(&about("b"), EventType::Normal, "Same", "same");
        sleep(Duration::from_mins(5)).await;
        recorder.record(&about("a"), EventType::Normal, "Same", "same");
    })
    .await;
    assert_eq!(messages(&api.objects(EVENTS)), [("same".into(), 41), ("same".into(), 1)]);
    assert_eq!(count(&metrics, "fleetwright_events_filtered_total"), 15);
    assert_eq!(count(&metrics, "fleetwright_events_written_total"), 27);
}

#[tokio::test(start_paused = true)]
async fn recording_never_waits_even_when_nothing_is_written() {
    let (api, metrics) = (FakeApi::new(), Metrics::new());
    api.fail(10_000, Method::POST, "", Fault::Hang);
    recording(&api, &metrics, async |recorder| {
        for number in 0..1200 {
            recorder.record(&about(&format!("m{number}")), EventType::Normal, "R", "m");
            if number == 0 {
                sleep(Duration::from_secs(1)).await;
            }
        }
    })
    .await;
    assert_eq!(count(&metrics, "fleetwright_events_dropped_total"), 199);
    assert_eq!(count(&metrics, "fleetwright_events_failed_total"), 1001);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_tried_again_and_a_refusal_is_not() {
    let (api, metrics) = (FakeApi::new(), Metrics::new());
    api.fail(1, Method::POST, "", Fault::Hang);
    api.fail(1, Method::POST, "", Fault::Refuse(403));
    recording(&api, &metrics, async |recorder| {
        recorder.record(&about("a"), EventType::Normal, "R", "m");
        sleep(Duration::from_mins(2)).await;
        recorder.record(&about("b"), EventType::Normal, "R", "m");
        sleep(Duration::from_mins(2)).await;
    })
    .await;
    let posts = api.requests().iter().filter(|line| line.starts_with("POST")).count();
    assert_eq!(posts, 3, "hung, refused, written");
    assert_eq!(count(&metrics, "fleetwright_events_failed_total"), 1);
    assert_eq!(count(&metrics, "fleetwright_events_written_total"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_expired_event_is_written_anew() {
    let (api, metrics) = (FakeApi::new(), Metrics::new());
    recording(&api, &metrics, async |recorder| {
        recorder.record(&about("a"), EventType::Normal, "R", "m");
        sleep(Duration::from_secs(1)).await;
        let name = api.objects(EVENTS)[0]["metadata"]["name"].as_str().unwrap().to_owned();
        api.vanish(EVENTS, &name);
        recorder.record(&about("a"), EventType::Normal, "R", "m");
    })
    .await;
    assert_eq!(messages(&api.objects(EVENTS)), [("m".into(), 2)]);
}

#[test]
fn names_that_would_be_refused_are_seen() {
    for good in ["a", "a.1f", "a-b.c"] {
        assert!(is_subdomain(good), "{good}");
    }
    for bad in ["", "A.1f", "a_b.1f", "-a.1", "a-.1", "a..1", &"x".repeat(254)] {
        assert!(!is_subdomain(bad), "{bad}");
    }
}
