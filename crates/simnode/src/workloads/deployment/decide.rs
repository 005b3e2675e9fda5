//! The next step of a rollout: a plain function of the Deployment and its ReplicaSets.

use std::{cmp::Reverse, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentCondition, DeploymentSpec, DeploymentStatus, ReplicaSet},
        core::v1::PodTemplateSpec,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};

use super::SetList;
use crate::{
    cluster::{after, at},
    facts,
    workloads::scaled,
};

pub(super) const HASH_LABEL: &str = "pod-template-hash";
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
pub(super) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
pub(super) const MAX: &str = "deployment.kubernetes.io/max-replicas";

const AVAILABLE: &str = "Available";
const PROGRESSING: &str = "Progressing";
const NEW_SET_AVAILABLE: &str = "NewReplicaSetAvailable";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";

/// A ReplicaSet that gets another size.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    pub(super) set: Arc<ReplicaSet>,
    pub(super) from: i32,
    pub(super) to: i32,
}

/// What to do for a Deployment.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    /// Create the ReplicaSet of the current template with so many replicas.
    pub(super) create: Option<i32>,
    pub(super) scale: Vec<Scale>,
    pub(super) delete: Vec<Arc<ReplicaSet>>,
    /// Number a ReplicaSet that is in use again.
    pub(super) revision_of_set: Option<(Arc<ReplicaSet>, String)>,
    /// The revision that the Deployment should show.
    pub(super) revision: Option<String>,
    pub(super) new_revision: i64,
    pub(super) desired: i32,
    pub(super) max: i32,
    pub(super) status: DeploymentStatus,
    /// Look at the progress again then.
    pub(super) wake: Option<Timestamp>,
}

/// What is decided about, with the numbers that matter.
struct View<'a> {
    deployment: &'a Deployment,
    spec: &'a DeploymentSpec,
    new: Option<&'a Arc<ReplicaSet>>,
    old: Vec<&'a Arc<ReplicaSet>>,
    desired: i32,
    surge: i32,
    unavailable: i32,
}

pub(super) fn decide(deployment: &Deployment, sets: &SetList, now: Timestamp) -> Plan {
    let spec = &deployment.spec;
    // The oldest of several that fit, as all controllers before us would have chosen.
    let mut fitting: Vec<_> = sets.iter().filter(|set| is_version(set, deployment)).collect();
    fitting.sort_by_key(|set| (created(set), set.metadata.name.clone()));
    let new = fitting.first().copied();
    let mut old: Vec<_> =
        sets.iter().filter(|set| new.is_none_or(|new| !Arc::ptr_eq(new, set))).collect();
    old.sort_by_key(|set| (created(set), set.metadata.name.clone()));
    let desired = spec.replicas.unwrap_or(1);
    let (surge, unavailable) = bounds(spec, desired);
    let view = View { deployment, spec, new, old, desired, surge, unavailable };
    let mut plan = Plan {
        desired,
        max: desired.saturating_add(surge),
        new_revision: 1 + view.old.iter().map(|set| revision(set)).max().unwrap_or_default(),
        ..Plan::default()
    };
    if deployment.metadata.deletion_timestamp.is_none() {
        view.number(&mut plan);
        view.step(&mut plan);
    }
    view.report(&mut plan, now);
    plan
}

/// Whether a ReplicaSet is that of the current template.
pub(super) fn is_version(set: &ReplicaSet, deployment: &Deployment) -> bool {
    set.spec.template.clone().is_some_and(|template| {
        without_hash(template) == without_hash(deployment.spec.template.clone())
    })
}

fn without_hash(mut template: PodTemplateSpec) -> PodTemplateSpec {
    let meta = template.metadata.get_or_insert_default();
    let labels = meta.labels.get_or_insert_default();
    labels.remove(HASH_LABEL);
    template
}

/// How many pods there may be too many, and too few.
fn bounds(spec: &DeploymentSpec, desired: i32) -> (i32, i32) {
    let strategy = spec.strategy.as_ref();
    if strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("Recreate") {
        return (0, 0);
    }
    let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
    let surge = scaled(rolling.and_then(|rolling| rolling.max_surge.as_ref()), desired, true);
    let unavailable =
        scaled(rolling.and_then(|rolling| rolling.max_unavailable.as_ref()), desired, false);
    // Both zero would never get anywhere.
    if surge == 0 && unavailable == 0 { (0, 1) } else { (surge, unavailable.min(desired)) }
}

fn size(set: &ReplicaSet) -> i32 {
    set.spec.replicas.unwrap_or_default()
}

fn sizes<'a>(sets: impl IntoIterator<Item = &'a &'a Arc<ReplicaSet>>) -> i32 {
    sets.into_iter().map(|set| size(set)).sum()
}

fn available(set: &ReplicaSet) -> i32 {
    set.status.as_ref().and_then(|status| status.available_replicas).unwrap_or_default()
}

fn created(set: &ReplicaSet) -> Timestamp {
    at(set.metadata.creation_timestamp.as_ref()).unwrap_or(Timestamp::MAX)
}

fn revision(set: &ReplicaSet) -> i64 {
    let text = facts::annotation(&set.metadata, REVISION);
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

impl<'a> View<'a> {
    fn all(&self) -> Vec<&'a Arc<ReplicaSet>> {
        self.old.iter().copied().chain(self.new).collect()
    }

    fn active_old(&self) -> Vec<&'a Arc<ReplicaSet>> {
        self.old.iter().copied().filter(|set| size(set) > 0).collect()
    }

    fn number(&self, plan: &mut Plan) {
        let Some(new) = self.new else { return };
        let known = revision(new);
        let right = known.max(plan.new_revision);
        if known < right {
            plan.revision_of_set = Some((Arc::clone(new), right.to_string()));
        }
        let shown = facts::annotation(&self.deployment.metadata, REVISION);
        if shown != Some(right.to_string().as_str()) {
            plan.revision = Some(right.to_string());
        }
    }

    fn step(&self, plan: &mut Plan) {
        let paused = self.spec.paused == Some(true);
        if paused || self.was_scaled() {
            self.scale_in_proportion(plan);
            return;
        }
        let strategy = self.spec.strategy.as_ref().and_then(|strategy| strategy.type_.as_deref());
        if strategy == Some("Recreate") {
            self.recreate(plan);
        } else {
            self.roll(plan);
        }
        if plan.create.is_none() && plan.scale.is_empty() && self.is_complete() {
            self.clear_up(plan);
        }
    }

    /// Whether the user has asked for another number since the ReplicaSets were last sized.
    fn was_scaled(&self) -> bool {
        self.all().into_iter().filter(|set| size(set) > 0).any(|set| {
            let said = facts::annotation(&set.metadata, DESIRED);
            said.and_then(|said| said.parse::<i32>().ok()).is_some_and(|said| said != self.desired)
        })
    }

    fn resize(plan: &mut Plan, set: &Arc<ReplicaSet>, to: i32) {
        let from = size(set);
        let right = |name: &str, number: i32| {
            facts::annotation(&set.metadata, name) == Some(number.to_string().as_str())
        };
        if from != to || !right(DESIRED, plan.desired) || !right(MAX, plan.max) {
            plan.scale.push(Scale { set: Arc::clone(set), from, to });
        }
    }

    /// A new number is shared out over all versions that are in use, so that it neither speeds a
    /// rollout up nor turns it back.
    fn scale_in_proportion(&self, plan: &mut Plan) {
        let active_old = self.active_old();
        let in_use: Vec<_> =
            active_old.iter().copied().chain(self.new.filter(|set| size(set) > 0)).collect();
        if in_use.len() <= 1 {
            let newest = self.old.iter().copied().max_by_key(|set| revision(set));
            if let Some(set) = in_use.first().copied().or(self.new).or(newest) {
                Self::resize(plan, set, self.desired);
            }
            return;
        }
        let saturated =
            self.new.is_some_and(|new| size(new) == self.desired && available(new) == self.desired);
        if saturated {
            for set in active_old {
                Self::resize(plan, set, 0);
            }
            return;
        }
        let allowed = if self.desired > 0 { self.desired + self.surge } else { 0 };
        let mut sets = in_use;
        let to_add = allowed - sizes(&sets);
        if to_add >= 0 {
            sets.sort_by_key(|set| (Reverse(size(set)), Reverse(created(set))));
        } else {
            sets.sort_by_key(|set| (Reverse(size(set)), created(set)));
        }
        let mut targets = Vec::new();
        let mut added = 0;
        for set in &sets {
            let part = self.proportion(set, to_add, added);
            added += part;
            targets.push(size(set) + part);
        }
        if let Some(first) = targets.first_mut() {
            *first = (*first + to_add - added).max(0);
        }
        for (set, target) in sets.into_iter().zip(targets) {
            Self::resize(plan, set, target);
        }
    }

    fn proportion(&self, set: &ReplicaSet, to_add: i32, added: i32) -> i32 {
        if size(set) == 0 || to_add == 0 || to_add == added {
            return 0;
        }
        let before = facts::annotation(&set.metadata, MAX).and_then(|text| text.parse().ok());
        let before: i32 = before.filter(|max| *max > 0).unwrap_or_else(|| self.sum_before());
        let after = f64::from(size(set)) * f64::from(self.desired + self.surge);
        #[expect(clippy::cast_possible_truncation, reason = "counts of pods are small")]
        let target = (after / f64::from(before.max(1))).round() as i32;
        let part = target - size(set);
        let left = to_add - added;
        if to_add > 0 { part.min(left) } else { part.max(left) }
    }

    fn sum_before(&self) -> i32 {
        self.deployment.status.as_ref().and_then(|status| status.replicas).unwrap_or(1)
    }

    fn recreate(&self, plan: &mut Plan) {
        let active = self.active_old();
        if !active.is_empty() {
            for set in active {
                Self::resize(plan, set, 0);
            }
            return;
        }
        let still_there = |set: &&Arc<ReplicaSet>| {
            set.status.as_ref().is_some_and(|status| {
                status.replicas > 0 || status.terminating_replicas.unwrap_or_default() > 0
            })
        };
        if self.old.iter().any(still_there) {
            return;
        }
        match self.new {
            None => plan.create = Some(self.desired),
            Some(new) => Self::resize(plan, new, self.desired),
        }
    }

    fn roll(&self, plan: &mut Plan) {
        let total = sizes(&self.all());
        let room = (self.desired + self.surge - total).max(0);
        let Some(new) = self.new else {
            plan.create = Some(room.min(self.desired));
            return;
        };
        let current = size(new);
        let target = if current > self.desired {
            self.desired
        } else {
            current + room.min(self.desired - current)
        };
        if target != current {
            Self::resize(plan, new, target);
            return;
        }
        self.scale_old_down(plan, new, total);
    }

    /// Old pods go as far as enough stay available: first those that are not, then others.
    fn scale_old_down(&self, plan: &mut Plan, new: &ReplicaSet, total: i32) {
        let old = self.active_old();
        if old.is_empty() {
            return;
        }
        let least = self.desired - self.unavailable;
        let mut may_go = total - least - (size(new) - available(new));
        if may_go <= 0 {
            return;
        }
        let mut targets: Vec<i32> = old.iter().map(|set| size(set)).collect();
        for (set, target) in old.iter().zip(&mut targets) {
            let unhealthy = (size(set) - available(set)).max(0).min(may_go);
            *target -= unhealthy;
            may_go -= unhealthy;
        }
        let all_available: i32 = self.all().into_iter().map(|set| available(set)).sum();
        let mut healthy = (all_available - least).max(0);
        for target in &mut targets {
            let going = healthy.min(*target);
            *target -= going;
            healthy -= going;
        }
        for (set, target) in old.into_iter().zip(targets) {
            if target != size(set) {
                Self::resize(plan, set, target);
            }
        }
    }

    fn is_complete(&self) -> bool {
        let status = self.deployment.status.as_ref();
        status.is_some_and(|status| complete(status, self.desired, self.deployment))
    }

    /// Only so many old versions are kept.
    fn clear_up(&self, plan: &mut Plan) {
        let Some(limit) = self.spec.revision_history_limit else { return };
        let mut old: Vec<_> = self
            .old
            .iter()
            .filter(|set| set.metadata.deletion_timestamp.is_none())
            .copied()
            .collect();
        old.sort_by_key(|set| revision(set));
        let surplus = old.len().saturating_sub(usize::try_from(limit).unwrap_or_default());
        let unused = |set: &&&Arc<ReplicaSet>| {
            let status = set.status.as_ref();
            size(set) == 0
                && status.is_some_and(|status| {
                    status.replicas == 0 && status.observed_generation >= set.metadata.generation
                })
        };
        plan.delete = old.iter().take(surplus).filter(unused).map(|set| Arc::clone(set)).collect();
    }

    fn report(&self, plan: &mut Plan, now: Timestamp) {
        let known = self.deployment.status.clone().unwrap_or_default();
        let all = self.all();
        let sum = |of: fn(&ReplicaSet) -> i32| all.iter().map(|set| of(set)).sum::<i32>();
        let replicas = |set: &ReplicaSet| set.status.as_ref().map_or(0, |status| status.replicas);
        let ready = |set: &ReplicaSet| {
            set.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or_default()
        };
        let terminating = |set: &ReplicaSet| {
            set.status.as_ref().and_then(|status| status.terminating_replicas).unwrap_or_default()
        };
        let total_available = sum(available);
        let nonzero = |number: i32| Some(number).filter(|number| *number != 0);
        let mut status = DeploymentStatus {
            observed_generation: self.deployment.metadata.generation,
            replicas: nonzero(sum(replicas)),
            updated_replicas: nonzero(self.new.map_or(0, |set| replicas(set))),
            ready_replicas: nonzero(sum(ready)),
            available_replicas: nonzero(total_available),
            unavailable_replicas: nonzero((sizes(&all) - total_available).max(0)),
            terminating_replicas: Some(sum(terminating)),
            collision_count: known.collision_count,
            conditions: known.conditions.clone(),
        };
        let conditions = status.conditions.get_or_insert_default();
        let (value, reason, message) = if total_available >= self.desired - self.unavailable {
            ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
        } else {
            (
                "False",
                "MinimumReplicasUnavailable",
                "Deployment does not have minimum availability.",
            )
        };
        set(conditions, AVAILABLE, value, reason, message.to_owned(), now);
        plan.wake = self.report_progress(&known, &mut status, now);
        plan.status = status;
    }

    /// Says how the rollout is doing. Answers when it will have taken too long.
    fn report_progress(
        &self,
        known: &DeploymentStatus,
        status: &mut DeploymentStatus,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let deadline = self.spec.progress_deadline_seconds.filter(|limit| *limit != i32::MAX);
        let is_complete = complete(status, self.desired, self.deployment);
        let progress = progressed(known, status);
        let conditions = status.conditions.get_or_insert_default();
        let Some(deadline) = deadline else {
            conditions.retain(|condition| !is(condition, PROGRESSING));
            return None;
        };
        let current = conditions.iter().find(|known| is(known, PROGRESSING)).cloned();
        let reason = current.as_ref().and_then(|current| current.reason.as_deref());
        let what = match self.new {
            Some(set) => {
                format!("ReplicaSet \"{}\"", set.metadata.name.as_deref().unwrap_or_default())
            }
            None => format!(
                "Deployment \"{}\"",
                self.deployment.metadata.name.as_deref().unwrap_or_default()
            ),
        };
        if self.spec.paused == Some(true) {
            let message = "Deployment is paused".to_owned();
            set(conditions, PROGRESSING, "Unknown", "DeploymentPaused", message, now);
            return None;
        }
        if status.replicas == status.updated_replicas && reason == Some(NEW_SET_AVAILABLE) {
            return None;
        }
        if is_complete {
            let message = format!("{what} has successfully progressed.");
            set(conditions, PROGRESSING, "True", NEW_SET_AVAILABLE, message, now);
            return None;
        }
        if progress || current.is_none() {
            let since = current.filter(|current| current.status.as_deref() == Some("True"));
            conditions.retain(|condition| !is(condition, PROGRESSING));
            let message = format!("{what} is progressing.");
            set(conditions, PROGRESSING, "True", "ReplicaSetUpdated", message, now);
            if let (Some(since), Some(new)) = (since, conditions.last_mut()) {
                new.last_transition_time = since.last_transition_time;
            }
        }
        let current = conditions.iter().find(|known| is(known, PROGRESSING))?;
        if current.reason.as_deref() == Some(TIMED_OUT) {
            return None;
        }
        let wait = Duration::from_secs(u64::try_from(deadline).unwrap_or_default());
        let end = after(at(current.last_update_time.as_ref()).unwrap_or(now), wait);
        if now < end {
            return Some(end);
        }
        let message = format!("{what} has timed out progressing.");
        set(conditions, PROGRESSING, "False", TIMED_OUT, message, now);
        None
    }
}

/// Whether all pods are new and available.
fn complete(status: &DeploymentStatus, desired: i32, deployment: &Deployment) -> bool {
    let is = |number: Option<i32>| number.unwrap_or_default() == desired;
    is(status.updated_replicas)
        && is(status.replicas)
        && is(status.available_replicas)
        && status.observed_generation >= deployment.metadata.generation
}

fn progressed(old: &DeploymentStatus, new: &DeploymentStatus) -> bool {
    let old_sets = |status: &DeploymentStatus| {
        status.replicas.unwrap_or_default() - status.updated_replicas.unwrap_or_default()
    };
    new.updated_replicas > old.updated_replicas
        || old_sets(new) < old_sets(old)
        || new.ready_replicas > old.ready_replicas
        || new.available_replicas > old.available_replicas
}

fn is(condition: &DeploymentCondition, kind: &str) -> bool {
    condition.type_.as_deref() == Some(kind)
}

fn set(
    conditions: &mut Vec<DeploymentCondition>,
    kind: &str,
    status: &str,
    reason: &str,
    message: String,
    now: Timestamp,
) {
    let known = conditions.iter().find(|known| is(known, kind));
    let has = |known: &&DeploymentCondition| known.status.as_deref() == Some(status);
    if known.filter(has).is_some_and(|known| known.reason.as_deref() == Some(reason)) {
        return;
    }
    let since = known.filter(has).and_then(|known| known.last_transition_time.clone());
    conditions.retain(|known| !is(known, kind));
    conditions.push(DeploymentCondition {
        type_: Some(kind.to_owned()),
        status: Some(status.to_owned()),
        reason: Some(reason.to_owned()),
        message: Some(message),
        last_update_time: Some(Time(now)),
        last_transition_time: Some(since.unwrap_or(Time(now))),
    });
}
