//! Services. No cluster addresses are assigned: nothing here would route to them.

use fleetwright_kschema::{
    field::{FieldError, Path},
    names,
};
use serde_json::{Value, json};

use super::super::{
    Column, Kind, NameRule,
    age::age,
    check::{Errors, each, has, is_set, map, one_of},
    clear_status, internal, shape, tables,
};
use super::{
    endpoints::reachable,
    pod::validate::{ip, port},
};
use crate::{object, request::Context};

const KIND: &str = "v1/Service";

pub(super) struct Service;

impl Kind for Service {
    fn default(&self, object: &mut Value) {
        shape::complete(KIND, object);
    }

    fn prepare_create(&self, _context: &Context, object: &mut Value) {
        let address = object::text(object, &["spec", "clusterIP"]).to_owned();
        if object::text(object, &["spec", "type"]) != "ExternalName" {
            if !address.is_empty() {
                object::default(object, &["spec", "clusterIPs"], json!([address]));
            }
            // Without a selector, whoever makes the endpoints may use both families.
            let (families, policy) = if address == "None" && !has(object, &["spec", "selector"]) {
                (json!(["IPv4", "IPv6"]), "RequireDualStack")
            } else {
                (json!(["IPv4"]), "SingleStack")
            };
            object::default(object, &["spec", "ipFamilies"], families);
            object::default(object, &["spec", "ipFamilyPolicy"], policy);
        }
        clear_status(KIND, object);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let path = Path::new("spec");
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let text = |key| object::text(spec, &[key]);
        let mut errors = Errors::new();
        let headless = text("clusterIP") == "None";
        if !has(spec, &["ports"]) && !headless && text("type") != "ExternalName" {
            errors.push(FieldError::required(&path.child("ports"), ""));
        }
        match text("type") {
            kind @ ("LoadBalancer" | "NodePort") if headless => {
                let reason = format!("may not be set to 'None' for {kind} services");
                let path = path.child("clusterIPs").index(0);
                errors.push(FieldError::invalid(&path, "None", reason));
            }
            "ExternalName" => errors.extend(external_name(spec, &path)),
            _ => {}
        }
        errors.extend(ports(spec, &path.child("ports")));
        if let Some(labels) = map(spec, &["selector"]) {
            errors.extend(names::validate_labels(labels, &path.child("selector")));
        }
        let affinities = ["ClientIP", "None"];
        errors.extend(one_of(text("sessionAffinity"), &affinities, &path.child("sessionAffinity")));
        for (i, address) in object::list(spec, &["externalIPs"]).iter().enumerate() {
            let address = address.as_str().unwrap_or_default();
            let path = path.child("externalIPs").index(i);
            let malformed = ip(address, &path);
            if malformed.is_empty() {
                errors.extend(reachable(address, &path));
            }
            errors.extend(malformed);
        }
        let kinds = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
        errors.extend(one_of(text("type"), &kinds, &path.child("type")));
        errors.extend(node_ports(spec, &path.child("ports")));
        if text("type") != "LoadBalancer" && is_set(spec, &["allocateLoadBalancerNodePorts"]) {
            let reason = "may only be used when `type` is 'LoadBalancer'";
            let path = path.child("allocateLoadBalancerNodePorts");
            errors.push(FieldError::forbidden(&path, reason));
        }
        errors
    }

    fn warnings(&self, object: &Value, _old: Option<&Value>) -> Vec<String> {
        let text = |key| object::text(object, &["spec", key]);
        if text("clusterIP") == "None" && text("sessionAffinity") == "ClientIP" {
            return vec!["spec.SessionAffinity is ignored for headless services".to_owned()];
        }
        Vec::new()
    }

    fn name_rule(&self) -> NameRule {
        NameRule::Label
    }

    fn has_status(&self) -> bool {
        true
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn selectable_field(&self, object: &Value, field: &str) -> Option<String> {
        match field {
            "spec.clusterIP" => Some(object::text(object, &["spec", "clusterIP"]).to_owned()),
            "spec.type" => Some(object::text(object, &["spec", "type"]).to_owned()),
            _ => None,
        }
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("v1/services")
    }

    fn cells(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        let address = object::list(object, &["spec", "clusterIPs"]).first();
        vec![
            tables::name(object),
            tables::text(object, &["spec", "type"]),
            address.cloned().unwrap_or_else(|| "<none>".into()),
            external_addresses(object).into(),
            port_list(object).into(),
            age(object, now),
            tables::labels(object::get(object, &["spec", "selector"])),
        ]
    }
}

fn external_name(spec: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    for key in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if has(spec, &[key]) {
            let reason = "may not be set for ExternalName services";
            errors.push(FieldError::forbidden(&path.child(key), reason));
        }
    }
    let name = object::text(spec, &["externalName"]);
    let name = name.strip_suffix('.').unwrap_or(name);
    let path = path.child("externalName");
    if name.is_empty() {
        errors.push(FieldError::required(&path, ""));
    } else {
        errors.extend(each(&path, name, names::dns_1123_subdomain(name)));
    }
    errors
}

fn ports(spec: &Value, path: &Path) -> Errors {
    let ports = object::list(spec, &["ports"]);
    let mut errors = Errors::new();
    let mut seen = Vec::new();
    for (i, entry) in ports.iter().enumerate() {
        let path = path.index(i);
        let name = object::text(entry, &["name"]);
        if !name.is_empty() {
            errors.extend(each(&path.child("name"), name, names::dns_1123_label(name)));
            if seen.contains(&name) {
                errors.push(FieldError::duplicate(&path.child("name"), name));
            }
            seen.push(name);
        } else if ports.len() > 1 {
            errors.push(FieldError::required(&path.child("name"), ""));
        }
        errors.extend(port(entry.get("port"), &path.child("port")));
        let protocol = object::text(entry, &["protocol"]);
        errors.extend(one_of(protocol, &["SCTP", "TCP", "UDP"], &path.child("protocol")));
        errors.extend(port(entry.get("targetPort"), &path.child("targetPort")));
        if is_set(entry, &["appProtocol"]) {
            let protocol = object::text(entry, &["appProtocol"]);
            let reasons = names::qualified_name(protocol);
            errors.extend(each(&path.child("appProtocol"), protocol, reasons));
        }
    }
    errors
}

fn node_ports(spec: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let ports = object::list(spec, &["ports"]);
    let is_cluster = object::text(spec, &["type"]) == "ClusterIP";
    for (i, port) in ports.iter().enumerate() {
        if is_cluster && is_set(port, &["nodePort"]) {
            let reason = "may not be used when `type` is 'ClusterIP'";
            errors.push(FieldError::forbidden(&path.index(i).child("nodePort"), reason));
        }
    }
    let repeated = |i: usize, key: &str| {
        let port = ports.get(i);
        let value = port.and_then(|port| port.get(key));
        value.is_some()
            && ports.iter().take(i).any(|other| {
                other.get(key) == value
                    && other.get("protocol") == port.and_then(|p| p.get("protocol"))
            })
    };
    for (i, port) in ports.iter().enumerate() {
        if repeated(i, "nodePort") {
            let value = port.get("nodePort").cloned().unwrap_or_default();
            errors.push(FieldError::duplicate(&path.index(i).child("nodePort"), value));
        }
    }
    for (i, port) in ports.iter().enumerate() {
        if repeated(i, "port") {
            // Only what makes the port the same is shown.
            let key = json!({"protocol": port.get("protocol"), "port": port.get("port"), "targetPort": 0});
            let value = internal::printed("core.ServicePort", &key);
            errors.push(FieldError::duplicate(&path.index(i), value));
        }
    }
    errors
}

fn external_addresses(object: &Value) -> String {
    let own: Vec<&str> =
        object::list(object, &["spec", "externalIPs"]).iter().filter_map(Value::as_str).collect();
    match object::text(object, &["spec", "type"]) {
        "ClusterIP" | "NodePort" if own.is_empty() => "<none>".to_owned(),
        "ClusterIP" | "NodePort" => own.join(","),
        "LoadBalancer" => {
            let mut balanced: Vec<&str> =
                object::list(object, &["status", "loadBalancer", "ingress"])
                    .iter()
                    .map(|ingress| match object::text(ingress, &["ip"]) {
                        "" => object::text(ingress, &["hostname"]),
                        ip => ip,
                    })
                    .filter(|address| !address.is_empty())
                    .collect();
            balanced.sort_unstable();
            balanced.dedup();
            let all: Vec<&str> = balanced.into_iter().chain(own).collect();
            if all.is_empty() { "<pending>".to_owned() } else { all.join(",") }
        }
        "ExternalName" => object::text(object, &["spec", "externalName"]).to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

fn port_list(object: &Value) -> String {
    let ports: Vec<String> = object::list(object, &["spec", "ports"])
        .iter()
        .map(|port| {
            let number = |key| object::integer(port, &[key]).unwrap_or_default();
            let protocol = object::text(port, &["protocol"]);
            match number("nodePort") {
                0 => format!("{}/{protocol}", number("port")),
                node => format!("{}:{node}/{protocol}", number("port")),
            }
        })
        .collect();
    if ports.is_empty() { "<none>".to_owned() } else { ports.join(",") }
}

#[cfg(test)]
mod tests {
    use super::super::super::check::texts;
    use super::*;

    #[test]
    fn several_ports_have_names() {
        let mut service = json!({"spec": {"ports": [{"port": 80}, {"port": 80, "name": "b"}]}});
        Service.default(&mut service);
        assert_eq!(
            texts(&Service.validate_create(&service)),
            [
                "spec.ports[0].name: Required value",
                "spec.ports[1]: Duplicate value: {\"Name\":\"\",\"Protocol\":\"TCP\",\"AppProtocol\":\
                 null,\"Port\":80,\"TargetPort\":0,\"NodePort\":0}",
            ]
        );
    }

    #[test]
    fn a_row_tells_addresses_and_ports() {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let service = json!({
            "metadata": {"name": "s"},
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80, "nodePort": 30000, "protocol": "TCP"}]},
            "status": {"loadBalancer": {"ingress": [{"hostname": "b"}, {"ip": "1.2.3.4"}]}},
        });
        let cells = Service.cells(&service, now);
        assert_eq!(
            cells[1..5],
            ["LoadBalancer", "<none>", "1.2.3.4,b", "80:30000/TCP"].map(Value::from)
        );
    }
}
