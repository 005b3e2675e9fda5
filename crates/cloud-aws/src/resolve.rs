//! From a provider spec to a launch.

use fleetwright_api::aws::{
    AWSMachineProviderConfig, AllocationStrategy, Filter, NetworkInterfaceType, ResourceReference,
};
use fleetwright_cloud::{
    CloudError, ErrorClass, Launch, ResolveRequest, Shape, Tag, tags::resource_tags,
};
use serde::Deserialize;

use crate::{
    cloud::AwsCloud,
    launch::{HostRequest, LaunchRequest},
    model::ec2::requests,
    rules::{self, Mistake},
};

const OPERATION: &str = "RunInstances";
/// Zones at the edge of a carrier's network, where public addresses are the carrier's.
const WAVELENGTH: &str = "wavelength-zone";

impl AwsCloud {
    pub(crate) async fn resolve_launch(
        &self,
        request: ResolveRequest,
    ) -> Result<Launch, CloudError> {
        let ResolveRequest { provider_spec, cluster, cluster_tags, user_data, .. } = request;
        let config = AWSMachineProviderConfig::deserialize(&provider_spec).map_err(|error| {
            CloudError::configuration(OPERATION, format!("providerSpec.value: {error}"))
        })?;
        let family = self.ip_family;

        let image = self.image(&config.ami).await.map_err(within("error getting AMI"))?;
        let groups = self.security_groups(&config.security_groups).await;
        let groups = groups.map_err(within("error getting security groups IDs"))?;
        let subnet = self.subnet(&config.subnet, &config.placement.availability_zone).await;
        let (subnet, zone) = subnet.map_err(within("error getting subnet IDs"))?;
        let interface = self.interface(&config, groups, subnet, &zone).await?;
        let devices = self.block_devices(&config, &image).await;
        let devices = devices.map_err(within("error getting blockDeviceMappings"))?;
        let placement = rules::instance_placement(&config).map_err(configuration)?;
        let market = rules::market_options(&config).map_err(configuration)?;
        let reservation = rules::capacity_reservation(&config.capacity_reservation_id);
        let interruptible =
            market.as_ref().is_some_and(|market| market.market_type.as_deref() == Some("spot"));
        let placed = placement.clone().unwrap_or_default();

        let run = requests::RunInstancesRequest {
            block_device_mappings: devices,
            capacity_reservation_specification: reservation.map_err(configuration)?,
            cpu_options: rules::cpu_options(config.cpu_options.as_ref()).map_err(configuration)?,
            iam_instance_profile: profile(config.iam_instance_profile.as_ref()),
            image_id: Some(image),
            instance_market_options: market,
            instance_type: Some(config.instance_type.clone()),
            key_name: config.key_name.clone().filter(|key| !key.is_empty()),
            metadata_options: rules::metadata_options(
                config.metadata_service_options.as_ref(),
                family,
            ),
            network_interfaces: vec![interface],
            placement,
            private_dns_name_options: rules::private_dns_options(family),
            user_data: user_data.map(|data| {
                use base64::{Engine as _, engine::general_purpose::STANDARD};
                STANDARD.encode(data)
            }),
            ..Default::default()
        };
        let request = LaunchRequest {
            run,
            tags: spec_tags(&config, &cluster, &cluster_tags),
            host: host(&config, &zone),
        };
        let shape = Shape {
            region: self.client.region.clone(),
            zone,
            instance_type: config.instance_type.clone(),
            group: placed.group_name,
            partition: placed.partition_number.and_then(|number| u32::try_from(number).ok()),
            interruptible,
            tenancy: placed.tenancy,
        };
        request.into_launch(shape)
    }

    async fn image(&self, ami: &ResourceReference) -> Result<String, CloudError> {
        if let Some(id) = ami.id.as_ref().filter(|id| !id.is_empty()) {
            return Ok(id.clone());
        }
        if ami.filters.is_empty() {
            return Err(wrong("AMI ID or AMI filters need to be specified"));
        }
        let request = requests::DescribeImagesRequest {
            filters: filters(&ami.filters),
            ..Default::default()
        };
        let images = self.lookups.images(&self.client, request).await;
        let images = images.map_err(within("error describing AMI"))?;
        // Equal dates are told apart by the identifier: the same answer every time.
        let newest = images.iter().max_by_key(|image| {
            let made = image.creation_date.as_deref().and_then(|date| date.parse().ok());
            (made.unwrap_or(jiff::Timestamp::MIN), image.image_id.clone())
        });
        newest
            .and_then(|image| image.image_id.clone())
            .ok_or_else(|| wrong("no image for given filters not found"))
    }

    async fn security_groups(
        &self,
        references: &[ResourceReference],
    ) -> Result<Vec<String>, CloudError> {
        let mut ids: Vec<String> = Vec::new();
        for reference in references {
            if let Some(id) = &reference.id {
                ids.push(id.clone());
            } else if !reference.filters.is_empty() {
                let request = requests::DescribeSecurityGroupsRequest {
                    filters: filters(&reference.filters),
                    ..Default::default()
                };
                let found = self.lookups.security_groups(&self.client, request).await;
                let found = found.map_err(within("error describing security groups"))?;
                ids.extend(found.iter().cloned());
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        ids.retain(|id| seen.insert(id.clone()));
        if ids.is_empty() { Err(wrong("no security group found")) } else { Ok(ids) }
    }

    /// The subnet and its zone.
    async fn subnet(
        &self,
        reference: &ResourceReference,
        zone: &str,
    ) -> Result<(String, String), CloudError> {
        let mut request = requests::DescribeSubnetsRequest::default();
        if let Some(id) = &reference.id {
            request.subnet_ids = vec![id.clone()];
        } else {
            if !zone.is_empty() {
                // A zone that does not exist is told as such, not as a lack of subnets.
                let zones = self.lookups.zones(&self.client, zone).await;
                zones.map_err(within("error describing availability zones"))?;
                request.filters.push(requests::Filter {
                    name: Some("availabilityZone".to_owned()),
                    values: vec![zone.to_owned()],
                });
            }
            request.filters.extend(filters(&reference.filters));
        }
        let subnets = self.lookups.subnets(&self.client, request).await;
        let subnets = subnets.map_err(within("error describing subnets"))?;
        // Of several, always the same one: a launch that is repeated must not differ.
        let subnet = subnets.iter().min_by_key(|subnet| subnet.subnet_id.clone());
        let found = subnet.and_then(|subnet| {
            Some((subnet.subnet_id.clone()?, subnet.availability_zone.clone().unwrap_or_default()))
        });
        found.ok_or_else(|| wrong("no subnet IDs were found"))
    }

    async fn interface(
        &self,
        config: &AWSMachineProviderConfig,
        groups: Vec<String>,
        subnet: String,
        zone: &str,
    ) -> Result<requests::InstanceNetworkInterfaceSpecification, CloudError> {
        let kind = match &config.network_interface_type {
            None => None,
            Some(NetworkInterfaceType::Ena) => Some("interface".to_owned()),
            Some(NetworkInterfaceType::Efa) => Some("efa".to_owned()),
            Some(NetworkInterfaceType::Other(word)) if word.is_empty() => None,
            Some(NetworkInterfaceType::Other(word)) => {
                return Err(wrong(&format!(
                    "invalid value for networkInterfaceType {word:?}, valid values are \"\", \
                     \"ENA\" and \"EFA\""
                )));
            }
        };
        let mut interface = requests::InstanceNetworkInterfaceSpecification {
            device_index: Some(config.device_index),
            groups,
            interface_type: kind,
            subnet_id: Some(subnet),
            ..Default::default()
        };
        if config.public_ip.is_some() {
            let zones = self.lookups.zones(&self.client, zone).await;
            let zones = zones.map_err(within("error discovering zone type"))?;
            if zones.iter().any(|zone| zone.zone_type.as_deref() == Some(WAVELENGTH)) {
                interface.associate_carrier_ip_address = config.public_ip;
            } else {
                interface.associate_public_ip_address = config.public_ip;
            }
        }
        Ok(interface)
    }

    async fn block_devices(
        &self,
        config: &AWSMachineProviderConfig,
        image: &str,
    ) -> Result<Vec<requests::BlockDeviceMapping>, CloudError> {
        let volumes = || config.block_devices.iter().filter(|device| device.ebs.is_some());
        let mut root = None;
        if volumes().any(|device| device.device_name.is_none()) {
            let request = requests::DescribeImagesRequest {
                image_ids: vec![image.to_owned()],
                ..Default::default()
            };
            let images = self.lookups.images(&self.client, request).await;
            let images = images.map_err(within("error describing AMI"))?;
            let image = images.first().ok_or_else(|| wrong("no image for given AMI not found"))?;
            root = Some(image.root_device_name.clone().ok_or_else(|| {
                wrong("the image has no root device, and a block device has no name")
            })?);
        }
        rules::block_devices(&config.block_devices, root.as_deref()).map_err(configuration)
    }
}

/// The tags of a Machine's resources, but those of the Machine itself.
pub(crate) fn spec_tags(
    config: &AWSMachineProviderConfig,
    cluster: &str,
    cluster_tags: &[Tag],
) -> Vec<Tag> {
    let spec: Vec<Tag> =
        config.tags.iter().map(|tag| Tag::new(tag.name.clone(), tag.value.clone())).collect();
    resource_tags(&spec, cluster_tags, cluster)
}

fn host(config: &AWSMachineProviderConfig, zone: &str) -> Option<HostRequest> {
    let wanted = config.placement.host.as_ref()?.dedicated_host.as_ref()?;
    if wanted.allocation_strategy != Some(AllocationStrategy::Dynamic) {
        return None;
    }
    let tags = wanted.dynamic_host_allocation.as_ref().and_then(|dynamic| dynamic.tags.clone());
    let tags = tags.unwrap_or_default().into_iter().map(|tag| Tag::new(tag.name, tag.value));
    Some(HostRequest { zone: zone.to_owned(), tags: tags.collect() })
}

fn profile(
    reference: Option<&ResourceReference>,
) -> Option<requests::IamInstanceProfileSpecification> {
    let reference = reference?;
    let set = |text: &&String| !text.is_empty();
    let name = reference.id.as_ref().filter(set).cloned();
    let arn = if name.is_some() { None } else { reference.arn.as_ref().filter(set).cloned() };
    (name.is_some() || arn.is_some())
        .then_some(requests::IamInstanceProfileSpecification { arn, name })
}

fn filters(filters: &[Filter]) -> Vec<requests::Filter> {
    let filter = |filter: &Filter| requests::Filter {
        name: Some(filter.name.clone()),
        values: filter.values.clone(),
    };
    filters.iter().map(filter).collect()
}

fn wrong(message: &str) -> CloudError {
    CloudError::configuration(OPERATION, message)
}

fn configuration(mistake: Mistake) -> CloudError {
    CloudError::new(ErrorClass::Configuration, OPERATION, "", mistake.0)
}

/// Says what was attempted, before what went wrong.
fn within(attempt: &str) -> impl Fn(CloudError) -> CloudError {
    move |mut error| {
        error.message = format!("{attempt}: {}", error.message);
        error
    }
}
