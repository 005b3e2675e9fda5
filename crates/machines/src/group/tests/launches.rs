//! What a group means for a launch, by table.

use std::collections::BTreeSet;

use fleetwright_api::{aws::AWSMachineProviderConfig, placement::AWSPlacementGroup};
use fleetwright_cloud::{InstanceState, Strategy};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::group::{
    decide::Member,
    preflight::{Known, Verdict, Wish, check},
};

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

/// A group that is ready.
fn group(group_type: &str, partitions: Option<u32>) -> Value {
    let configuration = json!({
        "groupType": group_type,
        "partition": partitions.map(|count| json!({"count": count})),
    });
    json!({
        "metadata": {"name": "g"},
        "spec": {"managementSpec": {"managementState": "Managed", "managed": configuration}},
        "status": {
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "ConfigurationInSync", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }],
            "expiresAt": "2026-01-01T00:02:00Z",
            "observedConfiguration": configuration,
        },
    })
}

fn spec(value: Value) -> AWSMachineProviderConfig {
    serde_json::from_value(value).unwrap()
}

fn in_group(placement: &Value) -> AWSMachineProviderConfig {
    let mut value = json!({"instanceType": "m5.large", "placement": {"group": {"name": "g"}}});
    for (key, setting) in placement.as_object().unwrap() {
        value["placement"][key] = setting.clone();
    }
    spec(value)
}

fn members(zones: &[(&str, usize)]) -> Vec<Member> {
    let each = zones.iter().flat_map(|(zone, count)| std::iter::repeat_n(*zone, *count));
    each.map(|zone| Member {
        id: "i".to_owned(),
        state: InstanceState::Running,
        zone: zone.to_owned(),
    })
    .collect()
}

fn judge(
    config: &AWSMachineProviderConfig,
    group: Option<&Value>,
    members: &[Member],
    strategies: Option<&BTreeSet<Strategy>>,
) -> Verdict {
    let group: Option<AWSPlacementGroup> =
        group.map(|group| serde_json::from_value(group.clone()).unwrap());
    let wish = Wish::of(config, "us-east-1a").unwrap().unwrap();
    check(&wish, &Known { group: group.as_ref(), strategies, members, now: now() })
}

fn refusal(config: &AWSMachineProviderConfig, group: &Value) -> String {
    match judge(config, Some(group), &[], None) {
        Verdict::Refuse { message } => message,
        other => panic!("{other:?}"),
    }
}

fn wait(group: &Value) -> (String, bool) {
    match judge(&in_group(&json!({})), Some(group), &[], None) {
        Verdict::Wait { message, refresh } => (message, refresh),
        other => panic!("{other:?}"),
    }
}

const GO: Verdict = Verdict::Launch { room: None };

#[test]
fn the_object_must_be_there_if_it_is_named() {
    let missing = judge(&in_group(&json!({})), None, &[], None);
    let message = "AWSPlacementGroup \"g\" not found. Please create an AWSPlacementGroup before setting placement.group.name".to_owned();
    assert_eq!(missing, Verdict::Missing { message });
    let flat = spec(json!({"placementGroupName": "g"}));
    assert_eq!(judge(&flat, None, &[], None), GO, "a group in the cloud is enough");
    let (message, _) = match judge(&flat, Some(&json!({"metadata": {"name": "g"}})), &[], None) {
        Verdict::Wait { message, refresh } => (message, refresh),
        other => panic!("{other:?}"),
    };
    assert!(message.contains("not been observed"), "an object of that name counts all the same");
}

#[test]
fn defect_l_only_a_ready_fresh_group_lets_machines_in() {
    assert_eq!(judge(&in_group(&json!({})), Some(&group("Cluster", None)), &[], None), GO);
    let mut expired = group("Cluster", None);
    expired["status"]["expiresAt"] = json!("2026-01-01T00:00:00Z");
    let (message, refresh) = wait(&expired);
    assert!(message.contains("expired") && refresh, "{message}");
    expired["status"].as_object_mut().unwrap().remove("expiresAt");
    assert!(wait(&expired).1);
    let mut unready = group("Cluster", None);
    unready["status"]["conditions"][0]["status"] = json!("False");
    unready["status"]["conditions"][0]["reason"] = json!("ConfigurationMismatch");
    unready["status"]["conditions"][0]["message"] = json!("wanted: a, got: b");
    let (message, refresh) = wait(&unready);
    assert!(message.contains("ConfigurationMismatch: wanted: a, got: b") && !refresh, "{message}");
    let mut deleting = group("Cluster", None);
    deleting["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert!(wait(&deleting).0.contains("being deleted"));
    let mut new = group("Cluster", None);
    new.as_object_mut().unwrap().remove("status");
    assert!(wait(&new).1);
}

#[test]
fn partitions_are_of_partition_groups_and_in_range() {
    let third = in_group(&json!({"partitionNumber": 3}));
    let wrong = "placement.partitionNumber may only be set when used with a AWSPlacementGroup with groupType \"Partition\"";
    assert_eq!(refusal(&third, &group("Cluster", None)), wrong);
    // Unmanaged: what is observed counts.
    let mut unmanaged = group("Spread", None);
    unmanaged["spec"]["managementSpec"] = json!({"managementState": "Unmanaged"});
    assert_eq!(refusal(&third, &unmanaged), wrong);
    let two = "placement group has 2 partitions, requested partition number (3) does not exist";
    assert_eq!(refusal(&third, &group("Partition", Some(2))), two);
    let mut defaulted = group("Partition", None);
    defaulted["status"]["observedConfiguration"]["partition"] = json!({"count": 2});
    assert_eq!(refusal(&third, &defaulted), two);
    assert_eq!(judge(&third, Some(&group("Partition", Some(3))), &[], None), GO);
    let zero = spec(json!({"placementGroupName": "g", "placementGroupPartition": 0}));
    assert!(refusal(&zero, &group("Partition", Some(3))).contains("(0) does not exist"));
}

#[test]
fn tenancy() {
    let dedicated = in_group(&json!({"tenancy": "dedicated"}));
    assert!(refusal(&dedicated, &group("Spread", None)).contains("dedicated"));
    assert!(refusal(&dedicated, &group("Partition", Some(3))).contains("at most 2 partitions"));
    for fine in [group("Partition", Some(2)), group("Cluster", None)] {
        assert_eq!(judge(&dedicated, Some(&fine), &[], None), GO);
    }
    // Whether there is an object or not.
    for host in [
        in_group(&json!({"tenancy": "host"})),
        in_group(&json!({"host": {"affinity": "AnyAvailable"}})),
        spec(json!({"placementGroupName": "g", "placement": {"tenancy": "host"}})),
    ] {
        let verdict = judge(&host, None, &[], None);
        assert!(
            matches!(&verdict, Verdict::Refuse { message } if message.contains("dedicated host"))
        );
    }
}

#[test]
fn the_type_must_support_the_strategy() {
    let strategies = BTreeSet::from([Strategy::Spread, Strategy::Partition]);
    let small = spec(json!({"instanceType": "t3.xlarge", "placement": {"group": {"name": "g"}}}));
    let verdict = judge(&small, Some(&group("Cluster", None)), &[], Some(&strategies));
    let message = "Cluster placement groups are not supported by the 't3.xlarge' instance type";
    assert_eq!(verdict, Verdict::Refuse { message: message.to_owned() });
    assert_eq!(judge(&small, Some(&group("Partition", None)), &[], Some(&strategies)), GO);
}

#[test]
fn a_cluster_group_is_in_one_zone() {
    let (config, group) = (in_group(&json!({})), group("Cluster", None));
    assert_eq!(judge(&config, Some(&group), &members(&[("us-east-1a", 50)]), None), GO);
    let other = judge(&config, Some(&group), &members(&[("us-east-1b", 1)]), None);
    let Verdict::Full { spread_limit: false, message } = other else { panic!("{other:?}") };
    assert!(message.contains("us-east-1b") && message.contains("us-east-1a"), "{message}");
    let mut leaving = members(&[("us-east-1b", 1)]);
    leaving[0].state = InstanceState::ShuttingDown;
    assert_eq!(judge(&config, Some(&group), &leaving, None), GO);
}

#[test]
fn a_spread_group_has_seven_places_in_each_zone() {
    let (config, group) = (in_group(&json!({})), group("Spread", None));
    for taken in 0..7 {
        let zones = members(&[("us-east-1a", taken), ("us-east-1b", 7)]);
        let room = Some(7 - u32::try_from(taken).unwrap());
        assert_eq!(judge(&config, Some(&group), &zones, None), Verdict::Launch { room });
    }
    let full = judge(&config, Some(&group), &members(&[("us-east-1a", 7)]), None);
    let Verdict::Full { spread_limit: true, message } = full else { panic!("{full:?}") };
    assert!(message.contains("7 instances in us-east-1a"), "{message}");
}
