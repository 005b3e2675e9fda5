//! Drains, step by step.

use std::time::Duration;

use fleetwright_clock::Random;
use fleetwright_lifecycle::drain::{Options, deadline::AtDeadline};
use fleetwright_nodes::drain::{Advance, DRAIN_TIMED_OUT, Drainer, State};
use fleetwright_runtime::{Informer, Metrics};
use jiff::Timestamp;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::cluster::{Cluster, create, owner};

/// A drain of the Node `n1` that begins now.
struct Drain<'a> {
    cluster: &'a Cluster,
    drainer: Drainer,
    options: Options,
    started: Timestamp,
}

impl<'a> Drain<'a> {
    fn new(cluster: &'a Cluster) -> Self {
        let drainer = Drainer::new(cluster.client.clone(), cluster.clock.clone(), "test");
        let started = cluster.clock.now();
        Self { cluster, drainer, options: Options::machine_api(), started }
    }

    /// One step, which must not take time.
    async fn step(&self) -> Advance {
        let before = Instant::now();
        let advance = self.drainer.advance("n1", &self.options, self.started).await.unwrap();
        assert_eq!(before, Instant::now(), "a step does not sleep");
        let now = self.cluster.clock.now();
        assert_eq!(advance.state.is_over(), advance.after(now).is_none());
        advance
    }

    /// Sleeps until the next step is due, and makes it.
    async fn next(&self, last: &Advance) -> Advance {
        let after = last.after(self.cluster.clock.now()).unwrap();
        assert!(after <= Duration::from_mins(1));
        tokio::time::sleep(after).await;
        self.step().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_budget_holds_the_drain_until_it_lets_go() {
    let cluster = Cluster::start().await;
    cluster.node("n1", "True", json!({})).await;
    cluster.pod("a", json!({})).await;
    cluster.pod("b", json!({})).await;
    cluster.budget(2).await;
    let drain = Drain::new(&cluster);

    let mut advance = drain.step().await;
    let node = cluster.nodes().get("n1").await.unwrap();
    assert_eq!(node.spec.unwrap().unschedulable, Some(true));
    assert_eq!(advance.state, State::Draining);
    assert_eq!(
        advance.message,
        "Drain not completed yet (started at 2026-01-01T00:00:02Z):\n* Pods default/a, default/b: \
         cannot evict pod as it would violate the pod's disruption budget. The disruption budget \
         web needs 2 healthy pods and has 2 currently"
    );
    let condition = advance.condition();
    assert_eq!((condition.kind.as_str(), condition.status.as_str()), ("Drained", "False"));
    assert_eq!((condition.reason.as_str(), condition.severity.as_str()), ("DrainError", "Warning"));
    let said = advance.message.clone();
    for _ in 0..4 {
        advance = drain.next(&advance).await;
        assert_eq!(advance.message, said, "a message that is the same is not written again");
    }
    let patch = json!({"spec": {"minAvailable": 0}});
    cluster.budgets().patch("web", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    for _ in 0..2 {
        advance = drain.next(&advance).await;
    }
    assert!(cluster.terminating("a").await && cluster.terminating("b").await);
    assert!(advance.message.contains("deletionTimestamp set"), "{}", advance.message);
    cluster.end("a").await;
    advance = drain.next(&advance).await;
    assert!(advance.message.contains("Pod default/b: deletionTimestamp set"));
    cluster.end("b").await;
    advance = drain.next(&advance).await;
    assert_eq!(advance.state, State::Drained);
    assert_eq!(advance.condition().message, "Drain finished successfully");
    assert_eq!(advance.condition().status.as_str(), "True");
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_node_that_is_not_heard_of_are_not_waited_for() {
    let cluster = Cluster::start().await;
    cluster.node("n1", "Unknown", json!({})).await;
    cluster.pod("a", json!({"spec": {"terminationGracePeriodSeconds": 600}})).await;
    cluster.pod("late", json!({"spec": {"terminationGracePeriodSeconds": 600}})).await;
    cluster.pods().delete("late", &DeleteParams::default()).await.unwrap();
    let drain = Drain::new(&cluster);
    let mut advance = drain.step().await;
    assert_eq!(advance.state, State::Draining);
    for pod in ["a", "late"] {
        let pod = cluster.get(pod).await.unwrap();
        assert_eq!(pod.metadata.deletion_grace_period_seconds, Some(1), "{:?}", pod.metadata);
    }
    let mut steps = 0;
    while !advance.state.is_over() {
        advance = drain.next(&advance).await;
        steps += 1;
        assert!(steps < 10, "{advance:?}");
    }
    assert_eq!(advance.state, State::Drained);
    assert!(cluster.terminating("a").await, "nobody ended it");
}

#[tokio::test(start_paused = true)]
async fn budgets_count_on_a_node_that_is_not_heard_of() {
    let cluster = Cluster::start().await;
    cluster.node("n1", "Unknown", json!({})).await;
    cluster.pod("a", json!({})).await;
    cluster.budget(1).await;
    let advance = Drain::new(&cluster).step().await;
    assert!(advance.message.contains("disruption budget web needs 1"), "{}", advance.message);
    assert!(!cluster.terminating("a").await);
}

#[tokio::test(start_paused = true)]
async fn what_stays_and_what_goes() {
    let cluster = Cluster::start().await;
    cluster.node("n1", "True", json!({})).await;
    let template = json!({
        "metadata": {"labels": {"app": "log"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let set = json!({
        "metadata": {"name": "log"},
        "spec": {"selector": {"matchLabels": {"app": "log"}}, "template": template},
    });
    create(&cluster.daemon_sets(), set).await;
    let of = |name: &str| json!({"metadata": {"ownerReferences": [owner("apps/v1", "DaemonSet", name)]}});
    cluster.pod("daemon", of("log")).await;
    cluster.pod("daemon-orphan", of("gone")).await;
    let mirror = json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}});
    cluster.pod("mirror", mirror).await;
    let volumes = json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}});
    cluster.pod("scratch", volumes).await;
    cluster.pod("naked", json!({"metadata": {"ownerReferences": []}})).await;
    cluster.pod("elsewhere", json!({"spec": {"nodeName": "n2"}})).await;

    let drain = Drain::new(&cluster);
    let mut advance = drain.step().await;
    for pod in ["daemon-orphan", "scratch", "naked"] {
        assert!(cluster.terminating(pod).await, "{pod}");
        cluster.end(pod).await;
    }
    assert_eq!(
        advance.warnings,
        [
            "daemonsets.apps \"gone\" not found: default/daemon-orphan",
            "deleting Pods that declare no controller: default/naked",
            "deleting Pods with local storage: default/scratch",
            "ignoring DaemonSet-managed Pods: default/daemon",
        ]
    );
    advance = drain.next(&advance).await;
    assert_eq!(advance.state, State::Drained);
    for pod in ["daemon", "mirror", "elsewhere"] {
        assert!(!cluster.terminating(pod).await, "{pod}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_came_back_under_its_name_is_left_alone() {
    let cluster = Cluster::start().await;
    cluster.node("n1", "True", json!({})).await;
    let of = json!({"metadata": {"ownerReferences": [owner("apps/v1", "StatefulSet", "db")]}});
    cluster.pod("db-0", of.clone()).await;
    // An informer that stopped hearing: the worst case of a cache that is behind.
    let stop = CancellationToken::new();
    let informer = Informer::new("pods", cluster.pods(), &Metrics::default());
    let mut drain = Drain::new(&cluster);
    drain.drainer = drain.drainer.with_pods(informer.clone());
    let task = tokio::task::LocalSet::new();
    task.spawn_local(informer.clone().run(Random::seeded(1), stop.clone()));
    task.run_until(informer.wait_synced()).await;
    stop.cancel();
    task.await;

    cluster.end("db-0").await;
    let mut elsewhere = of;
    elsewhere["spec"] = json!({"nodeName": "n2"});
    cluster.pod("db-0", elsewhere).await;
    let advance = drain.step().await;
    assert!(!cluster.terminating("db-0").await);
    let advance = drain.next(&advance).await;
    assert_eq!(advance.state, State::Drained);
    assert!(!cluster.terminating("db-0").await);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_came_back_to_the_node_is_evicted_too() {
    let cluster = Cluster::start().await;
    cluster.node("n1", "True", json!({})).await;
    cluster.pod("db-0", json!({})).await;
    let drain = Drain::new(&cluster);
    let advance = drain.step().await;
    cluster.end("db-0").await;
    cluster.pod("db-0", json!({})).await;
    let advance = drain.next(&advance).await;
    assert!(cluster.terminating("db-0").await);
    cluster.end("db-0").await;
    assert_eq!(drain.next(&advance).await.state, State::Drained);
}

#[tokio::test(start_paused = true)]
async fn a_restart_in_the_middle_changes_nothing() {
    let cluster = Cluster::start().await;
    cluster.node("n1", "True", json!({})).await;
    cluster.pod("a", json!({})).await;
    let mut drain = Drain::new(&cluster);
    let mut advance = drain.step().await;
    let before = cluster.get("a").await.unwrap().metadata;
    for _ in 0..3 {
        drain.drainer = Drainer::new(cluster.client.clone(), cluster.clock.clone(), "test");
        advance = drain.next(&advance).await;
        assert_eq!(advance.state, State::Draining);
    }
    let after = cluster.get("a").await.unwrap().metadata;
    assert_eq!(before.deletion_timestamp, after.deletion_timestamp);
    cluster.end("a").await;
    drain.drainer = Drainer::new(cluster.client.clone(), cluster.clock.clone(), "test");
    assert_eq!(drain.next(&advance).await.state, State::Drained);
}

#[tokio::test(start_paused = true)]
async fn one_control_plane_node_at_a_time() {
    let cluster = Cluster::start().await;
    let control_plane = json!({"node-role.kubernetes.io/control-plane": ""});
    cluster.node("n1", "True", control_plane.clone()).await;
    cluster.node("n2", "True", json!({"node-role.kubernetes.io/master": ""})).await;
    cluster.node("n3", "True", json!({})).await;
    let drain = Drain::new(&cluster);
    let options = &drain.options;
    let advance = |node| drain.drainer.advance(node, options, drain.started);
    let (one, two, worker) = tokio::join!(advance("n1"), advance("n2"), advance("n3"));
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!(worker.unwrap().state, State::Drained);
    let waits: Vec<bool> = [&one, &two]
        .iter()
        .map(|advance| matches!(advance.state, State::WaitsForNode(_)))
        .collect();
    assert_eq!(waits.iter().filter(|waits| **waits).count(), 1, "{one:?} {two:?}");
    let (done, held) = if waits[0] { ("n2", "n1") } else { ("n1", "n2") };
    cluster.nodes().delete(done, &DeleteParams::default()).await.unwrap();
    assert_eq!(advance(held).await.unwrap().state, State::Drained);
    assert_eq!(advance(done).await.unwrap().state, State::NodeGone);
}

#[tokio::test(start_paused = true)]
async fn after_its_time_the_drain_stops_and_says_so() {
    let cluster = Cluster::start().await;
    cluster.node("n1", "True", json!({})).await;
    cluster.pod("a", json!({})).await;
    cluster.budget(1).await;
    let mut drain = Drain::new(&cluster);
    drain.options.timeout = Some(Duration::from_secs(90));
    let mut advance = drain.step().await;
    while !advance.state.is_over() {
        advance = drain.next(&advance).await;
    }
    assert_eq!(cluster.clock.now().duration_since(drain.started).as_secs(), 90);
    assert_eq!(advance.state, State::TimedOut(vec!["default/a".to_owned()]));
    let condition = advance.condition();
    assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("True", DRAIN_TIMED_OUT));
    assert_eq!(
        condition.message,
        "Drain stopped after its timeout of 90s; left on the Node: default/a"
    );
    assert!(!cluster.terminating("a").await);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_shortens_grace_and_may_overrule_budgets() {
    for at_deadline in [AtDeadline::RespectBudgets, AtDeadline::DeleteWhatBlocks] {
        let cluster = Cluster::start().await;
        cluster.node("n1", "True", json!({})).await;
        cluster.pod("held", json!({"spec": {"terminationGracePeriodSeconds": 20}})).await;
        cluster.budget(1).await;
        let free = json!({
            "metadata": {"labels": {"app": "free"}},
            "spec": {"terminationGracePeriodSeconds": 600},
        });
        cluster.pod("free", free).await;
        let mut drain = Drain::new(&cluster);
        drain.options = drain.options.until(drain.started + Duration::from_mins(1));
        drain.options.at_deadline = at_deadline;
        let mut advance = drain.step().await;
        let grace = |metadata: kube::api::ObjectMeta| metadata.deletion_grace_period_seconds;
        assert_eq!(grace(cluster.get("free").await.unwrap().metadata), Some(60));
        while cluster.clock.now() < drain.started + Duration::from_secs(59) {
            advance = drain.next(&advance).await;
        }
        let held = cluster.get("held").await.unwrap();
        match at_deadline {
            AtDeadline::RespectBudgets => assert!(!cluster.terminating("held").await),
            // A budget is asked as long as the pod's own time fits, not longer.
            AtDeadline::DeleteWhatBlocks => assert_eq!(grace(held.metadata), Some(19)),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_dead_instance_are_removed_whatever_they_are() {
    let cluster = Cluster::start().await;
    cluster.node("n1", "Unknown", json!({})).await;
    cluster.pod("a", json!({})).await;
    cluster
        .pod("mirror", json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}}))
        .await;
    cluster.pod("held", json!({"metadata": {"finalizers": ["example.com/hold"]}})).await;
    cluster.pod("elsewhere", json!({"spec": {"nodeName": "n2"}})).await;
    cluster.budget(4).await;
    let drain = Drain::new(&cluster);
    let left = drain.drainer.clean_up("n1").await.unwrap();
    assert_eq!(left, ["default/held"]);
    assert!(cluster.get("a").await.is_none() && cluster.get("mirror").await.is_none());
    assert!(cluster.get("elsewhere").await.is_some());
    let patch = json!({"metadata": {"finalizers": null}});
    cluster.pods().patch("held", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    assert!(drain.drainer.clean_up("n1").await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn in_cluster_api_a_pod_may_be_left_or_waited_for() {
    let cluster = Cluster::start().await;
    cluster.node("n1", "True", json!({})).await;
    let wish = |value: &str| json!({"metadata": {"labels": {"cluster.x-k8s.io/drain": value}}});
    cluster.pod("stays", wish("skip")).await;
    cluster.pod("job", wish("wait-completed")).await;
    let mut drain = Drain::new(&cluster);
    drain.drainer = drain.drainer.with_wishes();
    let advance = drain.step().await;
    assert!(advance.message.ends_with("* Pod default/job: waiting for completion"));
    let over = json!({"status": {"phase": "Succeeded"}});
    let params = PatchParams::default();
    cluster.pods().patch_status("job", &params, &Patch::Merge(over)).await.unwrap();
    assert_eq!(drain.next(&advance).await.state, State::Drained);
    assert!(!cluster.terminating("stays").await && !cluster.terminating("job").await);
}
