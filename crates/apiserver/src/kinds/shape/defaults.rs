//! Defaults of each type, wherever a value of it is.
//!
//! Runs before the fields of the value are completed, when empty optional fields are gone
//! already, so that "not set" is "not there".

use serde_json::{Map, Value, json};

use super::pods;

type Fields = Map<String, Value>;

/// Fills in what is not set in a value of the type `name`.
pub(super) fn fill(name: &str, map: &mut Fields) {
    let Some((group, name)) = name.split_once('.') else { return };
    match group {
        "core" => core(name, map),
        "apps" => apps(name, map),
        "batch" => batch(name, map),
        "rbac" => rbac(name, map),
        "admissionregistration" => admission(name, map),
        "storage" => storage(name, map),
        "scheduling" if name == "PriorityClass" => {
            set(map, "preemptionPolicy", "PreemptLowerPriority");
        }
        "resource" if matches!(name, "ExactDeviceRequest" | "DeviceSubRequest") => {
            set(map, "allocationMode", "ExactCount");
            if text(map, "allocationMode") == "ExactCount" {
                set(map, "count", 1);
            }
        }
        "discovery" if name == "EndpointPort" => {
            set(map, "name", "");
            set(map, "protocol", "TCP");
        }
        _ => {}
    }
}

/// Sets a field unless it is set.
pub(super) fn set(map: &mut Fields, key: &str, value: impl Into<Value>) {
    if map.get(key).is_none_or(Value::is_null) {
        map.insert(key.to_owned(), value.into());
    }
}

/// The object in a field, made if it is not there.
pub(super) fn child<'a>(map: &'a mut Fields, key: &str) -> Option<&'a mut Fields> {
    let value = map.entry(key).or_insert_with(|| json!({}));
    if value.is_null() {
        *value = json!({});
    }
    value.as_object_mut()
}

fn text<'a>(map: &'a Fields, key: &str) -> &'a str {
    map.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn unset(map: &Fields, key: &str) -> bool {
    map.get(key).is_none_or(Value::is_null)
}

fn core(name: &str, map: &mut Fields) {
    match name {
        "Namespace" => namespace(map),
        "NamespaceStatus" => set(map, "phase", "Active"),
        "NodeStatus" => {
            if let Some(capacity) = map.get("capacity").cloned() {
                set(map, "allocatable", capacity);
            }
        }
        "Secret" => set(map, "type", "Opaque"),
        "PersistentVolume" => {
            if let Some(spec) = child(map, "spec") {
                set(spec, "persistentVolumeReclaimPolicy", "Retain");
                set(spec, "volumeMode", "Filesystem");
            }
        }
        "PersistentVolumeStatus" | "PersistentVolumeClaimStatus" => set(map, "phase", "Pending"),
        "PersistentVolumeClaimSpec" => set(map, "volumeMode", "Filesystem"),
        "ReplicationController" => replication_controller(map),
        "Service" => service(map),
        "ServicePort" => service_port(map),
        "EndpointPort" => set(map, "protocol", "TCP"),
        "LimitRangeItem" => limit_range_item(map),
        _ => pods::fill(name, map),
    }
}

fn namespace(map: &mut Fields) {
    let Some(metadata) = child(map, "metadata") else { return };
    let name = text(metadata, "name").to_owned();
    if !name.is_empty()
        && let Some(labels) = child(metadata, "labels")
    {
        labels.insert("kubernetes.io/metadata.name".to_owned(), name.into());
    }
}

fn template_labels(map: &Fields) -> Option<Value> {
    let labels = map.get("spec")?.get("template")?.get("metadata")?.get("labels")?;
    labels.as_object().is_some_and(|labels| !labels.is_empty()).then(|| labels.clone())
}

fn label_like_template(map: &mut Fields, labels: Value) {
    if let Some(metadata) = child(map, "metadata")
        && metadata.get("labels").and_then(Value::as_object).is_none_or(Map::is_empty)
    {
        metadata.insert("labels".to_owned(), labels);
    }
}

fn replication_controller(map: &mut Fields) {
    let labels = template_labels(map);
    if let Some(spec) = child(map, "spec") {
        set(spec, "replicas", 1);
        if let Some(labels) = labels.clone()
            && spec.get("selector").and_then(Value::as_object).is_none_or(Map::is_empty)
        {
            spec.insert("selector".to_owned(), labels);
        }
    }
    if let Some(labels) = labels {
        label_like_template(map, labels);
    }
}

fn service(map: &mut Fields) {
    let Some(spec) = child(map, "spec") else { return };
    set(spec, "sessionAffinity", "None");
    match text(spec, "sessionAffinity") {
        "None" => {
            spec.remove("sessionAffinityConfig");
        }
        "ClientIP" => {
            let timeout = spec
                .get("sessionAffinityConfig")
                .and_then(|c| c.get("clientIP")?.get("timeoutSeconds"))
                .filter(|t| !t.is_null());
            if timeout.is_none() {
                spec.insert(
                    "sessionAffinityConfig".to_owned(),
                    json!({"clientIP": {"timeoutSeconds": 10800}}),
                );
            }
        }
        _ => {}
    }
    set(spec, "type", "ClusterIP");
    let kind = text(spec, "type").to_owned();
    let external_ips =
        spec.get("externalIPs").and_then(Value::as_array).is_some_and(|ips| !ips.is_empty());
    if matches!(kind.as_str(), "LoadBalancer" | "NodePort") || (kind == "ClusterIP" && external_ips)
    {
        set(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(kind.as_str(), "ClusterIP" | "NodePort" | "LoadBalancer") {
        set(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        set(spec, "allocateLoadBalancerNodePorts", true);
    }
}

fn service_port(map: &mut Fields) {
    set(map, "protocol", "TCP");
    let target = map.get("targetPort");
    if target.is_none_or(|t| t.is_null() || t == 0 || t == "")
        && let Some(port) = map.get("port").cloned()
    {
        map.insert("targetPort".to_owned(), port);
    }
}

fn limit_range_item(map: &mut Fields) {
    if text(map, "type") != "Container" {
        return;
    }
    let copy = |map: &mut Fields, from: &str, to: &str| {
        let from = map.get(from).and_then(Value::as_object).cloned().unwrap_or_default();
        if let Some(to) = child(map, to) {
            for (key, value) in from {
                to.entry(key).or_insert(value);
            }
        }
    };
    copy(map, "max", "default");
    copy(map, "default", "defaultRequest");
    copy(map, "min", "defaultRequest");
}

fn apps(name: &str, map: &mut Fields) {
    match name {
        "DeploymentSpec" => {
            set(map, "replicas", 1);
            set(map, "revisionHistoryLimit", 10);
            set(map, "progressDeadlineSeconds", 600);
        }
        "DeploymentStrategy" => {
            set(map, "type", "RollingUpdate");
            if text(map, "type") == "RollingUpdate"
                && let Some(rolling) = child(map, "rollingUpdate")
            {
                set(rolling, "maxUnavailable", "25%");
                set(rolling, "maxSurge", "25%");
            }
        }
        "DaemonSetSpec" => set(map, "revisionHistoryLimit", 10),
        "DaemonSetUpdateStrategy" => {
            set(map, "type", "RollingUpdate");
            if text(map, "type") == "RollingUpdate"
                && let Some(rolling) = child(map, "rollingUpdate")
            {
                set(rolling, "maxUnavailable", 1);
                set(rolling, "maxSurge", 0);
            }
        }
        "ReplicaSetSpec" => set(map, "replicas", 1),
        "StatefulSetSpec" => {
            let claims = map.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut);
            for claim in claims.into_iter().flatten().filter_map(Value::as_object_mut) {
                set(claim, "apiVersion", "v1");
                set(claim, "kind", "PersistentVolumeClaim");
            }
            set(map, "podManagementPolicy", "OrderedReady");
            set(map, "replicas", 1);
            set(map, "revisionHistoryLimit", 10);
            if let Some(policy) = child(map, "persistentVolumeClaimRetentionPolicy") {
                for key in ["whenDeleted", "whenScaled"] {
                    set(policy, key, "Retain");
                }
            }
        }
        "StatefulSetUpdateStrategy" => {
            if unset(map, "type") {
                set(map, "type", "RollingUpdate");
                set(map, "rollingUpdate", json!({}));
            }
            if text(map, "type") == "RollingUpdate"
                && let Some(rolling) = map.get_mut("rollingUpdate").and_then(Value::as_object_mut)
            {
                set(rolling, "partition", 0);
                set(rolling, "maxUnavailable", 1);
            }
        }
        _ => {}
    }
}

fn batch(name: &str, map: &mut Fields) {
    match name {
        "Job" => {
            if let Some(spec) = child(map, "spec") {
                job_spec(spec);
            }
            if let Some(labels) = template_labels(map) {
                label_like_template(map, labels);
            }
        }
        "PodFailurePolicyOnPodConditionsPattern" => set(map, "status", "True"),
        _ => {}
    }
}

fn job_spec(spec: &mut Fields) {
    if unset(spec, "parallelism") {
        set(spec, "completions", 1);
    }
    set(spec, "parallelism", 1);
    let limit = if unset(spec, "backoffLimitPerIndex") { 6 } else { i32::MAX };
    set(spec, "backoffLimit", limit);
    set(spec, "completionMode", "NonIndexed");
    set(spec, "suspend", false);
    let replacement =
        if unset(spec, "podFailurePolicy") { "TerminatingOrFailed" } else { "Failed" };
    set(spec, "podReplacementPolicy", replacement);
    set(spec, "manualSelector", false);
}

fn rbac(name: &str, map: &mut Fields) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    match name {
        "RoleRef" => set(map, "apiGroup", GROUP),
        "Subject" if matches!(text(map, "kind"), "User" | "Group") => set(map, "apiGroup", GROUP),
        _ => {}
    }
}

fn admission(name: &str, map: &mut Fields) {
    match name {
        "MutatingWebhook" | "ValidatingWebhook" => {
            set(map, "failurePolicy", "Fail");
            set(map, "matchPolicy", "Equivalent");
            set(map, "namespaceSelector", json!({}));
            set(map, "objectSelector", json!({}));
            set(map, "timeoutSeconds", 10);
            if name == "MutatingWebhook" {
                set(map, "reinvocationPolicy", "Never");
            }
        }
        "RuleWithOperations" => set(map, "scope", "*"),
        "ServiceReference" => set(map, "port", 443),
        _ => {}
    }
}

fn storage(name: &str, map: &mut Fields) {
    match name {
        "StorageClass" => {
            set(map, "reclaimPolicy", "Delete");
            set(map, "volumeBindingMode", "Immediate");
        }
        "CSIDriverSpec" => {
            set(map, "attachRequired", true);
            set(map, "podInfoOnMount", false);
            set(map, "storageCapacity", false);
            set(map, "fsGroupPolicy", "ReadWriteOnceWithFSType");
            set(map, "volumeLifecycleModes", json!(["Persistent"]));
            set(map, "requiresRepublish", false);
            set(map, "seLinuxMount", false);
            set(map, "preventPodSchedulingIfMissing", false);
        }
        _ => {}
    }
}

/// Whether an image reference means the tag `latest`: said so, or neither tag nor digest given.
pub(super) fn image_is_latest(image: &str) -> bool {
    let (reference, digest) = match image.split_once('@') {
        Some((reference, _)) => (reference, true),
        None => (image, false),
    };
    let name = reference.rsplit('/').next().unwrap_or_default();
    match name.split_once(':') {
        Some((_, tag)) => tag == "latest",
        None => !digest && !reference.is_empty(),
    }
}
