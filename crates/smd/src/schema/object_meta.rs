//! ObjectMeta as every kind has it, for documents that refer to it without bringing it.

use serde_json::{Value, json};

/// The name of the definition in OpenAPI documents.
pub(super) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The parts of ObjectMeta's definition that decide ownership.
pub(super) fn object_meta() -> Value {
    let string = json!({"type": "string"});
    let key = json!({"type": "string", "default": ""});
    let time = json!({"type": "string", "format": "date-time"});
    let integer = json!({"type": "integer"});
    let strings = json!({"type": "object", "additionalProperties": string});
    json!({
        "type": "object",
        "properties": {
            "annotations": strings,
            "creationTimestamp": time,
            "deletionGracePeriodSeconds": integer,
            "deletionTimestamp": time,
            "finalizers": {"type": "array", "items": string, "x-kubernetes-list-type": "set"},
            "generateName": string,
            "generation": integer,
            "labels": strings,
            "managedFields": {
                "type": "array",
                "x-kubernetes-list-type": "atomic",
                "items": {"type": "object", "properties": {
                    "apiVersion": string,
                    "fieldsType": string,
                    "fieldsV1": {"type": "object"},
                    "manager": string,
                    "operation": string,
                    "subresource": string,
                    "time": time,
                }},
            },
            "name": string,
            "namespace": string,
            "ownerReferences": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["uid"],
                "items": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
                    "apiVersion": key,
                    "blockOwnerDeletion": {"type": "boolean"},
                    "controller": {"type": "boolean"},
                    "kind": key,
                    "name": key,
                    "uid": key,
                }},
            },
            "resourceVersion": string,
            "selfLink": string,
            "uid": string,
        },
    })
}
