//! What a launch comes to in this region: everything it names is looked up, nothing is changed.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{
    Region,
    capacity::Pool,
    catalog::Image,
    error::{ApiError, Outcome},
    groups::{GroupLaunch, GroupPlace},
    ids,
    instance::{LaunchedWith, NameOptions, Reservation, SpotOptions},
    types::InstanceType,
    volumes,
};
use super::{
    checks, malformed,
    request::{InterfaceRequest, LaunchRequest, ProfileRequest},
    unknown_image, unknown_subnet,
};

/// Everything a launch was resolved to before anything is made.
pub(super) struct Plan {
    pub(super) with: LaunchedWith,
    pub(super) image: Image,
    pub(super) zone: String,
    pub(super) vpc: String,
    pub(super) interfaces: Vec<PlannedInterface>,
    pub(super) group: Option<GroupPlace>,
    pub(super) host: Option<String>,
    pub(super) count: u32,
}

pub(super) struct PlannedInterface {
    pub(super) request: InterfaceRequest,
    pub(super) subnet: String,
    pub(super) groups: Vec<(String, String)>,
    pub(super) public: bool,
}

impl Region {
    /// The zone, and whether the request itself pins it down.
    pub(super) fn zone_of(&self, request: &LaunchRequest) -> Outcome<(String, bool)> {
        let first = request.interfaces.iter().find(|i| i.device_index.unwrap_or(0) == 0);
        let subnet = request.subnet.as_ref().or(first.and_then(|i| i.subnet.as_ref()));
        if let Some(subnet) = subnet {
            let subnet = self.subnets.get(subnet).ok_or_else(|| unknown_subnet(subnet))?;
            if request.placement.zone.as_ref().is_some_and(|zone| *zone != subnet.zone) {
                return Err(ApiError::invalid(format!(
                    "Value ({}) for parameter availabilityZone is invalid. The subnet '{}' is in \
                     the Availability Zone {}.",
                    request.placement.zone.as_deref().unwrap_or_default(),
                    subnet.id,
                    subnet.zone
                )));
            }
            return Ok((subnet.zone.clone(), true));
        }
        if let Some(zone) = &request.placement.zone {
            self.check_zone(zone)?;
            return Ok((zone.clone(), true));
        }
        let default = self.subnets.values().find(|subnet| subnet.default);
        default.map(|subnet| (subnet.zone.clone(), false)).ok_or_else(no_default_vpc)
    }

    /// Fails unless the zone exists.
    pub(crate) fn check_zone(&self, zone: &str) -> Outcome<()> {
        if self.zones.iter().any(|z| z.name == zone) {
            return Ok(());
        }
        Err(ApiError::invalid(format!(
            "Value ({zone}) for parameter availabilityZone is invalid. Subnets can currently only \
             be created in the following availability zones: {}.",
            self.zones.iter().map(|z| z.name.as_str()).collect::<Vec<_>>().join(", ")
        )))
    }

    pub(super) fn plan_launch(&self, request: &LaunchRequest, min: u32, max: u32) -> Outcome<Plan> {
        let of = checks::instance_type(request)?;
        let image = self.image_for(request, of)?.clone();
        let (zone, _) = self.zone_of(request)?;
        let interfaces = self.plan_interfaces(request, of, &zone)?;
        let vpc = self.vpc_of(&interfaces)?;
        if let Some(key) = request.key_name.as_ref().filter(|key| !self.keys.contains_key(*key)) {
            return Err(ApiError::client(
                "InvalidKeyPair.NotFound",
                format!("The key pair '{key}' does not exist"),
            ));
        }
        let profile = request.profile.as_ref().map(|p| self.profile(p)).transpose()?;
        let spot = checks::spot_options(request, of)?;
        let tenancy = request.placement.tenancy.clone().unwrap_or_else(|| "default".to_owned());
        if !matches!(tenancy.as_str(), "default" | "dedicated" | "host") {
            return Err(ApiError::invalid(format!(
                "Value ({tenancy}) for parameter tenancy is invalid."
            )));
        }
        if self.not_offered.contains(&(zone.clone(), of.name.to_owned())) {
            return Err(self.not_offered_here(&zone, of));
        }
        let group = self.place_in_group(&GroupLaunch {
            name: request.placement.group_name.as_deref(),
            id: request.placement.group_id.as_deref(),
            partition: request.placement.partition,
            tenancy: &tenancy,
            zone: &zone,
            of,
            spot: spot.is_some(),
        })?;
        volumes::planned(&image, &request.devices)?;
        let host = self.host_for(request, of, &zone, &tenancy, spot.is_some(), max)?;
        self.check_reservation(request, of, &zone, min)?;
        let pool = Pool {
            zone: zone.clone(),
            instance_type: of.name.to_owned(),
            group: group.as_ref().map(|group| group.name.clone()),
            spot: spot.is_some(),
        };
        let count =
            self.how_many(&pool, of, group.as_ref(), spot.as_ref(), (min, max), host.as_ref())?;
        self.check_addresses(request, &interfaces, count)?;
        let with = self.launched_with(request, of, &image, profile, spot, tenancy)?;
        Ok(Plan { with, image, zone, vpc, interfaces, group, host, count })
    }

    fn image_for(&self, request: &LaunchRequest, of: &InstanceType) -> Outcome<&Image> {
        let id = request.image.as_deref().ok_or_else(|| ApiError::missing("ImageId"))?;
        let image = self.images.get(id).ok_or_else(|| unknown_image(id))?;
        if image.state != "available" {
            return Err(ApiError::client(
                "InvalidAMIID.Unavailable",
                format!("The image ID '{id}' is not available"),
            ));
        }
        if !of.architectures.contains(&image.architecture.as_str()) {
            return Err(ApiError::invalid(format!(
                "The architecture '{}' of the specified instance type does not match the \
                 architecture '{}' of the specified AMI. Specify an instance type and an AMI that \
                 have matching architectures, and try again. You can use 'describe-instance-types' \
                 or 'describe-images' to discover the architecture of the instance type or AMI.",
                of.architectures.join(","),
                image.architecture
            )));
        }
        Ok(image)
    }

    fn not_offered_here(&self, zone: &str, of: &InstanceType) -> ApiError {
        let others: Vec<&str> = self
            .zones
            .iter()
            .filter(|z| !self.not_offered.contains(&(z.name.clone(), of.name.to_owned())))
            .map(|z| z.name.as_str())
            .collect();
        ApiError::client(
            "Unsupported",
            format!(
                "Your requested instance type ({}) is not supported in your requested Availability \
                 Zone ({zone}). Please retry your request by not specifying an Availability Zone or \
                 choosing {}.",
                of.name,
                others.join(", ")
            ),
        )
    }

    fn plan_interfaces(
        &self,
        request: &LaunchRequest,
        of: &InstanceType,
        zone: &str,
    ) -> Outcome<Vec<PlannedInterface>> {
        let mut requests = request.interfaces.clone();
        if requests.is_empty() {
            requests.push(InterfaceRequest {
                device_index: Some(0),
                subnet: request.subnet.clone(),
                groups: request.security_group_ids.clone(),
                private_ip: request.private_ip,
                ..InterfaceRequest::default()
            });
        } else if request.subnet.is_some() {
            return Err(ApiError::combination(
                "Network interfaces and an instance-level subnet ID may not be specified on the \
                 same request",
            ));
        } else if !request.security_group_ids.is_empty() || !request.security_groups.is_empty() {
            return Err(ApiError::combination(
                "Network interfaces and an instance-level security groups may not be specified on \
                 the same request",
            ));
        }
        requests.sort_by_key(|r| r.device_index.unwrap_or(0));
        let indices: BTreeSet<_> =
            requests.iter().map(|r| (r.card_index.unwrap_or(0), r.device_index)).collect();
        if requests[0].device_index.unwrap_or(0) != 0 || indices.len() != requests.len() {
            return Err(ApiError::invalid(
                "A network interface with device index 0, and only one of each index, must be given.",
            ));
        }
        if requests.len() > of.interfaces as usize {
            return Err(ApiError::client(
                "AttachmentLimitExceeded",
                format!("Interface count {} exceeds the limit for {}", requests.len(), of.name),
            ));
        }
        let planned = requests.into_iter().map(|r| self.plan_interface(request, of, zone, r));
        let planned: Vec<_> = planned.collect::<Outcome<_>>()?;
        if request.max > 1 && planned.iter().any(|p| p.request.private_ip.is_some()) {
            return Err(ApiError::combination(
                "A private IP address may only be specified when launching one instance.",
            ));
        }
        Ok(planned)
    }

    fn plan_interface(
        &self,
        request: &LaunchRequest,
        of: &InstanceType,
        zone: &str,
        interface: InterfaceRequest,
    ) -> Outcome<PlannedInterface> {
        let subnet = match &interface.subnet {
            Some(id) => self.subnets.get(id).ok_or_else(|| unknown_subnet(id))?,
            None => self
                .subnets
                .values()
                .find(|subnet| subnet.default && subnet.zone == zone)
                .ok_or_else(no_default_vpc)?,
        };
        match interface.kind.as_deref() {
            None | Some("interface") => {}
            Some("efa" | "efa-only") if of.efa_interfaces > 0 => {}
            Some("efa" | "efa-only") => {
                return Err(ApiError::combination(format!(
                    "EFA interfaces are not supported on {}",
                    of.name
                )));
            }
            Some(other) => {
                return Err(ApiError::invalid(format!(
                    "Value ({other}) for parameter interfaceType is invalid."
                )));
            }
        }
        let wavelength =
            self.zones.iter().any(|z| z.name == subnet.zone && z.kind == "wavelength-zone");
        if interface.carrier == Some(true) && !wavelength {
            return Err(ApiError::combination(
                "Carrier IP addresses can only be assigned in Wavelength Zones.",
            ));
        }
        if interface.public == Some(true) && wavelength {
            return Err(ApiError::combination(
                "Public IP addresses cannot be assigned in Wavelength Zones.",
            ));
        }
        let groups = self.security_groups_of(request, &interface, &subnet.vpc)?;
        let public = interface.public.or(interface.carrier).unwrap_or(subnet.public);
        Ok(PlannedInterface { subnet: subnet.id.clone(), groups, public, request: interface })
    }

    fn security_groups_of(
        &self,
        request: &LaunchRequest,
        interface: &InterfaceRequest,
        vpc: &str,
    ) -> Outcome<Vec<(String, String)>> {
        let mut groups = Vec::new();
        for id in &interface.groups {
            let found = self.security_groups.get(id).filter(|group| group.vpc == vpc);
            let Some(group) = found else {
                if !ids::well_formed(id, "sg") {
                    return Err(malformed("InvalidGroupId.Malformed", id, "sg"));
                }
                let message = format!("The security group '{id}' does not exist in VPC '{vpc}'");
                return Err(ApiError::client("InvalidGroup.NotFound", message));
            };
            groups.push((group.id.clone(), group.name.clone()));
        }
        for name in &request.security_groups {
            if request.subnet.is_some() {
                return Err(ApiError::combination(
                    "The parameter groupName cannot be used with the parameter subnet",
                ));
            }
            let found = self.security_groups.values().find(|g| g.vpc == vpc && g.name == *name);
            let group = found.ok_or_else(|| {
                let message = format!("The security group '{name}' does not exist");
                ApiError::client("InvalidGroup.NotFound", message)
            })?;
            groups.push((group.id.clone(), group.name.clone()));
        }
        if groups.is_empty() {
            let default =
                self.security_groups.values().find(|g| g.vpc == vpc && g.name == "default");
            groups.extend(default.map(|g| (g.id.clone(), g.name.clone())));
        }
        Ok(groups)
    }

    fn vpc_of(&self, interfaces: &[PlannedInterface]) -> Outcome<String> {
        let subnet = interfaces.first().and_then(|i| self.subnets.get(&i.subnet));
        subnet.map(|subnet| subnet.vpc.clone()).ok_or_else(no_default_vpc)
    }

    fn profile(&self, request: &ProfileRequest) -> Outcome<(String, String)> {
        let arn =
            |name: &str| format!("arn:aws:iam::{}:instance-profile/{name}", self.settings.account);
        let found = self.profiles.values().find(|profile| match request {
            ProfileRequest::Name(name) => profile.name == *name,
            ProfileRequest::Arn(wanted) => arn(&profile.name) == *wanted,
        });
        found.map(|profile| (arn(&profile.name), profile.id.clone())).ok_or_else(|| {
            let (parameter, value, what) = match request {
                ProfileRequest::Name(name) => ("name", name, "name"),
                ProfileRequest::Arn(arn) => ("arn", arn, "ARN"),
            };
            ApiError::invalid(format!(
                "Value ({value}) for parameter iamInstanceProfile.{parameter} is invalid. Invalid \
                 IAM Instance Profile {what}"
            ))
        })
    }

    fn check_reservation(
        &self,
        request: &LaunchRequest,
        of: &InstanceType,
        zone: &str,
        min: u32,
    ) -> Outcome<()> {
        let Some(id) = &request.capacity_reservation else {
            if request.market.as_deref() == Some("capacity-block") {
                return Err(ApiError::client(
                    "InvalidParameterCombination",
                    "A Capacity Block reservation must be targeted to launch with the \
                     'capacity-block' market type.",
                ));
            }
            return Ok(());
        };
        let Some(reservation) = self.reservations.get(id) else {
            return Err(ApiError::client(
                "InvalidCapacityReservationId.NotFound",
                format!("The Capacity Reservation ID '{id}' does not exist"),
            ));
        };
        if request.market.as_deref() == Some("spot") {
            return Err(ApiError::combination(
                "Spot Instances cannot be launched into a Capacity Reservation.",
            ));
        }
        if reservation.block != (request.market.as_deref() == Some("capacity-block")) {
            return Err(ApiError::combination(
                "The market type of the request does not match the Capacity Reservation.",
            ));
        }
        if reservation.instance_type != of.name || reservation.zone != zone {
            return Err(ApiError::combination(
                "The instance type or Availability Zone of the request does not match the Capacity \
                 Reservation.",
            ));
        }
        if reservation.total.saturating_sub(reservation.used) < min {
            return Err(ApiError::client(
                "ReservationCapacityExceeded",
                "The requested reservation does not have sufficient compatible and available \
                 capacity for this request.",
            ));
        }
        Ok(())
    }

    fn check_addresses(
        &self,
        request: &LaunchRequest,
        interfaces: &[PlannedInterface],
        count: u32,
    ) -> Outcome<()> {
        let mut wanted: BTreeMap<&str, u32> = BTreeMap::new();
        for interface in interfaces {
            *wanted.entry(&interface.subnet).or_default() += count;
            if let Some(address) = interface.request.private_ip {
                let mut subnet = self.subnets[&interface.subnet].clone();
                subnet.take_exactly(address)?;
            }
        }
        for (subnet, wanted) in wanted {
            if self.subnets.get(subnet).is_none_or(|subnet| subnet.free() < wanted) {
                return Err(ApiError::client(
                    "InsufficientFreeAddressesInSubnet",
                    format!(
                        "There are not enough free addresses in subnet '{subnet}' to satisfy the \
                         requested number of instances.",
                    ),
                ));
            }
        }
        if request.interfaces.len() > 1 && interfaces.iter().any(|i| i.request.public == Some(true))
        {
            return Err(ApiError::combination(
                "The associatePublicIPAddress parameter cannot be specified when launching with \
                 multiple network interfaces.",
            ));
        }
        Ok(())
    }

    fn launched_with(
        &self,
        request: &LaunchRequest,
        of: &'static InstanceType,
        image: &Image,
        profile: Option<(String, String)>,
        spot: Option<SpotOptions>,
        tenancy: String,
    ) -> Outcome<LaunchedWith> {
        let (kind, a_record, aaaa_record) = &request.names;
        let kind = kind.clone().unwrap_or_else(|| "ip-name".to_owned());
        if !matches!(kind.as_str(), "ip-name" | "resource-name") {
            return Err(ApiError::invalid(format!(
                "Value ({kind}) for parameter hostnameType is invalid."
            )));
        }
        Ok(LaunchedWith {
            reservation: Reservation {
                id: ids::fresh(&self.random, "r"),
                token: request.token.clone(),
            },
            image: image.id.clone(),
            architecture: image.architecture.clone(),
            root_device: image.root_device.clone(),
            instance_type: of,
            key_name: request.key_name.clone(),
            profile,
            user_data: request.user_data.clone(),
            tenancy,
            spot,
            capacity_block: request.market.as_deref() == Some("capacity-block"),
            capacity_reservation: request.capacity_reservation.clone(),
            capacity_preference: request.capacity_preference.clone(),
            metadata: checks::metadata(&request.metadata)?,
            cpu: checks::cpu(request, of)?,
            ebs_optimized: request.ebs_optimized,
            monitoring: request.monitoring,
            protected: request.protected,
            stop_protected: request.stop_protected,
            names: NameOptions {
                kind,
                a_record: a_record.unwrap_or(false),
                aaaa_record: aaaa_record.unwrap_or(false),
            },
        })
    }
}

fn no_default_vpc() -> ApiError {
    ApiError::client("VPCIdNotSpecified", "No default VPC for this user")
}
