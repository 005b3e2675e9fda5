use fleetwright_cloud::{Other, Strategy};

use super::*;

const CLUSTER: &str = "demo";

fn tags(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn owned(more: &[(&str, &str)]) -> BTreeMap<String, String> {
    let mut tags = tags(more);
    tags.insert("kubernetes.io/cluster/demo".to_owned(), "owned".to_owned());
    tags
}

fn ours(name: &str) -> BTreeMap<String, String> {
    owned(&[("Name", name), (MACHINE_UID_TAG, "uid")])
}

fn instance(id: &str, state: InstanceState, tags: BTreeMap<String, String>) -> Instance {
    Instance {
        id: id.to_owned(),
        provider_id: String::new(),
        state,
        state_reason: None,
        region: String::new(),
        zone: "us-east-1a".to_owned(),
        instance_type: "m5.large".to_owned(),
        interruptible: false,
        addresses: Vec::new(),
        launched_at: None,
        token: None,
        launch_index: None,
        group: None,
        partition: None,
        volumes: Vec::new(),
        tags,
    }
}

fn member(id: &str, group: &str, tags: BTreeMap<String, String>) -> Instance {
    Instance { group: Some(group.to_owned()), ..instance(id, InstanceState::Running, tags) }
}

fn leftover(
    kind: LeftoverKind,
    id: &str,
    users: &[&str],
    tags: BTreeMap<String, String>,
) -> Leftover {
    let users: Vec<String> = users.iter().map(|user| (*user).to_owned()).collect();
    Leftover { kind, id: id.to_owned(), in_use: !users.is_empty(), users, tags }
}

fn group(name: &str, state: GroupState, tags: BTreeMap<String, String>) -> PlacementGroup {
    PlacementGroup {
        name: name.to_owned(),
        id: format!("pg-{name}"),
        strategy: Strategy::Spread,
        partitions: None,
        state,
        tags,
    }
}

fn survey() -> Survey {
    Survey { cluster: CLUSTER.to_owned(), ..Survey::default() }
}

fn outlooks(plan: &Plan) -> Vec<(&str, Outlook)> {
    plan.items.iter().map(|item| (item.id.as_str(), item.outlook.clone())).collect()
}

#[test]
fn only_what_carries_both_tags_is_touched() {
    let other_cluster = tags(&[("kubernetes.io/cluster/other", "owned"), (MACHINE_UID_TAG, "u")]);
    let shared = tags(&[("kubernetes.io/cluster/demo", "shared"), (MACHINE_UID_TAG, "u")]);
    let not_ours = [owned(&[("Name", "m")]), other_cluster, shared, BTreeMap::new()];
    for tags in &not_ours {
        let survey = Survey {
            instances: vec![instance("i-1", InstanceState::Running, tags.clone())],
            leftovers: vec![leftover(LeftoverKind::Volume, "vol-1", &[], tags.clone())],
            groups: vec![group("g", GroupState::Available, tags.clone())],
            ..survey()
        };
        let plan = plan(&survey, &Refusals::new());
        assert_eq!(plan.items, [], "{tags:?}");
        assert_eq!(plan.next(), Step::Done);
        assert_eq!(plan.untouched.len(), 3);
    }
    for key in [MACHINE_UID_TAG, GANG_TAG] {
        let survey = Survey {
            instances: vec![instance("i-1", InstanceState::Running, owned(&[(key, "x")]))],
            ..survey()
        };
        assert_eq!(plan(&survey, &Refusals::new()).next(), Step::Terminate(vec!["i-1".to_owned()]));
    }
}

#[test]
fn a_group_of_the_cluster_that_is_called_otherwise_is_somebody_elses() {
    let named = |name: &str| group("g", GroupState::Available, owned(&[("Name", name)]));
    let next = |group| plan(&Survey { groups: vec![group], ..survey() }, &Refusals::new()).next();
    assert_eq!(next(named("g")), Step::Delete(vec!["g".to_owned()]));
    assert_eq!(next(named("h")), Step::Done);
}

#[test]
fn instances_first_then_what_they_used_then_groups() {
    let mut all = Survey {
        instances: vec![
            instance("i-1", InstanceState::Running, ours("a")),
            instance("i-2", InstanceState::Stopped, ours("b")),
            instance("i-3", InstanceState::Terminated, ours("c")),
        ],
        members: vec![member("i-1", "g", ours("a"))],
        leftovers: vec![
            leftover(LeftoverKind::Host, "h-1", &["i-2"], ours("b")),
            leftover(LeftoverKind::Volume, "vol-1", &["i-1"], ours("a")),
            leftover(LeftoverKind::Volume, "vol-9", &[], ours("z")),
        ],
        groups: vec![group("g", GroupState::Available, owned(&[("Name", "g")]))],
        ..survey()
    };
    let none = Refusals::new();
    let first = plan(&all, &none);
    assert_eq!(first.next(), Step::Terminate(vec!["i-1".to_owned(), "i-2".to_owned()]));
    assert_eq!(
        outlooks(&first),
        [
            ("i-1", Outlook::Ready),
            ("i-2", Outlook::Ready),
            ("vol-1", Outlook::Waits),
            ("vol-9", Outlook::Ready),
            ("h-1", Outlook::Waits),
            ("g", Outlook::Waits),
        ]
    );
    for instance in &mut all.instances {
        instance.state = InstanceState::ShuttingDown;
    }
    assert_eq!(plan(&all, &none).next(), Step::Wait, "even for what nobody uses");
    for instance in &mut all.instances {
        instance.state = InstanceState::Terminated;
    }
    // Members and users show late.
    let Step::Remove(leftovers) = plan(&all, &none).next() else { panic!() };
    let ids: Vec<&str> = leftovers.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(ids, ["vol-9"], "the others are in use until the cloud says otherwise");
    for leftover in &mut all.leftovers {
        (leftover.in_use, leftover.users) = (false, Vec::new());
    }
    let Step::Remove(leftovers) = plan(&all, &none).next() else { panic!() };
    assert_eq!(leftovers.len(), 3);
    all.leftovers.clear();
    assert_eq!(plan(&all, &none).next(), Step::Delete(vec!["g".to_owned()]));
    all.groups[0].state = GroupState::Deleting;
    assert_eq!(plan(&all, &none).next(), Step::Wait);
    all.groups[0].state = GroupState::Deleted;
    assert_eq!(plan(&all, &none).next(), Step::Done);
}

#[test]
fn what_is_in_the_way_is_named_and_holds_nothing_else_up() {
    let survey = Survey {
        instances: vec![instance("i-1", InstanceState::Running, ours("a"))],
        members: vec![member("i-1", "g", ours("a")), member("i-9", "g", BTreeMap::new())],
        leftovers: vec![
            leftover(LeftoverKind::Volume, "vol-1", &["i-9"], ours("a")),
            leftover(LeftoverKind::Volume, "vol-2", &[], ours("a")),
        ],
        groups: vec![
            group("g", GroupState::Available, owned(&[("Name", "g")])),
            group("h", GroupState::Available, owned(&[("Name", "h")])),
        ],
        ..survey()
    };
    let first = plan(&survey, &Refusals::new());
    let blocked: Vec<(&str, &str)> =
        first.blocked().iter().map(|it| (it.item.id.as_str(), it.why)).collect();
    let foreign = "used by i-9, which Fleetwright did not make for this cluster";
    assert_eq!(blocked, [("vol-1", foreign), ("g", foreign)]);
    // One that cannot be terminated keeps its group, and only that.
    let refusals = Refusals::from([("i-1".to_owned(), "protected".to_owned())]);
    let members = vec![member("i-1", "g", ours("a"))];
    let survey = Survey { members, leftovers: Vec::new(), ..survey };
    let second = plan(&survey, &refusals);
    assert_eq!(second.next(), Step::Delete(vec!["h".to_owned()]));
    let text = second.describe(CLUSTER);
    assert!(text.contains("In the way:\n  instance         i-1  a     protected\n"), "{text}");
    assert!(text.contains("used by i-1, which stays"), "{text}");
}

#[test]
fn what_is_left_alone_is_listed() {
    let other =
        |kind: &str, id: &str, tags| Other { kind: kind.to_owned(), id: id.to_owned(), tags };
    let survey = Survey {
        instances: vec![instance("i-5", InstanceState::Running, owned(&[("Name", "master-0")]))],
        others: vec![
            other("vpc", "vpc-1", owned(&[("Name", "demo-vpc")])),
            other("security-group", "sg-1", owned(&[])),
            other("spot-instances-request", "sir-1", ours("a")),
        ],
        ..survey()
    };
    let text = plan(&survey, &Refusals::new()).describe(CLUSTER);
    let expected = "\
There is nothing to remove.

Left alone, although tagged kubernetes.io/cluster/demo=owned:
  instance        i-5    master-0
  security group  sg-1
  vpc             vpc-1  demo-vpc
";
    assert_eq!(text, expected);
}
