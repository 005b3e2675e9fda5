//! Everything together: two processes, one of which leads, as the binary would wire them, in one
//! thread on virtual time and without an I/O driver.

use std::{convert::Infallible, time::Duration};

use fleetwright_clock::{Clock, Random};
use http::Method;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{
    Action, Controller, ControllerOptions, EventRecorder, EventType, Informer, LeaderElection,
    LeaderSettings, Metrics, ObjectKey, Stage, Tasks,
    fake_api::{FakeApi, Fault},
    tasks::TaskFailure,
};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[derive(Debug, thiserror::Error)]
#[error("could not label {0}")]
struct LabelFailed(ObjectKey, #[source] kube::Error);

/// A process that stamps every ConfigMap with its name.
async fn process(
    api: FakeApi,
    name: &'static str,
    random: Random,
    stop: CancellationToken,
) -> Result<(), Vec<TaskFailure>> {
    let (client, metrics) = (api.client(), Metrics::new());
    let clock = Clock::simulated("2026-01-01T00:00:00Z".parse().unwrap());
    let mut tasks = Tasks::new(stop);

    let (recorder, writer) =
        EventRecorder::new(client.clone(), "stamper", name, clock.clone(), &random, &metrics);
    tasks.start(Stage::Reporting, "events", |stop| async {
        writer.run(stop).await;
        Ok::<_, Infallible>(())
    });

    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let informer = Informer::new("maps", maps.clone(), &metrics);
    let (running, informer_random) = (informer.clone(), random.fork());
    tasks.start(Stage::Observation, "informer", |stop| async {
        running.run(informer_random, stop).await;
        Ok::<_, Infallible>(())
    });

    let settings = LeaderSettings::new("default", "lease", name);
    let election = LeaderElection::new(client, settings, clock, random.fork(), &metrics).unwrap();
    let leadership = election.leadership();
    tasks.start(Stage::Leadership, "election", |stop| async {
        election.run(stop).await.into_result()
    });

    let controller = Controller::new("stamper", ControllerOptions::default(), &metrics)
        .watches(&informer, |map| [ObjectKey::of(map)]);
    let reconcile = move |key: ObjectKey| {
        let (informer, maps, recorder) = (informer.clone(), maps.clone(), recorder.clone());
        async move {
            let Some(map) = informer.get(&key) else {
                return Ok::<_, LabelFailed>(Action::await_change());
            };
            if map.data.as_ref().is_some_and(|data| data.contains_key("stamp")) {
                return Ok(Action::await_change());
            }
            let patch = Patch::Merge(json!({"data": {"stamp": name}}));
            let patched = maps.patch(&map.name_any(), &PatchParams::default(), &patch).await;
            patched.map_err(|error| LabelFailed(key, error))?;
            recorder.record(&map.object_ref(&()), EventType::Normal, "Stamped", "stamped");
            Ok(Action::await_change())
        }
    };
    tasks.start(Stage::Work, "stamper", |stop| async move {
        let led = leadership.lead(stop.clone(), |end| controller.run(reconcile, end)).await;
        // A loss is the election's to report.
        stop.cancelled().await;
        led.unwrap_or(Ok(()))
    });
    tasks.run(Duration::from_secs(30)).await
}

/// One run of the whole; its requests are its trace.
fn run(seed: u64) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let (api, random) = (FakeApi::new(), Random::seeded(seed));
        let (stop_one, stop_two) = (CancellationToken::new(), CancellationToken::new());
        let stamp = |name: &str| api.object(&format!("{MAPS}/{name}")).unwrap()["data"].clone();
        let put = |name: &str| {
            api.put(MAPS, json!({"metadata": {"name": name, "namespace": "default"}}));
        };
        put("a");
        let story = async {
            sleep(Duration::from_secs(5)).await;
            assert_eq!(stamp("a"), json!({"stamp": "one"}));
            // The one that leads cannot renew any more; the other takes over.
            api.fail(8, Method::PUT, "", Fault::Refuse(500));
            sleep(Duration::from_mins(1)).await;
            put("b");
            // Neither a relist nor a lost answer keeps it from its work.
            api.compact();
            api.fail(1, Method::PATCH, "", Fault::Refuse(500));
            sleep(Duration::from_mins(1)).await;
            assert_eq!(stamp("b"), json!({"stamp": "two"}));
            stop_two.cancel();
        };
        let late_two = async {
            sleep(Duration::from_secs(1)).await;
            process(api.clone(), "two", random.fork(), stop_two.clone()).await
        };
        let (one, two, ()) = tokio::join!(
            process(api.clone(), "one", random.fork(), stop_one.clone()),
            late_two,
            story
        );
        let failures: Vec<_> = one.unwrap_err().iter().map(ToString::to_string).collect();
        assert_eq!(failures, ["election failed: lost the leadership"]);
        assert_eq!(two, Ok(()));
        let events = api.objects("/api/v1/namespaces/default/events/");
        let instances: Vec<_> = events.iter().map(|event| &event["reportingInstance"]).collect();
        assert_eq!(instances, ["one", "two"]);
        api.requests()
    })
}

#[test]
fn two_processes_take_turns_and_the_whole_replays_from_its_seed() {
    let trace = run(7);
    assert_eq!(trace, run(7));
    assert_ne!(trace, run(8));
}
