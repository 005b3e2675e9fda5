//! Dedicated Hosts.

use std::borrow::Cow;

use super::{tag_set, tags_for};
use crate::aws::{
    model::{
        ApiError, Outcome,
        hosts::{self, HOST_VCPUS, Host, NewHosts},
        tags::Tags,
        types,
    },
    wire::{
        Call,
        filter::{Filtered, Filters},
        page::{Page, Rules},
        xml::Xml,
    },
};

pub(super) fn allocate(call: &mut Call<'_>) -> Outcome<Xml> {
    let scope = call.scope();
    let new = NewHosts {
        zone: scope.text("AvailabilityZone"),
        instance_type: scope.text("InstanceType"),
        family: scope.text("InstanceFamily"),
        quantity: scope.number("Quantity")?.unwrap_or(1),
        auto_placement: scope.text("AutoPlacement"),
        token: scope.text("ClientToken"),
        tags: tags_for(&scope, "dedicated-host")?,
    };
    for name in ["HostRecovery", "HostMaintenance"] {
        scope.text(name);
    }
    call.ready()?;
    let made = call.region.allocate_hosts(call.now, &new)?;
    let mut xml = Xml::default();
    xml.items("hostIdSet", made, Xml::bare);
    Ok(xml)
}

pub(super) fn describe(call: &mut Call<'_>) -> Outcome<Xml> {
    let scope = call.scope();
    let ids = scope.list("HostId");
    let filters = Filters::read::<Host>(&scope)?;
    let rules = Rules { action: "DescribeHosts", fewest: 5, most: 500, ids: "hostIdSet" };
    let page = Page::read(&scope, rules, !ids.is_empty())?;
    call.ready()?;
    let region = &*call.region;
    let seen: Vec<&Host> = region.hosts.values().filter_map(|host| host.seen(call.now)).collect();
    if let Some(id) = ids.iter().find(|id| !seen.iter().any(|host| host.id == **id)) {
        return Err(hosts::unknown(id));
    }
    let found = seen
        .into_iter()
        .filter(|host| (ids.is_empty() || ids.contains(&host.id)) && filters.admit(*host));
    let (page, next) = page.cut(found, |host| host.id.clone());
    let mut xml = Xml::default();
    xml.items("hostSet", page, |xml, host| {
        let on: Vec<_> = region.instances_on(&host.id).collect();
        let used: u32 = on.iter().map(|i| i.with.instance_type.vcpus).sum();
        xml.text("hostId", &host.id);
        xml.text("state", "available");
        xml.text("availabilityZone", &host.zone);
        xml.text("autoPlacement", &host.auto_placement);
        xml.time("allocationTime", host.allocated);
        xml.text("ownerId", &region.settings.account);
        xml.maybe("clientToken", host.token.as_ref());
        xml.node("hostProperties", |xml| {
            xml.maybe("instanceType", host.instance_type.as_ref());
            xml.text("instanceFamily", &host.family);
            xml.text("cores", HOST_VCPUS / 2);
            xml.text("sockets", 2);
            xml.text("totalVCpus", HOST_VCPUS);
        });
        xml.node("availableCapacity", |xml| {
            let one = host.instance_type.as_deref().and_then(types::find);
            xml.items("availableInstanceCapacity", one, |xml, of| {
                xml.text("instanceType", of.name);
                xml.text("totalCapacity", HOST_VCPUS / of.vcpus.max(1));
                xml.text("availableCapacity", HOST_VCPUS.saturating_sub(used) / of.vcpus.max(1));
            });
            xml.text("availableVCpus", HOST_VCPUS.saturating_sub(used));
        });
        xml.items("instances", on, |xml, instance| {
            xml.text("instanceId", &instance.id);
            xml.text("instanceType", instance.with.instance_type.name);
            xml.text("ownerId", &region.settings.account);
        });
        tag_set(xml, &host.tags);
    });
    xml.maybe("nextToken", next);
    Ok(xml)
}

pub(super) fn release(call: &mut Call<'_>) -> Outcome<Xml> {
    let ids = call.scope().list("HostId");
    if ids.is_empty() {
        return Err(ApiError::missing("HostId"));
    }
    call.ready()?;
    let (released, refused) = call.region.release_hosts(call.now, &ids);
    let mut xml = Xml::default();
    xml.items("successful", released, Xml::bare);
    xml.items("unsuccessful", refused, |xml, (id, error)| {
        xml.text("resourceId", id);
        xml.node("error", |xml| {
            xml.text("code", &error.code);
            xml.text("message", &error.message);
        });
    });
    Ok(xml)
}

impl Filtered for Host {
    const NAMES: &'static [&'static str] =
        &["auto-placement", "availability-zone", "client-token", "instance-type", "state"];

    fn values(&self, name: &str) -> Vec<Cow<'_, str>> {
        match name {
            "auto-placement" => vec![self.auto_placement.as_str().into()],
            "availability-zone" => vec![self.zone.as_str().into()],
            "client-token" => self.token.iter().map(|t| t.as_str().into()).collect(),
            "instance-type" => self.instance_type.iter().map(|t| t.as_str().into()).collect(),
            _ => vec!["available".into()],
        }
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.tags)
    }
}
