//! Load balancers and their targets, of both generations.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
};

use jiff::Timestamp;

use super::{
    Due, Region,
    error::{ApiError, Outcome},
    events::Change,
    ids,
    tags::Tags,
};

/// A load balancer of the second generation.
#[derive(Clone, Debug)]
pub struct LoadBalancer {
    /// Its ARN.
    pub arn: String,
    /// Its name, unique in the region.
    pub name: String,
    /// network or application.
    pub kind: String,
    /// internal or internet-facing.
    pub scheme: String,
    /// `vpc-…`.
    pub vpc: String,
    /// (zone, subnet).
    pub subnets: Vec<(String, String)>,
    /// When it was made.
    pub created: Timestamp,
    /// Tags.
    pub tags: Tags,
}

/// A target group.
#[derive(Clone, Debug)]
pub struct TargetGroup {
    /// Its ARN.
    pub arn: String,
    /// Its name.
    pub name: String,
    /// ip or instance.
    pub target_type: String,
    /// TCP.
    pub protocol: String,
    /// Port of targets that name none.
    pub port: u16,
    /// `vpc-…`.
    pub vpc: String,
    /// The load balancers that use it.
    pub balancers: Vec<String>,
    /// Targets and their health.
    pub targets: BTreeMap<(String, u16), TargetState>,
}

/// Health of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetState {
    /// Being checked for the first time.
    Initial,
    /// Takes traffic.
    Healthy,
    /// Being taken out.
    Draining,
}

/// A classic load balancer.
#[derive(Clone, Debug)]
pub struct ClassicBalancer {
    /// Its name.
    pub name: String,
    /// Its DNS name.
    pub dns_name: String,
    /// `vpc-…`.
    pub vpc: String,
    /// Zones.
    pub zones: Vec<String>,
    /// Instances.
    pub instances: BTreeSet<String>,
    /// When it was made.
    pub created: Timestamp,
}

/// A target as a call names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// An address or an instance.
    pub id: String,
    /// Port; the group's if absent.
    pub port: Option<u16>,
}

impl Region {
    fn target_group(&mut self, arn: &str) -> Outcome<&mut TargetGroup> {
        self.target_groups.get_mut(arn).ok_or_else(|| unknown_target_group(arn))
    }

    /// RegisterTargets. A target that is there already stays as it is.
    pub fn register_targets(
        &mut self,
        now: Timestamp,
        arn: &str,
        targets: &[Target],
    ) -> Outcome<()> {
        let group = self.target_group(arn)?.clone();
        for target in targets {
            self.check_target(now, &group, target)?;
        }
        let healthy = now + self.settings.delays.target_healthy;
        for target in targets {
            let key = (target.id.clone(), target.port.unwrap_or(group.port));
            let known = self.target_group(arn)?.targets.get(&key).copied();
            if matches!(known, Some(TargetState::Initial | TargetState::Healthy)) {
                continue;
            }
            self.target_group(arn)?.targets.insert(key.clone(), TargetState::Initial);
            self.plan(healthy, Due::TargetHealthy { group: arn.to_owned(), target: key.clone() });
            self.report(now, Change::TargetRegistered { group: arn.to_owned(), target: key });
        }
        Ok(())
    }

    fn check_target(&self, now: Timestamp, group: &TargetGroup, target: &Target) -> Outcome<()> {
        let invalid = |message: String| Err(ApiError::client("InvalidTarget", message));
        if group.target_type == "ip" {
            if target.id.parse::<Ipv4Addr>().is_err() {
                return Err(ApiError::client(
                    "ValidationError",
                    format!("The IP address '{}' is not a valid IPv4 address", target.id),
                ));
            }
            return Ok(());
        }
        if !ids::well_formed(&target.id, "i") {
            return Err(ApiError::client(
                "ValidationError",
                format!("Instance ID '{}' is not valid", target.id),
            ));
        }
        let sequence = self.by_id.get(&target.id);
        let seen = sequence.and_then(|s| self.instances[s].seen(now));
        match seen {
            None => invalid(format!(
                "The following targets are not in the target group VPC '{}': '{}'",
                group.vpc, target.id
            )),
            Some(instance) if instance.state != super::instance::InstanceState::Running => {
                invalid(format!(
                    "The following targets are not in a running state and cannot be registered: \
                     '{}'",
                    target.id
                ))
            }
            Some(_) => Ok(()),
        }
    }

    /// DeregisterTargets. A target that is not there is no error.
    pub fn deregister_targets(
        &mut self,
        now: Timestamp,
        arn: &str,
        targets: &[Target],
    ) -> Outcome<()> {
        let drained = now + self.settings.delays.target_drained;
        let group = self.target_group(arn)?;
        let mut leaving = Vec::new();
        for target in targets {
            for (key, state) in &mut group.targets {
                let named = key.0 == target.id && target.port.is_none_or(|port| port == key.1);
                if named && *state != TargetState::Draining {
                    *state = TargetState::Draining;
                    leaving.push(key.clone());
                }
            }
        }
        for target in leaving {
            let group = arn.to_owned();
            self.plan(drained, Due::TargetGone { group: group.clone(), target: target.clone() });
            self.report(now, Change::TargetDeregistered { group, target });
        }
        Ok(())
    }

    pub(super) fn target_became_healthy(&mut self, group: &str, target: &(String, u16)) {
        let group = self.target_groups.get_mut(group);
        if let Some(state) = group.and_then(|group| group.targets.get_mut(target))
            && *state == TargetState::Initial
        {
            *state = TargetState::Healthy;
        }
    }

    pub(super) fn target_went(&mut self, group: &str, target: &(String, u16)) {
        if let Some(group) = self.target_groups.get_mut(group)
            && group.targets.get(target) == Some(&TargetState::Draining)
        {
            group.targets.remove(target);
        }
    }

    /// A terminated instance leaves the groups of instances by itself; addresses stay, which is
    /// why they must be deregistered.
    pub(super) fn deregister_instance(&mut self, at: Timestamp, instance: &str) {
        let mut gone = Vec::new();
        for group in self.target_groups.values_mut() {
            let keys: Vec<_> =
                group.targets.keys().filter(|(id, _)| id == instance).cloned().collect();
            for key in keys {
                group.targets.remove(&key);
                gone.push((group.arn.clone(), key));
            }
        }
        for (group, target) in gone {
            self.report(at, Change::TargetDeregistered { group, target });
        }
        for balancer in self.classic.values_mut() {
            balancer.instances.remove(instance);
        }
    }

    /// RegisterInstancesWithLoadBalancer and its opposite: the instances that are left.
    pub fn change_classic(
        &mut self,
        name: &str,
        instances: &[String],
        add: bool,
    ) -> Outcome<BTreeSet<String>> {
        for id in instances.iter().filter(|_| add) {
            if !self.by_id.contains_key(id) {
                let message = format!("Could not find EC2 instance {id}.");
                return Err(ApiError::client("InvalidInstance", message));
            }
        }
        let balancer = self.classic.get_mut(name).ok_or_else(|| unknown_classic(name))?;
        for id in instances {
            if add {
                balancer.instances.insert(id.clone());
            } else {
                balancer.instances.remove(id);
            }
        }
        Ok(balancer.instances.clone())
    }
}

pub(crate) fn unknown_target_group(arn: &str) -> ApiError {
    if arn.starts_with("arn:") && arn.contains(":targetgroup/") {
        let message = format!("Target groups '{arn}' not found");
        ApiError::client("TargetGroupNotFound", message)
    } else {
        ApiError::client("ValidationError", format!("'{arn}' is not a valid target group ARN"))
    }
}

pub(crate) fn unknown_classic(name: &str) -> ApiError {
    let message = format!("There is no ACTIVE Load Balancer named '{name}'");
    ApiError::client("LoadBalancerNotFound", message)
}
