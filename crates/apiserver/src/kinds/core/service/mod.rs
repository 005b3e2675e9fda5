//! Services. They get addresses and ports as in a cluster, though nothing here routes to them.

mod addresses;
mod node_ports;

use fleetwright_kschema::{
    field::{FieldError, Path},
    names,
};
use serde_json::{Value, json};

use super::super::{
    Column, Kind, NameRule, NotAllocated, Pool,
    age::age,
    check::{Errors, each, has, is_set, map, one_of},
    clear_status, internal, keep, shape, tables,
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
        clear_status(KIND, object);
    }

    fn prepare_update(&self, _context: &Context, new: &mut Value, old: &Value) {
        keep(new, old, "status");
        drop_needless(new, old);
    }

    fn canonicalize(&self, object: &mut Value) {
        // Nothing routes to a name elsewhere.
        if addresses::is_external_name(object) {
            object::remove(object, &["spec", "internalTrafficPolicy"]);
        }
    }

    fn allocates(&self) -> bool {
        true
    }

    fn holds(&self, object: &Value) -> Vec<String> {
        addresses::held(object).chain(node_ports::held(object)).collect()
    }

    fn allocate(
        &self,
        new: &mut Value,
        old: Option<&Value>,
        pool: &Pool<'_>,
    ) -> Result<(), NotAllocated> {
        if let Some(old) = old {
            node_ports::keep(new, old);
        }
        addresses::synchronise(new, old);
        addresses::families(new, old)?;
        addresses::allocate(new, old, pool)?;
        node_ports::allocate(new, old, pool)
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = addresses::unchanged(new, old);
        errors.extend(node_ports::unchanged(new, old));
        errors.extend(self.validate_create(new));
        errors
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
        errors.extend(node_ports::external_traffic(object));
        errors.extend(addresses::related(object));
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

/// What only makes sense for another type goes with the old type, unless the client changed it.
fn drop_needless(new: &mut Value, old: &Value) {
    let text = |service: &Value, key| object::text(service, &["spec", key]).to_owned();
    let same = |new: &Value, key: &str| {
        object::get(new, &["spec", key]) == object::get(old, &["spec", key])
    };
    if addresses::is_external_name(new) && !addresses::is_external_name(old) {
        let same_addresses = same(new, "clusterIP") && same(new, "clusterIPs");
        for key in ["clusterIP", "clusterIPs"] {
            if same_addresses {
                object::remove(new, &["spec", key]);
            }
        }
        for key in ["ipFamilies", "ipFamilyPolicy"] {
            if same(new, key) {
                object::remove(new, &["spec", key]);
            }
        }
    }
    node_ports::drop_needless(new, old);
    if text(new, "type") != "LoadBalancer" {
        if text(old, "type") == "LoadBalancer" {
            for key in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
                if same(new, key) {
                    object::remove(new, &["spec", key]);
                }
            }
        }
        object::set(new, &["status", "loadBalancer"], json!({}));
    }
    let accessible = |service: &Value| {
        node_ports::is_exposed(service)
            || (text(service, "type") == "ClusterIP" && has(service, &["spec", "externalIPs"]))
    };
    if accessible(old) && !accessible(new) && same(new, "externalTrafficPolicy") {
        object::remove(new, &["spec", "externalTrafficPolicy"]);
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
    use fleetwright_clock::Random;

    use super::super::super::check::texts;
    use super::*;

    fn allocated(service: Value, taken: &[&str]) -> Result<Value, String> {
        let taken = taken.iter().map(|held| (*held).to_owned()).collect();
        let pool = Pool { taken: &taken, random: &Random::seeded(1) };
        let mut service = service;
        Service.default(&mut service);
        match Service.allocate(&mut service, None, &pool) {
            Ok(()) => Ok(service),
            Err(NotAllocated::Invalid(errors)) => Err(texts(&errors).join("; ")),
            Err(NotAllocated::Internal(why)) => Err(why),
        }
    }

    #[test]
    fn addresses_and_ports_are_held_once() {
        let spec = json!({"type": "NodePort", "ports": [
            {"name": "tcp", "port": 53}, {"name": "udp", "port": 53, "protocol": "UDP"},
        ]});
        let first = allocated(json!({"spec": spec}), &[]).unwrap();
        let held = Service.holds(&first);
        let taken: Vec<&str> = held.iter().map(String::as_str).collect();
        assert_eq!(taken[1], taken[2], "one node port for both protocols");
        // The same chance, and yet other ones.
        let second = allocated(json!({"spec": spec}), &taken).unwrap();
        assert!(Service.holds(&second).iter().all(|own| !held.contains(own)));
        let wanted = json!({"spec": {"clusterIP": taken[0], "ports": [{"port": 80}]}});
        let refused = allocated(wanted, &taken).unwrap_err();
        assert!(refused.ends_with("provided IP is already allocated"), "{refused}");
    }

    #[test]
    fn no_port_is_left() {
        let all: Vec<String> = (30_000..=32_767).map(|port: u16| port.to_string()).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let service = json!({"spec": {"type": "NodePort", "ports": [{"port": 80}]}});
        let refused = allocated(service.clone(), &all).unwrap_err();
        assert_eq!(refused, "failed to allocate a nodePort: range is full");
        let last = allocated(service, &all[1..]).unwrap();
        assert_eq!(last["spec"]["ports"][0]["nodePort"], 30_000);
    }

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
