//! What is wrong with pods and with templates of pods.

mod containers;
mod env;
mod placement;
mod probes;
mod security;
mod update;
mod volumes;

use fleetwright_kschema::{
    field::{FieldError, Path},
    names,
};
use serde_json::Value;

pub(crate) use placement::node_selector;
pub(crate) use probes::port;
pub(super) use update::{status_update, update};
pub(crate) use volumes::csi_driver_name;

use super::super::{
    super::check::{Errors, each, flag, has, is_set, map, not_negative, one_of},
    taints,
};
use crate::object;

const MIRROR: &str = "kubernetes.io/config.mirror";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const MAX_I32: i64 = i32::MAX as i64;

/// What is wrong with a new pod.
pub(super) fn create(pod: &Value) -> Errors {
    let mut errors = whole(pod);
    let path = Path::new("spec");
    if has(pod, &["spec", "ephemeralContainers"]) {
        let path = path.child("ephemeralContainers");
        errors.push(FieldError::forbidden(&path, "cannot be set on create"));
    }
    if has(pod, &["spec", "nodeName"]) && has(pod, &["spec", "schedulingGates"]) {
        let reason = "cannot be set until all schedulingGates have been cleared";
        errors.push(FieldError::forbidden(&path.child("nodeName"), reason));
    }
    errors
}

/// What is wrong with a pod, new or not.
fn whole(pod: &Value) -> Errors {
    let path = Path::new("spec");
    let empty = Value::Null;
    let spec_value = pod.get("spec").unwrap_or(&empty);
    let mut errors = annotations(pod, &Path::new("metadata").child("annotations"));
    errors.extend(spec(spec_value, &path, Some(object::name(pod))));
    if !has(spec_value, &["serviceAccountName"]) {
        errors.extend(tokens_without_account(spec_value, &path));
    }
    errors.extend(not_negative(
        spec_value,
        &["terminationGracePeriodSeconds"],
        &path.child("terminationGracePeriodSeconds"),
    ));
    for list in ["containers", "initContainers"] {
        for (i, container) in object::list(spec_value, &[list]).iter().enumerate() {
            let image = object::text(container, &["image"]);
            if image.trim() != image {
                let path = path.child(list).index(i).child("image");
                let reason = "must not have leading or trailing whitespace";
                errors.push(FieldError::invalid(&path, image, reason));
            }
        }
    }
    errors
}

fn tokens_without_account(spec: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    for (i, volume) in object::list(spec, &["volumes"]).iter().enumerate() {
        let path = path.child("volumes").index(i).child("projected").child("sources");
        for (j, source) in object::list(volume, &["projected", "sources"]).iter().enumerate() {
            if is_set(source, &["serviceAccountToken"]) {
                let path = path.index(j).child("serviceAccountToken");
                let reason = "must not be specified when serviceAccountName is not set";
                errors.push(FieldError::forbidden(&path, reason));
            }
        }
    }
    errors
}

/// What is wrong with a template of pods.
pub(crate) fn template(template: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    if let Some(labels) = map(template, &["metadata", "labels"]) {
        errors.extend(names::validate_labels(labels, &path.child("labels")));
    }
    if let Some(annotations) = map(template, &["metadata", "annotations"]) {
        errors.extend(names::validate_annotations(annotations, &path.child("annotations")));
    }
    errors.extend(annotations(template, &path.child("annotations")));
    let spec_path = path.child("spec");
    errors.extend(spec(template.get("spec").unwrap_or(&Value::Null), &spec_path, None));
    if has(template, &["spec", "ephemeralContainers"]) {
        let reason = "ephemeral containers not allowed in pod template";
        errors.push(FieldError::forbidden(&spec_path.child("ephemeralContainers"), reason));
    }
    errors
}

fn annotations(pod: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let value = |key: &str| object::get(pod, &["metadata", "annotations", key])?.as_str();
    if let Some(mirror) = value(MIRROR)
        && !has(pod, &["spec", "nodeName"])
    {
        let reason = "must set spec.nodeName if mirror pod annotation is set";
        errors.push(FieldError::invalid(&path.key(MIRROR), mirror, reason));
    }
    if let Some(cost) = value(DELETION_COST) {
        let number = cost.parse::<i32>().is_ok() && !cost.starts_with('+');
        let leading_zero = cost.trim_start_matches('-').starts_with('0') && cost != "0";
        if !number || leading_zero {
            let path = path.key(DELETION_COST);
            errors.push(FieldError::invalid(&path, cost, "must be a 32bit integer"));
        }
    }
    errors
}

/// What is wrong with the spec of a pod; `pod` is its name if it is one and not a template.
fn spec(spec: &Value, path: &Path, pod: Option<&str>) -> Errors {
    let grace = object::integer(spec, &["terminationGracePeriodSeconds"]);
    let (volumes, mut errors) = volumes::volumes(spec, pod, &path.child("volumes"));
    let context = containers::Context { spec, volumes: &volumes, grace };
    errors.extend(containers::regular(&context, &path.child("containers")));
    errors.extend(containers::init(&context, &path.child("initContainers")));
    errors.extend(containers::ephemeral(&context, &path.child("ephemeralContainers")));
    errors.extend(host_ports(spec, path, pod.is_some()));
    let text = |key| object::text(spec, &[key]);
    errors.extend(one_of(
        text("restartPolicy"),
        &["Always", "OnFailure", "Never"],
        &path.child("restartPolicy"),
    ));
    errors.extend(one_of(
        text("dnsPolicy"),
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
        &path.child("dnsPolicy"),
    ));
    if let Some(labels) = map(spec, &["nodeSelector"]) {
        errors.extend(names::validate_labels(labels, &path.child("nodeSelector")));
    }
    errors.extend(security::pod(spec, &path.child("securityContext")));
    if flag(spec, &["shareProcessNamespace"]) && flag(spec, &["hostPID"]) {
        let reason = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(FieldError::invalid(&path.child("shareProcessNamespace"), true, reason));
    }
    errors.extend(placement::affinity(spec, &path.child("affinity")));
    errors.extend(dns_config(spec, &path.child("dnsConfig")));
    errors.extend(gates(spec, path));
    errors.extend(placement::spread(spec, &path.child("topologySpreadConstraints")));
    errors.extend(own_users(spec, path));
    errors.extend(hostname_override(spec, &path.child("hostnameOverride")));
    errors.extend(named_fields(spec, path));
    if let Some(seconds) = object::integer(spec, &["activeDeadlineSeconds"])
        && !(1..=MAX_I32).contains(&seconds)
    {
        let reason = format!("must be between 1 and {MAX_I32}, inclusive");
        errors.push(FieldError::invalid(&path.child("activeDeadlineSeconds"), seconds, reason));
    }
    errors.extend(taints::tolerations(
        object::list(spec, &["tolerations"]),
        &path.child("tolerations"),
    ));
    errors.extend(host_aliases(spec, &path.child("hostAliases")));
    if is_set(spec, &["preemptionPolicy"]) {
        errors.extend(one_of(
            text("preemptionPolicy"),
            &["PreemptLowerPriority", "Never"],
            &path.child("preemptionPolicy"),
        ));
    }
    if is_set(spec, &["os"]) {
        errors.extend(operating_system(object::text(spec, &["os", "name"]), &path.child("os")));
    }
    errors
}

/// A pod with users of its own does not share the host's namespaces.
fn own_users(spec: &Value, path: &Path) -> Errors {
    if spec.get("hostUsers") != Some(&Value::Bool(false)) {
        return Errors::new();
    }
    let shared = [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")];
    shared
        .iter()
        .filter(|(key, _)| flag(spec, &[key]))
        .map(|(_, shown)| FieldError::forbidden(&path.child(shown), "when `hostUsers` is false"))
        .collect()
}

fn hostname_override(spec: &Value, path: &Path) -> Errors {
    const MAX: usize = 64;
    let Some(name) = spec.get("hostnameOverride").and_then(Value::as_str) else {
        return Errors::new();
    };
    let mut errors = Errors::new();
    for key in ["setHostnameAsFQDN", "hostNetwork"] {
        if flag(spec, &[key]) {
            let reason = format!("may not be specified when {key} is true");
            errors.push(FieldError::forbidden(path, reason));
        }
    }
    if name.len() > MAX {
        errors.push(FieldError::too_long(path, MAX));
    }
    errors.extend(each(path, name, names::dns_1123_subdomain(name)));
    errors
}

fn operating_system(name: &str, path: &Path) -> Errors {
    if name.is_empty() {
        vec![FieldError::required(&path.child("name"), "")]
    } else {
        one_of(name, &["linux", "windows"], path)
    }
}

/// Fields that hold names of other things.
fn named_fields(spec: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let subdomain: fn(&str) -> Vec<String> = names::dns_1123_subdomain;
    let label: fn(&str) -> Vec<String> = names::dns_1123_label;
    let fields = [
        ("serviceAccountName", subdomain),
        ("nodeName", subdomain),
        ("hostname", label),
        ("subdomain", label),
        ("priorityClassName", subdomain),
        ("runtimeClassName", subdomain),
    ];
    for (key, rule) in fields {
        let name = object::text(spec, &[key]);
        if !name.is_empty() {
            errors.extend(each(&path.child(key), name, rule(name)));
        }
    }
    errors
}

fn host_ports(spec: &Value, path: &Path, is_pod: bool) -> Errors {
    let mut errors = Errors::new();
    if !flag(spec, &["hostNetwork"]) {
        return errors;
    }
    for (i, container) in object::list(spec, &["containers"]).iter().enumerate() {
        let path = path.child("containers").index(i).child("ports");
        for (j, port) in object::list(container, &["ports"]).iter().enumerate() {
            let number = |key| object::integer(port, &[key]).unwrap_or_default();
            let host = number("hostPort");
            if (is_pod || host != 0) && host != number("containerPort") {
                let reason = "must match `containerPort` when `hostNetwork` is true";
                errors.push(FieldError::invalid(&path.index(j).child("hostPort"), host, reason));
            }
        }
    }
    errors
}

fn gates(spec: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    for (i, gate) in object::list(spec, &["readinessGates"]).iter().enumerate() {
        let name = object::text(gate, &["conditionType"]);
        let path = path.child("readinessGates").index(i).child("conditionType");
        errors.extend(each(&path, name, names::qualified_name(name)));
    }
    let mut seen = Vec::new();
    for (i, gate) in object::list(spec, &["schedulingGates"]).iter().enumerate() {
        let name = object::text(gate, &["name"]);
        let path = path.child("schedulingGates").index(i);
        errors.extend(each(&path, name, names::qualified_name(name)));
        if seen.contains(&name) {
            errors.push(FieldError::duplicate(&path, name));
        }
        seen.push(name);
    }
    errors
}

/// An IP address, written without leading zeros and not as IPv4 in IPv6.
pub(crate) fn ip(text: &str, path: &Path) -> Errors {
    use std::net::IpAddr;
    let reason = match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(ip)) if ip.to_ipv4_mapped().is_some() => {
            "must not be an IPv4-mapped IPv6 address"
        }
        Ok(_) => return Errors::new(),
        Err(_) => "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
    };
    vec![FieldError::invalid(path, text, reason)]
}

fn host_aliases(spec: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    for (i, alias) in object::list(spec, &["hostAliases"]).iter().enumerate() {
        let path = path.index(i);
        errors.extend(ip(object::text(alias, &["ip"]), &path.child("ip")));
        for (j, name) in object::list(alias, &["hostnames"]).iter().enumerate() {
            let name = name.as_str().unwrap_or_default();
            let path = path.child("hostnames").index(j);
            errors.extend(each(&path, name, names::dns_1123_subdomain(name)));
        }
    }
    errors
}

fn dns_config(spec: &Value, path: &Path) -> Errors {
    const MAX_SERVERS: usize = 3;
    const MAX_SEARCHES: usize = 32;
    let mut errors = Errors::new();
    if object::text(spec, &["dnsPolicy"]) == "None" {
        if !is_set(spec, &["dnsConfig"]) {
            let reason = "must provide `dnsConfig` when `dnsPolicy` is None";
            return vec![FieldError::required(path, reason)];
        }
        if !has(spec, &["dnsConfig", "nameservers"]) {
            let reason = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return vec![FieldError::required(&path.child("nameservers"), reason)];
        }
    }
    let servers = object::list(spec, &["dnsConfig", "nameservers"]);
    if servers.len() > MAX_SERVERS {
        let reason = format!("must not have more than {MAX_SERVERS} nameservers");
        let value = Value::from(servers.to_vec());
        errors.push(FieldError::invalid(&path.child("nameservers"), value, reason));
    }
    for (i, server) in servers.iter().enumerate() {
        let path = path.child("nameservers").index(i);
        errors.extend(ip(server.as_str().unwrap_or_default(), &path));
    }
    let searches = object::list(spec, &["dnsConfig", "searches"]);
    if searches.len() > MAX_SEARCHES {
        let reason = format!("must not have more than {MAX_SEARCHES} search paths");
        let value = Value::from(searches.to_vec());
        errors.push(FieldError::invalid(&path.child("searches"), value, reason));
    }
    for (i, search) in searches.iter().filter_map(Value::as_str).enumerate() {
        if search != "." {
            let name = search.strip_suffix('.').unwrap_or(search);
            let path = path.child("searches").index(i);
            errors.extend(each(&path, name, names::dns_1123_subdomain_with_underscore(name)));
        }
    }
    for (i, option) in object::list(spec, &["dnsConfig", "options"]).iter().enumerate() {
        if object::text(option, &["name"]).is_empty() {
            let path = path.child("options").index(i);
            errors.push(FieldError::required(&path, "must not be empty"));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::super::{Kind, check::texts};
    use super::super::Pod;

    fn errors(spec: &serde_json::Value) -> Vec<String> {
        let mut pod = json!({"metadata": {"name": "p"}, "spec": spec});
        Pod.default(&mut pod);
        texts(&Pod.validate_create(&pod))
    }

    #[test]
    fn a_pod_without_containers_is_none() {
        assert_eq!(errors(&json!({})), ["spec.containers: Required value"]);
    }

    #[test]
    fn names_and_choices_are_checked() {
        let spec = json!({
            "containers": [{"name": "a", "image": "b"}],
            "restartPolicy": "Sometimes",
            "dnsPolicy": "None",
            "nodeName": "Node",
            "activeDeadlineSeconds": 0,
            "hostAliases": [{"ip": "1.2.3"}],
        });
        assert_eq!(
            errors(&spec),
            [
                "spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \
                 \"OnFailure\", \"Never\"",
                "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None",
                "spec.nodeName: Invalid value: \"Node\": a lowercase RFC 1123 subdomain must consist \
                 of lower case alphanumeric characters, '-' or '.', and must start and end with an \
                 alphanumeric character (e.g. 'example.com', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
                "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, \
                 inclusive",
                "spec.hostAliases[0].ip: Invalid value: \"1.2.3\": must be a valid IP address, (e.g. \
                 10.9.8.7 or 2001:db8::ffff)",
            ]
        );
    }
}
