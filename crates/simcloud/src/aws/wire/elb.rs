//! The calls of Elastic Load Balancing, first generation.

use super::{Call, Handler, xml::Xml};
use crate::aws::model::{ApiError, Outcome, balancers};

/// Every call that is served.
pub(super) const ACTIONS: &[(&str, Handler)] = &[
    ("DescribeLoadBalancers", load_balancers),
    ("RegisterInstancesWithLoadBalancer", |call| change(call, true)),
    ("DeregisterInstancesFromLoadBalancer", |call| change(call, false)),
    ("DescribeInstanceHealth", health),
];

fn load_balancers(call: &mut Call<'_>) -> Outcome<Xml> {
    let scope = call.scope();
    let names = scope.list("LoadBalancerNames.member");
    scope.number("PageSize")?;
    scope.text("Marker");
    call.ready()?;
    let all = &call.region.classic;
    if let Some(name) = names.iter().find(|name| !all.contains_key(*name)) {
        return Err(balancers::unknown_classic(name));
    }
    let found = all.values().filter(|b| names.is_empty() || names.contains(&b.name));
    let mut xml = Xml::default();
    xml.members("LoadBalancerDescriptions", found, |xml, balancer| {
        xml.text("LoadBalancerName", &balancer.name);
        xml.text("DNSName", &balancer.dns_name);
        xml.members("AvailabilityZones", &balancer.zones, Xml::bare);
        xml.text("VPCId", &balancer.vpc);
        xml.members("Instances", &balancer.instances, |xml, id| xml.text("InstanceId", id));
        xml.time("CreatedTime", balancer.created);
        xml.text("Scheme", "internal");
    });
    Ok(xml)
}

fn change(call: &mut Call<'_>, add: bool) -> Outcome<Xml> {
    let scope = call.scope();
    let name = scope.required("LoadBalancerName")?;
    let instances = instances(call);
    if instances.is_empty() {
        return Err(ApiError::client("ValidationError", "Instances must not be empty"));
    }
    call.ready()?;
    let left = call.region.change_classic(&name, &instances, add)?;
    let mut xml = Xml::default();
    xml.members("Instances", left, |xml, id| xml.text("InstanceId", id));
    Ok(xml)
}

fn instances(call: &Call<'_>) -> Vec<String> {
    let entries = call.scope().entries("Instances.member");
    entries.iter().filter_map(|entry| entry.text("InstanceId")).collect()
}

fn health(call: &mut Call<'_>) -> Outcome<Xml> {
    let name = call.scope().required("LoadBalancerName")?;
    let wanted = instances(call);
    call.ready()?;
    let balancer = call.region.classic.get(&name);
    let balancer = balancer.ok_or_else(|| balancers::unknown_classic(&name))?;
    let shown: Vec<&String> = if wanted.is_empty() {
        balancer.instances.iter().collect()
    } else {
        wanted.iter().collect()
    };
    let mut xml = Xml::default();
    xml.members("InstanceStates", shown, |xml, id| {
        let there = balancer.instances.contains(id);
        xml.text("InstanceId", id);
        xml.text("State", if there { "InService" } else { "OutOfService" });
        xml.text("ReasonCode", if there { "N/A" } else { "Instance" });
        xml.text("Description", "N/A");
    });
    Ok(xml)
}
