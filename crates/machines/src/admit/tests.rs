//! The rules that are ours, the order of errors, and the whole behind a server.

use std::collections::BTreeMap;

use fleetwright_admission::{Verdict, aggregate};
use fleetwright_api::config::{AzureCloud, PlatformType};
use fleetwright_api::machine::{Machine, MachineSet};
use fleetwright_api::placement::AWSPlacementGroup;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Facts, InterruptibleControlPlane, Updates, defaults, group, machine, machine_set};

fn facts() -> Facts {
    let mut facts = Facts::of(None, "openshift-machine-api", Timestamp::UNIX_EPOCH);
    facts.cluster = Some("demo".to_owned());
    facts.platform = Some(PlatformType::Aws);
    facts.region = Some("us-east-1".to_owned());
    facts
}

fn placement_group(name: &str, spec: &Value) -> AWSPlacementGroup {
    let object = json!({"metadata": {"name": name}, "spec": {"managementSpec": spec}});
    serde_json::from_value(object).expect("a group")
}

fn managed(name: &str, managed: &Value) -> AWSPlacementGroup {
    placement_group(name, &json!({"managementState": "Managed", "managed": managed}))
}

fn with_groups(
    groups: impl IntoIterator<Item = (&'static str, Option<AWSPlacementGroup>)>,
) -> Facts {
    let groups: BTreeMap<_, _> =
        groups.into_iter().map(|(name, group)| (name.to_owned(), group)).collect();
    Facts { groups, ..facts() }
}

/// A provider spec that nothing is wrong with, and changes to it.
fn spec(changes: &Value) -> Value {
    let mut spec = json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "AWSMachineProviderConfig",
        "ami": {"id": "ami-1"}, "instanceType": "m5.large", "placement": {"region": "us-east-1"},
        "userDataSecret": {"name": "u"}, "credentialsSecret": {"name": "c"},
        "subnet": {"id": "subnet-1"}, "iamInstanceProfile": {"id": "p"},
    });
    merge(&mut spec, changes);
    spec
}

fn merge(target: &mut Value, changes: &Value) {
    let (Value::Object(fields), Value::Object(changes)) = (&mut *target, changes) else {
        *target = changes.clone();
        return;
    };
    for (name, change) in changes {
        merge(fields.entry(name.as_str()).or_insert(json!({})), change);
    }
}

fn a_machine(changes: &Value) -> Machine {
    let object =
        json!({"metadata": {"name": "m"}, "spec": {"providerSpec": {"value": spec(changes)}}});
    serde_json::from_value(object).expect("a Machine")
}

fn a_set(replicas: i32, changes: &Value) -> MachineSet {
    serde_json::from_value(json!({
        "metadata": {"name": "s"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"set": "s"}},
            "template": {
                "metadata": {"labels": {"set": "s"}},
                "spec": {"providerSpec": {"value": spec(changes)}},
            },
        },
    }))
    .expect("a MachineSet")
}

fn refusal(verdict: &Verdict) -> String {
    if verdict.errors.is_empty() { String::new() } else { aggregate(&verdict.errors) }
}

#[test]
fn a_placement_that_cannot_work_is_refused() {
    let facts = with_groups([
        ("cluster", Some(managed("cluster", &json!({"groupType": "Cluster"})))),
        ("spread", Some(managed("spread", &json!({"groupType": "Spread"})))),
        (
            "three",
            Some(managed("three", &json!({"groupType": "Partition", "partition": {"count": 3}}))),
        ),
    ]);
    let rows = [
        (json!({"placement": {"group": {"name": "three"}, "partitionNumber": 3}}), ""),
        (json!({"placement": {"group": {"name": "three"}, "number": 3}}), ""),
        (json!({"placementGroupName": "spread"}), ""),
        (
            json!({"placement": {"group": {"name": "a"}}, "placementGroupName": "b"}),
            "providerSpec.placementGroupName: Forbidden: providerSpec.placement.group.name \"a\" and providerSpec.placementGroupName \"b\" name different groups: set one of them, or both alike",
        ),
        (
            json!({"placement": {"group": {"name": "three"}, "partitionNumber": 1}, "placementGroupPartition": 2}),
            "providerSpec.placementGroupPartition: Forbidden: providerSpec.placement.partitionNumber 1 and providerSpec.placementGroupPartition 2 ask for different partitions: set one of them, or both alike",
        ),
        (
            json!({"placement": {"partitionNumber": 9}}),
            "[providerSpec.placement.partitionNumber: Invalid value: 9: providerSpec.placement.partitionNumber must be between 1 and 7, providerSpec.placement.partitionNumber: Invalid value: 9: providerSpec.placement.partitionNumber is set but providerSpec.placement.group.name is empty]",
        ),
        (
            json!({"placement": {"group": {"name": "three"}, "partitionNumber": 4}}),
            "providerSpec.placement.group.name: Forbidden: placement group has 3 partitions, requested partition number (4) does not exist",
        ),
        (
            json!({"placement": {"group": {"name": "cluster"}, "partitionNumber": 1}}),
            "providerSpec.placement.group.name: Forbidden: placement.partitionNumber may only be set when used with a AWSPlacementGroup with groupType \"Partition\"",
        ),
    ];
    for (changes, wanted) in rows {
        let verdict = machine::validate(&a_machine(&changes), None, &facts);
        assert_eq!(refusal(&verdict), wanted, "{changes}");
        assert_eq!(verdict.warnings, Vec::<String>::new(), "{changes}");
    }
    let refused = [
        json!({"placement": {"tenancy": "host", "host": {"affinity": "AnyAvailable"}}, "placementGroupName": "any"}),
        json!({"placement": {"tenancy": "dedicated"}, "placementGroupName": "spread"}),
        json!({"placement": {"tenancy": "dedicated"}, "placementGroupName": "three"}),
    ];
    for changes in refused {
        let verdict = machine::validate(&a_machine(&changes), None, &facts);
        assert!(
            refusal(&verdict).starts_with("providerSpec.placementGroupName: Forbidden: "),
            "{verdict:?}"
        );
    }
}

#[test]
fn what_may_still_come_is_a_warning() {
    let facts = with_groups([("later", None)]);
    let nested = a_machine(&json!({"placement": {"group": {"name": "later"}}}));
    let verdict = machine::validate(&nested, None, &facts);
    assert_eq!(refusal(&verdict), "");
    assert!(verdict.warnings[0].contains("AWSPlacementGroup \"later\" not found"), "{verdict:?}");
    // The later spelling is content with a group in the cloud.
    let flat = a_machine(&json!({"placementGroupName": "later"}));
    assert_eq!(machine::validate(&flat, None, &facts), Verdict::allowed());

    let mut master = a_machine(&json!({"placementGroupName": "later"}));
    let role = "machine.openshift.io/cluster-api-machine-role".to_owned();
    master.metadata.labels = Some(BTreeMap::from([(role, "master".to_owned())]));
    let verdict = machine::validate(&master, None, &facts);
    assert!(
        verdict.warnings[0].contains("a control plane Machine in placement group"),
        "{verdict:?}"
    );
}

#[test]
fn a_control_plane_is_not_interruptible() {
    let role = "machine.openshift.io/cluster-api-machine-role".to_owned();
    for (spot, field) in [
        (json!({"spotMarketOptions": {}}), "providerSpec.spotMarketOptions"),
        (json!({"marketType": "Spot"}), "providerSpec.marketType"),
    ] {
        let mut facts = with_groups([]);
        let mut master = a_machine(&spot);
        assert_eq!(machine::validate(&master, None, &facts), Verdict::allowed(), "a worker may be");
        master.metadata.labels = Some(BTreeMap::from([(role.clone(), "master".to_owned())]));
        let told = refusal(&machine::validate(&master, None, &facts));
        assert!(
            told.starts_with(&format!("{field}: Forbidden: a Machine of the control")),
            "{told}"
        );
        facts.interruptible_control_plane = InterruptibleControlPlane::Warn;
        let verdict = machine::validate(&master, None, &facts);
        assert_eq!((refusal(&verdict).as_str(), verdict.warnings.len()), ("", 1));
    }
}

#[test]
fn too_many_for_a_spread_group_is_a_warning() {
    let facts = with_groups([("g", Some(managed("g", &json!({"groupType": "Spread"}))))]);
    let in_group = json!({"placement": {"group": {"name": "g"}}});
    let warnings = |set: &MachineSet| machine_set::validate(set, None, &facts).warnings;
    assert_eq!(warnings(&a_set(7, &in_group)), Vec::<String>::new());
    assert_eq!(warnings(&a_set(8, &json!({}))), Vec::<String>::new());
    assert_eq!(
        warnings(&a_set(8, &in_group)),
        [
            "spec.replicas: 8: placement group \"g\" has the type Spread, which takes at most 7 instances per zone: Machines above that cannot be created"
        ]
    );
    let mut scaled = a_set(1, &in_group);
    let key = "machine.openshift.io/cluster-api-autoscaler-node-group-max-size";
    scaled.metadata.annotations = Some(BTreeMap::from([(key.to_owned(), "12".to_owned())]));
    assert!(warnings(&scaled)[0].contains(": 12: "), "{:?}", warnings(&scaled));
}

#[test]
fn an_instance_that_runs_does_not_move() {
    let old: Machine = {
        let mut made = a_machine(&json!({"placement": {"group": {"name": "a"}}}));
        made.spec.provider_id = Some("aws:///us-east-1a/i-1".to_owned());
        made
    };
    let mut new = old.clone();
    assert_eq!(machine::validate(&new, Some(&old), &facts()), Verdict::allowed());
    new.spec.provider_spec.value = Some(spec(&json!({"placement": {"group": {"name": "b"}}})));
    let verdict = machine::validate(&new, Some(&old), &facts());
    assert_eq!(
        verdict.warnings,
        [
            "providerSpec.placement: instance i-1 is already running and does not move: the new placement has no effect on this Machine"
        ]
    );
    // Without an instance the new placement counts.
    let fresh = a_machine(&json!({"placement": {"group": {"name": "a"}}}));
    assert_eq!(machine::validate(&new, Some(&fresh), &facts()), Verdict::allowed());
}

#[test]
fn an_update_answers_for_what_it_changes() {
    let wrong = json!({"placement": {"tenancy": "odd"}, "instanceType": ""});
    let old = a_machine(&wrong);
    let mut new = old.clone();
    new.metadata.finalizers = Some(vec!["machine.machine.openshift.io".to_owned()]);
    assert_eq!(machine::validate(&new, Some(&old), &facts()), Verdict::allowed());
    let strict = Facts { updates: Updates::CheckAll, ..facts() };
    assert_eq!(machine::validate(&new, Some(&old), &strict).errors.len(), 2);
    // Another wrong value is a new error; the old one is still passed over.
    let new = a_machine(&json!({"placement": {"tenancy": "odder"}, "instanceType": ""}));
    assert_eq!(
        refusal(&machine::validate(&new, Some(&old), &facts())),
        "providerSpec.tenancy: Invalid value: \"odder\": Invalid providerSpec.tenancy, the only allowed options are: default, dedicated, host, or omitted"
    );
}

#[test]
fn errors_come_in_their_order() {
    let everything = json!({
        "ami": {"id": null}, "instanceType": "", "placement": {
            "region": "", "tenancy": "odd", "host": {}, "partitionNumber": 8,
        },
        "userDataSecret": {"name": ""}, "credentialsSecret": null,
        "capacityReservationId": "x", "marketType": "Barter",
        "blockDevices": [{}, {"ebs": {"volumeType": "io1", "throughputMib": 125}}],
        "networkInterfaceType": "efa", "metadataServiceOptions": {"authentication": "Maybe"},
        "cpuOptions": {},
    });
    let verdict = machine::validate(&a_machine(&everything), None, &facts());
    let fields: Vec<&str> = verdict.errors.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(
        fields,
        [
            "providerSpec.ami",
            "providerSpec.placement.region",
            "providerSpec.instanceType",
            "providerSpec.userDataSecret.name",
            "providerSpec.credentialsSecret",
            "providerSpec.capacityReservationId",
            "providerSpec.marketType",
            "providerSpec.blockDevices[1].ebs.throughputMib",
            "spec.placement.host",
            "providerSpec.tenancy",
            "providerSpec.placement.partitionNumber",
            "providerSpec.placement.partitionNumber",
            "providerSpec.networkInterfaceType",
            "providerSpec.metadataServiceOptions.authentication",
            "providerSpec.CPUOptions",
        ]
    );
}

#[test]
fn a_spec_that_cannot_be_read_says_where() {
    let wrong = a_machine(&json!({"deviceIndex": "first"}));
    let text = refusal(&machine::validate(&wrong, None, &facts()));
    assert!(text.starts_with("providerSpec.value: Invalid value: "), "{text}");
    assert!(text.contains("invalid type: string \"first\""), "{text}");
}

#[test]
fn other_platforms_are_left_alone() {
    let elsewhere = Facts { platform: Some(PlatformType::VSphere), ..facts() };
    let empty = Machine::default();
    assert_eq!(machine::validate(&empty, None, &elsewhere), Verdict::allowed());
    let verdict = defaults::machine(json!({"metadata": {}, "spec": {}}), &elsewhere);
    let edit = verdict.edit.expect("an edit");
    assert_eq!(edit.object()["spec"], json!({}));
}

#[test]
fn defaults_leave_the_rest_as_it_was() {
    let object = json!({
        "metadata": {"name": "m"},
        "spec": {"providerSpec": {"value": {"ami": {"id": "a"}, "later": {"x": 1}, "placement": null}}},
    });
    let edit = defaults::machine(object, &facts()).edit.expect("an edit");
    let value = &edit.object()["spec"]["providerSpec"]["value"];
    assert_eq!(value["later"], json!({"x": 1}));
    assert_eq!(value["placement"], json!({"region": "us-east-1"}));
    assert_eq!(
        edit.object()["metadata"]["labels"],
        json!({"machine.openshift.io/cluster-api-cluster": "demo"})
    );
}

#[test]
fn a_group_says_what_it_is_and_stays_unmanaged() {
    let check = |new: &AWSPlacementGroup, old: Option<&AWSPlacementGroup>| {
        let mut new = new.clone();
        new.metadata.namespace = Some("openshift-machine-api".to_owned());
        group::validate(&new, old, &facts())
    };
    let spread = managed("g", &json!({"groupType": "Spread"}));
    let unmanaged = placement_group(
        "g",
        &json!({"managementState": "Unmanaged", "managed": {"groupType": "Spread"}}),
    );
    assert_eq!(check(&spread, None), Verdict::allowed());
    assert_eq!(check(&unmanaged, Some(&spread)), Verdict::allowed());
    assert_eq!(
        refusal(&check(&spread, Some(&unmanaged))),
        "spec.managementSpec.managementState: Forbidden: an unmanaged placement group cannot become managed"
    );
    assert_eq!(
        refusal(&check(&placement_group("g", &json!({"managementState": "Managed"})), None)),
        "spec.managementSpec.managed: Required value: managed is required when managementState is Managed"
    );
    let odd = managed("g", &json!({"groupType": "Cluster", "partition": {"count": 9}}));
    assert_eq!(check(&odd, None).errors.len(), 2);
    assert_eq!(refusal(&check(&odd, Some(&odd))), "");
    let cluster = managed("g", &json!({"groupType": "Cluster"}));
    let verdict = check(&cluster, Some(&spread));
    assert_eq!(refusal(&verdict), "");
    assert_eq!(
        verdict.warnings,
        [
            "spec.managementSpec.managed.groupType: changed from Spread to Cluster, which will not be observed: a placement group cannot be changed once it is made"
        ]
    );
    let elsewhere = group::validate(&spread, None, &facts());
    assert!(elsewhere.warnings[0].contains("\"openshift-machine-api\" only"), "{elsewhere:?}");
}

/// What is said of a Machine with this provider spec, on this platform.
fn on(platform: PlatformType, role: &str, mut value: Value) -> Verdict {
    value["apiVersion"] = "machine.openshift.io/v1beta1".into();
    value["kind"] = match platform {
        PlatformType::Gcp => "GCPMachineProviderSpec",
        _ => "AzureMachineProviderSpec",
    }
    .into();
    let mut facts = facts();
    facts.platform = Some(platform);
    facts.azure_cloud = Some(AzureCloud::Public);
    let made = json!({
        "metadata": {"name": "m", "labels": {"machine.openshift.io/cluster-api-machine-role": role}},
        "spec": {"providerSpec": {"value": value}},
    });
    machine::validate(&serde_json::from_value(made).expect("a machine"), None, &facts)
}

#[test]
fn how_instances_are_bought_on_google_cloud() {
    let google = |value: Value| on(PlatformType::Gcp, "worker", value);
    for fine in [
        json!({}),
        json!({"preemptible": true, "restartPolicy": "Never"}),
        json!({"provisioningModel": "Spot", "onHostMaintenance": "Terminate"}),
        json!({"restartPolicy": "Always", "onHostMaintenance": "Migrate"}),
    ] {
        assert_eq!(google(fine), Verdict::allowed());
    }
    let warned = google(json!({"preemptible": true, "restartPolicy": "Always",
        "onHostMaintenance": "Migrate"}));
    assert_eq!((warned.errors.len(), warned.warnings.len()), (0, 2), "{warned:?}");
    let both = google(json!({"preemptible": true, "provisioningModel": "Spot"}));
    assert_eq!(
        refusal(&both),
        "providerSpec.provisioningModel: Forbidden: preemptible cannot be used together with \"Spot\" provisioning model"
    );
    for (spot, field) in [
        (json!({"preemptible": true}), "providerSpec.preemptible: Forbidden: "),
        (json!({"provisioningModel": "Spot"}), "providerSpec.provisioningModel: Forbidden: "),
    ] {
        let told = refusal(&on(PlatformType::Gcp, "master", spot));
        assert!(told.starts_with(field), "{told}");
    }
    assert_eq!(on(PlatformType::Gcp, "master", json!({})), Verdict::allowed());
}

#[test]
fn how_virtual_machines_are_bought_on_azure() {
    let azure = |value: Value| on(PlatformType::Azure, "worker", value);
    for fine in [
        json!({"availabilitySet": "a", "capacityReservationGroupID": "/g"}),
        json!({"spotVMOptions": {"maxPrice": "-1"}}),
        json!({"spotVMOptions": {"maxPrice": 0.5}}),
    ] {
        assert_eq!(azure(fine), Verdict::allowed());
    }
    let warned = azure(json!({"spotVMOptions": {}, "availabilitySet": "a",
        "capacityReservationGroupID": "/g"}));
    assert_eq!((warned.errors.len(), warned.warnings.len()), (0, 2), "{warned:?}");
    assert_eq!(
        refusal(&azure(json!({"spotVMOptions": {"maxPrice": "cheap"}}))),
        "providerSpec.spotVMOptions.maxPrice: Invalid value: \"cheap\": must be a number such as 0.05, or -1 for the price on demand"
    );
    let cluster = json!({"status": {"platformStatus": {
        "type": "Azure", "azure": {"cloudName": "AzureUSGovernmentCloud"},
    }}});
    let cluster = serde_json::from_value(cluster).expect("an Infrastructure");
    let known = Facts::of(Some(&cluster), "openshift-machine-api", Timestamp::UNIX_EPOCH);
    assert_eq!(known.azure_cloud, Some(AzureCloud::UsGovernment));
    let told = refusal(&on(PlatformType::Azure, "master", json!({"spotVMOptions": {}})));
    assert!(told.starts_with("providerSpec.spotVMOptions: Forbidden: "), "{told}");
}

#[test]
fn what_the_autoscaler_would_not_understand_is_told() {
    let warnings = |platform, replicas, annotations: Value| {
        let mut set = a_set(replicas, &json!({}));
        set.metadata.annotations = serde_json::from_value(annotations).expect("annotations");
        let facts = Facts { platform: Some(platform), ..facts() };
        machine_set::validate(&set, None, &facts).warnings
    };
    let (min, max) = (
        "machine.openshift.io/cluster-api-autoscaler-node-group-min-size",
        "machine.openshift.io/cluster-api-autoscaler-node-group-max-size",
    );
    let cpu = "capacity.cluster-autoscaler.kubernetes.io/cpu";
    let memory = "capacity.cluster-autoscaler.kubernetes.io/memory";
    let none = Vec::<String>::new();
    assert_eq!(warnings(PlatformType::Aws, 0, json!({})), none);
    assert_eq!(warnings(PlatformType::Aws, 0, json!({min: "0", max: "3"})), none);
    let other = || PlatformType::None;
    let known = json!({min: "0", max: "3", cpu: "2", memory: "8Gi"});
    assert_eq!(warnings(other(), 0, known), none);
    assert_eq!(warnings(other(), 1, json!({max: "3"})), none);
    for (replicas, annotations, wanted) in [
        (1, json!({min: "x", max: "3"}), "\"x\": invalid min annotation: cluster-autoscaler"),
        (1, json!({min: "3"}), "\"\": invalid max annotation: cluster-autoscaler leaves"),
        (1, json!({min: "0"}), "max-size]: \"0\": cluster-autoscaler leaves this MachineSet alone"),
        (0, json!({max: "3"}), "spec.replicas: 0: cluster-autoscaler cannot grow"),
        (1, json!({cpu: "two"}), "\"two\" is not a quantity such as 2 or 8Gi: cluster-autoscaler"),
    ] {
        let told = warnings(other(), replicas, annotations.clone());
        assert!(told.len() == 1 && told[0].contains(wanted), "{annotations}: {told:?}");
    }
}
