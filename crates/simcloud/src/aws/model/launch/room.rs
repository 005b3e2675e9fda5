//! How many instances there is room for.

use super::super::{
    Region,
    capacity::{Bucket, Pool},
    error::{ApiError, Outcome},
    groups::GroupPlace,
    instance::SpotOptions,
    types::{self, InstanceType},
};

impl Region {
    /// How many of the wanted instances can be, or why not even the fewest can.
    pub(super) fn how_many(
        &self,
        pool: &Pool,
        of: &'static InstanceType,
        group: Option<&GroupPlace>,
        spot: Option<&SpotOptions>,
        (min, max): (u32, u32),
        host: Option<&String>,
    ) -> Outcome<u32> {
        if let Some(group) = group.filter(|group| group.room < min) {
            return Err(group.is_full());
        }
        let vcpu_room = self.vcpu_room(of, spot.is_some());
        if vcpu_room.is_some_and(|(room, _)| room < min) {
            return Err(match (spot.is_some(), vcpu_room) {
                (true, _) => ApiError::client(
                    "MaxSpotInstanceCountExceeded",
                    "Max spot instance count exceeded",
                ),
                (false, room) => ApiError::client(
                    "VcpuLimitExceeded",
                    format!(
                        "You have requested more vCPU capacity than your current vCPU limit of {} \
                         allows for the instance bucket that the specified instance type belongs \
                         to. Please visit http://aws.amazon.com/contact-us/ec2-request to request \
                         an adjustment to this limit.",
                        room.map_or(0, |(_, limit)| limit)
                    ),
                ),
            });
        }
        if let Some(spot) = spot {
            let price = self.capacity.spot_price(&pool.zone, of);
            if spot.max_price.is_some_and(|max| max < price) {
                return Err(ApiError::client(
                    "SpotMaxPriceTooLow",
                    format!(
                        "Your Spot request price of {} is lower than the minimum required Spot \
                         request fulfillment price of {}.",
                        spot.max_price.map(types::price).unwrap_or_default(),
                        types::price(price)
                    ),
                ));
            }
        }
        // A Dedicated Host and a reservation bring their own capacity.
        let free = if host.is_some() { u32::MAX } else { self.capacity.free(pool) };
        if free < min {
            return Err(self.no_capacity(pool, of));
        }
        let group_room = group.map_or(u32::MAX, |group| group.room);
        Ok(max.min(free).min(group_room).min(vcpu_room.map_or(u32::MAX, |(room, _)| room)))
    }

    /// How many more instances the vCPU quota allows, and the quota.
    fn vcpu_room(&self, of: &InstanceType, spot: bool) -> Option<(u32, u32)> {
        let bucket = Bucket::of(of);
        let quotas = &self.settings.quotas;
        let limits = if spot { &quotas.spot_vcpus } else { &quotas.on_demand_vcpus };
        let limit = *limits.get(bucket.name())?;
        let used = self.capacity.vcpus(bucket, spot);
        Some((limit.saturating_sub(used) / of.vcpus.max(1), limit))
    }

    pub(in super::super) fn no_capacity(&self, pool: &Pool, of: &InstanceType) -> ApiError {
        if pool.spot {
            return ApiError::server(
                "InsufficientInstanceCapacity",
                "There is no Spot capacity available that matches your request.",
            );
        }
        if let Some(group) = &pool.group {
            return ApiError::server(
                "InsufficientInstanceCapacity",
                format!(
                    "We currently do not have sufficient capacity to launch all of the additional \
                     requested instances into Placement Group '{group}'.",
                ),
            );
        }
        let others: Vec<&str> = self
            .zones
            .iter()
            .filter(|z| z.name != pool.zone)
            .filter(|z| self.capacity.free(&Pool { zone: z.name.clone(), ..pool.clone() }) > 0)
            .map(|z| z.name.as_str())
            .collect();
        let advice = if others.is_empty() {
            String::new()
        } else {
            format!(
                " You can currently get {} capacity by not specifying an Availability Zone in your \
                 request or choosing {}.",
                of.name,
                others.join(", ")
            )
        };
        ApiError::server(
            "InsufficientInstanceCapacity",
            format!(
                "We currently do not have sufficient {} capacity in the Availability Zone you \
                 requested ({}). Our system will be working on provisioning additional \
                 capacity.{advice}",
                of.name, pool.zone
            ),
        )
    }
}
