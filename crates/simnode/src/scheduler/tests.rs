#![expect(clippy::needless_pass_by_value, reason = "tables of JSON read better by value")]

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};
use tokio::time::{Duration, Instant};

use super::{
    decide::{Unschedulable, choose},
    pod::PodFacts,
    queue::Queue,
    state::State,
};

/// Nodes `a1`, `a2` in zone a and `b1` in zone b, with four processors each.
fn cluster() -> State {
    let mut state = State::default();
    for (name, zone) in [("a1", "a"), ("a2", "a"), ("b1", "b")] {
        add(&mut state, name, json!({"zone": zone}), json!({}), json!({}));
    }
    state
}

fn add(state: &mut State, name: &str, labels: Value, spec: Value, more: Value) {
    let mut labels = labels;
    labels["kubernetes.io/hostname"] = json!(name);
    let mut allocatable = json!({"cpu": "4", "memory": "8Gi", "pods": "10"});
    for (key, value) in more.as_object().unwrap() {
        allocatable[key] = value.clone();
    }
    let node: Node = serde_json::from_value(json!({
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": allocatable},
    }))
    .unwrap();
    state.set_node(&Arc::new(node));
}

fn pod(name: &str, labels: Value, spec: Value) -> Arc<PodFacts> {
    let mut full = json!({"containers": [{"name": "c"}]});
    for (key, value) in spec.as_object().unwrap() {
        full[key] = value.clone();
    }
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "n", "uid": name, "labels": labels},
        "spec": full,
    }))
    .unwrap();
    Arc::new(PodFacts::read(&Arc::new(pod)))
}

fn cpu(amount: &str) -> Value {
    json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": amount}}}]})
}

/// The node, or what is wrong with the nodes.
fn place(state: &State, labels: Value, spec: Value) -> String {
    match choose(&pod("new", labels, spec), state, &mut 0, |_| 0) {
        Ok(node) => node,
        Err(why) => {
            let start = why.message.find(": ").unwrap() + 2;
            let end = why.message.find(". preemption").unwrap();
            why.message[start..end].to_owned()
        }
    }
}

fn affinity(kind: &str, terms: Value) -> Value {
    json!({"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}})
}

fn near(key: &str, app: &str) -> Value {
    json!([{"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}])
}

const HOST: &str = "kubernetes.io/hostname";

#[test]
fn what_nodes_have() {
    let mut state = cluster();
    add(&mut state, "gpu", json!({"zone": "b"}), json!({}), json!({"nvidia.com/gpu": "2"}));
    state.place(&pod("x", json!({}), cpu("3")), "a1");
    for (spec, expected) in [
        (cpu("1500m"), "a2"),
        (cpu("9"), "4 Insufficient cpu"),
        (
            json!({"containers": [{"name": "c", "resources": {
                "requests": {"cpu": "5", "memory": "9Gi", "nvidia.com/gpu": "1"},
            }}]}),
            "3 Insufficient nvidia.com/gpu, 4 Insufficient cpu, 4 Insufficient memory",
        ),
        (
            json!({"containers": [
                {"name": "c", "resources": {"requests": {"nvidia.com/gpu": "2"}}},
            ]}),
            "gpu",
        ),
        (json!({"nodeSelector": {"zone": "b"}}), "b1"),
        (
            json!({"nodeSelector": {"zone": "z"}}),
            "4 node(s) didn't match Pod's node affinity/selector",
        ),
    ] {
        assert_eq!(place(&state, json!({}), spec.clone()), expected, "{spec}");
    }
    for number in 0..10 {
        state.place(&pod(&format!("p{number}"), json!({}), json!({})), "b1");
    }
    let zone_b = json!({"nodeSelector": {"zone": "b", "kubernetes.io/hostname": "b1"}});
    assert_eq!(
        place(&state, json!({}), zone_b),
        "1 Too many pods, 3 node(s) didn't match Pod's node affinity/selector"
    );
}

#[test]
fn taints_cordons_and_wishes() {
    let mut state = State::default();
    let taint = |effect: &str| json!({"taints": [{"key": "k", "value": "v", "effect": effect}]});
    add(&mut state, "cordoned", json!({}), json!({"unschedulable": true}), json!({}));
    add(&mut state, "tainted", json!({}), taint("NoSchedule"), json!({}));
    add(&mut state, "unloved", json!({"size": "9"}), taint("PreferNoSchedule"), json!({}));
    assert_eq!(place(&state, json!({}), json!({})), "unloved", "better than nothing");
    add(&mut state, "zz", json!({"size": "1"}), json!({}), json!({}));
    assert_eq!(place(&state, json!({}), json!({})), "zz");
    let wish = json!({"affinity": {"nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{
            "weight": 100,
            "preference": {"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["5"]}]},
        }],
    }}});
    let mut tolerant = wish.clone();
    tolerant["tolerations"] = json!([{"key": "k", "operator": "Exists"}]);
    assert_eq!(place(&state, json!({}), tolerant), "unloved", "the wish decides");
    assert_eq!(
        place(&state, json!({}), cpu("100")),
        "1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, 2 Insufficient cpu"
    );
    let pinned = affinity(
        "nodeAffinity",
        json!({"nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["tainted"]}]},
        ]}),
    );
    assert_eq!(
        place(&state, json!({}), pinned),
        "1 node(s) had untolerated taint(s), 3 node(s) didn't satisfy plugin(s) [NodeAffinity]"
    );
}

#[test]
fn pods_that_want_to_be_together_or_apart() {
    let mut state = cluster();
    state.place(&pod("db", json!({"app": "db"}), json!({})), "b1");
    let anti = affinity("podAntiAffinity", near("zone", "loner"));
    state.place(&pod("loner", json!({"app": "loner"}), anti.clone()), "a2");
    for (labels, spec, expected) in [
        (json!({}), affinity("podAffinity", near(HOST, "db")), "b1"),
        (json!({}), affinity("podAffinity", near("zone", "db")), "b1"),
        (
            json!({}),
            affinity("podAffinity", near("zone", "nobody")),
            "3 node(s) didn't match pod affinity rules",
        ),
        (json!({"app": "first"}), affinity("podAffinity", near("zone", "first")), "a1"),
        (json!({}), affinity("podAntiAffinity", near("zone", "db")), "a1"),
        (json!({"app": "loner"}), json!({}), "b1"),
        (
            json!({"app": "loner"}),
            json!({"nodeSelector": {"zone": "a"}}),
            "1 node(s) didn't match Pod's node affinity/selector, 2 node(s) didn't satisfy existing pods anti-affinity rules",
        ),
        (
            json!({"app": "loner"}),
            {
                let mut spec = anti;
                spec["nodeSelector"] = json!({"zone": "a"});
                spec
            },
            "1 node(s) didn't match Pod's node affinity/selector, 2 node(s) didn't match pod anti-affinity rules",
        ),
    ] {
        assert_eq!(place(&state, labels, spec.clone()), expected, "{spec}");
    }
    let wish = json!({"affinity": {"podAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{
            "weight": 100, "podAffinityTerm": near(HOST, "db")[0],
        }],
    }}});
    assert_eq!(place(&state, json!({}), wish), "b1");
}

#[test]
fn spreading() {
    let mut state = cluster();
    let spread = |key: &str, more: Value| {
        let mut constraint = json!({
            "topologyKey": key,
            "maxSkew": 1,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        });
        for (key, value) in more.as_object().unwrap() {
            constraint[key] = value.clone();
        }
        json!({"topologySpreadConstraints": [constraint]})
    };
    let web = json!({"app": "web"});
    state.place(&pod("w1", web.clone(), json!({})), "a1");
    assert_eq!(place(&state, web.clone(), spread("zone", json!({}))), "b1");
    let only_a = |mut spec: Value| {
        spec["nodeSelector"] = json!({"zone": "a"});
        spec
    };
    assert_eq!(
        place(&state, web.clone(), only_a(spread("zone", json!({})))),
        "a2",
        "zone b does not count"
    );
    let ignoring = only_a(spread("zone", json!({"nodeAffinityPolicy": "Ignore"})));
    assert_eq!(
        place(&state, web.clone(), ignoring),
        "1 node(s) didn't match Pod's node affinity/selector, 2 node(s) didn't match pod topology \
         spread constraints"
    );
    assert_eq!(
        place(&state, web.clone(), spread("rack", json!({}))),
        "3 node(s) didn't match pod topology spread constraints (missing required label)"
    );
    let three = spread("zone", json!({"minDomains": 3}));
    assert_eq!(place(&state, web.clone(), three.clone()), "b1");
    state.place(&pod("w2", web.clone(), json!({})), "b1");
    assert_eq!(
        place(&state, web.clone(), three),
        "3 node(s) didn't match pod topology spread constraints"
    );
    let anyway = spread(HOST, json!({"whenUnsatisfiable": "ScheduleAnyway"}));
    assert_eq!(place(&state, web, anyway), "a2");
}

#[test]
fn ports_of_the_node() {
    let mut state = cluster();
    let port = |number: i32| json!({"containers": [{"name": "c", "ports": [{"containerPort": 1, "hostPort": number}]}]});
    for node in ["a1", "a2", "b1"] {
        state.place(&pod(node, json!({}), port(80)), node);
    }
    assert_eq!(place(&state, json!({}), port(81)), "a1");
    assert_eq!(
        place(&state, json!({}), port(80)),
        "3 node(s) didn't have free ports for the requested pod ports"
    );
    state.remove_pod("a2");
    assert_eq!(place(&state, json!({}), port(80)), "a2");
}

#[test]
fn removing_everything_leaves_nothing() {
    let mut state = cluster();
    let anti = affinity("podAntiAffinity", near("zone", "x"));
    state.place(&pod("one", json!({}), anti), "a1");
    state.place(&pod("two", json!({}), cpu("1")), "a1");
    state.place(&pod("two", json!({}), cpu("2")), "b1");
    assert_eq!(state.node("a1").unwrap().requested.get("cpu"), 0, "it has moved");
    assert_eq!(state.node("b1").unwrap().requested.get("cpu"), 2000);
    for uid in ["one", "two"] {
        assert!(state.remove_pod(uid).is_some());
    }
    assert_eq!((state.placed().count(), state.minding().count()), (0, 0));
    assert_eq!(state.of_namespace("n").count(), 0);
    state.remove_node("a1");
    assert_eq!(state.names, ["a2", "b1"]);
}

#[tokio::test(start_paused = true)]
async fn the_order_of_waiting() {
    let mut queue = Queue::default();
    let with_priority =
        |name: &str, priority: i32| pod(name, json!({}), json!({"priority": priority}));
    queue.offer(with_priority("low", 0));
    queue.offer(with_priority("high", 10));
    queue.offer(with_priority("low-too", 0));
    let pop = |queue: &mut Queue| queue.pop(Instant::now()).map(|(pod, n)| (pod.uid.clone(), n));
    assert_eq!(pop(&mut queue), Some(("high".into(), 0)));
    assert_eq!(pop(&mut queue), Some(("low".into(), 0)));
    let why = Unschedulable { message: String::new(), because_of_others: false };
    queue.park(with_priority("high", 10), 0, why.clone(), Instant::now());
    assert_eq!(pop(&mut queue), Some(("low-too".into(), 0)));
    assert_eq!(pop(&mut queue), None);
    // A change does not spare it the pause.
    queue.wake(Instant::now(), |_, _| true);
    assert_eq!(pop(&mut queue), None);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(pop(&mut queue), Some(("high".into(), 1)));
    // Without a change it waits long, and the pauses grow.
    queue.park(with_priority("high", 10), 1, why.clone(), Instant::now());
    tokio::time::advance(Duration::from_mins(1)).await;
    assert_eq!(pop(&mut queue), None);
    queue.wake(Instant::now(), |_, _| false);
    assert_eq!(pop(&mut queue), None);
    tokio::time::advance(Duration::from_mins(5)).await;
    assert_eq!(pop(&mut queue), Some(("high".into(), 2)));
    queue.park(with_priority("high", 10), 2, why, Instant::now());
    queue.forget("high");
    assert_eq!(queue.next_time(), None);
}

#[test]
fn it_decides_and_speaks_as_kube_scheduler() {
    let recorded: Value =
        serde_json::from_str(include_str!("../../testdata/scheduling.json")).unwrap();
    let list = |value: &Value| value.as_array().unwrap().clone();
    for case in list(&recorded["cases"]) {
        let world = &recorded["worlds"][case["world"].as_str().unwrap()];
        let mut state = State::default();
        for node in list(&world["nodes"]) {
            let name = node["name"].as_str().unwrap();
            let more = node["allocatable"].clone();
            add(&mut state, name, node["labels"].clone(), node["spec"].clone(), more);
        }
        let or_nothing = |value: &Value| if value.is_null() { json!({}) } else { value.clone() };
        for other in list(&world["pods"]) {
            let name = other["name"].as_str().unwrap();
            let placed = pod(name, or_nothing(&other["labels"]), or_nothing(&other["spec"]));
            state.place(&placed, other["node"].as_str().unwrap());
        }
        let new = pod("new", case["labels"].clone(), case["spec"].clone());
        let answer = choose(&new, &state, &mut 0, |equals| {
            assert_eq!(equals, 1, "kube-scheduler was not asked to draw lots: {case}");
            0
        });
        let answer = answer.unwrap_or_else(|why| why.message);
        assert_eq!(json!(answer), case["answer"], "{} {}", case["world"], case["spec"]);
    }
}
