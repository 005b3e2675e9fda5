//! The addresses of an instance, in the order in which Machines show them.

use fleetwright_cloud::{Address, AddressKind};

use crate::model::ec2::responses;

/// A network interface that is not in use has no say.
const IN_USE: &str = "in-use";
/// The DHCP option that holds the domains.
const DOMAIN_NAME: &str = "domain-name";

/// For each interface version 6 before version 4, then the public address, then names: the private
/// one, as a host name as well, and again under each domain of the network, then the public one.
pub fn addresses(instance: &responses::Instance, domains: &[String]) -> Vec<Address> {
    let mut found = Vec::new();
    let mut add = |kind: AddressKind, address: &str| {
        let address = Address { kind, address: address.to_owned() };
        if !address.address.is_empty() && !found.contains(&address) {
            found.push(address);
        }
    };
    let interfaces = instance.network_interfaces.iter();
    for interface in interfaces.filter(|it| it.status.as_deref() == Some(IN_USE)) {
        let v6 = interface.ipv6_addresses.iter().filter_map(|it| it.ipv6_address.as_deref());
        let v4 = interface.private_ip_addresses.iter();
        let v4 = v4.filter_map(|it| it.private_ip_address.as_deref());
        for address in v6.chain(v4) {
            add(AddressKind::InternalIp, address);
        }
    }
    if let Some(address) = &instance.public_ip_address {
        add(AddressKind::ExternalIp, address);
    }
    if let Some(name) = &instance.private_dns_name {
        add(AddressKind::InternalDns, name);
        add(AddressKind::Hostname, name);
        let host = name.split('.').next().unwrap_or(name);
        for domain in domains {
            let name = if domain.is_empty() { host.to_owned() } else { format!("{host}.{domain}") };
            add(AddressKind::InternalDns, &name);
        }
    }
    if let Some(name) = &instance.public_dns_name {
        add(AddressKind::ExternalDns, name);
    }
    found
}

/// The domains of a network's DHCP options. Without the option, hosts have no domain.
pub fn dhcp_domains(options: &responses::DhcpOptions) -> Vec<String> {
    let named = options
        .dhcp_configurations
        .iter()
        .find(|configuration| configuration.key.as_deref() == Some(DOMAIN_NAME));
    match named {
        None => vec![String::new()],
        Some(configuration) => configuration
            .values
            .iter()
            .filter_map(|value| value.value.as_deref())
            .flat_map(str::split_whitespace)
            .map(str::to_owned)
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_being_detached_is_left_out() {
        let address = |text: &str| responses::InstancePrivateIpAddress {
            private_ip_address: Some(text.to_owned()),
        };
        let interface = |status: &str, text: &str| responses::InstanceNetworkInterface {
            status: Some(status.to_owned()),
            private_ip_addresses: vec![address(text)],
            ..Default::default()
        };
        let instance = responses::Instance {
            network_interfaces: vec![
                interface("detaching", "10.0.0.1"),
                interface(IN_USE, "10.0.0.2"),
            ],
            ..Default::default()
        };
        let found = addresses(&instance, &[]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].address, "10.0.0.2");
    }
}
