//! Instances: listing them and changing their state.

use std::borrow::Cow;

use jiff::Timestamp;

use super::tag_set;
use crate::aws::{
    model::{
        Outcome, Region,
        instance::{Instance, InstanceState, Interface},
        lifecycle::Transition,
        network,
        tags::Tags,
    },
    wire::{
        Call,
        filter::{Filtered, Filters},
        page::{Page, Rules},
        xml::Xml,
    },
};

pub(super) fn describe(call: &mut Call<'_>) -> Outcome<Xml> {
    let scope = call.scope();
    let ids = scope.list("InstanceId");
    scope.flag("IncludeManagedResources")?;
    let filters = Filters::read::<Instance>(&scope)?;
    let rules = Rules { action: "DescribeInstances", fewest: 5, most: 1000, ids: "instancesSet" };
    let page = Page::read(&scope, rules, !ids.is_empty())?;
    call.ready()?;
    let seen = seen(call.region, call.now, &ids)?.filter(|instance| filters.admit(*instance));
    let (instances, next) = page.cut(seen, |instance| format!("{:020}", instance.sequence));

    let mut xml = Xml::default();
    let reservations = instances.chunk_by(|a, b| a.with.reservation.id == b.with.reservation.id);
    xml.items("reservationSet", reservations, |xml, members| {
        reservation_head(xml, call.region, members[0]);
        xml.items("instancesSet", members, |xml, member| instance(xml, call.region, member));
    });
    xml.maybe("nextToken", next);
    Ok(xml)
}

/// What callers see, in the order of launches: the instances they name, or all.
fn seen<'a>(
    region: &'a Region,
    now: Timestamp,
    ids: &[String],
) -> Outcome<impl Iterator<Item = &'a Instance> + use<'a>> {
    let mut named = region.resolve(now, ids)?;
    named.sort_unstable();
    let all = ids.is_empty().then(|| region.instances.values());
    let some = named.into_iter().filter_map(|sequence| region.instances.get(&sequence));
    Ok(all.into_iter().flatten().chain(some).filter_map(move |instance| instance.seen(now)))
}

pub(super) fn status(call: &mut Call<'_>) -> Outcome<Xml> {
    let scope = call.scope();
    let ids = scope.list("InstanceId");
    let all = scope.flag("IncludeAllInstances")?.unwrap_or(false);
    let filters = Filters::read::<Status<'_>>(&scope)?;
    let rules =
        Rules { action: "DescribeInstanceStatus", fewest: 5, most: 1000, ids: "instancesSet" };
    let page = Page::read(&scope, rules, !ids.is_empty())?;
    call.ready()?;
    let checks = call.region.settings.delays.status_checks;
    let seen = seen(call.region, call.now, &ids)?
        .filter(|instance| all || instance.state == InstanceState::Running)
        .map(|instance| {
            let status = match instance.state {
                InstanceState::Running if call.now >= instance.launched + checks => "ok",
                InstanceState::Running => "initializing",
                _ => "not-applicable",
            };
            Status { instance, status }
        })
        .filter(|status| filters.admit(status));
    let (page, next) = page.cut(seen, |status| format!("{:020}", status.instance.sequence));

    let mut xml = Xml::default();
    xml.items("instanceStatusSet", page, |xml, Status { instance, status }| {
        xml.text("instanceId", &instance.id);
        xml.text("availabilityZone", &instance.zone);
        state(xml, "instanceState", instance.state);
        for name in ["systemStatus", "instanceStatus"] {
            xml.node(name, |xml| {
                xml.text("status", status);
                if status != "not-applicable" {
                    xml.items("details", [()], |xml, ()| {
                        xml.text("name", "reachability");
                        xml.text("status", if status == "ok" { "passed" } else { "initializing" });
                    });
                }
            });
        }
    });
    xml.maybe("nextToken", next);
    Ok(xml)
}

struct Status<'a> {
    instance: &'a Instance,
    status: &'static str,
}

impl Filtered for Status<'_> {
    const NAMES: &'static [&'static str] = &[
        "availability-zone",
        "instance-state-code",
        "instance-state-name",
        "instance-status.reachability",
        "instance-status.status",
        "system-status.reachability",
        "system-status.status",
    ];

    fn values(&self, name: &str) -> Vec<Cow<'_, str>> {
        match name {
            "instance-status.status" | "system-status.status" => vec![self.status.into()],
            "instance-status.reachability" | "system-status.reachability" => {
                vec![if self.status == "ok" { "passed" } else { "initializing" }.into()]
            }
            other => self.instance.values(other),
        }
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.instance.tags)
    }
}

pub(super) fn terminate(call: &mut Call<'_>) -> Outcome<Xml> {
    let scope = call.scope();
    scope.flag("Force")?;
    scope.flag("SkipOsShutdown")?;
    let ids = wanted(call)?;
    Ok(transitions(&call.region.terminate(call.now, &ids)?))
}

pub(super) fn stop(call: &mut Call<'_>) -> Outcome<Xml> {
    let scope = call.scope();
    scope.flag("Force")?;
    scope.flag("Hibernate")?;
    scope.flag("SkipOsShutdown")?;
    let ids = wanted(call)?;
    Ok(transitions(&call.region.stop(call.now, &ids)?))
}

pub(super) fn start(call: &mut Call<'_>) -> Outcome<Xml> {
    call.scope().text("AdditionalInfo");
    let ids = wanted(call)?;
    Ok(transitions(&call.region.start(call.now, &ids)?))
}

fn wanted(call: &Call<'_>) -> Outcome<Vec<String>> {
    let ids = call.scope().list("InstanceId");
    if ids.is_empty() {
        return Err(crate::aws::model::ApiError::missing("InstanceId"));
    }
    call.ready()?;
    Ok(ids)
}

fn transitions(changed: &[Transition]) -> Xml {
    let mut xml = Xml::default();
    xml.items("instancesSet", changed, |xml, change| {
        xml.text("instanceId", &change.id);
        state(xml, "currentState", change.current);
        state(xml, "previousState", change.previous);
    });
    xml
}

fn state(xml: &mut Xml, name: &str, state: InstanceState) {
    xml.node(name, |xml| {
        xml.text("code", state.code());
        xml.text("name", state.as_str());
    });
}

/// What a reservation says of itself.
pub(super) fn reservation_head(xml: &mut Xml, region: &Region, first: &Instance) {
    xml.text("reservationId", &first.with.reservation.id);
    xml.text("ownerId", &region.settings.account);
    // Only of instances outside a VPC, which there are none of any more.
    xml.node("groupSet", |_| {});
}

/// One instance.
pub(super) fn instance(xml: &mut Xml, region: &Region, it: &Instance) {
    let with = &it.with;
    xml.text("instanceId", &it.id);
    xml.text("imageId", &with.image);
    state(xml, "instanceState", it.state);
    xml.text("privateDnsName", it.private_dns());
    let carrier = it.interfaces.first().is_some_and(|interface| interface.carrier);
    let public_ip = it.public_ip.filter(|_| !carrier);
    let public_dns = public_ip.map(|ip| network::public_dns(&region.settings.region, ip));
    xml.text("dnsName", public_dns.unwrap_or_default());
    xml.text("reason", &it.transition);
    xml.maybe("keyName", with.key_name.as_ref());
    xml.text("amiLaunchIndex", it.launch_index);
    xml.node("productCodes", |_| {});
    xml.text("instanceType", with.instance_type.name);
    xml.time("launchTime", it.launched);
    xml.node("placement", |xml| {
        xml.text("availabilityZone", &it.zone);
        if let Some((id, name)) = &it.group {
            xml.text("groupName", name);
            xml.text("groupId", id);
        } else {
            xml.text("groupName", "");
        }
        xml.maybe("partitionNumber", it.partition);
        xml.text("tenancy", &with.tenancy);
        xml.maybe("hostId", it.host.as_ref());
    });
    xml.node("monitoring", |xml| {
        xml.text("state", if with.monitoring { "enabled" } else { "disabled" });
    });
    xml.maybe("subnetId", it.subnet());
    xml.maybe("vpcId", it.vpc.as_ref());
    xml.maybe("privateIpAddress", it.private_ip());
    xml.maybe("ipAddress", public_ip);
    if !it.interfaces.is_empty() {
        xml.text("sourceDestCheck", true);
    }
    let groups = it.interfaces.first().map(|i| i.groups.as_slice()).unwrap_or_default();
    security_groups(xml, groups);
    if let Some(reason) = &it.reason {
        xml.node("stateReason", |xml| {
            xml.text("code", reason.code);
            xml.text("message", &reason.message);
        });
    }
    xml.text("architecture", &with.architecture);
    xml.text("rootDeviceType", "ebs");
    xml.text("rootDeviceName", &with.root_device);
    xml.items("blockDeviceMapping", &it.volumes, |xml, volume| {
        xml.text("deviceName", &volume.device);
        xml.node("ebs", |xml| {
            xml.text("volumeId", &volume.volume);
            xml.text("status", "attached");
            xml.time("attachTime", volume.since);
            xml.text("deleteOnTermination", volume.delete_on_termination);
        });
    });
    xml.text("virtualizationType", "hvm");
    if with.spot.is_some() {
        xml.text("instanceLifecycle", "spot");
    } else if with.capacity_block {
        xml.text("instanceLifecycle", "capacity-block");
    }
    xml.maybe("spotInstanceRequestId", it.spot_request.as_ref());
    xml.text("clientToken", with.reservation.token.as_deref().unwrap_or_default());
    tag_set(xml, &it.tags);
    xml.text("hypervisor", "xen");
    xml.items("networkInterfaceSet", &it.interfaces, |xml, one| interface(xml, region, it, one));
    if let Some((arn, id)) = &with.profile {
        xml.node("iamInstanceProfile", |xml| {
            xml.text("arn", arn);
            xml.text("id", id);
        });
    }
    xml.text("ebsOptimized", with.ebs_optimized);
    xml.text("enaSupport", true);
    xml.node("cpuOptions", |xml| {
        xml.text("coreCount", with.cpu.cores);
        xml.text("threadsPerCore", with.cpu.threads);
        xml.maybe("amdSevSnp", with.cpu.sev_snp.as_ref());
    });
    xml.maybe("capacityReservationId", with.capacity_reservation.as_ref());
    xml.node("capacityReservationSpecification", |xml| {
        if let Some(id) = &with.capacity_reservation {
            xml.node("capacityReservationTarget", |xml| xml.text("capacityReservationId", id));
        } else {
            let preference = with.capacity_preference.as_deref().unwrap_or("open");
            xml.text("capacityReservationPreference", preference);
        }
    });
    xml.node("hibernationOptions", |xml| xml.text("configured", false));
    xml.node("metadataOptions", |xml| {
        xml.text("state", if it.state == InstanceState::Pending { "pending" } else { "applied" });
        xml.text("httpTokens", &with.metadata.tokens);
        xml.text("httpPutResponseHopLimit", with.metadata.hop_limit);
        xml.text("httpEndpoint", &with.metadata.endpoint);
        xml.text("httpProtocolIpv6", &with.metadata.ipv6);
        xml.text("instanceMetadataTags", &with.metadata.tags);
    });
    xml.node("enclaveOptions", |xml| xml.text("enabled", false));
    xml.text("platformDetails", "Linux/UNIX");
    xml.text("usageOperation", "RunInstances");
    xml.time("usageOperationUpdateTime", it.launched);
    xml.node("privateDnsNameOptions", |xml| {
        xml.text("hostnameType", &with.names.kind);
        xml.text("enableResourceNameDnsARecord", with.names.a_record);
        xml.text("enableResourceNameDnsAAAARecord", with.names.aaaa_record);
    });
    xml.node("maintenanceOptions", |xml| xml.text("autoRecovery", "default"));
}

fn security_groups(xml: &mut Xml, groups: &[(String, String)]) {
    xml.items("groupSet", groups, |xml, (id, name)| {
        xml.text("groupId", id);
        xml.text("groupName", name);
    });
}

fn interface(xml: &mut Xml, region: &Region, it: &Instance, one: &Interface) {
    let association = |xml: &mut Xml| {
        if let Some(public) = it.public_ip.filter(|_| one.device_index == 0) {
            xml.node("association", |xml| {
                if one.carrier {
                    xml.text("carrierIp", public);
                    return xml.text("ipOwnerId", "amazon");
                }
                xml.text("publicIp", public);
                xml.text("publicDnsName", network::public_dns(&region.settings.region, public));
                xml.text("ipOwnerId", "amazon");
            });
        }
    };
    xml.text("networkInterfaceId", &one.id);
    xml.text("subnetId", &one.subnet);
    xml.maybe("vpcId", it.vpc.as_ref());
    xml.text("description", &one.description);
    xml.text("ownerId", &region.settings.account);
    xml.text("status", "in-use");
    xml.text("macAddress", &one.mac);
    xml.text("privateIpAddress", one.address);
    xml.text("privateDnsName", &one.dns_name);
    xml.text("sourceDestCheck", true);
    security_groups(xml, &one.groups);
    xml.node("attachment", |xml| {
        xml.text("attachmentId", &one.attachment);
        xml.text("deviceIndex", one.device_index);
        let attached = it.state != InstanceState::Pending;
        xml.text("status", if attached { "attached" } else { "attaching" });
        xml.time("attachTime", one.attached);
        xml.text("deleteOnTermination", one.delete_on_termination);
        xml.text("networkCardIndex", one.card_index);
    });
    association(xml);
    xml.items("privateIpAddressesSet", [()], |xml, ()| {
        xml.text("privateIpAddress", one.address);
        xml.text("privateDnsName", &one.dns_name);
        xml.text("primary", true);
        association(xml);
    });
    xml.node("ipv6AddressesSet", |_| {});
    xml.text("interfaceType", &one.kind);
}

impl Filtered for Instance {
    const NAMES: &'static [&'static str] = &[
        "architecture",
        "availability-zone",
        "block-device-mapping.delete-on-termination",
        "block-device-mapping.device-name",
        "block-device-mapping.volume-id",
        "capacity-reservation-id",
        "client-token",
        "dns-name",
        "host-id",
        "iam-instance-profile.arn",
        "image-id",
        "instance-id",
        "instance-lifecycle",
        "instance-state-code",
        "instance-state-name",
        "instance-type",
        "instance.group-id",
        "instance.group-name",
        "ip-address",
        "key-name",
        "launch-index",
        "launch-time",
        "metadata-options.http-tokens",
        "network-interface.network-interface-id",
        "network-interface.subnet-id",
        "network-interface.vpc-id",
        "placement-group-name",
        "placement-partition-number",
        "private-dns-name",
        "private-ip-address",
        "reservation-id",
        "root-device-name",
        "root-device-type",
        "spot-instance-request-id",
        "state-reason-code",
        "subnet-id",
        "tenancy",
        "virtualization-type",
        "vpc-id",
    ];

    fn values(&self, name: &str) -> Vec<Cow<'_, str>> {
        fn some<'a>(value: Option<impl Into<Cow<'a, str>>>) -> Vec<Cow<'a, str>> {
            value.map(Into::into).into_iter().collect()
        }
        let with = &self.with;
        match name {
            "architecture" => vec![with.architecture.as_str().into()],
            "availability-zone" => vec![self.zone.as_str().into()],
            "block-device-mapping.delete-on-termination" => {
                self.volumes.iter().map(|v| v.delete_on_termination.to_string().into()).collect()
            }
            "block-device-mapping.device-name" => {
                self.volumes.iter().map(|v| v.device.as_str().into()).collect()
            }
            "block-device-mapping.volume-id" => {
                self.volumes.iter().map(|v| v.volume.as_str().into()).collect()
            }
            "capacity-reservation-id" => some(with.capacity_reservation.as_deref()),
            "client-token" => some(with.reservation.token.as_deref()),
            "host-id" => some(self.host.as_deref()),
            "iam-instance-profile.arn" => some(with.profile.as_ref().map(|(arn, _)| arn.as_str())),
            "image-id" => vec![with.image.as_str().into()],
            "instance-id" => vec![self.id.as_str().into()],
            "instance-lifecycle" => some(with.spot.as_ref().map(|_| "spot")),
            "instance-state-code" => vec![self.state.code().to_string().into()],
            "instance-state-name" => vec![self.state.as_str().into()],
            "instance-type" => vec![with.instance_type.name.into()],
            "instance.group-id" => self
                .interfaces
                .iter()
                .flat_map(|i| &i.groups)
                .map(|(id, _)| id.as_str().into())
                .collect(),
            "instance.group-name" => self
                .interfaces
                .iter()
                .flat_map(|i| &i.groups)
                .map(|(_, name)| name.as_str().into())
                .collect(),
            "ip-address" => some(self.public_ip.map(|ip| ip.to_string())),
            "key-name" => some(with.key_name.as_deref()),
            "launch-index" => vec![self.launch_index.to_string().into()],
            "launch-time" => {
                vec![self.launched.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string().into()]
            }
            "metadata-options.http-tokens" => vec![with.metadata.tokens.as_str().into()],
            "network-interface.network-interface-id" => {
                self.interfaces.iter().map(|i| i.id.as_str().into()).collect()
            }
            "network-interface.subnet-id" => {
                self.interfaces.iter().map(|i| i.subnet.as_str().into()).collect()
            }
            "placement-group-name" => some(self.group.as_ref().map(|(_, name)| name.as_str())),
            "placement-partition-number" => some(self.partition.map(|n| n.to_string())),
            "private-dns-name" => vec![self.private_dns().into()],
            "private-ip-address" => some(self.private_ip().map(|ip| ip.to_string())),
            "reservation-id" => vec![with.reservation.id.as_str().into()],
            "root-device-name" => vec![with.root_device.as_str().into()],
            "root-device-type" => vec!["ebs".into()],
            "spot-instance-request-id" => some(self.spot_request.as_deref()),
            "state-reason-code" => some(self.reason.as_ref().map(|reason| reason.code)),
            "subnet-id" => some(self.subnet()),
            "tenancy" => vec![with.tenancy.as_str().into()],
            "virtualization-type" => vec!["hvm".into()],
            "vpc-id" | "network-interface.vpc-id" => some(self.vpc.as_deref()),
            _ => Vec::new(),
        }
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.tags)
    }
}
