//! Decisions by table.

use fleetwright_api::machine::{Machine, MachineSet};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::manifest;
use crate::set::decide::{InvalidSet, decide, is_ours, machine, replica, rules, standing};

fn set(value: Value) -> MachineSet {
    serde_json::from_value(value).unwrap()
}

fn now() -> Timestamp {
    "2026-01-01T01:00:00Z".parse().unwrap()
}

fn member(name: &str, conditions: &Value) -> Machine {
    serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {"set": "s"},
            "ownerReferences": [{"apiVersion": "machine.openshift.io/v1beta1",
                "kind": "MachineSet", "name": "s", "uid": "u", "controller": true}]},
        "status": {"conditions": conditions},
    }))
    .unwrap()
}

fn not_created(reason: &str, message: &str, minute: u32) -> Value {
    json!([{"type": "MachineCreated", "status": "False", "reason": reason, "message": message,
        "severity": "Warning", "lastTransitionTime": format!("2026-01-01T00:{minute:02}:00Z")}])
}

fn decided(set: &MachineSet, machines: &[Machine]) -> crate::set::decide::Decision {
    let rules = rules(set).unwrap();
    let replicas: Vec<_> = machines.iter().map(|machine| replica(machine, None)).collect();
    let machines: Vec<&Machine> = machines.iter().collect();
    decide(set, &rules, &machines, &replicas, now())
}

fn owned_set(replicas: i32) -> MachineSet {
    let mut value = manifest("s", replicas);
    value["metadata"]["uid"] = json!("u");
    set(value)
}

#[test]
fn what_makes_no_sense_is_refused_rather_than_multiplied() {
    let with = |change: &dyn Fn(&mut Value)| {
        let mut value = manifest("s", 1);
        change(&mut value["spec"]);
        rules(&set(value)).unwrap_err()
    };
    let mismatch = with(&|spec| spec["template"]["metadata"]["labels"] = json!({"set": "other"}));
    assert_eq!(mismatch, InvalidSet::Template);
    assert_eq!(mismatch.to_string(), "`selector` does not match template `labels`");
    assert_eq!(with(&|spec| spec["selector"] = json!({})), InvalidSet::Template);
    assert!(matches!(with(&|spec| spec["deletePolicy"] = json!("Best")), InvalidSet::Policy(_)));
    let odd = json!({"matchExpressions": [{"key": "a", "operator": "Near"}]});
    assert!(matches!(with(&|spec| spec["selector"] = odd.clone()), InvalidSet::Selector(_)));
}

#[test]
fn odd_numbers_are_read_as_near_as_can_be() {
    let count = |replicas: Value| {
        let mut value = manifest("s", 1);
        value["spec"]["replicas"] = replicas;
        rules(&set(value)).unwrap().replicas
    };
    assert_eq!(count(json!(null)), 1);
    assert_eq!(count(json!(0)), 0);
    assert_eq!(count(json!(-3)), 0);
}

#[test]
fn a_new_machine_is_the_template_with_an_owner() {
    let set = owned_set(1);
    let made = machine(&set, "abcde");
    assert_eq!(made.metadata.name.as_deref(), Some("s-abcde"));
    assert_eq!(made.metadata.generate_name.as_deref(), Some("s-"));
    assert_eq!(made.spec, set.spec.template.spec, "unknown fields of the provider included");
    let owner = &made.metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!((owner.kind.as_str(), owner.uid.as_str()), ("MachineSet", "u"));
    assert_eq!((owner.controller, owner.block_owner_deletion), (Some(true), Some(true)));
    let mut long = owned_set(1);
    long.metadata.name = Some("n".repeat(70));
    assert_eq!(machine(&long, "abcde").metadata.name.unwrap().len(), 63);
}

#[test]
fn what_keeps_machines_from_existing_is_told_on_the_set() {
    let set = owned_set(4);
    let fine = decided(&set, &[member("a", &json!([]))]);
    assert_eq!(fine.status.conditions[0].status, "True");
    assert_eq!(fine.news, None);
    let machines = [
        member("a", &json!([])),
        member("b", &not_created("SpreadLimitReached", "seven are enough", 5)),
        member("c", &not_created("SpreadLimitReached", "seven are enough", 3)),
        member("d", &not_created("InsufficientCapacity", "none left", 4)),
    ];
    let short = decided(&set, &machines);
    let condition = &short.status.conditions[0];
    assert_eq!(condition.type_, "MachinesCreated");
    assert_eq!(
        (condition.status.as_str(), condition.reason.as_deref()),
        ("False", Some("SpreadLimitReached"))
    );
    assert_eq!(
        condition.message.as_deref().unwrap(),
        "3 of 4 Machines have no instance: 1 with InsufficientCapacity since 2026-01-01T00:04:00Z: \
         d: none left; 2 with SpreadLimitReached since 2026-01-01T00:03:00Z: b: seven are enough"
    );
    assert_eq!(short.news.as_ref().unwrap().0, "SpreadLimitReached");
    let mut told = set;
    told.status = Some(short.status.clone());
    let again = decided(&told, &machines);
    assert_eq!(again.news, None, "told once");
    assert_eq!(again.status, short.status, "and not written again");
}

#[test]
fn only_what_a_set_reads_of_a_machine_wakes_it() {
    let one = member("a", &json!([]));
    let mut other = one.clone();
    other.metadata.resource_version = Some("2".to_owned());
    other.spec.provider_id = Some("aws:///z/i-1".to_owned());
    assert_eq!(standing(&one), standing(&other));
    for change in [
        |machine: &mut Machine| machine.metadata.labels = None,
        |machine: &mut Machine| machine.metadata.owner_references = None,
        |machine: &mut Machine| {
            machine.status.as_mut().unwrap().error_message = Some("lost".to_owned());
        },
        |machine: &mut Machine| {
            let key = "machine.openshift.io/delete-machine".to_owned();
            machine.metadata.annotations = Some([(key, "now".to_owned())].into());
        },
    ] {
        let mut other = one.clone();
        change(&mut other);
        assert_ne!(standing(&one), standing(&other));
    }
}

#[test]
fn a_set_that_goes_or_was_handed_over_is_left_alone() {
    let owned_by = |api: &str| {
        let mut value = manifest("s", 1);
        value["status"] = json!({"replicas": 0, "authoritativeAPI": api});
        is_ours(&set(value))
    };
    assert!(is_ours(&owned_set(1)) && owned_by("MachineAPI"));
    assert!(!owned_by("ClusterAPI") && !owned_by("Migrating"));
    let mut going = manifest("s", 1);
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert!(!is_ours(&set(going)));
}
