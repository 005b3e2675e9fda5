use proptest::prelude::*;

use super::{
    attempts::{Answer, LONGEST_WAIT, LONGEST_WAIT_WITH_DEADLINE},
    *,
};

fn at(second: u64) -> Timestamp {
    Timestamp::UNIX_EPOCH + Duration::from_secs(1_000_000 + second)
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn pod(name: &str) -> Pod {
    Pod {
        namespace: "shop".to_owned(),
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        controller: Some(Controller {
            api_version: "apps/v1".to_owned(),
            kind: "ReplicaSet".to_owned(),
            name: "web".to_owned(),
            existence: Existence::Exists,
        }),
        mirror: false,
        local_storage: false,
        finished: false,
        deletion: None,
        grace: DEFAULT_GRACE,
        critical: false,
        wish: Wish::Drain,
    }
}

fn refusal() -> Answer {
    Answer {
        code: 429,
        message: "Cannot evict pod as it would violate the pod's disruption budget.".to_owned(),
        causes: vec![
            "The disruption budget web needs 1 healthy pods and has 1 currently".to_owned(),
        ],
        ..Answer::default()
    }
}

fn accepted() -> Answer {
    Answer { code: 201, ..Answer::default() }
}

/// Pods, what was answered, and the plan at a time.
struct Drain {
    options: Options,
    pods: Vec<Pod>,
    attempts: Attempts,
}

impl Drain {
    fn of(pods: Vec<Pod>) -> Self {
        Self { options: Options::machine_api(), pods, attempts: Attempts::default() }
    }

    fn plan(&self, second: u64) -> Plan {
        plan(&self.options, &self.pods, &self.attempts, at(0), at(second))
    }

    fn answer(&mut self, place: usize, verb: Verb, answer: &Answer, second: u64) {
        let deadline = self.options.deadline.is_some();
        self.attempts.answered(&self.pods[place], verb, answer, deadline, at(second));
    }
}

#[test]
fn evicts_waits_and_ends() {
    let mut drain = Drain::of(vec![pod("a")]);
    let first = drain.plan(0);
    assert_eq!(first.requests, [Request { pod: 0, verb: Verb::Evict, grace: None }]);
    drain.answer(0, Verb::Evict, &accepted(), 0);
    // The list may be behind; the answer counts.
    let second = drain.plan(1);
    assert_eq!((second.requests, second.look_again), (vec![], Some(at(6))));
    drain.pods[0].deletion = Some(at(30));
    let third = drain.plan(20);
    assert_eq!(third.requests, []);
    assert_eq!(third.progress.terminating, ["shop/a"]);
    drain.pods.clear();
    assert_eq!(drain.plan(21).stage, Stage::Drained);
}

#[test]
fn an_eviction_that_left_no_trace_is_made_again() {
    let mut drain = Drain::of(vec![pod("a")]);
    drain.answer(0, Verb::Evict, &accepted(), 0);
    assert!(drain.plan(9).requests.is_empty());
    assert_eq!(drain.plan(10).requests.len(), 1);
}

#[test]
fn a_pod_that_came_back_under_its_name_is_another_pod() {
    let mut drain = Drain::of(vec![pod("a")]);
    drain.answer(0, Verb::Evict, &Answer { code: 404, ..Answer::default() }, 0);
    assert_eq!(drain.plan(1).stage, Stage::Drained);
    drain.pods[0].uid = "another".to_owned();
    assert_eq!(drain.plan(1).requests.len(), 1);
    drain.attempts.keep_only(std::iter::once("another"));
    assert!(drain.attempts.is_empty());
}

#[test]
fn a_budget_is_asked_again_ever_more_slowly_and_is_named() {
    let mut drain = Drain::of(vec![pod("a")]);
    let mut waits = Vec::new();
    let mut second = 0;
    for _ in 0..9 {
        assert_eq!(drain.plan(second).requests.len(), 1);
        drain.answer(0, Verb::Evict, &refusal(), second);
        let look_again = drain.plan(second).look_again.unwrap();
        waits.push(look_again.duration_since(at(second)).as_secs());
        second = u64::try_from(look_again.as_second()).unwrap() - 1_000_000;
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    assert_eq!(
        drain.plan(second).progress.message(),
        "Drain not completed yet (started at 1970-01-12T13:46:40Z):\n* Pod shop/a: cannot evict \
         pod as it would violate the pod's disruption budget. The disruption budget web needs 1 \
         healthy pods and has 1 currently"
    );
}

#[test]
fn waits_never_exceed_what_they_may() {
    for refusals in [1, 3, 10, u32::MAX] {
        let asked = Some(secs(600));
        assert!(attempts::wait(refusals, asked, false) <= LONGEST_WAIT);
        assert!(attempts::wait(refusals, asked, true) <= LONGEST_WAIT_WITH_DEADLINE);
    }
    assert_eq!(attempts::wait(1, Some(secs(10)), false), secs(10));
}

#[test]
fn what_is_deleted_by_others_is_waited_for_not_asked_again() {
    let mut drain = Drain::of(vec![pod("a")]);
    drain.answer(0, Verb::Evict, &refusal(), 0);
    drain.pods[0].deletion = Some(at(40));
    let found = drain.plan(5);
    assert!(found.requests.is_empty());
    assert_eq!(found.progress.terminating, ["shop/a"]);
}

#[test]
fn nobody_waits_for_a_kubelet_that_is_not_heard_of() {
    let mut drain = Drain::of(vec![pod("a"), pod("old")]);
    drain.options = drain.options.unreachable();
    drain.pods[1].deletion = Some(at(600));
    let found = drain.plan(0);
    let one = Some(secs(1));
    assert_eq!(
        found.requests,
        [
            Request { pod: 0, verb: Verb::Evict, grace: one },
            Request { pod: 1, verb: Verb::Evict, grace: one },
        ]
    );
    for pod in &mut drain.pods {
        pod.deletion = Some(at(1));
    }
    assert_eq!(drain.plan(2).stage, Stage::Draining);
    assert_eq!(drain.plan(3).stage, Stage::Drained);
}

#[test]
fn after_its_time_the_rest_stays_and_is_named() {
    let mut drain = Drain::of(vec![pod("b"), pod("a")]);
    drain.options.timeout = Some(secs(60));
    drain.answer(0, Verb::Evict, &refusal(), 0);
    drain.answer(1, Verb::Evict, &refusal(), 0);
    assert_eq!(drain.plan(59).stage, Stage::Draining);
    let found = drain.plan(60);
    assert_eq!(found.stage, Stage::TimedOut(vec!["shop/a".to_owned(), "shop/b".to_owned()]));
    assert!(found.requests.is_empty());
    drain.attempts = Attempts::default();
    let slow = Answer { retry_after: Some(secs(30)), ..refusal() };
    drain.answer(0, Verb::Evict, &slow, 50);
    drain.answer(1, Verb::Evict, &accepted(), 59);
    assert_eq!(drain.plan(59).look_again, Some(at(60)), "the end counts, too");
}

#[test]
fn a_refusing_filter_holds_everything_back() {
    let mut drain = Drain::of(vec![pod("a"), pod("log")]);
    drain.pods[1].controller = Some(Controller {
        api_version: "apps/v1".to_owned(),
        kind: "DaemonSet".to_owned(),
        name: "log".to_owned(),
        existence: Existence::Unknown("the server is busy".to_owned()),
    });
    let found = drain.plan(0);
    assert_eq!((found.stage, found.requests), (Stage::Refused, vec![]));
    assert!(found.progress.message().ends_with("\n* cannot delete the server is busy: shop/log"));
    assert_eq!(found.look_again, Some(at(5)));
    drain.options.timeout = Some(secs(10));
    assert_eq!(drain.plan(10).stage, Stage::TimedOut(vec!["shop/log".to_owned()]));
}

#[test]
fn every_reason_that_is_true_is_told() {
    let mut drain = Drain::of(vec![pod("a")]);
    drain.pods[0].controller = None;
    drain.pods[0].local_storage = true;
    assert_eq!(
        drain.plan(0).warnings,
        [
            "deleting Pods that declare no controller: shop/a",
            "deleting Pods with local storage: shop/a"
        ]
    );
}

#[test]
fn with_a_deadline_grace_is_what_is_left_and_the_slowest_go_first() {
    let grace = |name: &str, seconds| Pod { grace: secs(seconds), ..pod(name) };
    let mut drain = Drain::of(vec![
        grace("quick", 1),
        grace("slow", 20),
        grace("late", 600),
        Pod { critical: true, ..grace("network", 25) },
        grace("middle", 10),
    ]);
    drain.options = drain.options.until(at(30));
    let found = drain.plan(0);
    let order: Vec<&str> =
        found.requests.iter().map(|request| drain.pods[request.pod].name.as_str()).collect();
    assert_eq!(order, ["slow", "middle", "quick", "late", "network"]);
    let graces: Vec<Option<Duration>> =
        found.requests.iter().map(|request| request.grace).collect();
    assert_eq!(graces, [None, None, None, Some(secs(30)), None]);
    assert!(found.requests.iter().all(|request| request.verb == Verb::Evict));
}

#[test]
fn a_pod_that_would_outlive_its_node_is_hurried() {
    let mut drain = Drain::of(vec![Pod { deletion: Some(at(100)), ..pod("a") }]);
    drain.pods[0].grace = secs(90);
    drain.options = drain.options.until(at(40));
    let hurry = Request { pod: 0, verb: Verb::Evict, grace: Some(secs(30)) };
    assert_eq!(drain.plan(10).requests, [hurry]);
    drain.pods[0].deletion = Some(at(40));
    assert_eq!(drain.plan(11).requests, []);
}

#[test]
fn what_blocks_is_deleted_in_time_if_wanted() {
    let mut drain = Drain::of(vec![pod("a")]);
    drain.options = drain.options.until(at(60));
    drain.answer(0, Verb::Evict, &refusal(), 29);
    let respects = drain.plan(31);
    assert_eq!(respects.requests[0].verb, Verb::Evict, "budgets count unless told otherwise");

    drain.options.at_deadline = AtDeadline::DeleteWhatBlocks;
    for _ in 0..3 {
        drain.answer(0, Verb::Evict, &refusal(), 29);
    }
    let turn = at(30) + Duration::from_millis(1);
    assert_eq!(drain.plan(29).look_again, Some(turn), "before the budget is asked again");
    let told = plan(&drain.options, &drain.pods, &drain.attempts, at(0), turn);
    assert_eq!(told.requests, [Request { pod: 0, verb: Verb::Delete, grace: Some(secs(29)) }]);
    // A deletion that fails waits like any other.
    drain.answer(0, Verb::Delete, &Answer { code: 500, ..Answer::default() }, 31);
    assert!(drain.plan(31).requests.is_empty());
}

#[test]
fn few_requests_at_once_and_the_others_after() {
    let mut drain = Drain::of((0..5).map(|number| pod(&number.to_string())).collect());
    drain.options.at_once = 2;
    let found = drain.plan(0);
    assert_eq!(found.requests.len(), 2);
    for place in 0..2 {
        drain.answer(place, Verb::Evict, &accepted(), 0);
    }
    let found = drain.plan(0);
    assert_eq!((found.requests.len(), found.look_again), (2, Some(at(0))));
    assert!(found.progress.message().ends_with("will be evicted: shop/2, shop/3, shop/4"));
}

#[test]
fn owners_may_ask_to_be_left_or_waited_for() {
    let mut drain = Drain::of(vec![
        Pod { wish: Wish::Skip, ..pod("stays") },
        Pod { wish: Wish::WaitCompleted, ..pod("job") },
    ]);
    let found = drain.plan(0);
    assert!(found.requests.is_empty());
    assert_eq!(found.progress.completing, ["shop/job"]);
    assert!(found.progress.message().ends_with("* Pod shop/job: waiting for completion"));
    drain.pods[1].finished = true;
    assert_eq!(drain.plan(0).stage, Stage::Drained);
}

#[test]
fn nothing_of_a_dead_node_stays() {
    let pods = [Pod { mirror: true, ..pod("a") }, pod("b")];
    let found = clean_up(&pods);
    let zero = Some(Duration::ZERO);
    assert_eq!(
        found,
        [
            Request { pod: 0, verb: Verb::Delete, grace: zero },
            Request { pod: 1, verb: Verb::Delete, grace: zero }
        ]
    );
}

#[test]
fn long_lists_are_cut() {
    let mut progress = Progress::new(at(0));
    for number in 0..5 {
        progress.terminating.push(format!("t{number}"));
        progress.failed(&format!("why {number}"), &pod("x"));
    }
    progress.failed("why 5", &pod("y"));
    progress.failed("why 6", &pod("y"));
    let text = progress.message();
    assert!(text.contains("* Pods t0, t1, t2, ... (2 more): deletionTimestamp set"), "{text}");
    assert!(text.contains("failed to evict Pod, why 4"), "{text}");
    assert!(text.ends_with("* 2 Pods with other issues"), "{text}");
}

fn any_grace() -> impl Strategy<Value = u64> {
    prop_oneof![0..90_u64, Just(u64::MAX)]
}

fn any_pod() -> impl Strategy<Value = Pod> {
    (0..6_u8, any::<[bool; 4]>(), proptest::option::of(0..100_u64), any_grace()).prop_map(
        |(name, [mirror, local_storage, finished, controlled], deletion, grace)| {
            let mut pod = pod(&name.to_string());
            pod.mirror = mirror;
            pod.local_storage = local_storage;
            pod.finished = finished;
            pod.deletion = deletion.map(at);
            pod.grace = secs(grace);
            pod.controller = pod.controller.filter(|_| controlled);
            pod
        },
    )
}

proptest! {
    /// A plan always has a next step, and asks nothing of pods that stay.
    #[test]
    fn a_drain_never_stands_still(
        pods in proptest::collection::vec(any_pod(), 0..8),
        codes in proptest::collection::vec(
            prop_oneof![Just(201_u16), Just(404), Just(429), Just(500), Just(409)], 8),
        deadline in proptest::option::of(0..100_u64),
        second in 0..100_u64,
    ) {
        let mut drain = Drain::of(pods);
        if let Some(deadline) = deadline {
            drain.options = drain.options.until(at(deadline));
            drain.options.at_deadline = AtDeadline::DeleteWhatBlocks;
        }
        for (place, code) in codes.iter().enumerate().take(drain.pods.len()) {
            let answer = Answer { code: *code, ..Answer::default() };
            drain.answer(place, Verb::Evict, &answer, second / 2);
        }
        let found = drain.plan(second);
        match found.stage {
            Stage::Drained => prop_assert!(found.requests.is_empty()),
            _ => prop_assert!(found.look_again.is_some_and(|time| time >= at(second))),
        }
        for request in &found.requests {
            prop_assert!(!drain.pods[request.pod].mirror);
            let left = deadline.map(|deadline| deadline.saturating_sub(second).max(1));
            if let (Some(left), Some(grace)) = (left, request.grace) {
                prop_assert!(grace <= secs(left));
            }
        }
    }
}
