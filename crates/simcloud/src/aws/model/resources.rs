//! Tags on whatever has an identifier.

use std::time::Duration;

use jiff::Timestamp;

use super::{
    Lagged, Region,
    error::{ApiError, Outcome},
    events::Change,
    hosts, ids, launch,
    tags::{self, Tags},
    volumes,
};

/// The kind of a resource, as DescribeTags and tag specifications name it.
pub fn kind_of(id: &str) -> &'static str {
    match id.rsplit_once('-').map(|(prefix, _)| prefix) {
        Some("i") => "instance",
        Some("vol") => "volume",
        Some("pg") => "placement-group",
        Some("subnet") => "subnet",
        Some("sg") => "security-group",
        Some("vpc") => "vpc",
        Some("ami") => "image",
        Some("key") => "key-pair",
        Some("h") => "dedicated-host",
        Some("dopt") => "dhcp-options",
        Some("sir") => "spot-instances-request",
        _ => "",
    }
}

impl Region {
    /// CreateTags: on every resource, or on none.
    pub fn create_tags(&mut self, now: Timestamp, ids: &[String], new: &Tags) -> Outcome<()> {
        let mut changes = Vec::new();
        for id in ids {
            changes.push((id.clone(), tags::added(self.tags_of(now, id)?, new)?));
        }
        self.set_all(now, changes, "CreateTags");
        Ok(())
    }

    /// DeleteTags: on every resource, or on none.
    pub fn delete_tags(
        &mut self,
        now: Timestamp,
        ids: &[String],
        gone: &[(String, Option<String>)],
    ) -> Outcome<()> {
        let mut changes = Vec::new();
        for id in ids {
            changes.push((id.clone(), tags::removed(self.tags_of(now, id)?, gone)));
        }
        self.set_all(now, changes, "DeleteTags");
        Ok(())
    }

    fn set_all(&mut self, now: Timestamp, changes: Vec<(String, Tags)>, action: &str) {
        let lag = self.settings.lag.after(action);
        for (id, tags) in changes {
            self.set_tags(now, lag, &id, tags.clone());
            self.report(now, Change::Tags { resource: id, tags });
        }
    }

    /// The tags of a resource as they are, if callers can see it.
    fn tags_of(&self, now: Timestamp, id: &str) -> Outcome<&Tags> {
        fn visible<T: Clone>(lagged: Option<&Lagged<T>>, now: Timestamp) -> Option<&T> {
            lagged.filter(|lagged| lagged.seen(now).is_some()).map(Lagged::latest)
        }
        let found = match kind_of(id) {
            "instance" => {
                let sequence = self.resolve(now, std::slice::from_ref(&id.to_owned()))?;
                sequence.first().map(|sequence| &self.instances[sequence].latest().tags)
            }
            "volume" => visible(self.volumes.get(id), now).map(|v| &v.tags),
            "placement-group" => {
                let group = self.groups.values().find(|group| group.latest().id == id);
                visible(group, now).map(|group| &group.tags)
            }
            "subnet" => self.subnets.get(id).map(|s| &s.tags),
            "security-group" => self.security_groups.get(id).map(|s| &s.tags),
            "vpc" => self.vpcs.get(id).map(|v| &v.tags),
            "image" => self.images.get(id).map(|i| &i.tags),
            "key-pair" => self.keys.values().find(|key| key.id == id).map(|key| &key.tags),
            "dedicated-host" => visible(self.hosts.get(id), now).map(|host| &host.tags),
            "dhcp-options" => self.dhcp_options.get(id).map(|options| &options.tags),
            "spot-instances-request" => {
                visible(self.spot_requests.get(id), now).map(|request| &request.tags)
            }
            _ => None,
        };
        found.ok_or_else(|| unknown(id))
    }

    fn set_tags(&mut self, now: Timestamp, lag: Duration, id: &str, tags: Tags) {
        let slot = match kind_of(id) {
            "instance" => {
                let sequence = self.by_id.get(id);
                if let Some(instance) = sequence.and_then(|s| self.instances.get_mut(s)) {
                    instance.change(now, lag, |instance| instance.tags = tags);
                }
                return;
            }
            "volume" => {
                if let Some(volume) = self.volumes.get_mut(id) {
                    volume.change(now, lag, |volume| volume.tags = tags);
                }
                return;
            }
            "placement-group" => {
                let group = self.groups.values_mut().find(|group| group.latest().id == id);
                if let Some(group) = group {
                    group.change(now, lag, |group| group.tags = tags);
                }
                return;
            }
            "dedicated-host" => {
                if let Some(host) = self.hosts.get_mut(id) {
                    host.change(now, lag, |host| host.tags = tags);
                }
                return;
            }
            "spot-instances-request" => {
                if let Some(request) = self.spot_requests.get_mut(id) {
                    request.change(now, lag, |request| request.tags = tags);
                }
                return;
            }
            "subnet" => self.subnets.get_mut(id).map(|s| &mut s.tags),
            "security-group" => self.security_groups.get_mut(id).map(|s| &mut s.tags),
            "vpc" => self.vpcs.get_mut(id).map(|v| &mut v.tags),
            "image" => self.images.get_mut(id).map(|i| &mut i.tags),
            "key-pair" => self.keys.values_mut().find(|key| key.id == id).map(|key| &mut key.tags),
            "dhcp-options" => self.dhcp_options.get_mut(id).map(|options| &mut options.tags),
            _ => None,
        };
        if let Some(slot) = slot {
            *slot = tags;
        }
    }

    /// (resource, tags) of everything that callers see.
    pub(crate) fn all_tags(&self, now: Timestamp) -> Vec<(&str, &Tags)> {
        let mut all: Vec<(&str, &Tags)> = Vec::new();
        let seen = self.instances.values().filter_map(|i| i.seen(now));
        all.extend(seen.map(|i| (i.id.as_str(), &i.tags)));
        let seen = self.volumes.values().filter_map(|v| v.seen(now));
        all.extend(seen.map(|v| (v.id.as_str(), &v.tags)));
        let seen = self.groups.values().filter_map(|g| g.seen(now));
        all.extend(seen.map(|g| (g.id.as_str(), &g.tags)));
        let seen = self.hosts.values().filter_map(|h| h.seen(now));
        all.extend(seen.map(|h| (h.id.as_str(), &h.tags)));
        let seen = self.spot_requests.values().filter_map(|r| r.seen(now));
        all.extend(seen.map(|r| (r.id.as_str(), &r.tags)));
        all.extend(self.subnets.values().map(|s| (s.id.as_str(), &s.tags)));
        all.extend(self.security_groups.values().map(|s| (s.id.as_str(), &s.tags)));
        all.extend(self.vpcs.values().map(|v| (v.id.as_str(), &v.tags)));
        all.extend(self.images.values().map(|i| (i.id.as_str(), &i.tags)));
        all.extend(self.keys.values().map(|k| (k.id.as_str(), &k.tags)));
        all.extend(self.dhcp_options.values().map(|d| (d.id.as_str(), &d.tags)));
        all
    }
}

fn unknown(id: &str) -> ApiError {
    match kind_of(id) {
        "volume" => volumes::unknown(id),
        "image" => launch::unknown_image(id),
        "subnet" => launch::unknown_subnet(id),
        "dedicated-host" => hosts::unknown(id),
        "security-group" if ids::well_formed(id, "sg") => ApiError::client(
            "InvalidGroup.NotFound",
            format!("The security group '{id}' does not exist"),
        ),
        "vpc" if ids::well_formed(id, "vpc") => {
            ApiError::client("InvalidVpcID.NotFound", format!("The vpc ID '{id}' does not exist"))
        }
        _ => ApiError::client("InvalidID", format!("The ID '{id}' is not valid")),
    }
}
