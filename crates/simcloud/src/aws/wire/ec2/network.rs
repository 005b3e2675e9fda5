//! Zones, VPCs, subnets, security groups and DHCP options.

use std::borrow::Cow;

use super::tag_set;
use crate::aws::{
    model::{
        ApiError, Outcome, launch,
        network::{DhcpOptions, SecurityGroup, Subnet, Vpc, Zone},
        tags::Tags,
        well_formed,
    },
    wire::{
        Call,
        filter::{Filtered, Filters},
        page::{Page, Rules},
        xml::Xml,
    },
};

pub(super) fn zones(call: &mut Call<'_>) -> Outcome<Xml> {
    let scope = call.scope();
    let (names, ids) = (scope.list("ZoneName"), scope.list("ZoneId"));
    scope.flag("AllAvailabilityZones")?;
    let filters = Filters::read::<Zone>(&scope)?;
    call.ready()?;
    let zones = &call.region.zones;
    let unknown = names.iter().find(|name| !zones.iter().any(|zone| zone.name == **name));
    let unknown = unknown.or(ids.iter().find(|id| !zones.iter().any(|zone| zone.id == **id)));
    if let Some(unknown) = unknown {
        return Err(ApiError::invalid(format!("Invalid availability zone: [{unknown}]")));
    }
    let found = zones
        .iter()
        .filter(|zone| names.is_empty() || names.contains(&zone.name))
        .filter(|zone| ids.is_empty() || ids.contains(&zone.id))
        .filter(|zone| filters.admit(*zone));
    let region = &call.region.settings.region;
    let mut xml = Xml::default();
    xml.items("availabilityZoneInfo", found, |xml, zone| {
        xml.text("zoneName", &zone.name);
        xml.text("zoneState", "available");
        xml.text("regionName", region);
        xml.node("messageSet", |_| {});
        xml.text("zoneId", &zone.id);
        xml.text("zoneType", &zone.kind);
        xml.text("groupName", format_args!("{region}-zg-1"));
        xml.text("networkBorderGroup", region);
        xml.text("optInStatus", "opt-in-not-required");
    });
    Ok(xml)
}

impl Filtered for Zone {
    const NAMES: &'static [&'static str] =
        &["zone-name", "zone-id", "zone-type", "state", "region-name", "opt-in-status"];

    fn values(&self, name: &str) -> Vec<Cow<'_, str>> {
        vec![
            match name {
                "zone-name" => self.name.as_str(),
                "zone-id" => self.id.as_str(),
                "zone-type" => self.kind.as_str(),
                "state" => "available",
                "opt-in-status" => "opt-in-not-required",
                _ => self.name.trim_end_matches(|c: char| c.is_ascii_lowercase()),
            }
            .into(),
        ]
    }

    fn tags(&self) -> Option<&Tags> {
        None
    }
}

pub(super) fn regions(call: &mut Call<'_>) -> Outcome<Xml> {
    let scope = call.scope();
    let names = scope.list("RegionName");
    scope.flag("AllRegions")?;
    call.ready()?;
    let region = &call.region.settings.region;
    if let Some(unknown) = names.iter().find(|name| *name != region) {
        return Err(ApiError::invalid(format!("Invalid region: [{unknown}]")));
    }
    let mut xml = Xml::default();
    xml.items("regionInfo", [region], |xml, region| {
        xml.text("regionName", region);
        xml.text("regionEndpoint", format_args!("ec2.{region}.amazonaws.com"));
        xml.text("optInStatus", "opt-in-not-required");
    });
    Ok(xml)
}

pub(super) fn vpcs(call: &mut Call<'_>) -> Outcome<Xml> {
    let scope = call.scope();
    let ids = scope.list("VpcId");
    let filters = Filters::read::<Vpc>(&scope)?;
    let rules = Rules { action: "DescribeVpcs", fewest: 5, most: 1000, ids: "vpcSet" };
    let page = Page::read(&scope, rules, !ids.is_empty())?;
    call.ready()?;
    if let Some(id) = ids.iter().find(|id| !call.region.vpcs.contains_key(*id)) {
        let message = format!("The vpc ID '{id}' does not exist");
        return Err(ApiError::client("InvalidVpcID.NotFound", message));
    }
    let found = call
        .region
        .vpcs
        .values()
        .filter(|vpc| ids.is_empty() || ids.contains(&vpc.id))
        .filter(|vpc| filters.admit(*vpc));
    let (page, next) = page.cut(found, |vpc| vpc.id.clone());
    let account = &call.region.settings.account;
    let mut xml = Xml::default();
    xml.items("vpcSet", page, |xml, vpc| {
        xml.text("vpcId", &vpc.id);
        xml.text("ownerId", account);
        xml.text("state", "available");
        xml.text("cidrBlock", vpc.cidr);
        xml.text("dhcpOptionsId", &vpc.dhcp_options);
        tag_set(xml, &vpc.tags);
        xml.text("instanceTenancy", "default");
        xml.text("isDefault", vpc.default);
    });
    xml.maybe("nextToken", next);
    Ok(xml)
}

impl Filtered for Vpc {
    const NAMES: &'static [&'static str] =
        &["cidr", "cidr-block", "dhcp-options-id", "is-default", "isDefault", "state", "vpc-id"];

    fn values(&self, name: &str) -> Vec<Cow<'_, str>> {
        vec![match name {
            "cidr" | "cidr-block" => self.cidr.to_string().into(),
            "dhcp-options-id" => self.dhcp_options.as_str().into(),
            "is-default" | "isDefault" => self.default.to_string().into(),
            "state" => "available".into(),
            _ => self.id.as_str().into(),
        }]
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.tags)
    }
}

pub(super) fn dhcp_options(call: &mut Call<'_>) -> Outcome<Xml> {
    let scope = call.scope();
    let ids = scope.list("DhcpOptionsId");
    let filters = Filters::read::<DhcpOptions>(&scope)?;
    let rules =
        Rules { action: "DescribeDhcpOptions", fewest: 5, most: 1000, ids: "dhcpOptionsSet" };
    let page = Page::read(&scope, rules, !ids.is_empty())?;
    call.ready()?;
    if let Some(id) = ids.iter().find(|id| !call.region.dhcp_options.contains_key(*id)) {
        let message = format!("The dhcpOption ID '{id}' does not exist");
        return Err(ApiError::client("InvalidDhcpOptionID.NotFound", message));
    }
    let found = call
        .region
        .dhcp_options
        .values()
        .filter(|options| ids.is_empty() || ids.contains(&options.id))
        .filter(|options| filters.admit(*options));
    let (page, next) = page.cut(found, |options| options.id.clone());
    let account = &call.region.settings.account;
    let mut xml = Xml::default();
    xml.items("dhcpOptionsSet", page, |xml, options| {
        xml.text("dhcpOptionsId", &options.id);
        xml.text("ownerId", account);
        xml.items("dhcpConfigurationSet", &options.configurations, |xml, (key, values)| {
            xml.text("key", key);
            xml.items("valueSet", values, |xml, value| xml.text("value", value));
        });
        tag_set(xml, &options.tags);
    });
    xml.maybe("nextToken", next);
    Ok(xml)
}

impl Filtered for DhcpOptions {
    const NAMES: &'static [&'static str] = &["dhcp-options-id", "key", "value"];

    fn values(&self, name: &str) -> Vec<Cow<'_, str>> {
        match name {
            "dhcp-options-id" => vec![self.id.as_str().into()],
            "key" => self.configurations.keys().map(|key| key.as_str().into()).collect(),
            _ => self.configurations.values().flatten().map(|v| v.as_str().into()).collect(),
        }
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.tags)
    }
}

pub(super) fn subnets(call: &mut Call<'_>) -> Outcome<Xml> {
    let scope = call.scope();
    let ids = scope.list("SubnetId");
    let filters = Filters::read::<Subnet>(&scope)?;
    let rules = Rules { action: "DescribeSubnets", fewest: 5, most: 1000, ids: "subnetSet" };
    let page = Page::read(&scope, rules, !ids.is_empty())?;
    call.ready()?;
    if let Some(id) = ids.iter().find(|id| !call.region.subnets.contains_key(*id)) {
        return Err(launch::unknown_subnet(id));
    }
    let found = call
        .region
        .subnets
        .values()
        .filter(|subnet| ids.is_empty() || ids.contains(&subnet.id))
        .filter(|subnet| filters.admit(*subnet));
    let (page, next) = page.cut(found, |subnet| subnet.id.clone());
    let settings = &call.region.settings;
    let mut xml = Xml::default();
    xml.items("subnetSet", page, |xml, subnet| {
        xml.text("subnetId", &subnet.id);
        xml.text(
            "subnetArn",
            format_args!(
                "arn:aws:ec2:{}:{}:subnet/{}",
                settings.region, settings.account, subnet.id
            ),
        );
        xml.text("state", "available");
        xml.text("ownerId", &settings.account);
        xml.text("vpcId", &subnet.vpc);
        xml.text("cidrBlock", subnet.cidr);
        xml.text("availableIpAddressCount", subnet.free());
        xml.text("availabilityZone", &subnet.zone);
        xml.text("availabilityZoneId", &subnet.zone_id);
        xml.text("defaultForAz", subnet.default);
        xml.text("mapPublicIpOnLaunch", subnet.public);
        xml.text("assignIpv6AddressOnCreation", false);
        tag_set(xml, &subnet.tags);
    });
    xml.maybe("nextToken", next);
    Ok(xml)
}

impl Filtered for Subnet {
    const NAMES: &'static [&'static str] = &[
        "availability-zone",
        "availabilityZone",
        "availability-zone-id",
        "availabilityZoneId",
        "available-ip-address-count",
        "cidr",
        "cidr-block",
        "cidrBlock",
        "default-for-az",
        "defaultForAz",
        "map-public-ip-on-launch",
        "state",
        "subnet-id",
        "vpc-id",
    ];

    fn values(&self, name: &str) -> Vec<Cow<'_, str>> {
        vec![match name {
            "availability-zone" | "availabilityZone" => self.zone.as_str().into(),
            "availability-zone-id" | "availabilityZoneId" => self.zone_id.as_str().into(),
            "available-ip-address-count" => self.free().to_string().into(),
            "cidr" | "cidr-block" | "cidrBlock" => self.cidr.to_string().into(),
            "default-for-az" | "defaultForAz" => self.default.to_string().into(),
            "map-public-ip-on-launch" => self.public.to_string().into(),
            "state" => "available".into(),
            "vpc-id" => self.vpc.as_str().into(),
            _ => self.id.as_str().into(),
        }]
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.tags)
    }
}

pub(super) fn security_groups(call: &mut Call<'_>) -> Outcome<Xml> {
    let scope = call.scope();
    let (ids, names) = (scope.list("GroupId"), scope.list("GroupName"));
    let filters = Filters::read::<SecurityGroup>(&scope)?;
    let rules =
        Rules { action: "DescribeSecurityGroups", fewest: 5, most: 1000, ids: "securityGroupInfo" };
    let page = Page::read(&scope, rules, !ids.is_empty() || !names.is_empty())?;
    call.ready()?;
    let groups = &call.region.security_groups;
    if let Some(id) = ids.iter().find(|id| !groups.contains_key(*id)) {
        if !well_formed(id, "sg") {
            return Err(launch::malformed("InvalidGroupId.Malformed", id, "sg"));
        }
        let message = format!("The security group '{id}' does not exist");
        return Err(ApiError::client("InvalidGroup.NotFound", message));
    }
    // Names work only in the default VPC.
    let default = call.region.vpcs.values().find(|vpc| vpc.default).map(|vpc| &vpc.id);
    let named = |group: &SecurityGroup| Some(&group.vpc) == default && names.contains(&group.name);
    if let Some(name) = names
        .iter()
        .find(|name| !groups.values().any(|g| Some(&g.vpc) == default && g.name == **name))
    {
        let message = format!("The security group '{name}' does not exist in default VPC");
        return Err(ApiError::client("InvalidGroup.NotFound", message));
    }
    let found = groups
        .values()
        .filter(|group| ids.is_empty() || ids.contains(&group.id))
        .filter(|group| names.is_empty() || named(group))
        .filter(|group| filters.admit(*group));
    let (page, next) = page.cut(found, |group| group.id.clone());
    let settings = &call.region.settings;
    let mut xml = Xml::default();
    xml.items("securityGroupInfo", page, |xml, group| {
        xml.text("ownerId", &settings.account);
        xml.text("groupId", &group.id);
        xml.text("groupName", &group.name);
        xml.text("groupDescription", &group.description);
        xml.text("vpcId", &group.vpc);
        xml.node("ipPermissions", |_| {});
        xml.items("ipPermissionsEgress", [()], |xml, ()| {
            xml.text("ipProtocol", "-1");
            xml.node("groups", |_| {});
            xml.items("ipRanges", [()], |xml, ()| xml.text("cidrIp", "0.0.0.0/0"));
            xml.node("ipv6Ranges", |_| {});
            xml.node("prefixListIds", |_| {});
        });
        tag_set(xml, &group.tags);
        xml.text(
            "securityGroupArn",
            format_args!(
                "arn:aws:ec2:{}:{}:security-group/{}",
                settings.region, settings.account, group.id
            ),
        );
    });
    xml.maybe("nextToken", next);
    Ok(xml)
}

impl Filtered for SecurityGroup {
    const NAMES: &'static [&'static str] = &["description", "group-id", "group-name", "vpc-id"];

    fn values(&self, name: &str) -> Vec<Cow<'_, str>> {
        vec![
            match name {
                "description" => self.description.as_str(),
                "group-id" => self.id.as_str(),
                "group-name" => self.name.as_str(),
                _ => self.vpc.as_str(),
            }
            .into(),
        ]
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.tags)
    }
}
