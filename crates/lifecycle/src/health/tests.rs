use super::*;

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn ago(seconds: u64) -> Timestamp {
    now() - Duration::from_secs(seconds)
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn check() -> Check {
    let rule = |status: &str| Unhealthy {
        kind: "Ready".to_owned(),
        status: status.to_owned(),
        timeout: secs(300),
    };
    Check {
        node_conditions: vec![rule("Unknown"), rule("False")],
        node_startup_timeout: secs(600),
        ..Check::default()
    }
}

fn node(status: &str, age: u64) -> Target {
    let seen = Seen { kind: "Ready".to_owned(), status: status.to_owned(), since: ago(age) };
    Target { node: NodeState::Present(vec![seen]), ..Target::default() }
}

#[test]
fn who_counts_as_what() {
    let targets = [
        node("True", 5000),
        Target { deleting: true, ..node("True", 5000) },
        Target { repaired_by_others: true, ..node("True", 5000) },
        node("False", 301),
        node("Unknown", 100),
        Target { started: Some(ago(599)), ..Target::default() },
        Target { failed: true, ..Target::default() },
        Target { failed: true, had_instance: true, ..node("True", 1) },
        Target { node: NodeState::Missing, ..Target::default() },
        Target { repair_asked: true, ..node("True", 5000) },
    ];
    let found = evaluate(&check(), &targets, now());
    assert_eq!((found.total, found.healthy, found.not_healthy()), (10, 1, 9));
    let condition = Cause::NodeCondition { kind: "Ready".to_owned(), status: "False".to_owned() };
    assert_eq!(
        found.unhealthy,
        [
            (9, Cause::Asked),
            (3, condition),
            (6, Cause::LaunchFailed),
            (7, Cause::InstanceGone),
            (8, Cause::NodeMissing)
        ]
    );
    assert_eq!(found.doubtful, [4, 5]);
    assert_eq!(found.next_check, Some(secs(2)));
}

#[test]
fn the_next_look_is_within_an_hour() {
    let slow = Check { node_startup_timeout: secs(86_400), ..check() };
    let target = Target { started: Some(now()), ..Target::default() };
    assert_eq!(judge(&slow, &target, now()), Verdict::Doubtful(Duration::from_hours(1)));
}

#[test]
fn conditions_of_the_machine_count_where_they_are_asked_for() {
    let mut check = check();
    check.machine_conditions =
        vec![Unhealthy { kind: "Infra".to_owned(), status: "False".to_owned(), timeout: secs(10) }];
    let mut target = node("True", 5000);
    target.conditions =
        vec![Seen { kind: "Infra".to_owned(), status: "False".to_owned(), since: ago(10) }];
    assert_eq!(judge(&check, &target, now()), Verdict::Doubtful(secs(1)));
    target.conditions[0].since = ago(11);
    assert!(matches!(
        judge(&check, &target, now()),
        Verdict::Unhealthy(Cause::MachineCondition { .. })
    ));
}

#[test]
fn causes_are_told_as_they_are_kept() {
    let condition =
        Cause::NodeCondition { kind: "Terminating".to_owned(), status: "True".to_owned() };
    let told: Vec<String> = [
        Cause::LaunchFailed,
        Cause::InstanceGone,
        Cause::StartupTimeout,
        Cause::NodeMissing,
        condition,
    ]
    .iter()
    .map(ToString::to_string)
    .collect();
    assert_eq!(
        told,
        [
            "launch-failed",
            "instance-gone",
            "startup-timeout",
            "node-missing",
            "condition:Terminating=True"
        ]
    );
}

#[test]
fn clocks_that_are_wrong_do_no_harm() {
    let seen = |since| Target {
        node: NodeState::Present(vec![Seen {
            kind: "Ready".to_owned(),
            status: "False".to_owned(),
            since,
        }]),
        ..Target::default()
    };
    let ahead = judge(&check(), &seen(Timestamp::MAX), now());
    assert_eq!(ahead, Verdict::Doubtful(Duration::from_hours(1)));
    assert!(matches!(judge(&check(), &seen(Timestamp::MIN), now()), Verdict::Unhealthy(_)));
}
