//! A small fleet, and what is shown of it.

use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::{Snapshot, explain::explain, tree::tree};

const NOW: &str = "2026-11-15T12:10:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn machine(name: &str, more: &Value) -> Value {
    let mut object = json!({
        "metadata": {
            "name": name, "creationTimestamp": "2026-11-15T12:00:00Z",
            "ownerReferences": [{"apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet",
                "name": "spread", "uid": "set-uid", "controller": true}],
        },
        "spec": {"providerSpec": {"value": {"instanceType": "m5.large",
            "placement": {"region": "us-east-1", "availabilityZone": "us-east-1a",
                "group": {"name": "wide"}}}}},
    });
    merge(&mut object, more);
    object
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

fn fleet() -> Snapshot {
    let running = machine(
        "spread-a",
        &json!({
            "metadata": {
                "labels": {"machine.openshift.io/zone": "us-east-1a",
                    "machine.openshift.io/instance-type": "m5.xlarge",
                    "fleetwright.dev/placement-group": "wide"},
                "annotations": {"machine.openshift.io/instance-state": "running",
                    "fleetwright.dev/intent":
                        "{\"version\":1,\"op\":\"launch\",\"token\":\"t1\",\"index\":2,\"size\":3}"},
            },
            "status": {"phase": "Running", "nodeRef": {"kind": "Node", "name": "n1"},
                "lastUpdated": "2026-11-15T12:05:00Z",
                "providerStatus": {"instanceId": "i-1"}},
        }),
    );
    let eighth = machine(
        "spread-h",
        &json!({"status": {"phase": "Provisioning", "conditions": [{
            "type": "MachineCreated", "status": "False", "severity": "Warning",
            "reason": "SpreadLimitReached", "lastTransitionTime": "2026-11-15T12:08:00Z",
            "message": "the spread placement group \"wide\" holds 7 instances in us-east-1a"}]}}),
    );
    serde_json::from_value::<Parts>(json!({
        "infrastructure": {"metadata": {"name": "cluster"}, "status": {
            "infrastructureName": "demo-x7k2p",
            "platformStatus": {"type": "AWS", "aws": {"region": "us-east-1"}}}},
        "sets": [{"metadata": {"name": "spread", "uid": "set-uid", "generation": 1,
                "creationTimestamp": "2026-11-15T11:59:00Z"},
            "spec": {"replicas": 2},
            "status": {"replicas": 2, "readyReplicas": 1, "observedGeneration": 1}}],
        "machines": [running, eighth],
        "groups": [{"metadata": {"name": "wide"},
            "spec": {"managementSpec": {"managementState": "Managed",
                "managed": {"groupType": "Spread"}}},
            "status": {"replicas": 7, "observedConfiguration": {"groupType": "Spread"},
                "conditions": [{"type": "Ready", "status": "True", "reason": "ConfigurationInSync",
                    "message": "", "lastTransitionTime": "2026-11-15T12:00:00Z"}]}}],
        "nodes": [{"metadata": {"name": "n1"}, "status": {"conditions": [{"type": "Ready",
            "status": "True", "reason": "KubeletReady",
            "lastTransitionTime": "2026-11-15T12:05:00Z"}]}}],
        "events": [{"metadata": {"name": "e"}, "type": "Warning", "reason": "FailedCreate",
            "message": "spread limit", "count": 3, "lastTimestamp": "2026-11-15T12:09:00Z",
            "involvedObject": {"kind": "Machine", "name": "spread-h"}}],
    }))
    .unwrap()
    .into()
}

/// A snapshot as JSON.
#[derive(serde::Deserialize)]
struct Parts {
    infrastructure: Option<fleetwright_api::config::Infrastructure>,
    sets: Vec<fleetwright_api::machine::MachineSet>,
    machines: Vec<fleetwright_api::machine::Machine>,
    groups: Vec<fleetwright_api::placement::AWSPlacementGroup>,
    nodes: Vec<k8s_openapi::api::core::v1::Node>,
    events: Vec<k8s_openapi::api::core::v1::Event>,
}

impl From<Parts> for Snapshot {
    fn from(parts: Parts) -> Self {
        let Parts { infrastructure, sets, machines, groups, nodes, events } = parts;
        Self { infrastructure, sets, machines, groups, nodes, events }
    }
}

#[test]
fn the_tree_shows_what_hangs_together() {
    let text = tree(&fleet(), now());
    let wanted = "\
NAME                      READY  REASON                            SINCE  WHERE                     MESSAGE
Cluster/demo-x7k2p                                                        AWS us-east-1
├─AWSPlacementGroup/wide  True   ConfigurationInSync               10m    Spread, 7 instances
└─MachineSet/spread       1/2
  ├─Machine/spread-a      True   Running                           5m     us-east-1a m5.xlarge i-1
  │ └─Node/n1             True   KubeletReady                      5m
  └─Machine/spread-h      False  Provisioning, SpreadLimitReached  2m                               the spread placement group \"wide\" holds 7 instances in us-east-1a
";
    assert_eq!(text, wanted, "\n{text}");
}

#[test]
fn a_machine_that_waits_is_explained_with_what_to_do() {
    let text = explain("machine/spread-h", &fleet(), now()).unwrap();
    for part in [
        "Machine spread-h is Provisioning, 10m old",
        "owner      MachineSet/spread",
        "waits for  room in its spread placement group",
        "because    SpreadLimitReached: the spread placement group \"wide\" holds 7 instances",
        "to do      a spread group holds seven instances in a zone",
        "2026-11-15 12:09:00  warning FailedCreate: spread limit (3 times)",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn a_machine_that_runs_shows_where_it_differs_from_its_spec() {
    let text = explain("machines/spread-a", &fleet(), now()).unwrap();
    for part in [
        "waits for  nothing: it is as it should be",
        "asks for instance type m5.large, the instance has m5.xlarge",
        "intent     launch with token t1, number 3 of 3 launched together",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(!text.contains("asks for zone"), "{text}");
}

#[test]
fn a_machine_that_was_taken_back_is_explained_when_it_is_gone() {
    let mut fleet = fleet();
    let event = |reason: &str, time: &str, message: &str| {
        serde_json::from_value(json!({
            "metadata": {"name": reason}, "type": "Normal", "reason": reason, "message": message,
            "lastTimestamp": time, "involvedObject": {"kind": "Machine", "name": "spread-gone"},
        }))
        .unwrap()
    };
    fleet.events.extend([
        event("MachineDeleted", "2026-11-15T11:59:58Z", "deleted by a check"),
        event("TerminationNotice", "2026-11-15T11:59:59Z", "the cloud takes it back"),
        event("DrainSucceeded", "2026-11-15T12:00:20Z", "Node drain succeeded"),
        event("InstanceGone", "2026-11-15T12:01:00Z", "Instance i-0 is gone"),
    ]);
    let text = explain("machine/spread-gone", &fleet, now()).unwrap();
    let wanted = "\
Machine spread-gone is gone, last heard of 9m ago
  successor  spread-a, Running 5m2s after the deletion
History
  2026-11-15 11:59:58  MachineDeleted: deleted by a check
  2026-11-15 11:59:59  TerminationNotice: the cloud takes it back
  2026-11-15 12:00:00  replacement spread-a created
  2026-11-15 12:00:20  DrainSucceeded: Node drain succeeded
  2026-11-15 12:01:00  InstanceGone: Instance i-0 is gone
  2026-11-15 12:05:00  replacement spread-a Running
";
    assert_eq!(text, wanted, "\n{text}");
    // One that says whose place it takes is the one, whenever it was made.
    let other = fleet.machines.iter_mut().find(|machine| machine.name_any() == "spread-h");
    let says = other.unwrap().annotations_mut();
    says.insert("fleetwright.dev/replaces".to_owned(), "spread-gone".to_owned());
    let text = explain("machine/spread-gone", &fleet, now()).unwrap();
    assert!(text.contains("  successor  spread-h, "), "{text}");
    assert!(explain("machine/nobody", &fleet, now()).is_err());
}

#[test]
fn sets_and_groups_are_explained() {
    let text = explain("machineset.machine.openshift.io/spread", &fleet(), now()).unwrap();
    assert!(text.contains("MachineSet spread has 2 of 2 Machines, 1 ready"), "{text}");
    assert!(text.contains("(spread-h)"), "{text}");
    let text = explain("awsplacementgroup/wide", &fleet(), now()).unwrap();
    assert!(text.contains("AWSPlacementGroup wide is ready"), "{text}");
    assert!(text.contains("machines   spread-a, spread-h"), "{text}");
}

#[test]
fn what_cannot_be_explained_is_said_clearly() {
    let error = |subject: &str| explain(subject, &fleet(), now()).unwrap_err().to_string();
    assert_eq!(
        error("spread-a"),
        "\"spread-a\" is not KIND/NAME: say for instance machine/worker-abc12"
    );
    assert!(error("pod/x").contains("\"pod\""));
    assert_eq!(
        error("machine/x"),
        "there is no Machine \"x\" in this namespace: there are spread-a, spread-h"
    );
}
