//! Where an instance goes.

use fleetwright_api::aws::{
    AWSMachineProviderConfig, AllocationStrategy, Host, HostAffinity, InstanceTenancy,
};

use super::Mistake;
use crate::model::ec2::requests;

/// As EC2 says it: a dedicated host cannot be in a placement group.
pub const HOST_IN_GROUP: &str = "You cannot launch an instance with a tenancy of 'host' into a \
    placement group. Either remove the placement group from the request, or specify a different \
    tenancy.";

/// The zone (unless a subnet says it), the group and its partition, the tenancy and the host.
/// None when nothing is said.
pub fn instance_placement(
    config: &AWSMachineProviderConfig,
) -> Result<Option<requests::Placement>, Mistake> {
    let wanted = &config.placement;
    let mut placement = requests::Placement::default();
    if config.subnet.id.is_none() && !wanted.availability_zone.is_empty() {
        placement.availability_zone = Some(wanted.availability_zone.clone());
    }
    let placed = config.placed().map_err(|error| Mistake(error.to_string()))?;
    placement.partition_number = partition(placed.group.as_deref(), placed.partition)?;
    placement.group_name = placed.group;
    placement.tenancy = tenancy(wanted.tenancy.as_ref())?;
    if let Some(host) = &wanted.host {
        (placement.affinity, placement.host_id) = on_host(host)?;
    }
    let on_host = wanted.host.is_some() || wanted.tenancy == Some(InstanceTenancy::Host);
    if on_host && placement.group_name.is_some() {
        return Err(Mistake(HOST_IN_GROUP.to_owned()));
    }
    Ok(Some(placement).filter(|placement| *placement != requests::Placement::default()))
}

fn partition(group: Option<&str>, partition: Option<i32>) -> Result<Option<i64>, Mistake> {
    match partition {
        Some(number) if !(1..=7).contains(&number) => Err(Mistake(format!(
            "providerSpec.placementGroupPartition: Invalid value: {number}: \
             providerSpec.placementGroupPartition must be between 1 and 7"
        ))),
        Some(number) if group.is_none() => Err(Mistake(format!(
            "providerSpec.placementGroupPartition: Invalid value: {number}: \
             providerSpec.placementGroupPartition is set but providerSpec.placementGroupName is \
             empty"
        ))),
        partition => Ok(partition.map(i64::from)),
    }
}

fn tenancy(tenancy: Option<&InstanceTenancy>) -> Result<Option<String>, Mistake> {
    match tenancy {
        None => Ok(None),
        Some(InstanceTenancy::Other(word)) if word.is_empty() => Ok(None),
        Some(InstanceTenancy::Other(word)) => Err(Mistake(format!(
            "invalid instance tenancy: {word}. Allowed options are: {}",
            InstanceTenancy::WORDS.join(",")
        ))),
        Some(known) => Ok(Some(known.as_str().to_owned())),
    }
}

/// Affinity and host. A host that is allocated for the Machine is not known yet.
fn on_host(host: &Host) -> Result<(Option<String>, Option<String>), Mistake> {
    match &host.affinity {
        Some(HostAffinity::AnyAvailable) => {
            let id = host.dedicated_host.as_ref().map(|host| host.id.clone());
            Ok((Some("default".to_owned()), id.filter(|id| !id.is_empty())))
        }
        Some(HostAffinity::DedicatedHost) => {
            let affinity = Some("host".to_owned());
            let given = host.dedicated_host.as_ref();
            if given.and_then(|host| host.allocation_strategy.as_ref())
                == Some(&AllocationStrategy::Dynamic)
            {
                return Ok((affinity, None));
            }
            match given.map(|host| host.id.as_str()).filter(|id| !id.is_empty()) {
                Some(id) => Ok((affinity, Some(id.to_owned()))),
                None => Err(Mistake(
                    "placement.host.dedicatedHost.id is required when placement.host.affinity is \
                     DedicatedHost and no host is allocated dynamically"
                        .to_owned(),
                )),
            }
        }
        affinity => Err(Mistake(format!(
            "placement.host.affinity {:?} must be either AnyAvailable or DedicatedHost",
            affinity.as_ref().map(HostAffinity::as_str).unwrap_or_default()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn placement(spec: Value) -> Result<Value, Mistake> {
        let config: AWSMachineProviderConfig = serde_json::from_value(spec).unwrap();
        Ok(serde_json::to_value(instance_placement(&config)?).unwrap())
    }

    #[test]
    fn both_spellings_of_a_group() {
        for spec in [
            json!({"placement": {"group": {"name": "g"}, "partitionNumber": 2}}),
            json!({"placement": {"group": {"name": "g"}, "number": 2}}),
            json!({"placementGroupName": "g", "placementGroupPartition": 2}),
        ] {
            let expected = json!({"GroupName": "g", "PartitionNumber": 2});
            assert_eq!(placement(spec).unwrap(), expected);
        }
        let spec = json!({"placementGroupName": "a", "placement": {"group": {"name": "b"}}});
        assert!(placement(spec).is_err());
        assert!(placement(json!({"placementGroupPartition": 2})).is_err());
        let spec = json!({"placementGroupName": "g", "placementGroupPartition": 8});
        assert!(placement(spec).is_err());
    }

    #[test]
    fn hosts() {
        let dynamic = json!({"placement": {"tenancy": "host", "host": {"affinity": "DedicatedHost",
            "dedicatedHost": {"allocationStrategy": "Dynamic"}}}});
        let expected = json!({"Affinity": "host", "Tenancy": "host"});
        assert_eq!(placement(dynamic).unwrap(), expected);
        let grouped = json!({"placementGroupName": "g", "placement": {"tenancy": "host"}});
        assert_eq!(placement(grouped).unwrap_err().0, HOST_IN_GROUP);
        assert!(placement(json!({"placement": {"host": {}}})).is_err());
    }

    #[test]
    fn the_subnet_says_the_zone() {
        let spec = json!({"subnet": {"id": "s"}, "placement": {"availabilityZone": "z"}});
        assert_eq!(placement(spec).unwrap(), Value::Null);
    }
}
