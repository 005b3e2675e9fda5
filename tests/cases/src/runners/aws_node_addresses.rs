//! Addresses of instances.

use fleetwright_cloud_aws::{
    addresses::{addresses, dhcp_domains},
    model::ec2::responses,
};
use serde_json::{Value, json};

use crate::row::Row;
use crate::runners::{Outcome, Runner, Use};

/// The runner.
pub(super) const RUNNER: Runner = Runner {
    file: "aws-node-addresses.json",
    tables: &[("cases", Use::Rows(of_instance)), ("dhcp_domain_cases", Use::Rows(domains))],
};

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(text).collect()
}

fn interface(row: &Value) -> responses::InstanceNetworkInterface {
    let v6 = texts(&row["ipv6"])
        .into_iter()
        .map(|address| responses::InstanceIpv6Address { ipv6_address: Some(address) });
    let v4 = texts(&row["private"])
        .into_iter()
        .map(|address| responses::InstancePrivateIpAddress { private_ip_address: Some(address) });
    responses::InstanceNetworkInterface {
        status: text(&row["status"]),
        ipv6_addresses: v6.collect(),
        private_ip_addresses: v4.collect(),
    }
}

fn of_instance(row: &Row<'_>) -> Outcome {
    let given = row.get("instance");
    let instance = responses::Instance {
        public_ip_address: text(&given["publicIp"]),
        public_dns_name: text(&given["publicDnsName"]),
        private_dns_name: text(&given["privateDnsName"]),
        network_interfaces: given["nics"].as_array().into_iter().flatten().map(interface).collect(),
        ..Default::default()
    };
    let found = addresses(&instance, &texts(row.get("domains")));
    Outcome::equal(row.get("expect"), &json!(found))
}

fn domains(row: &Row<'_>) -> Outcome {
    let configurations = row.get("dhcp_configurations").as_object().into_iter().flatten();
    let configurations = configurations.map(|(key, value)| responses::DhcpConfiguration {
        key: Some(key.clone()),
        values: vec![responses::AttributeValue { value: text(value) }],
    });
    let options = responses::DhcpOptions { dhcp_configurations: configurations.collect() };
    Outcome::equal(row.get("expect"), &json!(dhcp_domains(&options)))
}
