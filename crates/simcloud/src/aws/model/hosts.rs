//! Dedicated Hosts.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{
    Region,
    error::{ApiError, Outcome},
    events::Change,
    ids,
    lag::Lagged,
    launch::LaunchRequest,
    tags::Tags,
    types::{self, InstanceType},
};

/// A Dedicated Host.
#[derive(Clone, Debug)]
pub struct Host {
    /// `h-…`.
    pub id: String,
    /// Zone.
    pub zone: String,
    /// The one type it runs, or its family.
    pub instance_type: Option<String>,
    /// The family it runs.
    pub family: String,
    /// on or off: takes instances that name no host.
    pub auto_placement: String,
    /// When it was allocated.
    pub allocated: Timestamp,
    /// The client token of the call.
    pub token: Option<String>,
    /// Tags.
    pub tags: Tags,
}

/// A request for hosts.
#[derive(Clone, Debug, Default)]
pub struct NewHosts {
    /// Zone.
    pub zone: Option<String>,
    /// The one type.
    pub instance_type: Option<String>,
    /// The family.
    pub family: Option<String>,
    /// How many.
    pub quantity: i64,
    /// on or off.
    pub auto_placement: Option<String>,
    /// Client token.
    pub token: Option<String>,
    /// Tags.
    pub tags: Tags,
}

/// vCPUs of every simulated host: those of a 24xlarge of most families.
pub const HOST_VCPUS: u32 = 96;

impl Region {
    /// AllocateHosts.
    pub fn allocate_hosts(&mut self, now: Timestamp, new: &NewHosts) -> Outcome<Vec<String>> {
        if let Some(token) = &new.token {
            let same = self.hosts.values().filter(|h| h.latest().token.as_ref() == Some(token));
            let made: Vec<String> = same.map(|h| h.latest().id.clone()).collect();
            if !made.is_empty() {
                return Ok(made);
            }
        }
        let zone = new.zone.clone().ok_or_else(|| ApiError::missing("AvailabilityZone"))?;
        self.check_zone(&zone)?;
        let family = match (&new.instance_type, &new.family) {
            (Some(name), None) => {
                let of = types::find(name).filter(|of| of.dedicated_hosts()).ok_or_else(|| {
                    ApiError::invalid(format!(
                        "The instance type {name} is not supported on Dedicated Hosts."
                    ))
                })?;
                of.family().to_owned()
            }
            (None, Some(family)) => family.clone(),
            _ => {
                return Err(ApiError::combination(
                    "Specify either InstanceType or InstanceFamily, but not both.",
                ));
            }
        };
        let quantity = usize::try_from(new.quantity).unwrap_or(0);
        if quantity == 0 {
            return Err(ApiError::invalid("Value for parameter quantity must be positive."));
        }
        let held = self.hosts.values().filter(|h| h.latest().family == family).count();
        if held + quantity > self.settings.quotas.hosts_per_family as usize {
            return Err(ApiError::client(
                "HostLimitExceeded",
                "You have reached the limit on the number of Dedicated Hosts that you can allocate.",
            ));
        }
        let lag = self.settings.lag.after("AllocateHosts");
        let mut made = Vec::new();
        for _ in 0..quantity {
            let host = Host {
                id: ids::fresh(&self.random, "h"),
                zone: zone.clone(),
                instance_type: new.instance_type.clone(),
                family: family.clone(),
                auto_placement: new.auto_placement.clone().unwrap_or_else(|| "off".to_owned()),
                allocated: now,
                token: new.token.clone(),
                tags: new.tags.clone(),
            };
            made.push(host.id.clone());
            self.report(now, Change::HostAllocated(host.id.clone()));
            self.hosts.insert(host.id.clone(), Lagged::new(host, now, lag));
        }
        Ok(made)
    }

    /// ReleaseHosts: (released, refused with the reason).
    pub fn release_hosts(
        &mut self,
        now: Timestamp,
        ids: &[String],
    ) -> (Vec<String>, BTreeMap<String, ApiError>) {
        let (mut released, mut refused) = (Vec::new(), BTreeMap::new());
        for id in ids {
            if !self.hosts.contains_key(id) {
                refused.insert(id.clone(), unknown(id));
            } else if self.instances_on(id).next().is_some() {
                let message = format!("Dedicated host {id} cannot be released as it is occupied.");
                refused
                    .insert(id.clone(), ApiError::client("Client.InvalidHost.Occupied", message));
            } else {
                self.hosts.remove(id);
                self.report(now, Change::HostReleased(id.clone()));
                released.push(id.clone());
            }
        }
        (released, refused)
    }

    /// Instances on a host: stopped ones keep their place.
    pub fn instances_on<'a>(
        &'a self,
        host: &'a str,
    ) -> impl Iterator<Item = &'a super::instance::Instance> {
        self.instances.values().map(Lagged::latest).filter(move |instance| {
            instance.host.as_deref() == Some(host)
                && instance.state != super::instance::InstanceState::Terminated
        })
    }

    /// The host of a launch with host tenancy.
    pub(super) fn host_for(
        &self,
        request: &LaunchRequest,
        of: &InstanceType,
        zone: &str,
        tenancy: &str,
        spot: bool,
        count: u32,
    ) -> Outcome<Option<String>> {
        let placement = &request.placement;
        if tenancy != "host" {
            if placement.host.is_some() {
                return Err(ApiError::combination(
                    "The parameter HostId may only be used with a tenancy of 'host'.",
                ));
            }
            return Ok(None);
        }
        if spot {
            return Err(ApiError::combination(
                "Spot Instances cannot be launched with a tenancy of 'host'.",
            ));
        }
        let fits = |host: &Host| {
            let used: u32 = self.instances_on(&host.id).map(|i| i.with.instance_type.vcpus).sum();
            host.zone == zone
                && host.family == of.family()
                && host.instance_type.as_ref().is_none_or(|name| name == of.name)
                && used + of.vcpus * count <= HOST_VCPUS
        };
        let found = match &placement.host {
            Some(id) => {
                let host = self.hosts.get(id).ok_or_else(|| unknown(id))?.latest();
                fits(host).then_some(host)
            }
            None => self
                .hosts
                .values()
                .map(Lagged::latest)
                .find(|host| host.auto_placement == "on" && fits(host)),
        };
        found.map(|host| Some(host.id.clone())).ok_or_else(|| {
            let (code, message) = if placement.host.is_some() {
                ("InsufficientCapacityOnHost", "There is not enough capacity on the Dedicated Host to launch or start the instance.")
            } else {
                ("InsufficientHostCapacity", "Insufficient capacity. No compatible Dedicated Host with auto-placement is available.")
            };
            ApiError::client(code, message)
        })
    }
}

pub(crate) fn unknown(id: &str) -> ApiError {
    if ids::well_formed(id, "h") {
        let message = format!("The Dedicated Host ID '{id}' does not exist");
        ApiError::client("InvalidHostID.NotFound", message)
    } else {
        super::launch::malformed("InvalidHostID.Malformed", id, "h")
    }
}
