//! An instance as EC2 shows it, in our words.

use fleetwright_cloud::{AddressKind, Instance, InstanceState};

use crate::{addresses::addresses, model::ec2::responses};

/// Our instance. None for one without an identifier or in a state that does not exist.
pub fn instance(shown: &responses::Instance, region: &str, domains: &[String]) -> Option<Instance> {
    let id = shown.instance_id.clone()?;
    let state = state(shown.state.as_ref()?.name.as_deref()?)?;
    let placement = shown.placement.clone().unwrap_or_default();
    let zone = placement.availability_zone.unwrap_or_default();
    let number = |number: Option<i64>| number.and_then(|number| u32::try_from(number).ok());
    let volumes = shown.block_device_mappings.iter();
    let volumes = volumes.filter_map(|device| device.ebs.as_ref()?.volume_id.clone());
    Some(Instance {
        provider_id: format!("aws:///{zone}/{id}"),
        id,
        state,
        state_reason: shown.state_reason.as_ref().and_then(|reason| reason.code.clone()),
        region: region.to_owned(),
        zone,
        instance_type: shown.instance_type.clone().unwrap_or_default(),
        interruptible: shown.instance_lifecycle.as_deref() == Some("spot"),
        addresses: addresses(shown, domains),
        launched_at: shown.launch_time.as_deref().and_then(|time| time.parse().ok()),
        token: shown.client_token.clone(),
        launch_index: number(shown.ami_launch_index),
        group: placement.group_name,
        partition: number(placement.partition_number),
        volumes: volumes.collect(),
        tags: tags(&shown.tags),
    })
}

/// Tags by name.
pub(crate) fn tags(tags: &[responses::Tag]) -> std::collections::BTreeMap<String, String> {
    let tags = tags.iter();
    tags.filter_map(|tag| Some((tag.key.clone()?, tag.value.clone().unwrap_or_default()))).collect()
}

fn state(word: &str) -> Option<InstanceState> {
    Some(match word {
        "pending" => InstanceState::Pending,
        "running" => InstanceState::Running,
        "stopping" => InstanceState::Stopping,
        "stopped" => InstanceState::Stopped,
        "shutting-down" => InstanceState::ShuttingDown,
        "terminated" => InstanceState::Terminated,
        _ => return None,
    })
}

/// The address by which load balancers know an instance.
pub(crate) fn private_ip(instance: &Instance) -> Option<&str> {
    let mut internal = instance.addresses.iter();
    let found = internal
        .find(|address| address.kind == AddressKind::InternalIp && !address.address.contains(':'));
    found.map(|address| address.address.as_str())
}
