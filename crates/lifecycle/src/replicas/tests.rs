use std::time::Duration;

use proptest::prelude::*;

use super::*;

const HOUR: Duration = Duration::from_hours(1);

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn set(replicas: usize) -> Set {
    Set {
        uid: "own".to_owned(),
        replicas,
        selector: Selector { match_labels: labels(&[("set", "a")]), ..Selector::default() },
        template_labels: labels(&[("set", "a"), ("role", "worker")]),
        ..Set::default()
    }
}

fn member(name: &str) -> Replica {
    Replica {
        name: name.to_owned(),
        labels: labels(&[("set", "a")]),
        controller: Some("own".to_owned()),
        created: Some(now() - HOUR),
        has_node: true,
        ..Replica::default()
    }
}

#[test]
fn makes_what_is_missing_and_adopts_first() {
    let orphan = Replica { controller: None, ..member("orphan") };
    let foreign = Replica { controller: Some("other".to_owned()), ..member("foreign") };
    let going = Replica { deleting: true, ..member("going") };
    let going_orphan = Replica { deleting: true, controller: None, ..member("going-orphan") };
    let stray = Replica { labels: labels(&[]), ..member("stray") };
    let machines = [member("b"), orphan, foreign, going, going_orphan, stray, member("a")];
    let found = plan(&set(5), &machines, now());
    assert_eq!(found.adopt, [1]);
    assert_eq!(found.release, [5]);
    assert_eq!(found.members, [6, 0, 1]);
    assert_eq!(found.create, 2);
    assert!(found.delete.is_empty());
}

#[test]
fn a_set_that_goes_does_nothing() {
    let going = Set { deleting: true, ..set(5) };
    assert_eq!(plan(&going, &[member("a")], now()), Plan::default());
}

#[test]
fn an_orphan_that_would_go_at_once_is_not_adopted_first() {
    let orphan = Replica { controller: None, has_node: false, ..member("orphan") };
    let found = plan(&set(1), &[member("a"), orphan], now());
    assert_eq!((found.adopt, found.delete), (vec![], vec![1]));
}

#[test]
fn annotations_that_ask_to_go_first() {
    let asks = |key: &'static str, value: &'static str| {
        asks_to_go_first(move |wanted| (wanted == key).then_some(value))
    };
    assert!(asks(DELETE_MACHINE, "now"));
    assert!(asks(OLD_DELETE_MACHINE, "yes"));
    assert!(!asks(DELETE_MACHINE, ""));
    assert!(!asks("another", "yes"));
}

#[test]
fn available_after_long_enough_and_looks_again_when_the_first_is() {
    let since = |seconds: u64| NodeReady::Since(Some(now() - Duration::from_secs(seconds)));
    let ready = |name: &str, ready| Replica { ready, ..member(name) };
    let machines = [
        ready("a", since(10)),
        ready("b", since(9)),
        ready("c", since(3)),
        ready("d", NodeReady::Since(None)),
        ready("e", NodeReady::No),
        Replica { labels: set(0).template_labels, ..member("f") },
    ];
    let slow = Set { min_ready_seconds: 10, ..set(0) };
    let found = counts(&slow, &machines, now());
    let wanted = Counts {
        replicas: 6,
        fully_labeled: 1,
        ready: 4,
        available: 1,
        next_check: Some(now() + Duration::from_secs(1)),
    };
    assert_eq!(found, wanted);
    let quick = counts(&set(0), &machines, now());
    assert_eq!((quick.available, quick.next_check), (4, None));
}

#[test]
fn what_policies_there_are() {
    assert_eq!(DeletePolicy::parse(""), Ok(DeletePolicy::Random));
    assert_eq!(DeletePolicy::parse("Oldest"), Ok(DeletePolicy::Oldest));
    assert!(DeletePolicy::parse("oldest").is_err());
}

fn any_replica() -> impl Strategy<Value = Replica> {
    (any::<[bool; 4]>(), 0..3_u8, proptest::option::of(0..10_000_000_u64)).prop_map(
        |([deleting, delete_first, failed, has_node], owner, age)| Replica {
            deleting,
            delete_first,
            failed,
            has_node,
            controller: [None, Some("own".to_owned()), Some("other".to_owned())]
                [usize::from(owner)]
            .clone(),
            created: age.map(|age| now() - Duration::from_secs(age)),
            ..member("m")
        },
    )
}

proptest! {
    /// After a plan is carried out, the set has what it wants; what is not its own is untouched.
    #[test]
    fn a_plan_reaches_the_number(
        machines in proptest::collection::vec(any_replica(), 0..12),
        replicas in 0..12_usize,
        policy in 0..3_usize,
    ) {
        let policies = [DeletePolicy::Random, DeletePolicy::Newest, DeletePolicy::Oldest];
        let set = Set { delete_policy: policies[policy], ..set(replicas) };
        let found = plan(&set, &machines, now());
        prop_assert_eq!(found.members.len() + found.create - found.delete.len(), replicas);
        prop_assert!(found.create == 0 || found.delete.is_empty());
        for place in found.delete.iter().chain(&found.members) {
            prop_assert!(machines[*place].controller.as_deref() != Some("other"));
            prop_assert!(!machines[*place].deleting);
        }
        // Nobody stays who should go more than one who goes.
        let now = now();
        let least = found.delete.iter().map(|place| score(policies[policy], &machines[*place], now));
        if let Some(least) = least.min_by(f64::total_cmp) {
            for place in &found.members {
                let stays = !found.delete.contains(place);
                prop_assert!(!stays || score(policies[policy], &machines[*place], now) <= least);
            }
        }
    }
}
