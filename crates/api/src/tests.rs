//! What every type promises: it decodes what may be stored, and writes what users expect.

use serde_json::{Value, json};

use crate::aws::{AWSMachineProviderConfig, InstanceTenancy, MarketType};
use crate::config::{Infrastructure, PlatformType};
use crate::machine::{Machine, MachineHealthCheck, MachineSet, Phase};
use crate::placement::{AWSPlacementGroup, AWSPlacementGroupStatus, GroupType};

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("reads")
}

fn write<T: serde::Serialize>(object: &T) -> Value {
    serde_json::to_value(object).expect("writes")
}

#[test]
fn an_object_without_spec_reads() {
    let machine: Machine = read(json!({"metadata": {"name": "a"}}));
    assert_eq!(machine.spec.provider_spec.value, None);
    assert_eq!(
        write(&machine),
        json!({
            "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
            "metadata": {"name": "a"}, "spec": {"providerSpec": {}},
        })
    );
    let _: MachineSet = read(json!({"metadata": {"name": "a"}, "spec": {}}));
    let _: MachineHealthCheck = read(json!({"metadata": {"name": "a"}}));
    let _: AWSPlacementGroup = read(json!({"metadata": {"name": "a"}}));
    let _: Infrastructure = read(json!({"metadata": {"name": "cluster"}}));
}

#[test]
fn odd_values_read_and_are_kept() {
    let machine: Machine = read(json!({
        "metadata": {"name": "a"},
        "spec": {"providerSpec": {"value": ["not", "an", "object"]}},
        "status": {"phase": "Sleeping", "providerStatus": 7},
    }));
    let status = machine.status.clone().expect("has one");
    assert_eq!(status.phase, Some(Phase::Other("Sleeping".to_owned())));
    assert_eq!(write(&machine)["status"]["phase"], "Sleeping");
    assert!(AWSMachineProviderConfig::read(&machine.spec.provider_spec).is_err());

    let set: MachineSet = read(json!({"spec": {"replicas": 5_000_000_000_i64}}));
    assert_eq!(set.spec.replicas, Some(i32::MAX));
    let check: MachineHealthCheck = read(json!({"spec": {"maxUnhealthy": -5_000_000_000_i64}}));
    assert_eq!(write(&check)["spec"]["maxUnhealthy"], i32::MIN);
}

#[test]
fn a_provider_spec_keeps_what_it_does_not_know() {
    let manifest = json!({
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "AWSMachineProviderConfig",
        "metadata": {"creationTimestamp": null},
        "ami": {"id": "ami-1"},
        "instanceType": "m5.large",
        "deviceIndex": 0,
        "subnet": {"filters": [{"name": "tag:Name", "values": ["a"]}]},
        "placement": {
            "region": "r", "availabilityZone": "ra", "tenancy": "later",
            "group": {"name": "g"}, "number": 2, "rack": {"row": 1},
        },
        "blockDevices": [{"ebs": {"volumeType": "gp9", "color": "red"}, "slot": 1}],
        "capacityReservationId": "",
        "marketType": "Barter",
        "fromTheFuture": {"a": [1, 2.5, null]},
    });
    let spec: AWSMachineProviderConfig = read(manifest.clone());
    assert_eq!(spec.market_type, Some(MarketType::Other("Barter".to_owned())));
    assert_eq!(spec.placement.tenancy, Some(InstanceTenancy::Other("later".to_owned())));
    assert_eq!(write(&spec), manifest);
}

#[test]
fn an_empty_provider_spec_writes_what_is_always_there() {
    let nulls = json!({
        "ami": null, "instanceType": null, "tags": null, "placement": null, "subnet": null,
        "securityGroups": null, "deviceIndex": null, "capacityReservationId": null,
    });
    for value in [json!({}), nulls] {
        let spec: AWSMachineProviderConfig = read(value);
        assert_eq!(
            write(&spec),
            json!({
                "ami": {}, "instanceType": "", "deviceIndex": 0, "subnet": {}, "placement": {},
                "capacityReservationId": "",
            })
        );
    }
}

#[test]
fn what_was_not_observed_is_absent() {
    assert_eq!(write(&AWSPlacementGroupStatus::default()), json!({}));
    let group: AWSPlacementGroup = read(json!({
        "spec": {"managementSpec": {"managementState": "Managed", "managed": {"groupType": "Spread"}}},
        "status": {"replicas": 0},
    }));
    let managed = group.spec.management_spec.managed.as_ref().expect("is");
    assert_eq!(managed.group_type, GroupType::Spread);
    assert_eq!(write(&group)["status"], json!({"replicas": 0}));
    let check: MachineHealthCheck = read(json!({"status": {}}));
    assert_eq!(write(&check)["status"], json!({"remediationsAllowed": 0}));
}

#[test]
fn an_infrastructure_keeps_other_platforms() {
    let manifest = json!({
        "apiVersion": "config.openshift.io/v1", "kind": "Infrastructure",
        "metadata": {"name": "cluster"},
        "spec": {"cloudConfig": {"name": ""}, "platformSpec": {"type": "AWS", "aws": {}}},
        "status": {
            "infrastructureName": "demo-abcde", "apiServerURL": "", "apiServerInternalURI": "",
            "etcdDiscoveryDomain": "", "controlPlaneTopology": "HighlyAvailable", "later": true,
            "platform": "AWS",
            "platformStatus": {
                "type": "AWS", "gcp": {"projectID": "p"},
                "aws": {
                    "region": "us-east-1", "cloudLoadBalancerConfig": {"dnsType": "x"},
                    "resourceTags": [{"key": "team", "value": "a"}],
                },
            },
        },
    });
    let infrastructure: Infrastructure = read(manifest.clone());
    assert_eq!(infrastructure.cluster(), Some("demo-abcde"));
    assert_eq!(infrastructure.platform(), Some(&PlatformType::Aws));
    assert_eq!(infrastructure.aws().map(|aws| aws.region.as_str()), Some("us-east-1"));
    assert_eq!(write(&infrastructure), manifest);
}
