//! The next step of a Job.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use fleetwright_runtime::EventType;
use jiff::Timestamp;
use k8s_openapi::{
    api::{
        batch::v1::{Job, JobCondition, JobSpec, JobStatus, UncountedTerminatedPods},
        core::v1::Pod,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};

use super::{Notice, indexes};
use crate::{
    cluster::{after, at},
    facts::{
        self,
        pod::{FAILED, SUCCEEDED},
    },
    workloads::{
        children::BURST,
        replicaset::{count, victims},
    },
};

pub(super) const FINALIZER: &str = "batch.kubernetes.io/job-tracking";
pub(super) const INDEX_ANNOTATION: &str = "batch.kubernetes.io/job-completion-index";

const COMPLETE: &str = "Complete";
const CRITERIA_MET: &str = "SuccessCriteriaMet";
const FAILED_JOB: &str = "Failed";
const FAILURE_TARGET: &str = "FailureTarget";
const SUSPENDED: &str = "Suspended";
/// A pod that failed is replaced after this time, then twice that, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_mins(10);

/// What to do for a Job.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Pods to create, with the index that each gets if the Job has indexes.
    pub(super) create: Vec<Option<i32>>,
    pub(super) delete: Vec<Arc<Pod>>,
    /// Pods that are written down and can lose the finalizer.
    pub(super) let_go: Vec<Arc<Pod>>,
    pub(super) status: JobStatus,
    pub(super) event: Option<Notice>,
    /// The Job has been finished for as long as it wanted to be kept.
    pub(super) expired: bool,
    pub(super) wake: Option<Timestamp>,
}

struct View<'a> {
    job: &'a Job,
    spec: &'a JobSpec,
    pods: &'a [Arc<Pod>],
    active: Vec<Arc<Pod>>,
    /// Indexes that are done, for a Job that has indexes.
    done: Option<BTreeSet<i32>>,
    succeeded: i32,
    failed: i32,
    now: Timestamp,
}

pub(super) fn decide(job: &Job, pods: &[Arc<Pod>], now: Timestamp) -> Plan {
    let (Some(spec), known) = (&job.spec, job.status.clone().unwrap_or_default()) else {
        return Plan::default();
    };
    if let Some(end) = finished(&known) {
        return after_end(spec, pods, known, end, now);
    }
    let mut plan = Plan { status: known, ..Plan::default() };
    let (succeeded, failed) = tally(&mut plan, pods);
    let done = (spec.completion_mode.as_deref() == Some("Indexed")).then(|| {
        let mut done = indexes::parse(plan.status.completed_indexes.as_deref().unwrap_or_default());
        let over = pods.iter().filter(|pod| facts::pod::phase(pod) == SUCCEEDED);
        done.extend(over.filter_map(|pod| index_of(pod)));
        done
    });
    if let Some(done) = &done {
        plan.status.completed_indexes = Some(indexes::format(done)).filter(|text| !text.is_empty());
    }
    let view = View {
        job,
        spec,
        pods,
        active: pods.iter().filter(|pod| facts::pod::is_active(pod)).cloned().collect(),
        succeeded: done.as_ref().map_or(succeeded, |done| count(done.len())),
        done,
        failed,
        now,
    };
    view.step(&mut plan);
    view.report(&mut plan);
    plan
}

fn index_of(pod: &Pod) -> Option<i32> {
    facts::annotation(&pod.metadata, INDEX_ANNOTATION)?.parse().ok()
}

fn has_finalizer(pod: &Pod) -> bool {
    pod.metadata.finalizers.as_ref().is_some_and(|all| all.iter().any(|one| one == FINALIZER))
}

/// When a Job came to its end.
fn finished(status: &JobStatus) -> Option<Timestamp> {
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let end = conditions.iter().find(|known| {
        matches!(known.type_.as_str(), COMPLETE | FAILED_JOB) && known.status == "True"
    })?;
    at(end.last_transition_time.as_ref()).or(Some(Timestamp::MIN))
}

/// A Job that is finished lets go of its pods, and of itself if it is told to.
fn after_end(
    spec: &JobSpec,
    pods: &[Arc<Pod>],
    status: JobStatus,
    end: Timestamp,
    now: Timestamp,
) -> Plan {
    let let_go = pods.iter().filter(|pod| has_finalizer(pod)).cloned().collect();
    let expires = spec
        .ttl_seconds_after_finished
        .map(|seconds| after(end, Duration::from_secs(u64::try_from(seconds).unwrap_or_default())));
    Plan {
        let_go,
        status,
        expired: expires.is_some_and(|expires| expires <= now),
        wake: expires,
        ..Plan::default()
    }
}

/// Counts the pods that have ended: those whose finalizer is gone for good, those that are written
/// down, and those that are new.
fn tally(plan: &mut Plan, pods: &[Arc<Pod>]) -> (i32, i32) {
    let status = &mut plan.status;
    let mut uncounted = status.uncounted_terminated_pods.take().unwrap_or_default();
    let tracked = |uid: &String| {
        pods.iter().any(|pod| pod.metadata.uid.as_ref() == Some(uid) && has_finalizer(pod))
    };
    let settle = |list: &mut Option<Vec<String>>, total: &mut Option<i32>| {
        let list = list.get_or_insert_default();
        let before = list.len();
        list.retain(|uid| tracked(uid));
        let settled = count(before - list.len());
        if settled > 0 {
            *total = Some(total.unwrap_or_default() + settled);
        }
    };
    settle(&mut uncounted.succeeded, &mut status.succeeded);
    settle(&mut uncounted.failed, &mut status.failed);
    for pod in pods.iter().filter(|pod| has_finalizer(pod)) {
        let list = if facts::pod::phase(pod) == SUCCEEDED {
            &mut uncounted.succeeded
        } else if facts::pod::phase(pod) == FAILED || facts::pod::is_terminating(pod) {
            &mut uncounted.failed
        } else {
            continue;
        };
        let (list, uid) = (list.get_or_insert_default(), facts::uid(&pod.metadata));
        if !list.iter().any(|known| known == uid) {
            list.push(uid.to_owned());
        }
        plan.let_go.push(Arc::clone(pod));
    }
    let lengths = |list: &Option<Vec<String>>| count(list.as_ref().map_or(0, Vec::len));
    let (succeeded, failed) = (lengths(&uncounted.succeeded), lengths(&uncounted.failed));
    let nonempty = |list: Option<Vec<String>>| list.filter(|list| !list.is_empty());
    status.uncounted_terminated_pods = Some(UncountedTerminatedPods {
        succeeded: nonempty(uncounted.succeeded),
        failed: nonempty(uncounted.failed),
    });
    (status.succeeded.unwrap_or_default() + succeeded, status.failed.unwrap_or_default() + failed)
}

impl View<'_> {
    fn step(&self, plan: &mut Plan) {
        let suspended = self.spec.suspend == Some(true);
        if plan.status.start_time.is_none() && !suspended {
            plan.status.start_time = Some(Time(self.now));
        }
        if let Some((reason, message)) = self.failure(plan) {
            self.set(plan, FAILURE_TARGET, "True", reason, message);
            plan.delete.clone_from(&self.active);
            if self.is_settled(plan) && self.active.is_empty() {
                self.set(plan, FAILED_JOB, "True", reason, message);
                plan.event = Some((EventType::Warning, reason, message.to_owned()));
            }
            return;
        }
        let wanted = self.spec.completions;
        let enough = match wanted {
            Some(wanted) => self.succeeded >= wanted,
            None => self.succeeded > 0 && self.active.is_empty(),
        };
        if enough {
            plan.delete.clone_from(&self.active);
            if self.is_settled(plan) && self.active.is_empty() {
                let (reason, message) =
                    ("CompletionsReached", "Reached expected number of succeeded pods");
                self.set(plan, CRITERIA_MET, "True", reason, message);
                self.set(plan, COMPLETE, "True", reason, message);
                plan.status.completion_time = Some(Time(self.now));
                plan.event = Some((EventType::Normal, "Completed", "Job completed".to_owned()));
            }
            return;
        }
        if suspended {
            plan.delete.clone_from(&self.active);
            self.set(plan, SUSPENDED, "True", "JobSuspended", "Job suspended");
            return;
        }
        let conditions = plan.status.conditions.as_deref().unwrap_or_default();
        if conditions.iter().any(|known| known.type_ == SUSPENDED && known.status == "True") {
            self.set(plan, SUSPENDED, "False", "JobResumed", "Job resumed");
            plan.status.start_time = Some(Time(self.now));
        }
        if self.job.metadata.deletion_timestamp.is_none() {
            self.size(plan);
        }
    }

    /// Nothing is left to count, and nothing is still ending.
    fn is_settled(&self, plan: &Plan) -> bool {
        let uncounted = plan.status.uncounted_terminated_pods.clone().unwrap_or_default();
        uncounted.succeeded.is_none() && uncounted.failed.is_none() && self.terminating() == 0
    }

    fn terminating(&self) -> i32 {
        let ending = |pod: &&Arc<Pod>| facts::pod::is_terminating(pod) && !facts::pod::is_over(pod);
        count(self.pods.iter().filter(ending).count())
    }

    fn failure(&self, plan: &mut Plan) -> Option<(&'static str, &'static str)> {
        let limit = self.spec.backoff_limit.unwrap_or(6);
        let known = plan.status.conditions.as_deref().unwrap_or_default();
        if known.iter().any(|known| known.type_ == FAILURE_TARGET && is_deadline(known)) {
            return Some(DEADLINE);
        }
        // Pods that restart their containers themselves fail by doing so too often.
        let restarts: i32 =
            match self.spec.template.spec.as_ref().and_then(|s| s.restart_policy.as_deref()) {
                Some("OnFailure") => self.active.iter().map(|pod| restarts(pod)).sum(),
                _ => 0,
            };
        if self.failed > limit || (restarts > 0 && restarts >= limit) {
            return Some(("BackoffLimitExceeded", "Job has reached the specified backoff limit"));
        }
        let deadline = u64::try_from(self.spec.active_deadline_seconds?).unwrap_or_default();
        let start = at(plan.status.start_time.as_ref())?;
        let end = after(start, Duration::from_secs(deadline));
        if self.now >= end {
            return Some(DEADLINE);
        }
        plan.wake = Some(end);
        None
    }

    /// As many pods as may run at the same time, and no more than are still needed.
    fn size(&self, plan: &mut Plan) {
        let parallelism = self.spec.parallelism.unwrap_or(1).max(0);
        let active = count(self.active.len());
        let wanted = match self.spec.completions {
            Some(completions) => parallelism.min((completions - self.succeeded).max(0)),
            // Whoever succeeds ends it for all: no new ones then.
            None if self.succeeded > 0 => active.min(parallelism),
            None => parallelism,
        };
        if active > wanted {
            let surplus = usize::try_from(active - wanted).unwrap_or_default();
            plan.delete = victims(self.active.clone(), surplus);
            return;
        }
        let missing = usize::try_from(wanted - active).unwrap_or_default();
        if missing == 0 {
            return;
        }
        if let Some(pause) = self.pause_until().filter(|pause| *pause > self.now) {
            plan.wake = plan.wake.into_iter().chain([pause]).min();
            return;
        }
        let missing = missing.min(BURST);
        plan.create = match (&self.done, self.spec.completions) {
            (Some(done), Some(completions)) => {
                let taken: BTreeSet<i32> =
                    self.active.iter().filter_map(|pod| index_of(pod)).collect();
                let free = (0..completions).filter(|i| !done.contains(i) && !taken.contains(i));
                free.take(missing).map(Some).collect()
            }
            _ => vec![None; missing],
        };
    }

    /// After failures one waits before one tries again.
    fn pause_until(&self) -> Option<Timestamp> {
        let ends = |phase: &str| {
            let over = self.pods.iter().filter(move |pod| facts::pod::phase(pod) == phase);
            over.filter_map(|pod| end_of(pod)).collect::<Vec<_>>()
        };
        let last_success = ends(SUCCEEDED).into_iter().max();
        let failures: Vec<_> = ends(FAILED)
            .into_iter()
            .filter(|end| last_success.is_none_or(|ok| *end > ok))
            .collect();
        let last = failures.iter().copied().max()?;
        let doublings = u32::try_from(failures.len() - 1).unwrap_or(u32::MAX).min(6);
        Some(after(last, FIRST_PAUSE.saturating_mul(1 << doublings).min(LONGEST_PAUSE)))
    }

    fn report(&self, plan: &mut Plan) {
        let going: BTreeSet<&str> =
            plan.delete.iter().map(|pod| facts::uid(&pod.metadata)).collect();
        let stays = |pod: &&Arc<Pod>| !going.contains(facts::uid(&pod.metadata));
        let active = count(self.active.iter().filter(stays).count()) + count(plan.create.len());
        let ready =
            self.active.iter().filter(stays).filter(|pod| facts::pod::is_ready(pod)).count();
        plan.status.active = Some(active).filter(|active| *active > 0);
        plan.status.ready = Some(count(ready));
        plan.status.terminating = Some(self.terminating() + count(going.len()));
    }

    fn set(&self, plan: &mut Plan, kind: &str, status: &str, reason: &str, message: &str) {
        let conditions = plan.status.conditions.get_or_insert_default();
        if conditions.iter().any(|known| known.type_ == kind && known.status == status) {
            return;
        }
        conditions.retain(|known| known.type_ != kind);
        conditions.push(JobCondition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_probe_time: Some(Time(self.now)),
            last_transition_time: Some(Time(self.now)),
        });
    }
}

const DEADLINE: (&str, &str) =
    ("DeadlineExceeded", "Job was active longer than specified deadline");

fn is_deadline(condition: &JobCondition) -> bool {
    condition.reason.as_deref() == Some(DEADLINE.0)
}

fn restarts(pod: &Pod) -> i32 {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_deref());
    statuses.unwrap_or_default().iter().map(|status| status.restart_count).sum()
}

/// When the last container of a pod ended.
fn end_of(pod: &Pod) -> Option<Timestamp> {
    let statuses = pod.status.as_ref()?.container_statuses.as_deref()?;
    let ends = statuses
        .iter()
        .filter_map(|status| at(status.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref()));
    ends.max()
}
