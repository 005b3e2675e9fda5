//! Endpoints.

use std::net::IpAddr;

use fleetwright_kschema::{
    field::{FieldError, Path},
    names,
};
use serde_json::Value;

use super::super::{
    Column, Kind,
    age::age,
    check::{Errors, each, one_of},
    shape, tables,
};
use super::pod::validate::{ip, port};
use crate::object;

/// How many addresses a table shows.
const SHOWN: usize = 3;
const DEPRECATED: &str =
    "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";

pub(super) struct Endpoints;

impl Kind for Endpoints {
    fn default(&self, object: &mut Value) {
        shape::complete("v1/Endpoints", object);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Errors::new();
        for (i, subset) in object::list(object, &["subsets"]).iter().enumerate() {
            let path = Path::new("subsets").index(i);
            for list in ["addresses", "notReadyAddresses"] {
                for (j, address) in object::list(subset, &[list]).iter().enumerate() {
                    let path = path.child(list).index(j).child("ip");
                    let address = object::text(address, &["ip"]);
                    errors.extend(ip(address, &path));
                    errors.extend(reachable(address, &path));
                }
            }
            let ports = object::list(subset, &["ports"]);
            for (j, entry) in ports.iter().enumerate() {
                let path = path.child("ports").index(j);
                let name = object::text(entry, &["name"]);
                if !name.is_empty() {
                    errors.extend(each(&path.child("name"), name, names::dns_1123_label(name)));
                } else if ports.len() > 1 {
                    errors.push(FieldError::required(&path.child("name"), ""));
                }
                errors.extend(port(entry.get("port"), &path.child("port")));
                let protocol = object::text(entry, &["protocol"]);
                let protocols = ["SCTP", "TCP", "UDP"];
                errors.extend(one_of(protocol, &protocols, &path.child("protocol")));
            }
        }
        errors
    }

    fn warnings(&self, _object: &Value, _old: Option<&Value>) -> Vec<String> {
        vec![DEPRECATED.to_owned()]
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("v1/endpoints")
    }

    fn cells(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        vec![tables::name(object), addresses(object).into(), age(object, now)]
    }
}

/// An address that a packet can be sent to.
pub(in super::super) fn reachable(address: &str, path: &Path) -> Errors {
    let Ok(ip) = address.parse::<IpAddr>() else {
        return vec![FieldError::invalid(path, address, "must be a valid IP address")];
    };
    let link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    let link_local_multicast = match ip {
        IpAddr::V4(ip) => matches!(ip.octets(), [224, 0, 0, _]),
        IpAddr::V6(ip) => ip.segments().first().is_some_and(|s| s & 0xff0f == 0xff02),
    };
    let problems = [
        (ip.is_unspecified(), format!("may not be unspecified ({address})")),
        (ip.is_loopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned()),
        (link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned()),
        (
            link_local_multicast,
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned(),
        ),
    ];
    problems
        .into_iter()
        .filter(|(broken, _)| *broken)
        .map(|(_, reason)| FieldError::invalid(path, address, reason))
        .collect()
}

fn addresses(object: &Value) -> String {
    let subsets = object::list(object, &["subsets"]);
    if subsets.is_empty() {
        return "<none>".to_owned();
    }
    let mut all = Vec::new();
    for subset in subsets {
        let ips = object::list(subset, &["addresses"]).iter().map(|a| object::text(a, &["ip"]));
        let ports = object::list(subset, &["ports"]);
        if ports.is_empty() {
            all.extend(ips.map(str::to_owned));
            continue;
        }
        for port in ports {
            let port = object::integer(port, &["port"]).unwrap_or_default();
            all.extend(ips.clone().map(|ip| {
                if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
            }));
        }
    }
    shorten(&all)
}

/// The first few of a list, and how many more there are.
pub(in super::super) fn shorten(all: &[String]) -> String {
    let shown = all.get(..SHOWN.min(all.len())).unwrap_or_default().join(",");
    if all.len() > SHOWN { format!("{shown} + {} more...", all.len() - SHOWN) } else { shown }
}
