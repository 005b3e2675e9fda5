//! The next step of a StatefulSet.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{StatefulSet, StatefulSetStatus},
    core::v1::Pod,
};

use super::ordinal_of;
use crate::{
    facts,
    workloads::{replicaset::count, revisions::VERSION_LABEL, scaled},
};

pub(super) const NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";
pub(super) const INDEX_LABEL: &str = "apps.kubernetes.io/pod-index";

/// What to do for a StatefulSet.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Plan {
    /// Ordinals and the names of their versions.
    pub(super) create: Vec<(i32, String)>,
    pub(super) delete: Vec<Arc<Pod>>,
    pub(super) status: StatefulSetStatus,
    pub(super) wake: Option<Timestamp>,
}

pub(super) fn pod_name(set: &StatefulSet, ordinal: i32) -> String {
    format!("{}-{ordinal}", set.metadata.name.as_deref().unwrap_or_default())
}

/// The version of a pod.
pub(super) fn version_of(pod: &Pod) -> Option<&str> {
    facts::labels(&pod.metadata).get(VERSION_LABEL).map(String::as_str)
}

struct View<'a> {
    set: &'a StatefulSet,
    current: &'a str,
    update: &'a str,
    now: Timestamp,
    first: i32,
    replicas: i32,
    pods: BTreeMap<i32, &'a Arc<Pod>>,
}

pub(super) fn decide(
    set: &StatefulSet,
    pods: &[Arc<Pod>],
    current: &str,
    update: &str,
    now: Timestamp,
) -> Plan {
    let first = set.spec.ordinals.as_ref().and_then(|ordinals| ordinals.start).unwrap_or_default();
    let replicas = set.spec.replicas.unwrap_or(1);
    let by_ordinal = pods.iter().filter_map(|pod| Some((ordinal_of(pod, set)?, pod))).collect();
    let view = View { set, current, update, now, first, replicas, pods: by_ordinal };
    let mut plan = Plan { status: view.status(), ..Plan::default() };
    let min_ready = set.spec.min_ready_seconds.unwrap_or_default();
    let soon = pods.iter().filter_map(|pod| facts::pod::available_at(pod, min_ready));
    plan.wake = soon.filter(|time| *time > now).min();
    if set.metadata.deletion_timestamp.is_none() {
        view.step(&mut plan);
    }
    plan
}

impl View<'_> {
    fn one_by_one(&self) -> bool {
        self.set.spec.pod_management_policy.as_deref() != Some("Parallel")
    }

    fn is_available(&self, pod: &Pod) -> bool {
        let min_ready = self.set.spec.min_ready_seconds.unwrap_or_default();
        !facts::pod::is_terminating(pod)
            && facts::pod::phase(pod) == facts::pod::RUNNING
            && facts::pod::available_at(pod, min_ready).is_some_and(|time| time <= self.now)
    }

    fn wanted(&self) -> std::ops::Range<i32> {
        self.first..self.first.saturating_add(self.replicas)
    }

    /// From which ordinal on pods get the new version.
    fn partition(&self) -> i32 {
        let strategy = self.set.spec.update_strategy.as_ref();
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        rolling.and_then(|rolling| rolling.partition).unwrap_or_default()
    }

    fn version_for(&self, ordinal: i32) -> String {
        let old = ordinal < self.first.saturating_add(self.partition());
        if old { self.current.to_owned() } else { self.update.to_owned() }
    }

    fn step(&self, plan: &mut Plan) {
        let one_by_one = self.one_by_one();
        for ordinal in self.wanted() {
            let waits = match self.pods.get(&ordinal) {
                None => {
                    plan.create.push((ordinal, self.version_for(ordinal)));
                    true
                }
                Some(pod) if facts::pod::is_terminating(pod) => true,
                Some(pod) if facts::pod::is_over(pod) => {
                    plan.delete.push(Arc::clone(pod));
                    true
                }
                Some(pod) => !self.is_available(pod),
            };
            if waits && one_by_one {
                return;
            }
        }
        if self.scale_down(plan) || !plan.create.is_empty() || !plan.delete.is_empty() {
            return;
        }
        self.roll(plan);
    }

    /// The highest go first. Answers whether something is still going.
    fn scale_down(&self, plan: &mut Plan) -> bool {
        let wanted = self.wanted();
        let surplus: Vec<_> =
            self.pods.iter().rev().filter(|(ordinal, _)| !wanted.contains(ordinal)).collect();
        let mut going = false;
        for (_, pod) in surplus {
            going = true;
            if !facts::pod::is_terminating(pod) {
                plan.delete.push(Arc::clone(pod));
            }
            if self.one_by_one() {
                break;
            }
        }
        going
    }

    /// The highest are replaced first, no more at a time than may be missing.
    fn roll(&self, plan: &mut Plan) {
        let strategy = self.set.spec.update_strategy.as_ref();
        if strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete") {
            return;
        }
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let most = rolling.and_then(|rolling| rolling.max_unavailable.as_ref());
        let most = most.map_or(1, |most| scaled(Some(most), self.replicas, false).max(1));
        let least = self.first.saturating_add(self.partition());
        let pods: Vec<_> = self.wanted().filter_map(|ordinal| self.pods.get(&ordinal)).collect();
        let mut missing = count(pods.iter().filter(|pod| !self.is_available(pod)).count());
        for (ordinal, pod) in self.pods.iter().rev() {
            if *ordinal < least || !self.wanted().contains(ordinal) || missing >= most {
                continue;
            }
            if version_of(pod) != Some(self.update) && !facts::pod::is_terminating(pod) {
                plan.delete.push(Arc::clone(pod));
                missing += 1;
            }
        }
    }

    fn status(&self) -> StatefulSetStatus {
        let known = self.set.status.clone().unwrap_or_default();
        let of = |check: &dyn Fn(&Pod) -> bool| {
            count(self.pods.values().filter(|pod| check(pod)).count())
        };
        let nonzero = |number: i32| Some(number).filter(|number| *number != 0);
        let live = |pod: &Pod| !facts::pod::is_terminating(pod);
        let replicas = count(self.pods.len());
        let ready =
            of(&|pod| facts::pod::phase(pod) == facts::pod::RUNNING && facts::pod::is_ready(pod));
        let updated = of(&|pod| live(pod) && version_of(pod) == Some(self.update));
        let done = updated == replicas && ready == replicas && replicas == self.replicas;
        let current = if done { self.update } else { self.current };
        StatefulSetStatus {
            observed_generation: self.set.metadata.generation,
            replicas,
            ready_replicas: nonzero(ready),
            available_replicas: Some(of(&|pod| self.is_available(pod))),
            updated_replicas: nonzero(updated),
            current_replicas: nonzero(of(&|pod| live(pod) && version_of(pod) == Some(current))),
            current_revision: Some(current.to_owned()),
            update_revision: Some(self.update.to_owned()),
            collision_count: Some(known.collision_count.unwrap_or_default()),
            conditions: known.conditions,
        }
    }
}
