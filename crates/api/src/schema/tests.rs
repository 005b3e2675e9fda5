//! Schemas and types have the same fields.
//!
//! A value of each type with every field set is written down here without `..`, so that a new
//! field does not compile until it is here, and then not pass until it is in the schema.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{NodeAddress, ObjectReference, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    self as meta, LabelSelector, LabelSelectorRequirement, OwnerReference, Time,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::crds;
use crate::config::{
    AWSPlatformStatus, AWSResourceTag, AWSServiceEndpoint, InfrastructureSpec,
    InfrastructureStatus, PlatformSpec, PlatformStatus, PlatformType,
};
use crate::machine::{
    Authority, Condition, DeletePolicy, EmbeddedMetadata, LastOperation, LifecycleHook,
    LifecycleHooks, MachineHealthCheckSpec, MachineHealthCheckStatus, MachineSetSpec,
    MachineSetStatus, MachineSpec, MachineStatus, MachineTemplateSpec, Phase, ProviderSpec,
    Severity, UnhealthyCondition,
};
use crate::placement::{
    AWSPartitionPlacement, AWSPlacementGroupManagementSpec, AWSPlacementGroupSpec,
    AWSPlacementGroupStatus, GroupType, LocalSecretReference, ManagedAWSPlacementGroup,
    ManagementState,
};

/// Fields of the types that the schemas of the default feature set leave out: they are read where
/// a cluster has them.
const GATED: [&str; 3] = ["authoritativeAPI", "synchronizedAPI", "synchronizedGeneration"];

#[expect(clippy::unnecessary_wraps, reason = "every use is an optional field")]
fn text() -> Option<String> {
    Some("x".to_owned())
}

fn map() -> BTreeMap<String, String> {
    BTreeMap::from([("k".to_owned(), "v".to_owned())])
}

fn time() -> Time {
    Time(Timestamp::UNIX_EPOCH)
}

fn metadata() -> EmbeddedMetadata {
    EmbeddedMetadata {
        name: text(),
        generate_name: text(),
        namespace: text(),
        labels: map(),
        annotations: map(),
        owner_references: vec![OwnerReference {
            api_version: "v1".to_owned(),
            block_owner_deletion: Some(true),
            controller: Some(true),
            kind: "K".to_owned(),
            name: "n".to_owned(),
            uid: "u".to_owned(),
        }],
    }
}

fn selector() -> LabelSelector {
    LabelSelector {
        match_expressions: Some(vec![LabelSelectorRequirement {
            key: "k".to_owned(),
            operator: "In".to_owned(),
            values: Some(vec!["v".to_owned()]),
        }]),
        match_labels: Some(map()),
    }
}

fn reference() -> ObjectReference {
    ObjectReference {
        api_version: text(),
        field_path: text(),
        kind: text(),
        name: text(),
        namespace: text(),
        resource_version: text(),
        uid: text(),
    }
}

fn conditions() -> Vec<Condition> {
    vec![Condition {
        type_: "T".to_owned(),
        status: "False".to_owned(),
        severity: Some(Severity::Warning),
        last_transition_time: time(),
        reason: text(),
        message: text(),
    }]
}

fn machine_spec() -> MachineSpec {
    let hook = || vec![LifecycleHook { name: "abc".to_owned(), owner: "abc".to_owned() }];
    MachineSpec {
        metadata: metadata(),
        lifecycle_hooks: LifecycleHooks { pre_drain: hook(), pre_terminate: hook() },
        taints: vec![Taint {
            effect: "NoSchedule".to_owned(),
            key: "k".to_owned(),
            time_added: Some(time()),
            value: text(),
        }],
        provider_spec: ProviderSpec { value: Some(json!({})) },
        provider_id: text(),
        authoritative_api: Some(Authority::MachineApi),
    }
}

fn machine() -> (Value, Value) {
    let status = MachineStatus {
        node_ref: Some(reference()),
        last_updated: Some(time()),
        error_reason: text(),
        error_message: text(),
        provider_status: Some(json!({})),
        addresses: vec![NodeAddress { address: "a".to_owned(), type_: "InternalIP".to_owned() }],
        last_operation: Some(LastOperation {
            description: text(),
            last_updated: Some(time()),
            state: text(),
            type_: text(),
        }),
        phase: Some(Phase::Running),
        conditions: conditions(),
        authoritative_api: Some(Authority::MachineApi),
        synchronized_api: Some(Authority::MachineApi),
        synchronized_generation: Some(1),
    };
    (json!(machine_spec()), json!(status))
}

fn machine_set() -> (Value, Value) {
    let spec = MachineSetSpec {
        replicas: Some(1),
        min_ready_seconds: Some(1),
        delete_policy: Some(DeletePolicy::Random),
        selector: selector(),
        template: MachineTemplateSpec { metadata: metadata(), spec: machine_spec() },
        authoritative_api: Some(Authority::MachineApi),
    };
    let status = MachineSetStatus {
        replicas: 1,
        fully_labeled_replicas: Some(1),
        ready_replicas: Some(1),
        available_replicas: Some(1),
        observed_generation: Some(1),
        label_selector: text(),
        error_reason: text(),
        error_message: text(),
        conditions: conditions(),
        authoritative_api: Some(Authority::MachineApi),
        synchronized_api: Some(Authority::MachineApi),
        synchronized_generation: Some(1),
    };
    (json!(spec), json!(status))
}

fn health_check() -> (Value, Value) {
    let spec = MachineHealthCheckSpec {
        selector: selector(),
        unhealthy_conditions: vec![UnhealthyCondition {
            type_: "Ready".to_owned(),
            status: "False".to_owned(),
            timeout: "5m".to_owned(),
        }],
        max_unhealthy: Some(IntOrString::Int(1)),
        node_startup_timeout: text(),
        remediation_template: Some(reference()),
    };
    let status = MachineHealthCheckStatus {
        expected_machines: Some(1),
        current_healthy: Some(1),
        remediations_allowed: 1,
        conditions: conditions(),
    };
    (json!(spec), json!(status))
}

fn placement_group() -> (Value, Value) {
    let group = || ManagedAWSPlacementGroup {
        group_type: GroupType::Partition,
        partition: Some(AWSPartitionPlacement { count: Some(2) }),
    };
    let spec = AWSPlacementGroupSpec {
        management_spec: AWSPlacementGroupManagementSpec {
            management_state: ManagementState::Managed,
            managed: Some(group()),
        },
        credentials_secret: Some(LocalSecretReference { name: "s".to_owned() }),
    };
    let status = AWSPlacementGroupStatus {
        conditions: vec![meta::Condition {
            last_transition_time: time(),
            message: "m".to_owned(),
            observed_generation: Some(1),
            reason: "R".to_owned(),
            status: "True".to_owned(),
            type_: "Ready".to_owned(),
        }],
        expires_at: Some(time()),
        replicas: Some(1),
        management_state: Some(ManagementState::Managed),
        observed_configuration: Some(group()),
    };
    (json!(spec), json!(status))
}

fn infrastructure() -> (Value, Value) {
    let endpoint = AWSServiceEndpoint { name: "ec2".to_owned(), url: "https://x".to_owned() };
    let endpoints = || json!([endpoint]);
    // Parts without a type of their own stand in `other`, by their names.
    let spec = InfrastructureSpec {
        platform_spec: Some(PlatformSpec {
            type_: Some(PlatformType::Aws),
            other: BTreeMap::from([("aws".to_owned(), json!({"serviceEndpoints": endpoints()}))]),
        }),
        other: BTreeMap::from([("cloudConfig".to_owned(), json!({"key": "k", "name": "n"}))]),
    };
    let status = InfrastructureStatus {
        infrastructure_name: "n".to_owned(),
        platform: Some(PlatformType::Aws),
        platform_status: Some(PlatformStatus {
            type_: PlatformType::Aws,
            aws: Some(AWSPlatformStatus {
                region: "r".to_owned(),
                resource_tags: vec![AWSResourceTag { key: "k".to_owned(), value: "v".to_owned() }],
                service_endpoints: vec![endpoint.clone()],
                other: BTreeMap::new(),
            }),
            other: BTreeMap::new(),
        }),
        control_plane_topology: text(),
        infrastructure_topology: text(),
        cpu_partitioning: text(),
        api_server_url: "u".to_owned(),
        api_server_internal_uri: "u".to_owned(),
        etcd_discovery_domain: "d".to_owned(),
        other: BTreeMap::new(),
    };
    (json!(spec), json!(status))
}

/// Compares fields at every depth, and writes down where they differ.
fn compare(path: &str, value: &Value, schema: &Value, differences: &mut Vec<String>) {
    if let (Value::Array(items), Some(item)) = (value, schema.get("items")) {
        for value in items {
            compare(&format!("{path}[]"), value, item, differences);
        }
        return;
    }
    let (Value::Object(fields), Some(Value::Object(known))) = (value, schema.get("properties"))
    else {
        return;
    };
    let ours: BTreeSet<&String> =
        fields.keys().filter(|name| !GATED.contains(&name.as_str())).collect();
    let theirs: BTreeSet<&String> = known.keys().collect();
    for name in ours.symmetric_difference(&theirs) {
        let side = if ours.contains(name) { "schema" } else { "type" };
        differences.push(format!("{path}.{name} is missing in the {side}"));
    }
    for name in ours.intersection(&theirs) {
        compare(&format!("{path}.{name}"), &fields[*name], &known[*name], differences);
    }
}

#[test]
fn types_and_schemas_have_the_same_fields() {
    let objects = BTreeMap::from([
        ("Machine", machine()),
        ("MachineSet", machine_set()),
        ("MachineHealthCheck", health_check()),
        ("AWSPlacementGroup", placement_group()),
        ("Infrastructure", infrastructure()),
    ]);
    let crds = crds();
    assert_eq!(crds.len(), objects.len());
    let mut differences = Vec::new();
    for crd in &crds {
        let kind = crd.spec.names.kind.as_str();
        let (spec, status) = &objects[kind];
        let schema = json!(crd)["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
        let properties = &schema["properties"];
        compare(&format!("{kind}.spec"), spec, &properties["spec"], &mut differences);
        compare(&format!("{kind}.status"), status, &properties["status"], &mut differences);
    }
    assert_eq!(differences, Vec::<String>::new());
}

#[test]
fn every_field_is_described() {
    fn undescribed(path: &str, schema: &Value, found: &mut Vec<String>) {
        if let Some(Value::Object(fields)) = schema.get("properties") {
            for (name, field) in fields {
                let path = format!("{path}.{name}");
                if field.get("description").is_none() && name != "metadata" {
                    found.push(path.clone());
                }
                undescribed(&path, field, found);
                if let Some(item) = field.get("items") {
                    undescribed(&path, item, found);
                }
            }
        }
    }
    let mut found = Vec::new();
    for crd in crds() {
        let schema = &json!(crd)["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        undescribed(&crd.spec.names.kind, schema, &mut found);
    }
    assert_eq!(found, Vec::<String>::new());
}
