use std::{future::Future, time::Duration};

use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{
    ResourceExt,
    core::{ApiResource, DynamicObject, PartialObjectMeta},
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::*;
use crate::fake_api::{FakeApi, Fault};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";

fn map(name: &str, value: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "default"}, "data": {"value": value}})
}

fn maps(api: &FakeApi, metrics: &Metrics) -> Informer<ConfigMap> {
    Informer::new("maps", Api::namespaced(api.client(), "default"), metrics)
}

/// Runs the informer beside `test`, on virtual time.
async fn beside<K, T>(informer: &Informer<K>, test: impl Future<Output = T>) -> T
where
    K: Resource + Clone + DeserializeOwned + fmt::Debug + Send + Sync + 'static,
{
    let stop = CancellationToken::new();
    let run = informer.clone().run(Random::seeded(1), stop.clone());
    let test = async {
        let result = test.await;
        stop.cancel();
        result
    };
    tokio::join!(run, test).1
}

/// What a listener heard, as text: `+name=value`, `~name=old>new`, `-name`.
fn hear(informer: &Informer<ConfigMap>) -> Arc<Mutex<Vec<String>>> {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let log = heard.clone();
    let value = |map: &ConfigMap| map.data.clone().unwrap_or_default()["value"].clone();
    informer.on_change(move |change| {
        let name = change.object().name_any();
        log.lock().push(match change {
            Change::Added(new) => format!("+{name}={}", value(new)),
            Change::Modified { old, new } => format!("~{name}={}>{}", value(old), value(new)),
            Change::Deleted { .. } => format!("-{name}"),
        });
    });
    heard
}

fn take(heard: &Mutex<Vec<String>>) -> Vec<String> {
    std::mem::take(&mut heard.lock())
}

/// Long enough for any pause of the informer.
async fn settle() {
    sleep(Duration::from_mins(2)).await;
}

#[tokio::test(start_paused = true)]
async fn lists_by_pages_and_follows_changes() {
    let (api, metrics) = (FakeApi::new(), Metrics::new());
    for name in ["c", "a", "b"] {
        api.put(MAPS, map(name, "1"));
    }
    let informer = maps(&api, &metrics);
    let heard = hear(&informer);
    assert!(!informer.has_synced());
    beside(&informer, async {
        informer.wait_synced().await;
        assert_eq!(take(&heard), ["+a=1", "+b=1", "+c=1"]);
        api.put(MAPS, map("b", "2"));
        api.put(MAPS, map("d", "1"));
        api.delete(MAPS, "a");
        settle().await;
        assert_eq!(take(&heard), ["~b=1>2", "+d=1", "-a"]);
        let names: Vec<_> = informer.list().iter().map(|map| map.name_any()).collect();
        assert_eq!(names, ["b", "c", "d"]);
        assert_eq!(informer.list_in("default").len(), 3);
        assert_eq!(informer.list_in("defaul").len(), 0);
        assert_eq!(informer.get(&ObjectKey::new("default", "b")).unwrap().name_any(), "b");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_new_list_without_an_object_is_its_delete() {
    let (api, metrics) = (FakeApi::new(), Metrics::new());
    for name in ["gone", "kept", "reborn"] {
        api.put(MAPS, map(name, "1"));
    }
    let informer = maps(&api, &metrics);
    let heard = hear(&informer);
    beside(&informer, async {
        informer.wait_synced().await;
        take(&heard);
        api.vanish(MAPS, "gone");
        api.vanish(MAPS, "reborn");
        api.compact();
        api.put(MAPS, map("reborn", "2"));
        settle().await;
        assert_eq!(take(&heard), ["-gone", "-reborn", "+reborn=2"]);
        assert_eq!(informer.len(), 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_version_means_a_new_list_also_when_the_status_says_so() {
    let (api, metrics) = (FakeApi::new(), Metrics::new());
    api.put(MAPS, map("a", "1"));
    let informer = maps(&api, &metrics);
    let heard = hear(&informer);
    beside(&informer, async {
        informer.wait_synced().await;
        settle().await;
        take(&heard);
        api.vanish(MAPS, "a");
        api.fail(1, Method::GET, "watch=true", Fault::Refuse(410));
        api.drop_watches();
        settle().await;
        assert_eq!(take(&heard), ["-a"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_expired_continuation_means_a_list_in_one_piece() {
    let (api, metrics) = (FakeApi::new(), Metrics::new());
    for name in ["a", "b", "c", "d", "e"] {
        api.put(MAPS, map(name, "1"));
    }
    api.fail(1, Method::GET, "continue=2", Fault::Refuse(410));
    let informer = maps(&api, &metrics);
    let start = Instant::now();
    beside(&informer, informer.wait_synced()).await;
    assert_eq!((informer.len(), start.elapsed()), (5, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_or_broken_watch_goes_on_where_it_was() {
    let (api, metrics) = (FakeApi::new(), Metrics::new());
    api.put(MAPS, map("a", "1"));
    let informer = maps(&api, &metrics);
    let heard = hear(&informer);
    beside(&informer, async {
        informer.wait_synced().await;
        settle().await;
        api.drop_watches();
        api.put(MAPS, map("a", "2"));
        settle().await;
        api.break_watches();
        api.put(MAPS, map("a", "3"));
        settle().await;
        assert_eq!(take(&heard), ["+a=1", "~a=1>2", "~a=2>3"]);
    })
    .await;
    let lists = api.requests().iter().filter(|line| !line.contains("watch=true")).count();
    assert_eq!(lists, 1, "{:?}", api.requests());
}

#[tokio::test(start_paused = true)]
async fn bookmarks_move_the_version_on() {
    let (api, metrics) = (FakeApi::new(), Metrics::new());
    api.put(MAPS, map("a", "1"));
    let informer = maps(&api, &metrics);
    beside(&informer, async {
        informer.wait_synced().await;
        settle().await;
        let bookmark = json!({"kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"resourceVersion": "77"}});
        api.say(&json!({"type": "BOOKMARK", "object": bookmark}));
        settle().await;
        api.drop_watches();
        settle().await;
    })
    .await;
    let last = api.requests().pop().unwrap();
    assert!(last.contains("watch=true") && last.contains("resourceVersion=77"), "{last}");
    assert_eq!(informer.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_heard_before_is_not_told_again() {
    let (api, metrics) = (FakeApi::new(), Metrics::new());
    let object = api.put(MAPS, map("a", "1"));
    let informer = maps(&api, &metrics);
    let heard = hear(&informer);
    beside(&informer, async {
        informer.wait_synced().await;
        settle().await;
        api.say(&json!({"type": "ADDED", "object": object}));
        api.say(&json!({"type": "MODIFIED", "object": object}));
        let mut former = object.clone();
        former["metadata"]["uid"] = json!("uid-of-an-earlier-life");
        api.say(&json!({"type": "DELETED", "object": former}));
        settle().await;
        assert_eq!(take(&heard), ["+a=1"]);
        api.say(&json!({"type": "DELETED", "object": object}));
        api.say(&json!({"type": "DELETED", "object": object}));
        settle().await;
        assert_eq!(take(&heard), ["-a"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_bad_object_is_skipped_and_is_not_a_delete() {
    let (api, metrics) = (FakeApi::new(), Metrics::new());
    api.put(MAPS, map("good", "1"));
    api.put(MAPS, map("turns-bad", "1"));
    api.put(MAPS, json!({"metadata": {"name": "bad", "namespace": "default"}, "data": 1}));
    let informer = maps(&api, &metrics);
    let heard = hear(&informer);
    beside(&informer, async {
        informer.wait_synced().await;
        settle().await;
        let bad = json!({"metadata": {"name": "turns-bad", "namespace": "default"}, "data": [2]});
        api.put(MAPS, bad);
        api.say(&json!("not an event"));
        api.put(MAPS, map("good", "2"));
        settle().await;
        assert_eq!(take(&heard), ["+good=1", "+turns-bad=1", "~good=1>2"]);
        api.compact();
        settle().await;
        assert_eq!(take(&heard), Vec::<String>::new(), "it still exists");
        api.delete(MAPS, "turns-bad");
        settle().await;
        assert_eq!(take(&heard), ["-turns-bad"]);
    })
    .await;
    let text = metrics.text().unwrap();
    assert!(
        text.contains(r#"fleetwright_informer_invalid_objects_total{name="maps"} 5"#),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn pauses_grow_and_start_again_after_a_good_while() {
    let (api, metrics) = (FakeApi::new(), Metrics::new());
    api.fail(4, Method::GET, "limit=", Fault::Refuse(500));
    let informer = maps(&api, &metrics);
    let start = Instant::now();
    beside(&informer, async {
        informer.wait_synced().await;
        let waited = start.elapsed();
        // 0.8 + 1.6 + 3.2 + 6.4 seconds, and up to as much again.
        assert!(waited >= Duration::from_secs(12), "{waited:?}");
        assert!(waited <= Duration::from_secs(24), "{waited:?}");
        sleep(Duration::from_mins(5)).await;
        api.put(MAPS, map("a", "1"));
        api.break_watches();
        let broken = Instant::now();
        api.put(MAPS, map("b", "1"));
        while informer.len() < 2 {
            sleep(Duration::from_millis(10)).await;
        }
        assert!(broken.elapsed() <= Duration::from_millis(1700), "{:?}", broken.elapsed());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_at_once_does_not_spin() {
    let (api, metrics) = (FakeApi::new(), Metrics::new());
    api.fail(1000, Method::GET, "watch=true", Fault::EmptyWatch);
    let informer = maps(&api, &metrics);
    beside(&informer, sleep(Duration::from_mins(10))).await;
    let requests = api.requests().len();
    assert!((10..40).contains(&requests), "{requests} requests in ten minutes");
}

#[tokio::test(start_paused = true)]
async fn lost_answers_do_not_wedge_it() {
    let (api, metrics) = (FakeApi::new(), Metrics::new());
    api.put(MAPS, map("a", "1"));
    api.fail(1, Method::GET, "limit=", Fault::Hang);
    api.fail(1, Method::GET, "watch=true", Fault::Hang);
    let informer = maps(&api, &metrics);
    beside(&informer, async {
        sleep(Duration::from_mins(4)).await;
        api.put(MAPS, map("a", "2"));
        sleep(Duration::from_secs(1)).await;
        let map = informer.get(&ObjectKey::new("default", "a")).unwrap();
        assert_eq!(map.data.as_ref().unwrap()["value"], "2");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_replaced() {
    let (api, metrics) = (FakeApi::new(), Metrics::new());
    let informer = maps(&api, &metrics);
    beside(&informer, sleep(Duration::from_hours(1))).await;
    let watches = api.requests().iter().filter(|line| line.contains("watch=true")).count();
    assert!((6..=12).contains(&watches), "{watches}");
}

#[tokio::test(start_paused = true)]
async fn a_late_a_slow_and_a_panicking_listener() {
    let (api, metrics) = (FakeApi::new(), Metrics::new());
    api.put(MAPS, map("a", "1"));
    let informer = maps(&api, &metrics);
    informer.on_change(|_| panic!("on purpose"));
    let mut slow = informer.subscribe();
    let dropped = informer.subscribe();
    drop(dropped);
    beside(&informer, async {
        informer.wait_synced().await;
        api.put(MAPS, map("b", "1"));
        settle().await;
        let late = hear(&informer);
        assert_eq!(take(&late), ["+a=1", "+b=1"]);
        api.put(MAPS, map("a", "2"));
        settle().await;
        assert_eq!(take(&late), ["~a=1>2"]);
    })
    .await;
    let mut names = Vec::new();
    while let Ok(change) = slow.try_recv() {
        names.push(change.object().name_any());
    }
    assert_eq!(names, ["a", "b", "a"], "nothing was lost while nobody read");
    let text = metrics.text().unwrap();
    assert!(text.contains(r#"handler_panics_total{name="maps"} 3"#), "{text}");
}

#[tokio::test(start_paused = true)]
async fn indices_follow_the_objects() {
    let (api, metrics) = (FakeApi::new(), Metrics::new());
    let pod = |name: &str, node: &str| {
        json!({
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"nodeName": node, "containers": []},
        })
    };
    api.put(PODS, pod("a", "one"));
    api.put(PODS, pod("b", "one"));
    let informer: Informer<Pod> =
        Informer::new("pods", Api::namespaced(api.client(), "default"), &metrics);
    informer
        .index("node", |pod| pod.spec.iter().filter_map(|spec| spec.node_name.clone()).collect());
    let on = |node: &str| -> Vec<String> {
        informer.by_index("node", node).iter().map(|pod| pod.name_any()).collect()
    };
    beside(&informer, async {
        informer.wait_synced().await;
        assert_eq!(on("one"), ["a", "b"]);
        api.put(PODS, pod("a", "two"));
        api.delete(PODS, "b");
        settle().await;
        assert_eq!((on("one"), on("two")), (vec![], vec!["a".to_owned()]));
        informer.index("name", |pod| vec![pod.name_any()]);
        assert_eq!(informer.by_index("name", "a").len(), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn dynamic_objects_and_metadata_work_too() {
    let (api, metrics) = (FakeApi::new(), Metrics::new());
    api.put(MAPS, map("a", "1"));
    let resource = ApiResource::erase::<ConfigMap>(&());
    let dynamic: Informer<DynamicObject> = Informer::new(
        "dynamic",
        Api::namespaced_with(api.client(), "default", &resource),
        &metrics,
    );
    beside(&dynamic, dynamic.wait_synced()).await;
    assert_eq!(dynamic.list()[0].data["data"]["value"], "1");
    let partial: Informer<PartialObjectMeta<ConfigMap>> =
        Informer::new("partial", Api::namespaced(api.client(), "default"), &metrics);
    beside(&partial, partial.wait_synced()).await;
    assert_eq!(partial.list()[0].name_any(), "a");
}

#[tokio::test(start_paused = true)]
async fn selectors_reach_the_server() {
    let (api, metrics) = (FakeApi::new(), Metrics::new());
    let selection =
        Selection { labels: Some("app=web".into()), fields: Some("metadata.name=a".into()) };
    let informer: Informer<ConfigMap> =
        Informer::selecting("maps", Api::namespaced(api.client(), "default"), selection, &metrics);
    beside(&informer, settle()).await;
    for request in api.requests() {
        assert!(
            request.contains("labelSelector=app%3Dweb")
                && request.contains("fieldSelector=metadata.name%3Da"),
            "{request}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_nobody_reads_is_not_kept() {
    let (api, metrics) = (FakeApi::new(), Metrics::new());
    let with_fields = |name: &str| {
        let mut map = map(name, "1");
        map["metadata"]["managedFields"] = json!([{"manager": "kubectl", "operation": "Update"}]);
        map["data"]["large"] = json!("x");
        map
    };
    api.put(MAPS, with_fields("listed"));
    let trim = |map: &mut ConfigMap| {
        if let Some(data) = &mut map.data {
            data.remove("large");
        }
    };
    let informer =
        Informer::trimming("maps", Api::namespaced(api.client(), "default"), trim, &metrics);
    beside(&informer, async {
        informer.wait_synced().await;
        api.put(MAPS, with_fields("watched"));
        settle().await;
        let maps = informer.list();
        assert_eq!(maps.len(), 2);
        for map in maps {
            assert_eq!(map.metadata.managed_fields, None);
            assert_eq!(map.data.clone().unwrap().into_keys().collect::<Vec<_>>(), ["value"]);
        }
    })
    .await;
}
