//! Making what was planned.

use std::{net::Ipv4Addr, sync::Arc};

use jiff::Timestamp;

use super::super::{
    Due, Region,
    error::Outcome,
    events::Change,
    groups::{GroupPlace, Strategy},
    ids,
    instance::{Instance, InstanceState, Interface, StateReason},
    lag::Lagged,
    network,
    tags::Tags,
    volumes,
};
use super::{plan::Plan, request::LaunchRequest, unknown_subnet};

impl Region {
    pub(super) fn make(
        &mut self,
        now: Timestamp,
        request: &LaunchRequest,
        plan: &Plan,
    ) -> Outcome<Vec<u64>> {
        let with = Arc::new(plan.with.clone());
        let devices = volumes::planned(&plan.image, &request.devices)?;
        let none = Tags::new();
        let tags_for = |kind: &str| request.tags.get(kind).unwrap_or(&none).clone();
        let lag = self.settings.lag.after("RunInstances");
        let mut sequences = Vec::new();
        for launch_index in 0..plan.count {
            let id = ids::fresh(&self.random, "i");
            let sequence = self.next_sequence();
            let interfaces = self.make_interfaces(now, &id, plan)?;
            let public = plan.interfaces.first().is_some_and(|i| i.public);
            let public_ip = public.then(|| self.public_address());
            let partition = plan.group.as_ref().and_then(|group| self.partition_for(group, plan));
            let attached = self.attach_new(now, &id, &plan.zone, &devices, &tags_for("volume"));
            let spot_request = plan.with.spot.as_ref().map(|spot| {
                self.new_spot_request(
                    now,
                    &id,
                    plan.with.instance_type,
                    &plan.zone,
                    spot,
                    tags_for("spot-instances-request"),
                )
            });
            let instance = Instance {
                sequence,
                id: id.clone(),
                launch_index,
                with: Arc::clone(&with),
                state: InstanceState::Pending,
                epoch: 0,
                reason: Some(StateReason { code: "pending", message: "pending".to_owned() }),
                transition: String::new(),
                launched: now,
                zone: plan.zone.clone(),
                vpc: Some(plan.vpc.clone()),
                interfaces,
                public_ip,
                group: plan.group.as_ref().map(|g| (g.id.clone(), g.name.clone())),
                partition,
                host: plan.host.clone(),
                volumes: attached,
                spot_request,
                tags: tags_for("instance"),
            };
            if plan.host.is_none() {
                self.capacity.take(instance.pool());
            }
            if let Some(id) = &plan.with.capacity_reservation
                && let Some(reservation) = self.reservations.get_mut(id)
            {
                reservation.used += 1;
            }
            if let Some(group) = &plan.group {
                self.members.entry(group.name.clone()).or_default().insert(sequence);
            }
            self.by_id.insert(id, sequence);
            self.report(now, Change::InstanceLaunched(Arc::new(instance.clone())));
            self.instances.insert(sequence, Lagged::new(instance, now, lag));
            let boot = self.settings.delays.boot;
            let due = Due::State { sequence, epoch: 0, to: InstanceState::Running };
            self.plan(now + boot, due);
            sequences.push(sequence);
        }
        Ok(sequences)
    }

    fn partition_for(&self, group: &GroupPlace, plan: &Plan) -> Option<u32> {
        if group.strategy != Strategy::Partition {
            return None;
        }
        let partitions = group.partitions?;
        Some(
            group
                .partition
                .unwrap_or_else(|| self.emptiest_partition(&group.name, &plan.zone, partitions)),
        )
    }

    fn make_interfaces(
        &mut self,
        now: Timestamp,
        instance: &str,
        plan: &Plan,
    ) -> Outcome<Vec<Interface>> {
        let mut made = Vec::new();
        for (index, planned) in plan.interfaces.iter().enumerate() {
            let region = self.settings.region.clone();
            let number = self.random.u64();
            let Some(subnet) = self.subnets.get_mut(&planned.subnet) else {
                return Err(unknown_subnet(&planned.subnet));
            };
            let address = match planned.request.private_ip {
                Some(address) => subnet.take_exactly(address).map(|()| address)?,
                None => subnet.take().ok_or_else(|| unknown_subnet(&planned.subnet))?,
            };
            let dns_name = if plan.with.names.kind == "resource-name" {
                format!("{instance}.{}", network::private_domain(&region))
            } else {
                network::private_dns(&region, address)
            };
            let octets = number.to_be_bytes();
            made.push(Interface {
                id: ids::fresh(&self.random, "eni"),
                attachment: ids::fresh(&self.random, "eni-attach"),
                mac: format!(
                    "0a:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}",
                    octets[0], octets[1], octets[2], octets[3], octets[4]
                ),
                device_index: u32::try_from(index).unwrap_or(0),
                card_index: planned
                    .request
                    .card_index
                    .and_then(|i| u32::try_from(i).ok())
                    .unwrap_or(0),
                kind: planned.request.kind.clone().unwrap_or_else(|| "interface".to_owned()),
                subnet: planned.subnet.clone(),
                address,
                dns_name,
                groups: planned.groups.clone(),
                delete_on_termination: planned.request.delete_on_termination.unwrap_or(true),
                carrier: planned.request.carrier == Some(true),
                description: planned.request.description.clone().unwrap_or_default(),
                attached: now,
            });
        }
        Ok(made)
    }

    fn public_address(&self) -> Ipv4Addr {
        let [a, b, c, ..] = self.random.u64().to_be_bytes();
        Ipv4Addr::new(54, a, b, c)
    }
}
