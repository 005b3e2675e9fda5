//! The objects that are written: ConfigMaps, and Machines of about 5 KB.

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Value, json};

/// The namespace that is written to.
pub(crate) const NAMESPACE: &str = "bench";
/// The namespace whose objects are read and patched; it keeps its number of objects.
pub(crate) const FIXED_NAMESPACE: &str = "bench-fixed";
/// The namespace that is watched.
pub(crate) const WATCHED_NAMESPACE: &str = "bench-watched";

/// The API group and version of Machines.
const GROUP: &str = "bench.fleetwright.dev";
const VERSION: &str = "v1";

/// Where a name goes in a template.
const NAME: &str = "@name@";

/// The path of a collection of ConfigMaps.
pub(crate) fn config_maps(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

/// The path of a collection of Machines.
pub(crate) fn machines(namespace: &str) -> String {
    format!("/apis/{GROUP}/{VERSION}/namespaces/{namespace}/machines")
}

/// The JSON of an object, cut where its name goes, so that an object with another name costs
/// one copy.
#[derive(Clone)]
pub(crate) struct Template {
    head: Bytes,
    tail: Bytes,
}

impl Template {
    fn new(object: &Value) -> Self {
        let text = object.to_string();
        let (head, tail) = text.split_once(NAME).unwrap_or((&text, ""));
        Self {
            head: Bytes::copy_from_slice(head.as_bytes()),
            tail: Bytes::copy_from_slice(tail.as_bytes()),
        }
    }

    /// The object with a name.
    pub(crate) fn named(&self, name: &str) -> Bytes {
        let mut text = BytesMut::with_capacity(self.head.len() + name.len() + self.tail.len());
        text.put_slice(&self.head);
        text.put_slice(name.as_bytes());
        text.put_slice(&self.tail);
        text.freeze()
    }
}

/// A ConfigMap with one kilobyte of text.
pub(crate) fn config_map() -> Template {
    Template::new(&json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "labels": {"app": "bench", "tier": "settings"}},
        "data": {
            "log-level": "info",
            "settings.yaml": "interval: 30s\nretries: 5\n".repeat(39),
        },
    }))
}

/// A Machine, as large and as deep as those of real fleets.
pub(crate) fn machine() -> Template {
    let tags: Vec<Value> = (0..8)
        .map(|number| json!({"name": format!("tag-{number}"), "value": format!("value of tag {number}, as accounting wants it")}))
        .collect();
    let groups: Vec<Value> =
        (0..3).map(|number| json!({"id": format!("sg-0123456789abcde{number}")})).collect();
    let volumes: Vec<Value> = (0..2)
        .map(|number| {
            json!({
                "deviceName": format!("/dev/xvd{number}"),
                "ebs": {
                    "encrypted": true,
                    "iops": 3000,
                    "volumeSize": 120,
                    "volumeType": "gp3",
                    "kmsKey": "arn:aws:kms:eu-central-1:123456789012:key/11111111-2222-3333-4444-555555555555",
                },
            })
        })
        .collect();
    Template::new(&json!({
        "apiVersion": format!("{GROUP}/{VERSION}"),
        "kind": "Machine",
        "metadata": {
            "name": NAME,
            "annotations": {
                "machine.fleetwright.dev/instance-state": "running",
                "machine.fleetwright.dev/zone": "eu-central-1a",
            },
            "finalizers": ["machine.fleetwright.dev/finalizer"],
            "labels": {
                "machine.fleetwright.dev/cluster": "production-7x2kq",
                "machine.fleetwright.dev/machine-set": "production-7x2kq-worker-eu-central-1a",
                "machine.fleetwright.dev/role": "worker",
                "machine.fleetwright.dev/type": "worker",
                "machine.fleetwright.dev/region": "eu-central-1",
                "machine.fleetwright.dev/zone": "eu-central-1a",
            },
        },
        "spec": {
            "serial": 0,
            "providerId": "aws:///eu-central-1a/i-0123456789abcdef0",
            "metadata": {"labels": {"node-role.kubernetes.io/worker": ""}},
            "taints": [
                {"key": "dedicated", "value": "batch", "effect": "NoSchedule"},
                {"key": "spot", "value": "true", "effect": "PreferNoSchedule"},
            ],
            "lifecycleHooks": {
                "preDrain": [{"name": "migrate", "owner": "storage-operator"}],
                "preTerminate": [{"name": "deregister", "owner": "network-operator"}],
            },
            "provider": {
                "ami": "ami-0123456789abcdef0",
                "instanceType": "m6i.2xlarge",
                "iamInstanceProfile": "production-7x2kq-worker-profile",
                "keyName": "operations",
                "placement": {"availabilityZone": "eu-central-1a", "region": "eu-central-1", "tenancy": "default"},
                "subnet": {"filters": [{"name": "tag:Name", "values": ["production-7x2kq-private-eu-central-1a"]}]},
                "securityGroups": groups,
                "blockDevices": volumes,
                "tags": tags,
                "metadataServiceOptions": {"authentication": "Required"},
                "userData": "IyEvYmluL3NoCmVjaG8gaGVsbG8K".repeat(28),
                "credentialsSecret": "aws-cloud-credentials",
                "userDataSecret": "worker-user-data",
            },
        },
    }))
}

/// What changes a Machine's spec.
pub(crate) fn machine_patch(serial: usize) -> Bytes {
    Bytes::from(format!(r#"{{"spec":{{"serial":{serial}}}}}"#))
}

/// The definition of Machines: typed, with defaults, patterns, enums, and rules.
pub(crate) fn machine_definition() -> Value {
    let text = || json!({"type": "string", "maxLength": 4096});
    let texts = json!({"type": "object", "additionalProperties": text()});
    let hook = json!({
        "type": "array", "maxItems": 16,
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object", "required": ["name", "owner"],
            "properties": {
                "name": {"type": "string", "minLength": 3, "maxLength": 256},
                "owner": {"type": "string", "minLength": 3, "maxLength": 512},
            },
        },
    });
    let condition = json!({
        "type": "object", "required": ["type", "status"],
        "properties": {
            "type": text(), "reason": text(), "message": text(),
            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "lastTransitionTime": {"type": "string", "format": "date-time"},
        },
    });
    let named = json!({
        "type": "object", "required": ["name", "value"],
        "properties": {"name": text(), "value": text()},
    });
    let filter = json!({
        "type": "object", "required": ["name"],
        "properties": {"name": text(), "values": {"type": "array", "items": text()}},
    });
    let disk = json!({
        "type": "object",
        "properties": {
            "encrypted": {"type": "boolean"},
            "deleteOnTermination": {"type": "boolean", "default": true},
            "iops": {"type": "integer", "format": "int64", "minimum": 0},
            "volumeSize": {"type": "integer", "format": "int64", "minimum": 1, "maximum": 65536},
            "volumeType": {"type": "string", "enum": ["gp2", "gp3", "io1", "io2"]},
            "kmsKey": text(),
        },
    });
    let provider = json!({
        "type": "object", "required": ["ami", "instanceType"],
        "properties": {
            "ami": {"type": "string", "pattern": "^ami-[0-9a-f]{8,17}$"},
            "instanceType": text(), "iamInstanceProfile": text(), "keyName": text(),
            "userData": {"type": "string", "maxLength": 16384},
            "credentialsSecret": text(), "userDataSecret": text(),
            "placement": {"type": "object", "properties": {
                "availabilityZone": text(), "region": text(),
                "tenancy": {"type": "string", "enum": ["default", "dedicated", "host"]},
            }},
            "subnet": {"type": "object", "properties": {
                "id": text(), "filters": {"type": "array", "maxItems": 16, "items": filter},
            }},
            "securityGroups": {"type": "array", "maxItems": 16, "items": {
                "type": "object", "properties": {"id": {"type": "string", "pattern": "^sg-[0-9a-f]{8,17}$"}},
            }},
            "blockDevices": {"type": "array", "maxItems": 32, "items": {
                "type": "object", "properties": {"deviceName": text(), "ebs": disk},
            }},
            "tags": {"type": "array", "maxItems": 50, "items": named},
            "metadataServiceOptions": {"type": "object", "properties": {
                "authentication": {"type": "string", "enum": ["Optional", "Required"], "default": "Optional"},
                "hopLimit": {"type": "integer", "default": 2},
            }},
        },
        "x-kubernetes-validations": [{
            "rule": "!has(self.placement) || self.placement.tenancy != 'host' || self.instanceType.endsWith('.metal')",
            "message": "tenancy host needs a metal instance type",
        }],
    });
    let spec = json!({
        "type": "object", "required": ["provider"],
        "properties": {
            "serial": {"type": "integer", "format": "int64"},
            "providerId": text(),
            "powerState": {"type": "string", "enum": ["On", "Off"], "default": "On"},
            "metadata": {"type": "object", "properties": {"labels": texts, "annotations": texts}},
            "taints": {"type": "array", "maxItems": 64, "x-kubernetes-list-type": "atomic", "items": {
                "type": "object", "required": ["key", "effect"],
                "properties": {
                    "key": text(), "value": text(),
                    "effect": {"type": "string", "enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
                },
            }},
            "lifecycleHooks": {"type": "object", "properties": {"preDrain": hook, "preTerminate": hook}},
            "provider": provider,
        },
        "x-kubernetes-validations": [{
            "rule": "!has(oldSelf.providerId) || (has(self.providerId) && self.providerId == oldSelf.providerId)",
            "message": "providerId cannot be changed",
        }],
    });
    let status = json!({
        "type": "object",
        "properties": {
            "phase": text(), "nodeName": text(),
            "conditions": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"], "items": condition},
        },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("machines.{GROUP}")},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "machines", "singular": "machine", "kind": "Machine", "listKind": "MachineList"},
            "versions": [{
                "name": VERSION, "served": true, "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
                    {"name": "Type", "type": "string", "jsonPath": ".spec.provider.instanceType"},
                ],
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": spec, "status": status},
                }},
            }],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_takes_a_name_and_nothing_else() {
        let object: Value = serde_json::from_slice(&machine().named("m-1")).unwrap();
        assert_eq!(object["metadata"]["name"], "m-1");
        assert!(!object.to_string().contains(NAME));
    }

    #[test]
    fn sizes_are_those_that_are_announced() {
        let machine = machine().named("m-1").len();
        assert!((3_000..5_000).contains(&machine), "{machine}");
        let config_map = config_map().named("c-1").len();
        assert!((1_000..1_300).contains(&config_map), "{config_map}");
    }
}
