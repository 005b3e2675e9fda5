//! Jobs: pods that run to their end, so and so many times.
//!
//! Every pod that ends is counted exactly once, although the controller may stop at any point: a
//! finalizer keeps it until its UID is written down in the Job's status, and the UID stays there
//! until the finalizer is gone. Rules for the failure of single pods (`podFailurePolicy`,
//! `successPolicy`, `backoffLimitPerIndex`) are not simulated.

mod decide;
mod indexes;
#[cfg(test)]
mod tests;

use fleetwright_runtime::{Action, EventType, ObjectKey};
use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{EnvVar, EnvVarSource, ObjectFieldSelector, Pod},
};
use kube::api::{DeleteParams, Patch, Preconditions};
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::decide::{FINALIZER, INDEX_ANNOTATION, Plan, decide};
use super::{children::from_template, family::Family};
use crate::{
    cluster::{SharedCluster, generated, until},
    error::{Failure, Outcome},
};

pub(super) fn spawn(cluster: &SharedCluster, tasks: &mut JoinSet<()>, stop: &CancellationToken) {
    let jobs = cluster.informer::<Job>("simnode-jobs", tasks, stop);
    let family = Family::new(cluster, &jobs, &cluster.pods);
    family.spawn(
        tasks,
        stop,
        |controller| controller,
        |family, job, key| async move { reconcile(&family, &job, &key).await },
    );
}

async fn reconcile(
    family: &Family<Job, Pod>,
    job: &Job,
    key: &ObjectKey,
) -> Result<Action, Failure> {
    if job.spec.as_ref().and_then(|spec| spec.managed_by.as_deref()).is_some_and(is_foreign) {
        return Ok(Action::await_change());
    }
    if let Some(wait) = family.expectations.time_left(key) {
        return Ok(Action::requeue_after(wait));
    }
    let pods = family.claim(job).await?;
    let now = family.cluster.now();
    let plan = decide(job, &pods, now);
    act(family, job, key, &plan).await?;
    Ok(plan.wake.map_or(Action::await_change(), |wake| Action::requeue_after(until(now, wake))))
}

fn is_foreign(controller: &str) -> bool {
    controller != "kubernetes.io/job-controller"
}

async fn act(
    family: &Family<Job, Pod>,
    job: &Job,
    key: &ObjectKey,
    plan: &Plan,
) -> Result<(), Failure> {
    if plan.expired {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: job.metadata.uid.clone(),
                resource_version: job.metadata.resource_version.clone(),
            }),
            ..DeleteParams::background()
        };
        let jobs = family.cluster.of_namespace::<Job>(&key.namespace);
        let deleted = jobs.delete(&key.name, &params).await;
        deleted.unless_gone().trying("delete finished job", key)?;
        return Ok(());
    }
    let mut outcome = Ok(());
    if !plan.delete.is_empty() {
        outcome = family.delete(job, key, &plan.delete).await;
    }
    if outcome.is_ok() && !plan.create.is_empty() {
        let new = plan.create.iter().map(|index| new_pod(family, job, *index)).collect();
        outcome = family.create(job, key, new).await;
    }
    if job.status.as_ref() != Some(&plan.status) {
        if !family.report_exactly(job, &plan.status).await? {
            return outcome;
        }
        if let Some((event_type, reason, message)) = &plan.event {
            family.tell(job, *event_type, reason, message);
        }
    }
    // Only what is written down may go.
    for pod in &plan.let_go {
        let patch = json!({"metadata": {
            "uid": pod.metadata.uid,
            "$deleteFromPrimitiveList/finalizers": [FINALIZER],
        }});
        family.patch_child(pod, &Patch::Strategic(patch), "let go of pod").await?;
    }
    outcome
}

fn new_pod(family: &Family<Job, Pod>, job: &Job, index: Option<i32>) -> Pod {
    let template = job.spec.as_ref().map(|spec| spec.template.clone()).unwrap_or_default();
    let name = job.metadata.name.as_deref().unwrap_or_default();
    let base = match index {
        Some(index) => format!("{name}-{index}-"),
        None => format!("{name}-"),
    };
    let mut pod = from_template(job, &template, generated(&family.cluster.random, &base));
    pod.metadata.finalizers.get_or_insert_default().push(FINALIZER.to_owned());
    if let Some(index) = index {
        let annotations = pod.metadata.annotations.get_or_insert_default();
        annotations.insert(INDEX_ANNOTATION.to_owned(), index.to_string());
        let labels = pod.metadata.labels.get_or_insert_default();
        labels.insert(INDEX_ANNOTATION.to_owned(), index.to_string());
        let spec = pod.spec.get_or_insert_default();
        spec.hostname = Some(format!("{name}-{index}"));
        for container in &mut spec.containers {
            container.env.get_or_insert_default().push(EnvVar {
                name: "JOB_COMPLETION_INDEX".to_owned(),
                value_from: Some(EnvVarSource {
                    field_ref: Some(ObjectFieldSelector {
                        field_path: format!("metadata.labels['{INDEX_ANNOTATION}']"),
                        api_version: None,
                    }),
                    ..EnvVarSource::default()
                }),
                ..EnvVar::default()
            });
        }
    }
    pod
}

/// What a Job tells users when it comes to an end.
type Notice = (EventType, &'static str, String);
