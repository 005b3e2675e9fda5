//! The calls of EC2.

mod catalog;
mod groups;
mod hosts;
mod instances;
mod launch;
mod network;
mod spot;
mod tags;
mod volumes;

use super::{Handler, form::Scope, xml::Xml};
use crate::aws::model::{
    ApiError, Outcome,
    tags::{self as tag_rules, Tags},
};

/// Every call that is served.
pub(super) const ACTIONS: &[(&str, Handler)] = &[
    ("RunInstances", launch::run),
    ("DescribeInstances", instances::describe),
    ("DescribeInstanceStatus", instances::status),
    ("TerminateInstances", instances::terminate),
    ("StopInstances", instances::stop),
    ("StartInstances", instances::start),
    ("CreateTags", tags::create),
    ("DeleteTags", tags::delete),
    ("DescribeTags", tags::describe),
    ("CreatePlacementGroup", groups::create),
    ("DescribePlacementGroups", groups::describe),
    ("DeletePlacementGroup", groups::delete),
    ("DescribeImages", catalog::images),
    ("DescribeInstanceTypes", catalog::instance_types),
    ("DescribeInstanceTypeOfferings", catalog::offerings),
    ("DescribeKeyPairs", catalog::key_pairs),
    ("DescribeAvailabilityZones", network::zones),
    ("DescribeRegions", network::regions),
    ("DescribeVpcs", network::vpcs),
    ("DescribeDhcpOptions", network::dhcp_options),
    ("DescribeSubnets", network::subnets),
    ("DescribeSecurityGroups", network::security_groups),
    ("DescribeVolumes", volumes::describe),
    ("DeleteVolume", volumes::delete),
    ("DescribeSpotInstanceRequests", spot::describe),
    ("CancelSpotInstanceRequests", spot::cancel),
    ("AllocateHosts", hosts::allocate),
    ("DescribeHosts", hosts::describe),
    ("ReleaseHosts", hosts::release),
];

/// `<tagSet>`, if there are any.
fn tag_set(xml: &mut Xml, tags: &Tags) {
    if !tags.is_empty() {
        xml.items("tagSet", tags, |xml, (key, value)| {
            xml.text("key", key);
            xml.text("value", value);
        });
    }
}

/// `Tag.N`.
fn tag_list(scope: &Scope<'_>) -> Outcome<Vec<(String, String)>> {
    let entries = scope.entries("Tag").into_iter();
    entries
        .map(|tag| {
            let key = tag.text("Key").ok_or_else(|| ApiError::missing("Tag.Key"))?;
            Ok((key, tag.text("Value").unwrap_or_default()))
        })
        .collect()
}

/// `TagSpecification.N`: tags by kind of resource.
fn tag_specifications(scope: &Scope<'_>) -> Outcome<std::collections::BTreeMap<String, Tags>> {
    let mut found = std::collections::BTreeMap::new();
    for entry in scope.entries("TagSpecification") {
        let kind = entry.required("ResourceType")?;
        let tags = tag_rules::checked(tag_list(&entry)?)?;
        if found.insert(kind.clone(), tags).is_some() {
            return Err(ApiError::invalid(format!(
                "The same resource type '{kind}' may not be specified more than once in tag \
                 specifications"
            )));
        }
    }
    Ok(found)
}

/// The one kind of tag specification that a call takes.
fn tags_for(scope: &Scope<'_>, kind: &str) -> Outcome<Tags> {
    let mut found = tag_specifications(scope)?;
    let tags = found.remove(kind).unwrap_or_default();
    match found.into_keys().next() {
        None => Ok(tags),
        Some(other) => Err(ApiError::invalid(format!(
            "'{other}' is not a valid taggable resource type for this operation."
        ))),
    }
}
