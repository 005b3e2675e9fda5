//! RunInstances, decoded.

use std::net::Ipv4Addr;

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{instances, tag_specifications};
use crate::aws::{
    model::{
        ApiError, Outcome,
        launch::{
            InterfaceRequest, LaunchRequest, MetadataRequest, PlacementRequest, ProfileRequest,
            SpotRequestOptions,
        },
        volumes::{BlockDevice, Ebs},
    },
    wire::{Call, form::Scope, xml::Xml},
};

pub(super) fn run(call: &mut Call<'_>) -> Outcome<Xml> {
    let request = decode(&call.scope(), call)?;
    call.form.finish()?;
    let made = call.region.run_instances(call.now, &request)?;
    let mut xml = Xml::default();
    let made: Vec<_> =
        made.iter().map(|sequence| call.region.instances[sequence].latest()).collect();
    if let Some(first) = made.first() {
        instances::reservation_head(&mut xml, call.region, first);
    }
    xml.items("instancesSet", made, |xml, instance| {
        instances::instance(xml, call.region, instance);
    });
    Ok(xml)
}

fn decode(scope: &Scope<'_>, call: &Call<'_>) -> Outcome<LaunchRequest> {
    let count = |name: &str| scope.number(name)?.ok_or_else(|| ApiError::missing(name));
    scope.flag("DryRun")?;
    let mut parameters = call.form.values().clone();
    parameters.remove("ClientToken");
    let (market, spot) = market(&scope.sub("InstanceMarketOptions"))?;
    let cpu = scope.sub("CpuOptions");
    let names = scope.sub("PrivateDnsNameOptions");
    let reservation = scope.sub("CapacityReservationSpecification");
    // Taken, and without an effect here.
    for name in ["HibernationOptions.Configured", "EnclaveOptions.Enabled"] {
        scope.flag(name)?;
    }
    for name in [
        "CreditSpecification.CpuCredits",
        "MaintenanceOptions.AutoRecovery",
        "InstanceInitiatedShutdownBehavior",
    ] {
        scope.text(name);
    }
    Ok(LaunchRequest {
        image: scope.text("ImageId"),
        instance_type: scope.text("InstanceType"),
        min: count("MinCount")?,
        max: count("MaxCount")?,
        key_name: scope.text("KeyName"),
        security_group_ids: scope.list("SecurityGroupId"),
        security_groups: scope.list("SecurityGroup"),
        subnet: scope.text("SubnetId"),
        private_ip: address(scope)?,
        interfaces: scope
            .entries("NetworkInterface")
            .iter()
            .map(interface)
            .collect::<Outcome<_>>()?,
        user_data: scope.text("UserData").as_deref().map(user_data).transpose()?,
        token: scope.text("ClientToken"),
        parameters,
        placement: placement(&scope.sub("Placement"))?,
        devices: scope
            .entries("BlockDeviceMapping")
            .iter()
            .map(block_device)
            .collect::<Outcome<_>>()?,
        profile: profile(&scope.sub("IamInstanceProfile"))?,
        market,
        spot,
        tags: tag_specifications(scope)?,
        metadata: metadata(&scope.sub("MetadataOptions"))?,
        cpu: (cpu.number("CoreCount")?, cpu.number("ThreadsPerCore")?, cpu.text("AmdSevSnp")),
        capacity_preference: reservation.text("CapacityReservationPreference"),
        capacity_reservation: reservation.text("CapacityReservationTarget.CapacityReservationId"),
        ebs_optimized: scope.flag("EbsOptimized")?.unwrap_or(false),
        monitoring: scope.flag("Monitoring.Enabled")?.unwrap_or(false),
        protected: scope.flag("DisableApiTermination")?.unwrap_or(false),
        stop_protected: scope.flag("DisableApiStop")?.unwrap_or(false),
        names: (
            names.text("HostnameType"),
            names.flag("EnableResourceNameDnsARecord")?,
            names.flag("EnableResourceNameDnsAAAARecord")?,
        ),
    })
}

fn user_data(text: &str) -> Outcome<Vec<u8>> {
    let decoded = STANDARD.decode(text.trim());
    decoded.map_err(|_| ApiError::invalid("Invalid BASE64 encoding of user data"))
}

fn address(scope: &Scope<'_>) -> Outcome<Option<Ipv4Addr>> {
    let Some(text) = scope.text("PrivateIpAddress") else {
        return Ok(None);
    };
    let parsed = text.parse().map(Some);
    parsed.map_err(|_| ApiError::invalid(format!("Invalid value '{text}' for address.")))
}

fn interface(scope: &Scope<'_>) -> Outcome<InterfaceRequest> {
    Ok(InterfaceRequest {
        device_index: scope.number("DeviceIndex")?,
        card_index: scope.number("NetworkCardIndex")?,
        subnet: scope.text("SubnetId"),
        groups: scope.list("SecurityGroupId"),
        public: scope.flag("AssociatePublicIpAddress")?,
        carrier: scope.flag("AssociateCarrierIpAddress")?,
        delete_on_termination: scope.flag("DeleteOnTermination")?,
        kind: scope.text("InterfaceType"),
        private_ip: address(scope)?,
        description: scope.text("Description"),
    })
}

fn placement(scope: &Scope<'_>) -> Outcome<PlacementRequest> {
    Ok(PlacementRequest {
        zone: scope.text("AvailabilityZone"),
        group_name: scope.text("GroupName").filter(|name| !name.is_empty()),
        group_id: scope.text("GroupId"),
        partition: scope.number("PartitionNumber")?,
        tenancy: scope.text("Tenancy"),
        host: scope.text("HostId"),
        affinity: scope.text("Affinity"),
    })
}

fn block_device(scope: &Scope<'_>) -> Outcome<BlockDevice> {
    let ebs = scope.sub("Ebs");
    Ok(BlockDevice {
        device: scope.text("DeviceName"),
        no_device: scope.text("NoDevice").is_some(),
        virtual_name: scope.text("VirtualName"),
        ebs: if ebs.is_empty() {
            None
        } else {
            Some(Ebs {
                size_gib: ebs.number("VolumeSize")?,
                kind: ebs.text("VolumeType"),
                iops: ebs.number("Iops")?,
                throughput: ebs.number("Throughput")?,
                encrypted: ebs.flag("Encrypted")?,
                kms_key: ebs.text("KmsKeyId"),
                snapshot: ebs.text("SnapshotId"),
                delete_on_termination: ebs.flag("DeleteOnTermination")?,
            })
        },
    })
}

fn profile(scope: &Scope<'_>) -> Outcome<Option<ProfileRequest>> {
    match (scope.text("Name"), scope.text("Arn")) {
        (None, None) => Ok(None),
        (Some(name), None) => Ok(Some(ProfileRequest::Name(name))),
        (None, Some(arn)) => Ok(Some(ProfileRequest::Arn(arn))),
        (Some(_), Some(_)) => Err(ApiError::combination(
            "The parameter 'iamInstanceProfile.name' may not be used in combination with \
             'iamInstanceProfile.arn'",
        )),
    }
}

fn market(scope: &Scope<'_>) -> Outcome<(Option<String>, SpotRequestOptions)> {
    let spot = scope.sub("SpotOptions");
    let market = scope.text("MarketType");
    if market.is_none() && !scope.is_empty() {
        return Err(ApiError::missing("InstanceMarketOptions.MarketType"));
    }
    Ok((
        market,
        SpotRequestOptions {
            max_price: spot.text("MaxPrice"),
            kind: spot.text("SpotInstanceType"),
            interruption: spot.text("InstanceInterruptionBehavior"),
        },
    ))
}

fn metadata(scope: &Scope<'_>) -> Outcome<MetadataRequest> {
    Ok(MetadataRequest {
        tokens: scope.text("HttpTokens"),
        hop_limit: scope.number("HttpPutResponseHopLimit")?,
        endpoint: scope.text("HttpEndpoint"),
        ipv6: scope.text("HttpProtocolIpv6"),
        tags: scope.text("InstanceMetadataTags"),
    })
}
