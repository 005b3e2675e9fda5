//! Nodes.

use std::{collections::BTreeSet, net::IpAddr};

use fleetwright_kschema::field::{FieldError, Path};
use serde_json::{Value, json};

use super::super::{
    Column, Kind,
    age::age,
    check::{Errors, flag, map},
    internal, keep, shape, tables,
};
use super::{resources, taints};
use crate::{object, request::Context};

const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
const ROLE_LABEL: &str = "kubernetes.io/role";
const NOT_A_CIDR: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

pub(super) struct Node;

impl Kind for Node {
    fn default(&self, object: &mut Value) {
        one_pod_cidr(object);
        shape::complete("v1/Node", object);
    }

    /// A node may come with its status: it is the node itself that registers.
    fn prepare_create(&self, _context: &Context, object: &mut Value) {
        object::remove(object, &["spec", "configSource"]);
        object::remove(object, &["status", "config"]);
    }

    fn prepare_update(&self, _context: &Context, new: &mut Value, old: &Value) {
        keep(new, old, "status");
        if object::get(old, &["spec", "configSource"]).is_none() {
            object::remove(new, &["spec", "configSource"]);
        }
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = taints::taints(
            object::list(object, &["spec", "taints"]),
            &Path::new("metadata").child("taints"),
        );
        errors.extend(amounts(object));
        errors.extend(pod_cidrs(object));
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = self.validate_create(new);
        errors.extend(update(new, old));
        errors
    }

    fn validate_status_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        update(new, old)
    }

    fn warnings(&self, object: &Value, _old: Option<&Value>) -> Vec<String> {
        let mut warnings = Vec::new();
        if object::get(object, &["spec", "configSource"]).is_some() {
            warnings.push("spec.configSource: the feature is removed".to_owned());
        }
        if !object::text(object, &["spec", "externalID"]).is_empty() {
            let text = "spec.externalID: this field is deprecated, and is unused by Kubernetes";
            warnings.push(text.to_owned());
        }
        warnings
    }

    fn has_status(&self) -> bool {
        true
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn selectable_field(&self, object: &Value, field: &str) -> Option<String> {
        (field == "spec.unschedulable")
            .then(|| flag(object, &["spec", "unschedulable"]).to_string())
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("v1/nodes")
    }

    fn cells(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        let info = |key| tables::text_or(object, &["status", "nodeInfo", key], "<unknown>");
        let mut kernel = info("kernelVersion");
        let architecture = object::text(object, &["status", "nodeInfo", "architecture"]);
        if !architecture.is_empty() {
            kernel = format!("{} ({architecture})", kernel.as_str().unwrap_or_default()).into();
        }
        vec![
            tables::name(object),
            readiness(object).into(),
            roles(object).into(),
            age(object, now),
            tables::text(object, &["status", "nodeInfo", "kubeletVersion"]),
            address(object, "InternalIP").into(),
            address(object, "ExternalIP").into(),
            info("osImage"),
            kernel,
            info("containerRuntimeVersion"),
        ]
    }
}

/// The single range and the list of ranges say the same; the single one wins.
fn one_pod_cidr(object: &mut Value) {
    let single = object::text(object, &["spec", "podCIDR"]).to_owned();
    let first = object::list(object, &["spec", "podCIDRs"])
        .first()
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    if single.is_empty() && !first.is_empty() {
        object::set(object, &["spec", "podCIDR"], first);
    } else if !single.is_empty() && single != first {
        object::set(object, &["spec", "podCIDRs"], json!([single]));
    }
}

fn amounts(object: &Value) -> Errors {
    let mut errors = Errors::new();
    for list in ["capacity", "allocatable"] {
        let path = Path::new("status").child(list);
        for (name, value) in map(object, &["status", list]).into_iter().flatten() {
            errors.extend(resources::amount(name, value, &path.child(name)));
        }
    }
    errors
}

fn pod_cidrs(object: &Value) -> Errors {
    let path = Path::new("spec").child("podCIDRs");
    let cidrs: Vec<&str> = object::list(object, &["spec", "podCIDRs"])
        .iter()
        .map(|cidr| cidr.as_str().unwrap_or_default())
        .collect();
    let mut errors = Errors::new();
    let mut families = BTreeSet::new();
    for (i, cidr) in cidrs.iter().enumerate() {
        match parse_cidr(cidr) {
            Ok(ip) => {
                families.insert(ip.is_ipv4());
            }
            Err(reason) => errors.push(FieldError::invalid(&path.index(i), *cidr, reason)),
        }
    }
    if cidrs.len() > 1
        && let Some(i) = cidrs.iter().position(|cidr| parse_cidr(cidr) == Err(NOT_A_CIDR))
    {
        let cidr = cidrs.get(i).copied().unwrap_or_default();
        let reason = format!(
            "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[{i}]: <nil> \
             (invalid CIDR address: {cidr})"
        );
        errors.push(FieldError::internal(&path, reason));
    }
    if cidrs.len() > 1 && (families.len() != 2 || cidrs.len() > 2) {
        let reason = "may specify no more than one CIDR for each IP family";
        errors.push(FieldError::invalid(&path, json!(cidrs), reason));
    }
    errors
}

/// The address of a range, or why the text is not one.
fn parse_cidr(text: &str) -> Result<IpAddr, &'static str> {
    let parts = text
        .split_once('/')
        .and_then(|(ip, bits)| Some((ip.parse::<IpAddr>().ok()?, bits.parse::<u32>().ok()?)));
    let Some((ip, bits)) = parts else { return Err(NOT_A_CIDR) };
    let masked = match ip {
        IpAddr::V4(ip) if bits <= 32 => ip.to_bits().checked_shl(bits).unwrap_or_default() == 0,
        IpAddr::V6(ip) if bits <= 128 => {
            if ip.to_ipv4_mapped().is_some() {
                return Err("must not have an IPv4-mapped IPv6 address");
            }
            ip.to_bits().checked_shl(bits).unwrap_or_default() == 0
        }
        _ => return Err(NOT_A_CIDR),
    };
    if masked { Ok(ip) } else { Err("must not have bits set beyond the prefix length") }
}

fn update(new: &Value, old: &Value) -> Errors {
    let mut errors = amounts(new);
    let mut seen = Vec::new();
    for (i, address) in object::list(new, &["status", "addresses"]).iter().enumerate() {
        if seen.contains(&address) {
            let path = Path::new("status").child("addresses").index(i);
            errors
                .push(FieldError::duplicate(&path, internal::printed("core.NodeAddress", address)));
        }
        seen.push(address);
    }
    let cidrs = |node| object::list(node, &["spec", "podCIDRs"]);
    if !cidrs(old).is_empty() && cidrs(old) != cidrs(new) {
        let reason = "node updates may not change podCIDR except from \"\" to valid";
        errors.push(FieldError::forbidden(&Path::new("spec").child("podCIDRs"), reason));
    }
    errors.extend(provider_id(new, old));
    errors.extend(taints::taints(
        object::list(new, &["spec", "taints"]),
        &Path::new("metadata").child("taints"),
    ));
    if object::text(new, &["spec", "externalID"]) != object::text(old, &["spec", "externalID"]) {
        let path = Path::new("spec").child("externalID");
        errors.push(FieldError::forbidden(&path, "may not be updated"));
    }
    errors
}

fn provider_id(new: &Value, old: &Value) -> Errors {
    let id = |node| object::text(node, &["spec", "providerID"]);
    let path = Path::new("spec").child("providerID");
    if id(old).is_empty() || id(old) == id(new) {
        return Errors::new();
    }
    let reason = if id(new).is_empty() {
        "field cannot be cleared once set"
    } else {
        "field cannot be modified once set"
    };
    vec![FieldError::invalid(&path, Value::Null, reason)]
}

fn readiness(object: &Value) -> String {
    // The last condition of a type counts.
    let ready = object::list(object, &["status", "conditions"])
        .iter()
        .rfind(|condition| object::text(condition, &["type"]) == "Ready");
    let mut status = match ready {
        None => "Unknown",
        Some(condition) if object::text(condition, &["status"]) == "True" => "Ready",
        Some(_) => "NotReady",
    }
    .to_owned();
    if flag(object, &["spec", "unschedulable"]) {
        status.push_str(",SchedulingDisabled");
    }
    status
}

fn roles(object: &Value) -> String {
    let mut roles = BTreeSet::new();
    for (key, value) in map(object, &["metadata", "labels"]).into_iter().flatten() {
        let role = match key.strip_prefix(ROLE_PREFIX) {
            Some(role) => role,
            None if key == ROLE_LABEL => value.as_str().unwrap_or_default(),
            None => "",
        };
        if !role.is_empty() {
            roles.insert(role);
        }
    }
    if roles.is_empty() {
        return "<none>".to_owned();
    }
    let roles: Vec<&str> = roles.into_iter().collect();
    roles.join(",")
}

fn address(object: &Value, kind: &str) -> String {
    object::list(object, &["status", "addresses"])
        .iter()
        .find(|address| object::text(address, &["type"]) == kind)
        .map_or("<none>", |address| object::text(address, &["address"]))
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::super::check::texts;
    use super::*;

    #[test]
    fn ranges_of_pods_agree() {
        let mut node = json!({"spec": {"podCIDR": "10.0.0.0/24"}});
        Node.default(&mut node);
        assert_eq!(node["spec"], json!({"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]}));
        let mut node = json!({"spec": {"podCIDRs": ["10.0.0.0/24", "fd00::/64"]}});
        Node.default(&mut node);
        assert_eq!(node["spec"]["podCIDR"], "10.0.0.0/24");
        assert!(Node.validate_create(&node).is_empty());
    }

    #[test]
    fn what_identifies_a_node_stays() {
        let old = json!({"spec": {"providerID": "a", "podCIDRs": ["10.0.0.0/24"]}});
        let new = json!({"spec": {"providerID": "b"}});
        assert_eq!(
            texts(&Node.validate_update(&new, &old)),
            [
                "spec.podCIDRs: Forbidden: node updates may not change podCIDR except from \"\" to valid",
                "spec.providerID: Invalid value: null: field cannot be modified once set",
            ]
        );
        let cleared = Node.validate_update(&json!({}), &json!({"spec": {"providerID": "a"}}));
        assert_eq!(
            texts(&cleared),
            ["spec.providerID: Invalid value: null: field cannot be cleared once set"]
        );
    }

    #[test]
    fn a_row_tells_state_roles_and_addresses() {
        let now = "2026-01-01T01:00:00Z".parse().unwrap();
        let node = json!({
            "metadata": {
                "name": "n",
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "infra"},
            },
            "spec": {"unschedulable": true},
            "status": {
                "conditions": [{"type": "Ready", "status": "Unknown"}],
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                "nodeInfo": {
                    "kubeletVersion": "v1.37.1",
                    "kernelVersion": "6.1",
                    "architecture": "arm64",
                    "osImage": "Flatcar",
                },
            },
        });
        assert_eq!(
            Node.cells(&node, now),
            [
                "n",
                "NotReady,SchedulingDisabled",
                "infra,worker",
                "60m",
                "v1.37.1",
                "10.0.0.1",
                "<none>",
                "Flatcar",
                "6.1 (arm64)",
                "<unknown>",
            ]
            .map(Value::from)
        );
    }
}
