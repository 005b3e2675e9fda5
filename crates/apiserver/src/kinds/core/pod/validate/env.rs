//! Environment variables and where their values come from.

use fleetwright_kschema::{
    field::{FieldError, Path},
    names,
};
use serde_json::Value;

use super::super::super::super::check::{Errors, each, has, is_set, one_of};
use crate::object;

const SOURCES: &[&str] =
    &["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
/// What a variable can tell about its pod.
const FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// What can be asked for at all.
const CONVERTIBLE: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const RESOURCES: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// What is wrong with the variables of a container.
pub(super) fn variables(container: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    for (i, variable) in object::list(container, &["env"]).iter().enumerate() {
        let path = path.index(i);
        let name = object::text(variable, &["name"]);
        if name.is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        } else {
            errors.extend(each(&path.child("name"), name, names::relaxed_env_var_name(name)));
        }
        if let Some(source) = variable.get("valueFrom").filter(|source| !source.is_null()) {
            let has_value = has(variable, &["value"]);
            errors.extend(value_from(source, has_value, &path.child("valueFrom")));
        }
    }
    errors
}

fn value_from(source: &Value, has_value: bool, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let set: Vec<&str> = SOURCES.iter().copied().filter(|key| is_set(source, &[key])).collect();
    for key in &set {
        let path = path.child(key);
        let source = source.get(key).unwrap_or(&Value::Null);
        errors.extend(match *key {
            "fieldRef" => field_ref(source, FIELDS, &path),
            "resourceFieldRef" => resource_ref(source, false, &path),
            "fileKeyRef" => Errors::new(),
            _ => key_ref(source, &path),
        });
    }
    let problem = if set.is_empty() {
        "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or \
         `fileKeyRef`"
    } else if has_value {
        "may not be specified when `value` is not empty"
    } else if set.len() > 1 {
        "may not have more than one field specified at a time"
    } else {
        return errors;
    };
    errors.push(FieldError::invalid(path, "", problem));
    errors
}

fn key_ref(source: &Value, path: &Path) -> Errors {
    let name = object::text(source, &["name"]);
    let key = object::text(source, &["key"]);
    let mut errors = each(&path.child("name"), name, names::dns_1123_subdomain(name));
    if key.is_empty() {
        errors.push(FieldError::required(&path.child("key"), ""));
    } else {
        errors.extend(each(&path.child("key"), key, names::config_map_key(key)));
    }
    errors
}

/// What is wrong with a reference to a field of the pod.
pub(super) fn field_ref(source: &Value, allowed: &[&str], path: &Path) -> Errors {
    let version = object::text(source, &["apiVersion"]);
    let field = object::text(source, &["fieldPath"]);
    let field_path = path.child("fieldPath");
    let unconvertible = |reason: String| {
        let reason = format!("error converting fieldPath: {reason}");
        vec![FieldError::invalid(&field_path, field, reason)]
    };
    if field.is_empty() {
        return vec![FieldError::required(&field_path, "")];
    }
    if version != "v1" {
        return unconvertible(format!("unsupported pod version: {version}"));
    }
    if let Some((base, key)) = subscript(field) {
        return match base {
            "metadata.annotations" => {
                each(path, &key.to_lowercase(), names::qualified_name(&key.to_lowercase()))
            }
            "metadata.labels" => each(path, key, names::qualified_name(key)),
            _ => unconvertible(format!("field label does not support subscript: {field}")),
        };
    }
    if !CONVERTIBLE.contains(&field) {
        return unconvertible(format!("field label not supported: {field}"));
    }
    let mut allowed = allowed.to_vec();
    allowed.sort_unstable();
    one_of(field, &allowed, &field_path)
}

fn subscript(field: &str) -> Option<(&str, &str)> {
    let (base, rest) = field.split_once("['")?;
    let key = rest.strip_suffix("']")?;
    (!base.is_empty()).then_some((base, key))
}

/// What is wrong with a reference to a resource of a container.
pub(super) fn resource_ref(source: &Value, in_volume: bool, path: &Path) -> Errors {
    let resource = object::text(source, &["resource"]);
    if in_volume && !has(source, &["containerName"]) {
        return vec![FieldError::required(&path.child("containerName"), "")];
    }
    if resource.is_empty() {
        return vec![FieldError::required(&path.child("resource"), "")];
    }
    if resource.starts_with("requests.hugepages-") || resource.starts_with("limits.hugepages-") {
        return Errors::new();
    }
    one_of(resource, RESOURCES, &path.child("resource"))
}

/// What is wrong with the sources of many variables.
pub(super) fn sources(container: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    for (i, source) in object::list(container, &["envFrom"]).iter().enumerate() {
        let list = path;
        let path = path.index(i);
        let prefix = object::text(source, &["prefix"]);
        if !prefix.is_empty() {
            errors.extend(each(&path.child("prefix"), prefix, names::relaxed_env_var_name(prefix)));
        }
        let mut count = 0;
        for key in ["configMapRef", "secretRef"] {
            if !is_set(source, &[key]) {
                continue;
            }
            count += 1;
            let name = object::text(source, &[key, "name"]);
            let path = path.child(key).child("name");
            if name.is_empty() {
                errors.push(FieldError::required(&path, ""));
            } else {
                errors.extend(each(&path, name, names::name_is_dns_subdomain(name, true)));
            }
        }
        let problem = match count {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        errors.push(FieldError::invalid(list, "", problem));
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::super::super::check::texts;
    use super::*;

    #[test]
    fn values_come_from_one_place() {
        let container = json!({"env": [
            {"name": "A", "valueFrom": {}},
            {"name": "B", "value": "x", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            {"name": "C", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.phase"}}},
            {"name": "D", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.x"}}},
            {"name": "E", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.labels['a/b']"}}},
            {"name": "F=", "valueFrom": {"secretKeyRef": {"name": "s"}}},
        ]});
        assert_eq!(
            texts(&variables(&container, &Path::new("env"))),
            [
                "env[0].valueFrom: Invalid value: \"\": must specify one of: `fieldRef`, \
                 `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
                "env[1].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty",
                "env[2].valueFrom.fieldRef.fieldPath: Unsupported value: \"status.phase\": supported \
                 values: \"metadata.name\", \"metadata.namespace\", \"metadata.uid\", \
                 \"spec.nodeName\", \"spec.serviceAccountName\", \"status.hostIP\", \
                 \"status.hostIPs\", \"status.podIP\", \"status.podIPs\"",
                "env[3].valueFrom.fieldRef.fieldPath: Invalid value: \"spec.x\": error converting \
                 fieldPath: field label not supported: spec.x",
                "env[5].name: Invalid value: \"F=\": a valid environment variable name must consist \
                 only of printable ASCII characters other than '='",
                "env[5].valueFrom.secretKeyRef.key: Required value",
            ]
        );
    }
}
