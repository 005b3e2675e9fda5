use std::{collections::BTreeMap, io};

use fleetwright_clock::Random;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{Api, ResourceExt};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::*;
use crate::{ObjectKey, fake_api::FakeApi};

type Calls = Arc<Mutex<Vec<(u128, String)>>>;

/// Runs a controller of text keys with `reconcile` beside `test`; answers how it stopped.
async fn beside<R, F>(
    options: ControllerOptions,
    metrics: &Metrics,
    reconcile: R,
    test: impl AsyncFnOnce(WorkQueue<String>),
) -> Result<(), CutOff>
where
    R: Fn(String) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Action, io::Error>> + Send + 'static,
{
    let stop = CancellationToken::new();
    let controller = Controller::new("test", options, metrics);
    let queue = controller.queue();
    let test = async {
        test(queue).await;
        stop.cancel();
    };
    tokio::join!(controller.run(reconcile, stop.clone()), test).0
}

fn has(metrics: &Metrics, line: &str) {
    let text = metrics.text().unwrap();
    assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
}

#[tokio::test(start_paused = true)]
async fn failures_back_off_per_key_and_success_starts_over() {
    let (metrics, calls) = (Metrics::new(), Calls::default());
    let (log, start) = (calls.clone(), Instant::now());
    let reconcile = move |key: String| {
        let mut calls = log.lock();
        calls.push((start.elapsed().as_millis(), key.clone()));
        let failures = calls.iter().filter(|(_, called)| *called == key).count();
        async move {
            if key == "bad" && failures != 4 {
                Err(io::Error::other("no"))
            } else {
                Ok(Action::default())
            }
        }
    };
    let options = ControllerOptions::default();
    beside(options, &metrics, reconcile, async |queue| {
        queue.add("bad".to_owned());
        queue.add("good".to_owned());
        sleep(Duration::from_millis(100)).await;
        queue.add("bad".to_owned());
        sleep(Duration::from_millis(12)).await;
    })
    .await
    .unwrap();
    let bad: Vec<_> =
        calls.lock().iter().filter(|(_, key)| key == "bad").map(|(at, _)| *at).collect();
    assert_eq!(bad, [0, 5, 15, 35, 100, 105]);
    has(&metrics, r#"controller_runtime_reconcile_total{controller="test",result="error"} 5"#);
    has(&metrics, r#"controller_runtime_reconcile_total{controller="test",result="success"} 2"#);
    has(&metrics, r#"controller_runtime_reconcile_errors_total{controller="test"} 5"#);
}

#[tokio::test(start_paused = true)]
async fn a_panic_hurts_only_its_key() {
    let (metrics, calls) = (Metrics::new(), Calls::default());
    let log = calls.clone();
    let reconcile = move |key: String| {
        log.lock().push((0, key.clone()));
        assert_ne!(key, "panics at once");
        async move {
            assert_ne!(key, "panics");
            Ok(Action::await_change())
        }
    };
    beside(ControllerOptions::default(), &metrics, reconcile, async |queue| {
        for key in ["panics", "panics at once", "fine"] {
            queue.add(key.to_owned());
        }
        sleep(Duration::from_millis(12)).await;
    })
    .await
    .unwrap();
    let mut counts = BTreeMap::new();
    for (_, key) in calls.lock().iter() {
        *counts.entry(key.clone()).or_insert(0) += 1;
    }
    assert_eq!(counts["panics"], 2);
    assert_eq!(counts["panics at once"], 2);
    assert_eq!(counts["fine"], 1);
    has(&metrics, r#"controller_runtime_reconcile_panics_total{controller="test"} 4"#);
    has(&metrics, r#"controller_runtime_active_workers{controller="test"} 0"#);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reconcile_is_ended_and_tried_again() {
    let (metrics, calls) = (Metrics::new(), Calls::default());
    let (log, start) = (calls.clone(), Instant::now());
    let reconcile = move |key: String| {
        log.lock().push((start.elapsed().as_millis(), key));
        std::future::pending()
    };
    let options = ControllerOptions {
        reconcile_timeout: Some(Duration::from_secs(1)),
        ..ControllerOptions::default()
    };
    beside(options, &metrics, reconcile, async |queue| {
        queue.add("slow".to_owned());
        sleep(Duration::from_millis(2500)).await;
    })
    .await
    .unwrap();
    let times: Vec<_> = calls.lock().iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [0, 1005, 2015]);
    has(&metrics, r#"controller_runtime_reconcile_timeouts_total{controller="test"} 3"#);
}

#[tokio::test(start_paused = true)]
async fn one_key_is_never_reconciled_twice_at_once_but_keys_are() {
    let metrics = Metrics::new();
    let running = Arc::new(Mutex::new(Vec::<String>::new()));
    let most = Arc::new(Mutex::new(0));
    let (active, peak) = (running.clone(), most.clone());
    let reconcile = move |key: String| {
        let (active, peak) = (active.clone(), peak.clone());
        async move {
            {
                let mut active = active.lock();
                assert!(!active.contains(&key), "{key} twice at once");
                active.push(key.clone());
                let mut peak = peak.lock();
                *peak = active.len().max(*peak);
            }
            sleep(Duration::from_millis(10)).await;
            active.lock().retain(|other| *other != key);
            Ok(Action::default())
        }
    };
    let options = ControllerOptions { workers: 3, ..ControllerOptions::default() };
    beside(options, &metrics, reconcile, async |queue| {
        for round in 0..5 {
            for key in ["a", "b", "c", "d", "e"] {
                queue.add(key.to_owned());
            }
            sleep(Duration::from_millis(3 + round)).await;
        }
        sleep(Duration::from_secs(1)).await;
    })
    .await
    .unwrap();
    assert_eq!(*most.lock(), 3);
    has(&metrics, r#"controller_runtime_reconcile_panics_total{controller="test"} 0"#);
    has(&metrics, r#"controller_runtime_max_concurrent_reconciles{controller="test"} 3"#);
}

#[tokio::test(start_paused = true)]
async fn it_comes_back_when_it_asked_to() {
    let (metrics, calls) = (Metrics::new(), Calls::default());
    let (log, start) = (calls.clone(), Instant::now());
    let reconcile = move |key: String| {
        log.lock().push((start.elapsed().as_millis(), key));
        async { Ok(Action::requeue_after(Duration::from_mins(1))) }
    };
    beside(ControllerOptions::default(), &metrics, reconcile, async |queue| {
        queue.add("a".to_owned());
        sleep(Duration::from_secs(130)).await;
    })
    .await
    .unwrap();
    let times: Vec<_> = calls.lock().iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [0, 60_000, 120_000]);
    has(
        &metrics,
        r#"controller_runtime_reconcile_total{controller="test",result="requeue_after"} 3"#,
    );
}

#[tokio::test(start_paused = true)]
async fn stopping_lets_work_end_and_starts_no_more() {
    let (metrics, calls) = (Metrics::new(), Calls::default());
    let log = calls.clone();
    let reconcile = move |key: String| {
        let log = log.clone();
        async move {
            sleep(Duration::from_secs(20)).await;
            log.lock().push((0, key));
            Ok(Action::default())
        }
    };
    beside(ControllerOptions::default(), &metrics, reconcile, async |queue| {
        queue.add("under way".to_owned());
        queue.add("waiting".to_owned());
        sleep(Duration::from_secs(1)).await;
    })
    .await
    .unwrap();
    assert_eq!(*calls.lock(), [(0, "under way".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn stopping_cuts_off_what_never_ends_and_says_what_it_was() {
    let metrics = Metrics::new();
    let start = Instant::now();
    let cut_off = beside(
        ControllerOptions::default(),
        &metrics,
        |_| std::future::pending(),
        async |queue| {
            queue.add("stuck".to_owned());
            sleep(Duration::from_secs(1)).await;
        },
    )
    .await
    .unwrap_err();
    assert_eq!(cut_off.to_string(), "controller test stopped while still at work on: stuck");
    assert_eq!(start.elapsed(), Duration::from_secs(31));
}

#[tokio::test(start_paused = true)]
async fn informers_feed_it_after_they_have_synced() {
    const PODS: &str = "/api/v1/namespaces/default/pods";
    const MAPS: &str = "/api/v1/namespaces/default/configmaps";
    let (api, metrics) = (FakeApi::new(), Metrics::new());
    let pod = |name: &str, owner: &str| {
        json!({"metadata": {"name": name, "namespace": "default", "labels": {"owner": owner}},
            "spec": {"containers": []}})
    };
    api.put(MAPS, json!({"metadata": {"name": "a", "namespace": "default"}}));
    api.put(PODS, pod("one", "a"));
    let maps: Informer<ConfigMap> =
        Informer::new("maps", Api::namespaced(api.client(), "default"), &metrics);
    let pods: Informer<Pod> =
        Informer::new("pods", Api::namespaced(api.client(), "default"), &metrics);
    let calls = Calls::default();
    let (log, seen) = (calls.clone(), pods.clone());
    let reconcile = move |key: ObjectKey| {
        log.lock().push((u128::from(seen.has_synced()), key.to_string()));
        async { Ok::<_, io::Error>(Action::default()) }
    };
    let stop = CancellationToken::new();
    let controller = Controller::new("test", ControllerOptions::default(), &metrics)
        .watches(&maps, |map| [ObjectKey::of(map)])
        .watches(&pods, |pod| {
            pod.labels().get("owner").map(|owner| ObjectKey::new("default", owner))
        });
    let test = async {
        sleep(Duration::from_secs(1)).await;
        assert_eq!(std::mem::take(&mut *calls.lock()), [(1, "default/a".to_owned())]);
        // Both the old owner and the new one hear of it.
        api.put(PODS, pod("one", "b"));
        sleep(Duration::from_secs(1)).await;
        let called: Vec<_> = calls.lock().drain(..).map(|(_, key)| key).collect();
        assert_eq!(called, ["default/a", "default/b"]);
        api.delete(PODS, "one");
        sleep(Duration::from_secs(1)).await;
        let called: Vec<_> = calls.lock().drain(..).map(|(_, key)| key).collect();
        assert_eq!(called, ["default/b"]);
        stop.cancel();
    };
    let (ran, ..) = tokio::join!(
        controller.run(reconcile, stop.clone()),
        maps.clone().run(Random::seeded(1), stop.clone()),
        async {
            sleep(Duration::from_millis(500)).await;
            pods.clone().run(Random::seeded(2), stop.clone()).await;
        },
        test
    );
    ran.unwrap();
}
