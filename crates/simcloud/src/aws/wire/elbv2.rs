//! The calls of Elastic Load Balancing, second generation.

use super::{Call, Handler, form::Scope, xml::Xml};
use crate::aws::model::{
    ApiError, Outcome,
    balancers::{self, LoadBalancer, Target, TargetGroup, TargetState},
};

/// Every call that is served.
pub(super) const ACTIONS: &[(&str, Handler)] = &[
    ("DescribeLoadBalancers", load_balancers),
    ("DescribeTargetGroups", target_groups),
    ("RegisterTargets", register),
    ("DeregisterTargets", deregister),
    ("DescribeTargetHealth", health),
];

/// Pages by `Marker` and `PageSize`; markers are names.
fn page<'a, T>(
    scope: &Scope<'_>,
    all: impl Iterator<Item = &'a T>,
    name: impl Fn(&T) -> &String,
) -> Outcome<(Vec<&'a T>, Option<String>)> {
    let size = scope.number("PageSize")?.unwrap_or(400);
    let size = usize::try_from(size).ok().filter(|size| (1..=400).contains(size));
    let Some(size) = size else {
        return Err(ApiError::client("ValidationError", "PageSize must be between 1 and 400"));
    };
    let marker = scope.text("Marker").filter(|marker| !marker.is_empty());
    let mut rest =
        all.skip_while(|entry| marker.as_ref().is_some_and(|marker| name(entry) <= marker));
    let page: Vec<&T> = rest.by_ref().take(size).collect();
    let more = rest.next().is_some();
    let next = page.last().filter(|_| more).map(|last| name(last).clone());
    Ok((page, next))
}

fn load_balancers(call: &mut Call<'_>) -> Outcome<Xml> {
    let scope = call.scope();
    let (names, arns) = (scope.list("Names.member"), scope.list("LoadBalancerArns.member"));
    let all = &call.region.balancers;
    let found = all.values().filter(|balancer| {
        (names.is_empty() && arns.is_empty())
            || names.contains(&balancer.name)
            || arns.contains(&balancer.arn)
    });
    let (page, next) = page(&scope, found, |balancer: &LoadBalancer| &balancer.name)?;
    call.ready()?;
    let missing = names.iter().find(|name| !all.contains_key(*name));
    let missing = missing.or(arns.iter().find(|arn| !all.values().any(|b| b.arn == **arn)));
    if let Some(missing) = missing {
        return Err(ApiError::client(
            "LoadBalancerNotFound",
            format!("Load balancers '[{missing}]' not found"),
        ));
    }
    let region = &call.region.settings.region;
    let mut xml = Xml::default();
    xml.members("LoadBalancers", page, |xml, balancer| {
        xml.text("LoadBalancerArn", &balancer.arn);
        let id = balancer.arn.rsplit('/').next().unwrap_or_default();
        xml.text("DNSName", format_args!("{}-{id}.elb.{region}.amazonaws.com", balancer.name));
        xml.text("CanonicalHostedZoneId", "Z26RNL4JYFTOTI");
        xml.time("CreatedTime", balancer.created);
        xml.text("LoadBalancerName", &balancer.name);
        xml.text("Scheme", &balancer.scheme);
        xml.text("VpcId", &balancer.vpc);
        xml.node("State", |xml| xml.text("Code", "active"));
        xml.text("Type", &balancer.kind);
        xml.members("AvailabilityZones", &balancer.subnets, |xml, (zone, subnet)| {
            xml.text("ZoneName", zone);
            xml.text("SubnetId", subnet);
            xml.node("LoadBalancerAddresses", |_| {});
        });
        xml.text("IpAddressType", "ipv4");
    });
    xml.maybe("NextMarker", next);
    Ok(xml)
}

fn target_groups(call: &mut Call<'_>) -> Outcome<Xml> {
    let scope = call.scope();
    let balancer = scope.text("LoadBalancerArn");
    let (names, arns) = (scope.list("Names.member"), scope.list("TargetGroupArns.member"));
    let all = &call.region.target_groups;
    let mut sorted: Vec<&TargetGroup> = all.values().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    let found = sorted.iter().copied().filter(|group| {
        balancer.as_ref().is_none_or(|arn| group.balancers.contains(arn))
            && ((names.is_empty() && arns.is_empty())
                || names.contains(&group.name)
                || arns.contains(&group.arn))
    });
    let (page, next) = page(&scope, found, |group: &TargetGroup| &group.name)?;
    call.ready()?;
    if let Some(arn) = balancer.filter(|arn| !call.region.balancers.values().any(|b| b.arn == *arn))
    {
        let message = format!("Load balancer '{arn}' not found");
        return Err(ApiError::client("LoadBalancerNotFound", message));
    }
    if let Some(arn) = arns.iter().find(|arn| !all.contains_key(*arn)) {
        return Err(balancers::unknown_target_group(arn));
    }
    if names.iter().any(|name| !sorted.iter().any(|group| group.name == *name)) {
        let message = "One or more target groups not found";
        return Err(ApiError::client("TargetGroupNotFound", message));
    }
    let mut xml = Xml::default();
    xml.members("TargetGroups", page, |xml, group| {
        xml.text("TargetGroupArn", &group.arn);
        xml.text("TargetGroupName", &group.name);
        xml.text("Protocol", &group.protocol);
        xml.text("Port", group.port);
        xml.text("VpcId", &group.vpc);
        xml.text("HealthCheckProtocol", "HTTPS");
        xml.text("HealthCheckPort", group.port);
        xml.text("HealthCheckEnabled", true);
        xml.text("HealthCheckIntervalSeconds", 10);
        xml.text("HealthCheckTimeoutSeconds", 10);
        xml.text("HealthyThresholdCount", 2);
        xml.text("UnhealthyThresholdCount", 2);
        xml.text("HealthCheckPath", "/readyz");
        xml.node("Matcher", |xml| xml.text("HttpCode", "200-399"));
        xml.members("LoadBalancerArns", &group.balancers, Xml::bare);
        xml.text("TargetType", &group.target_type);
        xml.text("IpAddressType", "ipv4");
    });
    xml.maybe("NextMarker", next);
    Ok(xml)
}

fn targets(scope: &Scope<'_>) -> Outcome<Vec<Target>> {
    let entries = scope.entries("Targets.member");
    entries
        .iter()
        .map(|entry| {
            let port = entry.number("Port")?;
            entry.text("AvailabilityZone");
            let checked = port.map(|port| {
                u16::try_from(port).ok().filter(|port| *port > 0).ok_or_else(|| {
                    ApiError::client("ValidationError", format!("Port {port} is not valid"))
                })
            });
            Ok(Target { id: entry.required("Id")?, port: checked.transpose()? })
        })
        .collect()
}

fn register(call: &mut Call<'_>) -> Outcome<Xml> {
    let (arn, targets) = group_and_targets(call)?;
    call.region.register_targets(call.now, &arn, &targets)?;
    Ok(Xml::default())
}

fn deregister(call: &mut Call<'_>) -> Outcome<Xml> {
    let (arn, targets) = group_and_targets(call)?;
    call.region.deregister_targets(call.now, &arn, &targets)?;
    Ok(Xml::default())
}

fn group_and_targets(call: &Call<'_>) -> Outcome<(String, Vec<Target>)> {
    let scope = call.scope();
    let (arn, targets) = (scope.required("TargetGroupArn")?, targets(&scope)?);
    if targets.is_empty() {
        return Err(ApiError::client("ValidationError", "At least one target must be specified"));
    }
    call.ready()?;
    Ok((arn, targets))
}

fn health(call: &mut Call<'_>) -> Outcome<Xml> {
    let scope = call.scope();
    let arn = scope.required("TargetGroupArn")?;
    let wanted = targets(&scope)?;
    scope.list("Include.member");
    call.ready()?;
    let group = call.region.target_groups.get(&arn);
    let group = group.ok_or_else(|| balancers::unknown_target_group(&arn))?;
    let mut shown: Vec<(String, u16, Option<TargetState>)> = Vec::new();
    if wanted.is_empty() {
        shown.extend(group.targets.iter().map(|((id, port), s)| (id.clone(), *port, Some(*s))));
    }
    for target in wanted {
        let port = target.port.unwrap_or(group.port);
        let state = group.targets.get(&(target.id.clone(), port)).copied();
        shown.push((target.id, port, state));
    }
    let mut xml = Xml::default();
    xml.members("TargetHealthDescriptions", shown, |xml, (id, port, state)| {
        xml.node("Target", |xml| {
            xml.text("Id", id);
            xml.text("Port", port);
        });
        xml.text("HealthCheckPort", group.port);
        xml.node("TargetHealth", |xml| {
            let (name, reason) = match state {
                Some(TargetState::Initial) => ("initial", Some("Elb.RegistrationInProgress")),
                Some(TargetState::Healthy) => ("healthy", None),
                Some(TargetState::Draining) => {
                    ("draining", Some("Target.DeregistrationInProgress"))
                }
                None => ("unused", Some("Target.NotRegistered")),
            };
            xml.text("State", name);
            xml.maybe("Reason", reason);
        });
    });
    Ok(xml)
}
