//! Fields of a provider spec that this version does not know.

use std::collections::BTreeMap;

use fleetwright_api::aws::AWSMachineProviderConfig;
use serde_json::Value;

/// Their paths, in the order of the fields they stand under.
pub(super) fn fields(config: &AWSMachineProviderConfig) -> Vec<String> {
    let mut found = Vec::new();
    let mut add = |path: String, other: &BTreeMap<String, Value>| {
        let dot = if path.is_empty() { "" } else { "." };
        found.extend(other.keys().map(|name| format!("{path}{dot}{name}")));
    };
    add(String::new(), &config.other);
    add("ami".to_owned(), &config.ami.other);
    if let Some(options) = &config.cpu_options {
        add("cpuOptions".to_owned(), &options.other);
    }
    if let Some(profile) = &config.iam_instance_profile {
        add("iamInstanceProfile".to_owned(), &profile.other);
    }
    for (place, group) in config.security_groups.iter().enumerate() {
        add(format!("securityGroups[{place}]"), &group.other);
    }
    add("subnet".to_owned(), &config.subnet.other);
    add("placement".to_owned(), &config.placement.other);
    if let Some(host) = &config.placement.host {
        add("placement.host".to_owned(), &host.other);
        if let Some(host) = &host.dedicated_host {
            add("placement.host.dedicatedHost".to_owned(), &host.other);
            if let Some(allocation) = &host.dynamic_host_allocation {
                let path = "placement.host.dedicatedHost.dynamicHostAllocation";
                add(path.to_owned(), &allocation.other);
            }
        }
    }
    for (place, device) in config.block_devices.iter().enumerate() {
        add(format!("blockDevices[{place}]"), &device.other);
        if let Some(volume) = &device.ebs {
            add(format!("blockDevices[{place}].ebs"), &volume.other);
            if let Some(key) = &volume.kms_key {
                add(format!("blockDevices[{place}].ebs.kmsKey"), &key.other);
            }
        }
    }
    if let Some(options) = &config.spot_market_options {
        add("spotMarketOptions".to_owned(), &options.other);
    }
    if let Some(options) = &config.metadata_service_options {
        add("metadataServiceOptions".to_owned(), &options.other);
    }
    found
}
