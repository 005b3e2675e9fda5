//! Nothing that a metadata service, the API or a clock does ends the handler or loses a notice.

use std::time::Duration;

use fleetwright_clock::Clock;
use fleetwright_node::{access::Access, aws::AwsSettings};
use fleetwright_simcloud::aws::{Effect, Fault, METADATA};
use serde_json::json;

use crate::yard::{NODE, Yard};

/// Faults of the metadata service, as long as they last, and what metrics call them.
fn faults() -> Vec<(Effect, &'static str)> {
    vec![
        (Effect::error("", 401, "no"), "refused"),
        (Effect::error("", 403, "no"), "refused"),
        (Effect::error("", 500, "oops"), "status"),
        (Effect::error("", 503, "busy"), "status"),
        (Effect::error("", 302, "elsewhere"), "status"),
        (Effect::Throttle, "throttled"),
        (Effect::Garbage, "unreadable"),
        (Effect::Endless, "unreadable"),
        (Effect::Delay(30.0), "too_slow"),
        (Effect::Hang, "too_slow"),
        (Effect::Lost { after: false }, "unreachable"),
        (Effect::Lost { after: true }, "unreachable"),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_metadata_service_that_fails_is_asked_again_and_the_notice_is_not_lost() {
    for (effect, label) in faults() {
        let yard = Yard::new().await;
        yard.aws.fault(Fault::next(METADATA, effect.clone()).times(10_000));
        yard.pass(40).await;
        assert!(!yard.is_marked().await, "{effect:?}");
        assert_eq!(yard.ready(), 500, "{effect:?} shows");
        let counted =
            yard.metric(&format!("looks_total{{result=\"{label}\"}}")).unwrap_or_default();
        assert!(counted >= 5.0, "{effect:?}: {label} {counted}");
        // It comes back with a notice. A question that hangs may take two seconds to give up.
        yard.interrupt();
        yard.aws.clear_faults();
        yard.pass(7).await;
        assert!(yard.is_marked().await, "{effect:?}");
        assert_eq!(yard.ready(), 200, "{effect:?} is over");
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_that_went_bad_is_renewed_at_once() {
    let yard = Yard::new().await;
    // Once for the question; the token is asked for and the question asked again.
    let once = Fault::next(METADATA, Effect::error("", 401, "stale"));
    yard.aws.fault(once.with_parameter("instance-action"));
    yard.interrupt();
    yard.pass(3).await;
    assert!(yard.is_marked().await);
    assert_eq!(yard.metric("looks_total{result=\"refused\"}"), None, "nobody noticed");
}

#[tokio::test(start_paused = true)]
async fn tokens_are_renewed_before_they_end() {
    let yard = Yard::new().await;
    yard.pass(2 * 21_600).await;
    assert_eq!(yard.metric("looks_total{result=\"refused\"}"), None);
    yard.interrupt();
    yard.pass(3).await;
    assert!(yard.is_marked().await);
}

#[tokio::test(start_paused = true)]
async fn a_broken_item_does_not_hide_the_others() {
    let yard = Yard::new().await;
    for item in ["maintenance", "rebalance"] {
        for effect in [Effect::Hang, Effect::Garbage] {
            yard.aws.fault(Fault::next(METADATA, effect).times(10_000).with_parameter(item));
        }
    }
    yard.pass(20).await;
    yard.interrupt();
    yard.pass(7).await;
    assert!(yard.is_marked().await);
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_action_is_checked_with_the_older_item() {
    let yard = Yard::new().await;
    let garbage = Fault::next(METADATA, Effect::Garbage).times(10_000);
    yard.aws.fault(garbage.with_parameter("instance-action"));
    yard.pass(20).await;
    assert!(!yard.is_marked().await);
    yard.interrupt();
    yard.pass(4).await;
    assert!(yard.is_marked().await);
    assert_eq!(yard.deadline().await.as_deref(), Some("2026-01-01T00:02:30Z"));
}

#[tokio::test(start_paused = true)]
async fn writes_are_tried_until_they_succeed() {
    for status in [401, 403, 409, 422, 429, 500, 503] {
        let yard = Yard::new().await;
        yard.interrupt();
        yard.door.refuse(20, status);
        yard.pass(12).await;
        assert!(!yard.is_marked().await, "{status}");
        yard.pass(40).await;
        assert!(yard.is_marked().await, "{status}");
        assert_eq!(yard.node().await.spec.unwrap().unschedulable, Some(true), "{status}");
        assert_eq!(yard.metric("writes_total{result=\"error\"}"), Some(20.0), "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_without_rights_says_so_before_it_matters() {
    let mut yard = Yard::without_handler(json!({})).await;
    // The kubelet of another node.
    let access = Access::with_client(yard.kubelet("other"));
    yard.start_with(AwsSettings::default(), access, yard.clock.clone());
    yard.pass(60).await;
    assert_eq!(yard.ready(), 500);
    yard.interrupt();
    yard.pass(60).await;
    assert!(!yard.is_marked().await);
    let tries = yard.metric("writes_total{result=\"error\"}").unwrap();
    assert!((60.0..=120.0).contains(&tries), "about every two seconds: {tries}");
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_wrong_changes_no_deadline() {
    for wrong in ["2025-12-31T00:00:00Z", "2026-01-02T00:00:00Z"] {
        let mut yard = Yard::without_handler(json!({})).await;
        let clock = Clock::simulated(wrong.parse().unwrap());
        let access = Access::with_client(yard.kubelet(NODE));
        yard.start_with(AwsSettings::default(), access, clock);
        yard.pass(10).await;
        yard.interrupt();
        yard.door.refuse(5, 500);
        yard.pass(20).await;
        assert!(yard.is_marked().await, "{wrong}");
        assert_eq!(yard.deadline().await.as_deref(), Some("2026-01-01T00:02:10Z"), "{wrong}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_check_sees_a_notice_that_came_with_the_signal() {
    let mut yard = Yard::new().await;
    yard.interrupt();
    yard.door.refuse(5, 409);
    yard.stop.cancel();
    // The handler ends by itself; the cloud does not.
    yard.tasks.join_next().await.unwrap().unwrap();
    assert!(yard.is_marked().await);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_is_stopped_ends_even_if_nobody_answers() {
    let mut yard = Yard::new().await;
    yard.aws.fault(Fault::next(METADATA, Effect::Hang).times(10_000));
    yard.stop.cancel();
    let ended = tokio::time::timeout(Duration::from_secs(30), yard.tasks.join_next()).await;
    ended.unwrap().unwrap().unwrap();
    let mut yard = Yard::new().await;
    yard.stop.cancel();
    let ended = tokio::time::timeout(Duration::from_secs(1), yard.tasks.join_next()).await;
    ended.expect("at once when all is well").unwrap().unwrap();
}
