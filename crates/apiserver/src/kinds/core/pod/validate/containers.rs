//! Containers: names, images, ports, mounts.

use std::collections::{BTreeMap, BTreeSet};

use fleetwright_kschema::{
    field::{FieldError, Path},
    names,
};
use serde_json::Value;

use super::super::super::{
    super::check::{Errors, each, has, is_set, one_of},
    resources,
};
use super::{env, probes, security, volumes};
use crate::object;

/// What the containers of a pod share.
pub(super) struct Context<'a> {
    pub(super) spec: &'a Value,
    /// The valid volumes by name.
    pub(super) volumes: &'a BTreeMap<&'a str, &'a Value>,
    /// The time that the pod gets to end.
    pub(super) grace: Option<i64>,
}

/// What is wrong with the regular containers.
pub(super) fn regular(context: &Context<'_>, path: &Path) -> Errors {
    let containers = object::list(context.spec, &["containers"]);
    if containers.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = Errors::new();
    let mut seen = BTreeSet::new();
    for (i, container) in containers.iter().enumerate() {
        let path = path.index(i);
        errors.extend(common(context, container, &path));
        let name = object::text(container, &["name"]);
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        errors.extend(probes::all(container, context.grace, &path));
        errors.extend(restart_policy(container, &path));
    }
    errors.extend(host_port_conflicts(containers, path));
    errors
}

/// What is wrong with the init containers.
pub(super) fn init(context: &Context<'_>, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let mut seen: BTreeSet<&str> = object::list(context.spec, &["containers"])
        .iter()
        .map(|container| object::text(container, &["name"]))
        .collect();
    for (i, container) in object::list(context.spec, &["initContainers"]).iter().enumerate() {
        let list = path;
        let path = path.index(i);
        errors.extend(common(context, container, &path));
        errors.extend(restart_policy(container, &path));
        let name = object::text(container, &["name"]);
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        errors.extend(host_port_conflicts(std::slice::from_ref(container), list));
        if object::text(container, &["restartPolicy"]) == "Always" {
            errors.extend(probes::all(container, context.grace, &path));
        } else {
            for key in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                if is_set(container, &[key]) {
                    let reason = "may not be set for init containers without restartPolicy=Always";
                    errors.push(FieldError::forbidden(&path.child(key), reason));
                }
            }
        }
    }
    errors
}

/// What is wrong with the ephemeral containers.
pub(super) fn ephemeral(context: &Context<'_>, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let mut seen: BTreeSet<&str> = ["containers", "initContainers"]
        .iter()
        .flat_map(|list| object::list(context.spec, &[list]))
        .map(|container| object::text(container, &["name"]))
        .collect();
    for (i, container) in object::list(context.spec, &["ephemeralContainers"]).iter().enumerate() {
        let path = path.index(i);
        errors.extend(common(context, container, &path));
        let name = object::text(container, &["name"]);
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        let target = object::text(container, &["targetContainerName"]);
        if !target.is_empty() && !seen.contains(target) {
            errors.push(FieldError::not_found(&path.child("targetContainerName"), target));
        }
        for key in
            ["lifecycle", "livenessProbe", "ports", "readinessProbe", "resources", "startupProbe"]
        {
            if has(container, &[key]) {
                let reason = "cannot be set for an Ephemeral Container";
                errors.push(FieldError::forbidden(&path.child(key), reason));
            }
        }
    }
    errors
}

fn common(context: &Context<'_>, container: &Value, path: &Path) -> Errors {
    let text = |key| object::text(container, &[key]);
    let mut errors = Errors::new();
    if text("name").is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    } else {
        errors.extend(each(&path.child("name"), text("name"), names::dns_1123_label(text("name"))));
    }
    if text("image").is_empty() {
        errors.push(FieldError::required(&path.child("image"), ""));
    }
    errors.extend(one_of(
        text("terminationMessagePolicy"),
        &["File", "FallbackToLogsOnError"],
        &path.child("terminationMessagePolicy"),
    ));
    errors.extend(ports(object::list(container, &["ports"]), &path.child("ports")));
    errors.extend(env::variables(container, &path.child("env")));
    errors.extend(env::sources(container, &path.child("envFrom")));
    errors.extend(volumes::mounts(container, context.volumes, &path.child("volumeMounts")));
    errors.extend(volumes::devices(container, context.volumes, &path.child("volumeDevices")));
    errors.extend(one_of(
        text("imagePullPolicy"),
        &["Always", "IfNotPresent", "Never"],
        &path.child("imagePullPolicy"),
    ));
    if let Some(requirements) = container.get("resources") {
        errors.extend(resources::requirements(requirements, &path.child("resources")));
        let path = path.child("resources").child("claims");
        errors.extend(claims(context, requirements, &path));
    }
    errors.extend(resize_policy(context, container, &path.child("resizePolicy")));
    errors.extend(security::container(context.spec, container, &path.child("securityContext")));
    errors
}

/// Claims on devices are those of the pod.
fn claims(context: &Context<'_>, requirements: &Value, path: &Path) -> Errors {
    let known: BTreeSet<&str> = object::list(context.spec, &["resourceClaims"])
        .iter()
        .map(|claim| object::text(claim, &["name"]))
        .collect();
    let mut errors = Errors::new();
    let mut seen = BTreeSet::new();
    for (i, claim) in object::list(requirements, &["claims"]).iter().enumerate() {
        let path = path.index(i);
        let name = object::text(claim, &["name"]);
        if name.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        if !seen.insert((name, object::text(claim, &["request"]))) {
            errors.push(FieldError::duplicate(&path, name));
        }
        if !known.contains(name) {
            let mut error = FieldError::not_found(&path, name);
            let names: Vec<&str> = known.iter().copied().collect();
            error.detail = if names.is_empty() {
                "must be one of the names in pod.spec.resourceClaims which is empty".to_owned()
            } else {
                format!("must be one of the names in pod.spec.resourceClaims: {}", names.join(", "))
            };
            errors.push(error);
        }
    }
    errors
}

fn resize_policy(context: &Context<'_>, container: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let mut seen = BTreeSet::new();
    let pod_policy = object::text(context.spec, &["restartPolicy"]);
    for entry in object::list(container, &["resizePolicy"]) {
        let name = object::text(entry, &["resourceName"]);
        let policy = object::text(entry, &["restartPolicy"]);
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(path, name));
        }
        if name.is_empty() {
            errors.push(FieldError::required(path, ""));
        } else {
            errors.extend(one_of(name, &["cpu", "memory"], path));
        }
        if policy.is_empty() {
            errors.push(FieldError::required(path, ""));
        } else {
            errors.extend(one_of(policy, &["NotRequired", "RestartContainer"], path));
        }
        if pod_policy == "Never" && policy != "NotRequired" {
            let reason = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.push(FieldError::invalid(path, policy, reason));
        }
    }
    errors
}

fn restart_policy(container: &Value, path: &Path) -> Errors {
    let rules = object::list(container, &["restartPolicyRules"]);
    if is_set(container, &["restartPolicy"]) {
        let policy = object::text(container, &["restartPolicy"]);
        return one_of(policy, &["Always", "Never", "OnFailure"], &path.child("restartPolicy"));
    }
    if rules.is_empty() {
        return Errors::new();
    }
    let reason = "must specify restartPolicy when restart rules are used";
    vec![FieldError::required(&path.child("restartPolicy"), reason)]
}

fn ports(ports: &[Value], path: &Path) -> Errors {
    let mut errors = Errors::new();
    let mut seen = BTreeSet::new();
    for (i, port) in ports.iter().enumerate() {
        let path = path.index(i);
        let name = object::text(port, &["name"]);
        if !name.is_empty() {
            let reasons = names::port_name(name);
            if !reasons.is_empty() {
                errors.extend(each(&path.child("name"), name, reasons));
            } else if !seen.insert(name) {
                errors.push(FieldError::duplicate(&path.child("name"), name));
            }
        }
        for key in ["containerPort", "hostPort"] {
            let number = object::integer(port, &[key]).unwrap_or_default();
            let path = path.child(key);
            if number != 0 {
                errors.extend(port_number(number, &path));
            } else if key == "containerPort" {
                errors.push(FieldError::required(&path, ""));
            }
        }
        let protocol = object::text(port, &["protocol"]);
        errors.extend(one_of(protocol, &["SCTP", "TCP", "UDP"], &path.child("protocol")));
    }
    errors
}

/// A port must be a number that ports can have.
pub(super) fn port_number(number: i64, path: &Path) -> Errors {
    names::port_number(number)
        .into_iter()
        .map(|reason| FieldError::invalid(path, number, reason))
        .collect()
}

fn host_port_conflicts(containers: &[Value], path: &Path) -> Errors {
    let mut errors = Errors::new();
    let mut seen = BTreeSet::new();
    for (i, container) in containers.iter().enumerate() {
        for (j, port) in object::list(container, &["ports"]).iter().enumerate() {
            let number = object::integer(port, &["hostPort"]).unwrap_or_default();
            if number == 0 {
                continue;
            }
            let protocol = object::text(port, &["protocol"]);
            let key = format!("{protocol}/{}/{number}", object::text(port, &["hostIP"]));
            if !seen.insert(key.clone()) {
                let path = path.index(i).child("ports").index(j).child("hostPort");
                errors.push(FieldError::duplicate(&path, key));
            }
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::super::super::{Kind, check::texts};
    use super::super::super::Pod;

    fn errors(spec: &serde_json::Value) -> Vec<String> {
        let mut pod = json!({"metadata": {"name": "p"}, "spec": spec});
        Pod.default(&mut pod);
        texts(&Pod.validate_create(&pod))
    }

    #[test]
    fn containers_need_names_and_images() {
        let spec =
            json!({"containers": [{"name": "A"}, {"image": "b"}, {"name": "a", "image": "b "}]});
        assert_eq!(
            errors(&spec),
            [
                "spec.containers[0].name: Invalid value: \"A\": a lowercase RFC 1123 label must consist \
                 of lower case alphanumeric characters or '-', and must start and end with an \
                 alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
                "spec.containers[0].image: Required value",
                "spec.containers[1].name: Required value",
                "spec.containers[2].image: Invalid value: \"b \": must not have leading or trailing \
                 whitespace",
            ]
        );
    }

    #[test]
    fn ports_are_numbers_and_unique() {
        let spec = json!({
            "containers": [
                {"name": "a", "image": "b", "ports": [{"containerPort": 70000}, {"containerPort": 0}]},
                {"name": "c", "image": "b", "ports": [
                    {"containerPort": 1, "hostPort": 9},
                    {"containerPort": 2, "hostPort": 9, "protocol": "tcp"},
                    {"containerPort": 3, "hostPort": 9},
                ]},
            ],
        });
        assert_eq!(
            errors(&spec),
            [
                "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 \
                 and 65535, inclusive",
                "spec.containers[0].ports[1].containerPort: Required value",
                "spec.containers[1].ports[1].protocol: Unsupported value: \"tcp\": supported values: \
                 \"SCTP\", \"TCP\", \"UDP\"",
                "spec.containers[1].ports[2].hostPort: Duplicate value: \"TCP//9\"",
            ]
        );
    }

    #[test]
    fn init_containers_have_no_probes() {
        let spec = json!({
            "containers": [{"name": "a", "image": "b"}],
            "initContainers": [{"name": "a", "image": "b", "readinessProbe": {"exec": {"command": ["x"]}}}],
        });
        assert_eq!(
            errors(&spec),
            [
                "spec.initContainers[0].name: Duplicate value: \"a\"",
                "spec.initContainers[0].readinessProbe: Forbidden: may not be set for init containers \
                 without restartPolicy=Always",
            ]
        );
    }
}
