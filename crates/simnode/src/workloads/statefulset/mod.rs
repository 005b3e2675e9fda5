//! StatefulSets: pods with names of their own, one after the other.

mod decide;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use fleetwright_runtime::{Action, Informer, ObjectKey};
use k8s_openapi::api::{
    apps::v1::{ControllerRevision, StatefulSet},
    core::v1::{PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, Volume},
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::decide::{INDEX_LABEL, NAME_LABEL, decide};
use super::{
    children::from_template,
    family::Family,
    revisions::{self, VERSION_LABEL, Version},
};
use crate::{
    cluster::{SharedCluster, posted, until},
    error::{Failure, Outcome, exists_already},
    facts,
    lifecycle::MANAGER,
};

pub(super) fn spawn(
    cluster: &SharedCluster,
    versions: &Informer<ControllerRevision>,
    tasks: &mut JoinSet<()>,
    stop: &CancellationToken,
) {
    let sets = cluster.informer::<StatefulSet>("simnode-statefulsets", tasks, stop);
    let family = Family::new(cluster, &sets, &cluster.pods);
    let known = versions.clone();
    family.spawn(
        tasks,
        stop,
        |controller| controller.waits_for(versions),
        move |family, set, key| {
            let known = known.clone();
            async move { reconcile(&family, &known, &set, &key).await }
        },
    );
}

async fn reconcile(
    family: &Family<StatefulSet, Pod>,
    versions: &Informer<ControllerRevision>,
    set: &StatefulSet,
    key: &ObjectKey,
) -> Result<Action, Failure> {
    if let Some(wait) = family.expectations.time_left(key) {
        return Ok(Action::requeue_after(wait));
    }
    let pods = family.claim(set).await?;
    let status = set.status.clone().unwrap_or_default();
    let mut in_use: Vec<String> = status.current_revision.iter().cloned().collect();
    in_use.extend(pods.iter().filter_map(|pod| decide::version_of(pod)).map(ToOwned::to_owned));
    let spec = &set.spec;
    let limit = spec.revision_history_limit;
    let (known, update) =
        revisions::sync(family, versions, set, &spec.template, limit, &in_use).await?;
    let current =
        known.iter().find(|version| Some(&version.name) == status.current_revision.as_ref());
    let current = current.unwrap_or(&update);
    let now = family.cluster.now();
    let plan = decide(set, &pods, &current.name, &update.name, now);
    let mut new = Vec::new();
    for (ordinal, version) in &plan.create {
        let version = if *version == update.name { &update } else { current };
        make_claims(family, set, *ordinal).await?;
        new.push(new_pod(set, *ordinal, version));
    }
    let mut outcome = Ok(());
    if !new.is_empty() {
        outcome = family.create(set, key, new).await;
    }
    if outcome.is_ok() && !plan.delete.is_empty() {
        outcome = family.delete(set, key, &plan.delete).await;
    }
    if set.status.as_ref() != Some(&plan.status) {
        family.report(set, &plan.status).await?;
    }
    outcome?;
    Ok(plan.wake.map_or(Action::await_change(), |wake| Action::requeue_after(until(now, wake))))
}

fn new_pod(set: &StatefulSet, ordinal: i32, version: &Version) -> Pod {
    let name = decide::pod_name(set, ordinal);
    let mut pod = from_template(set, &version.template, name.clone());
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(NAME_LABEL.to_owned(), name.clone());
    labels.insert(INDEX_LABEL.to_owned(), ordinal.to_string());
    labels.insert(VERSION_LABEL.to_owned(), version.name.clone());
    let spec = pod.spec.get_or_insert_default();
    spec.hostname = Some(name);
    spec.subdomain = set.spec.service_name.clone().filter(|name| !name.is_empty());
    for template in set.spec.volume_claim_templates.iter().flatten() {
        let volume = template.metadata.name.clone().unwrap_or_default();
        let volumes = spec.volumes.get_or_insert_default();
        volumes.retain(|known| known.name != volume);
        volumes.push(Volume {
            name: volume,
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name: claim_name(set, template, ordinal),
                read_only: None,
            }),
            ..Volume::default()
        });
    }
    pod
}

fn claim_name(set: &StatefulSet, template: &PersistentVolumeClaim, ordinal: i32) -> String {
    let volume = template.metadata.name.as_deref().unwrap_or_default();
    format!("{volume}-{}", decide::pod_name(set, ordinal))
}

/// The claims of a pod outlive it.
async fn make_claims(
    family: &Family<StatefulSet, Pod>,
    set: &StatefulSet,
    ordinal: i32,
) -> Result<(), Failure> {
    let namespace = set.metadata.namespace.clone().unwrap_or_default();
    let api = family.cluster.of_namespace::<PersistentVolumeClaim>(&namespace);
    for template in set.spec.volume_claim_templates.iter().flatten() {
        let mut claim = template.clone();
        let name = claim_name(set, template, ordinal);
        claim.metadata.name = Some(name.clone());
        claim.metadata.namespace = Some(namespace.clone());
        let labels = claim.metadata.labels.get_or_insert_default();
        labels.extend(set.spec.selector.match_labels.clone().unwrap_or_default());
        claim.status = None;
        match api.create(&posted(MANAGER), &claim).await {
            Err(error) if !exists_already(&error) => {
                return Err(error).trying("create claim", &name);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Pods by ordinal, for those that have one.
fn ordinal_of(pod: &Arc<Pod>, set: &StatefulSet) -> Option<i32> {
    let base = set.metadata.name.as_deref().unwrap_or_default();
    let rest = pod.metadata.name.as_deref()?.strip_prefix(base)?.strip_prefix('-')?;
    rest.parse().ok().filter(|_| facts::controller_uid(&pod.metadata).is_some())
}
