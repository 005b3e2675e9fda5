//! Spot requests and interruptions.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;

use super::{
    Due, Region,
    capacity::Limit,
    events::Change,
    ids,
    instance::{InstanceState, SpotOptions},
    lag::Lagged,
    lifecycle::Ended,
    tags::Tags,
    types::{self, InstanceType},
};

/// A spot request: RunInstances makes one for each spot instance.
#[derive(Clone, Debug)]
pub struct SpotRequest {
    /// `sir-…`.
    pub id: String,
    /// `i-…`.
    pub instance: String,
    /// Instance type.
    pub instance_type: &'static str,
    /// Zone.
    pub zone: String,
    /// open, active, closed or cancelled.
    pub state: &'static str,
    /// What EC2 says of it.
    pub status: (&'static str, &'static str),
    /// When the status was set.
    pub updated: Timestamp,
    /// When it was made.
    pub created: Timestamp,
    /// As it was asked for.
    pub options: SpotOptions,
    /// The most it pays, in dollars.
    pub price: String,
    /// Tags.
    pub tags: Tags,
}

/// What a spot instance is told before it is taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// terminate or stop.
    pub action: &'static str,
    /// When.
    pub at: Timestamp,
}

impl Region {
    pub(super) fn new_spot_request(
        &mut self,
        now: Timestamp,
        instance: &str,
        of: &'static InstanceType,
        zone: &str,
        options: &SpotOptions,
        tags: Tags,
    ) -> String {
        let id = ids::fresh_spot_request(&self.random);
        let request = SpotRequest {
            id: id.clone(),
            instance: instance.to_owned(),
            instance_type: of.name,
            zone: zone.to_owned(),
            state: "active",
            status: ("fulfilled", "Your spot request is fulfilled."),
            updated: now,
            created: now,
            options: options.clone(),
            price: types::price(options.max_price.unwrap_or(of.price_micros)),
            tags,
        };
        let lag = self.settings.lag.after("RunInstances");
        self.spot_requests.insert(id.clone(), Lagged::new(request, now, lag));
        id
    }

    pub(super) fn end_spot_request(&mut self, now: Timestamp, sequence: u64, who: Ended) {
        let instance = self.instances.get(&sequence).map(Lagged::latest);
        let id = instance.and_then(|instance| instance.spot_request.as_ref());
        if let Some(request) = id.and_then(|id| self.spot_requests.get_mut(id)) {
            request.change(now, Duration::ZERO, |request| {
                request.updated = now;
                (request.state, request.status) = match who {
                    Ended::BySpot => (
                        "closed",
                        (
                            "instance-terminated-no-capacity",
                            "Your Spot instance was terminated because there is no Spot capacity \
                             available.",
                        ),
                    ),
                    _ => (
                        "closed",
                        (
                            "instance-terminated-by-user",
                            "Your Spot instance was terminated by you.",
                        ),
                    ),
                };
            });
        }
    }

    /// Gives notice to a spot instance and takes it back when the time is up.
    pub(super) fn interrupt(&mut self, now: Timestamp, sequence: u64) {
        let Some(instance) = self.instances.get(&sequence).map(Lagged::latest) else {
            return;
        };
        let Some(spot) = instance.with.spot.as_ref() else {
            return;
        };
        if !matches!(instance.state, InstanceState::Pending | InstanceState::Running)
            || self.noticed.contains_key(&sequence)
        {
            return;
        }
        let action = if spot.interruption == "terminate" { "terminate" } else { "stop" };
        let at = now + self.settings.delays.spot_notice;
        self.noticed.insert(sequence, Notice { action, at });
        let id = instance.spot_request.clone();
        let instance = Arc::new(instance.clone());
        if let Some(request) = id.and_then(|id| self.spot_requests.get_mut(&id)) {
            request.change(now, Duration::ZERO, |request| {
                request.updated = now;
                request.status =
                    ("marked-for-termination", "Your Spot instance is marked for termination.");
            });
        }
        self.report(now, Change::SpotNotice { instance, action, at });
        self.plan(at, Due::Reclaim { sequence });
    }

    pub(super) fn reclaim(&mut self, at: Timestamp, sequence: u64) {
        self.noticed.remove(&sequence);
        let Some(instance) = self.instances.get(&sequence).map(Lagged::latest) else {
            return;
        };
        let stops = instance.with.spot.as_ref().is_some_and(|s| s.interruption != "terminate");
        if stops {
            self.halt(at, sequence, Duration::ZERO);
        } else {
            self.end(at, sequence, Ended::BySpot, Duration::ZERO);
        }
    }

    /// Sets a spot price, and interrupts what will not pay it.
    pub fn set_spot_price(&mut self, now: Timestamp, zone: &str, instance_type: &str, micros: u64) {
        self.capacity.set_spot_price(zone, instance_type, micros);
        let outbid: Vec<u64> = self
            .instances
            .values()
            .map(Lagged::latest)
            .filter(|i| i.zone == zone && i.with.instance_type.name == instance_type)
            .filter(|i| {
                let max = i.with.spot.as_ref().and_then(|spot| spot.max_price);
                max.is_some_and(|max| max < micros)
            })
            .map(|i| i.sequence)
            .collect();
        for sequence in outbid {
            self.interrupt(now, sequence);
        }
    }

    /// Sets a capacity limit. Spot instances above it are interrupted, the newest first; others
    /// keep running.
    pub fn limit_capacity(&mut self, now: Timestamp, limit: &Limit) {
        self.capacity.limit(limit.clone());
        let excess = self.capacity.in_use(limit).saturating_sub(limit.limit);
        if limit.spot != Some(true) || excess == 0 {
            return;
        }
        let of_pool = |region: &Self, sequence: &u64| {
            let instance = region.instances[sequence].latest();
            instance.state.occupies() && limit.covers(&instance.pool())
        };
        let newest: Vec<u64> =
            self.instances.keys().rev().copied().filter(|s| of_pool(self, s)).collect();
        for sequence in newest.into_iter().take(excess as usize) {
            self.interrupt(now, sequence);
        }
    }
}

impl Region {
    /// CancelSpotInstanceRequests: the instance stays. The state that the request is in now.
    pub fn cancel_spot_request(&mut self, now: Timestamp, id: &str) -> Option<&'static str> {
        let lag = self.settings.lag.after("CancelSpotInstanceRequests");
        let request = self.spot_requests.get_mut(id)?;
        if request.latest().state == "active" {
            request.change(now, lag, |request| {
                request.state = "cancelled";
                request.status = (
                    "request-canceled-and-instance-running",
                    "Your Spot request is canceled but your instance is still running.",
                );
                request.updated = now;
            });
        }
        Some(request.latest().state)
    }
}
