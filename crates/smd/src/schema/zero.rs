//! The empty object of a kind, as the real server's Go types print it.
//!
//! Fields of Go structs that are not pointers exist even in an empty object. A create is a
//! change from that object, so whoever creates a Pod does not own `spec` or
//! `spec.containers` themselves, only what is in them. Custom resources have no such fields.

use serde_json::{Map, Value};

use super::Resolve;
use super::openapi::{definition, reference_target};

/// How deep structs are nested in an empty object before we take it for a loop.
const MAX_NESTING: usize = 16;

/// Fields that are printed although OpenAPI has them optional and without a default: Go's
/// tags lack `omitempty`. By definition, as of Kubernetes 1.37.
const PRINTED: [(&str, &[&str]); 13] = [
    ("io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerStatus", &["currentMetrics"]),
    (
        "io.k8s.api.certificates.v1beta1.PodCertificateRequestSpec",
        &["pkixPublicKey", "proofOfPossession"],
    ),
    ("io.k8s.api.core.v1.Event", &["eventTime", "firstTimestamp", "lastTimestamp"]),
    ("io.k8s.api.discovery.v1.EndpointSlice", &["endpoints", "ports"]),
    ("io.k8s.api.events.v1.Event", &["deprecatedFirstTimestamp", "deprecatedLastTimestamp"]),
    ("io.k8s.api.rbac.v1.ClusterRole", &["rules"]),
    ("io.k8s.api.rbac.v1.Role", &["rules"]),
    ("io.k8s.api.resource.v1.DeviceClaim", &["requests"]),
    ("io.k8s.api.resource.v1beta1.DeviceClaim", &["requests"]),
    ("io.k8s.api.resource.v1beta2.DeviceClaim", &["requests"]),
    ("io.k8s.api.scheduling.v1alpha3.WorkloadSpec", &["podGroupTemplates"]),
    ("io.k8s.api.scheduling.v1beta1.WorkloadSpec", &["podGroupTemplates"]),
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionStatus",
        &["conditions", "storedVersions"],
    ),
];

/// Fields that are not printed although OpenAPI has them required or with a zero default.
const OMITTED: [(&str, &[&str]); 6] = [
    (
        "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec",
        &["policyName", "validationActions"],
    ),
    ("io.k8s.api.autoscaling.v1.ScaleSpec", &["replicas"]),
    ("io.k8s.api.coordination.v1alpha2.LeaseCandidateSpec", &["strategy"]),
    ("io.k8s.api.coordination.v1beta1.LeaseCandidateSpec", &["strategy"]),
    ("io.k8s.api.core.v1.ReplicationControllerSpec", &["minReadySeconds"]),
    ("io.k8s.api.networking.v1.IPAddressSpec", &["parentRef"]),
];

/// The empty object of a built-in kind, from the reference to its OpenAPI definition.
///
/// OpenAPI nearly tells what Go prints for a zero value: struct fields have the default
/// `{}`, scalars without `omitempty` their zero as default, and required lists, maps and
/// pointers none. The tables above have the rest.
pub fn zero_object(reference: &str, resolve: &Resolve<'_>) -> Value {
    Value::Object(zero_struct(reference, resolve, 0))
}

fn zero_struct(reference: &str, resolve: &Resolve<'_>, depth: usize) -> Map<String, Value> {
    let mut out = Map::new();
    let name = reference.rsplit('/').next().unwrap_or(reference);
    let Some(found) = definition(reference, name, resolve).filter(|_| depth < MAX_NESTING) else {
        return out;
    };
    let required = found.get("required").and_then(Value::as_array);
    let is_required = |field: &str| {
        required.is_some_and(|fields| fields.iter().any(|required| required == field))
    };
    let properties = found.get("properties").and_then(Value::as_object);
    for (field, property) in properties.into_iter().flatten() {
        if is_listed(&OMITTED, name, field) {
            continue;
        }
        let value = match property.get("default") {
            Some(Value::Object(default)) if default.is_empty() => {
                let below = reference_target(property);
                let below = below.map(|target| zero_struct(target, resolve, depth + 1));
                Some(Value::Object(below.unwrap_or_default()))
            }
            Some(default) if is_zero_scalar(default) => Some(default.clone()),
            None if is_required(field) || is_listed(&PRINTED, name, field) => Some(Value::Null),
            _ => None,
        };
        if let Some(value) = value {
            out.insert(field.clone(), value);
        }
    }
    out
}

fn is_listed(table: &[(&str, &[&str])], definition: &str, field: &str) -> bool {
    table.iter().any(|(name, fields)| *name == definition && fields.contains(&field))
}

fn is_zero_scalar(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Bool(flag) => !flag,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use serde_json::json;

    #[test]
    fn structs_and_required_fields_are_there() {
        let documents = json!({
            "Pod": {"properties": {
                "apiVersion": {"type": "string"},
                "spec": {"allOf": [{"$ref": "#/PodSpec"}], "default": {}},
                "pointer": {"$ref": "#/PodSpec"},
                "inline": {"type": "object", "default": {}},
            }},
            "PodSpec": {"required": ["containers", "node"], "properties": {
                "containers": {"type": "array"},
                "volumes": {"type": "array"},
                "node": {"type": "string", "default": ""},
                "policy": {"type": "string", "default": "Always"},
                "loop": {"$ref": "#/PodSpec", "default": {}},
            }},
        });
        let resolve =
            |target: &str| documents.get(target.trim_start_matches("#/")).map(Cow::Borrowed);
        let mut zero = zero_object("#/Pod", &resolve);
        assert!(zero["spec"]["loop"]["loop"].is_object());
        zero["spec"].as_object_mut().unwrap().remove("loop");
        assert_eq!(zero, json!({"inline": {}, "spec": {"containers": null, "node": ""}}));
    }
}
