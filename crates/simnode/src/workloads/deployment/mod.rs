//! Deployments: a ReplicaSet for every version of the template, and the way from one to the next.

mod decide;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use fleetwright_runtime::{Action, EventType, Informer, ObjectKey};
use k8s_openapi::{
    api::apps::v1::{Deployment, ReplicaSet, ReplicaSetSpec},
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta},
};
use kube::api::{DeleteParams, Patch};
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::decide::{DESIRED, HASH_LABEL, MAX, Plan, REVISION, decide};
use super::{
    family::{Family, reference},
    revisions,
};
use crate::{
    cluster::{SharedCluster, managed, posted, until},
    error::{Failure, Outcome, exists_already},
    facts,
    lifecycle::MANAGER,
};

type Sets = Family<Deployment, ReplicaSet>;

pub(super) fn spawn(
    cluster: &SharedCluster,
    sets: &Informer<ReplicaSet>,
    tasks: &mut JoinSet<()>,
    stop: &CancellationToken,
) {
    let deployments = cluster.informer::<Deployment>("simnode-deployments", tasks, stop);
    let family = Family::new(cluster, &deployments, sets);
    family.spawn(
        tasks,
        stop,
        |controller| controller,
        |family, deployment, key| async move { reconcile(&family, &deployment, &key).await },
    );
}

async fn reconcile(
    family: &Sets,
    deployment: &Deployment,
    key: &ObjectKey,
) -> Result<Action, Failure> {
    // Between a create and its echo there would be a second one.
    if let Some(wait) = family.expectations.time_left(key) {
        return Ok(Action::requeue_after(wait));
    }
    let sets = family.claim(deployment).await?;
    let now = family.cluster.now();
    let plan = decide(deployment, &sets, now);
    act(family, deployment, key, &plan).await?;
    Ok(plan.wake.map_or(Action::await_change(), |wake| Action::requeue_after(until(now, wake))))
}

async fn act(
    family: &Sets,
    deployment: &Deployment,
    key: &ObjectKey,
    plan: &Plan,
) -> Result<(), Failure> {
    let api = family.cluster.of_namespace::<ReplicaSet>(&key.namespace);
    if let Some(replicas) = plan.create {
        create(family, deployment, key, plan, replicas).await?;
    }
    for scale in &plan.scale {
        let patch = json!({
            "metadata": {
                "resourceVersion": scale.set.metadata.resource_version,
                "annotations": {DESIRED: plan.desired.to_string(), MAX: plan.max.to_string()},
            },
            "spec": {"replicas": scale.to},
        });
        let name = scale.set.metadata.name.clone().unwrap_or_default();
        let scaled = api.patch(&name, &managed(MANAGER), &Patch::Merge(patch)).await;
        scaled.trying("scale replica set", &name)?;
        if scale.from != scale.to {
            let way = if scale.from < scale.to { "up" } else { "down" };
            let message =
                format!("Scaled {way} replica set {name} from {} to {}", scale.from, scale.to);
            family.tell(deployment, EventType::Normal, "ScalingReplicaSet", &message);
        }
    }
    if let Some((set, revision)) = &plan.revision_of_set {
        let patch = json!({"metadata": {"annotations": {REVISION: revision}}});
        family.patch_child(set, &Patch::Merge(patch), "number replica set").await?;
    }
    if let Some(revision) = &plan.revision {
        let patch = json!({"metadata": {"annotations": {REVISION: revision}}});
        let owners = family.cluster.of_namespace::<Deployment>(&key.namespace);
        let numbered = owners.patch(&key.name, &managed(MANAGER), &Patch::Merge(patch)).await;
        numbered.unless_gone().trying("number deployment", key)?;
    }
    for set in &plan.delete {
        let name = set.metadata.name.clone().unwrap_or_default();
        let deleted = api.delete(&name, &DeleteParams::background()).await;
        deleted.unless_gone().trying("delete replica set", &name)?;
    }
    if deployment.status.as_ref() != Some(&plan.status) {
        family.report(deployment, &plan.status).await?;
    }
    Ok(())
}

async fn create(
    family: &Sets,
    deployment: &Deployment,
    key: &ObjectKey,
    plan: &Plan,
    replicas: i32,
) -> Result<(), Failure> {
    let set = new_set(deployment, plan, replicas);
    let name = set.metadata.name.clone().unwrap_or_default();
    let api = family.cluster.of_namespace::<ReplicaSet>(&key.namespace);
    family.expectations.expect_creates(key, [name.clone()]);
    match api.create(&posted(MANAGER), &set).await {
        Ok(_) => {
            if replicas > 0 {
                let message = format!("Scaled up replica set {name} from 0 to {replicas}");
                family.tell(deployment, EventType::Normal, "ScalingReplicaSet", &message);
            }
            Ok(())
        }
        Err(error) => {
            family.expectations.create_settled(key, &name);
            if !exists_already(&error) {
                let message = format!("Failed to create new replica set \"{name}\": {error}");
                let warning = EventType::Warning;
                family.tell(deployment, warning, "ReplicaSetCreateError", &message);
                return Err(error).trying("create replica set", &name);
            }
            // Ours from before, which the copy does not show yet, or another with the same hash.
            let found = api.get_opt(&name).await.trying("read replica set", &name)?;
            let ours = found.is_some_and(|found| {
                facts::controller_uid(&found.metadata) == deployment.metadata.uid.as_deref()
                    && decide::is_version(&found, deployment)
            });
            if !ours {
                let mut status = plan.status.clone();
                *status.collision_count.get_or_insert_default() += 1;
                family.report(deployment, &status).await?;
            }
            Ok(())
        }
    }
}

fn new_set(deployment: &Deployment, plan: &Plan, replicas: i32) -> ReplicaSet {
    let spec = deployment.spec.clone();
    let hash = revisions::hash(&spec.template, plan.status.collision_count);
    let mut template = spec.template;
    let meta = template.metadata.get_or_insert_default();
    meta.labels.get_or_insert_default().insert(HASH_LABEL.to_owned(), hash.clone());
    let labels = meta.labels.clone();
    let mut selector: LabelSelector = spec.selector;
    selector.match_labels.get_or_insert_default().insert(HASH_LABEL.to_owned(), hash.clone());
    let mut annotations = deployment.metadata.annotations.clone().unwrap_or_default();
    annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    annotations.insert(REVISION.to_owned(), plan.new_revision.to_string());
    annotations.insert(DESIRED.to_owned(), plan.desired.to_string());
    annotations.insert(MAX.to_owned(), plan.max.to_string());
    let name = deployment.metadata.name.as_deref().unwrap_or_default();
    ReplicaSet {
        metadata: ObjectMeta {
            name: Some(format!("{name}-{hash}")),
            namespace: deployment.metadata.namespace.clone(),
            labels,
            annotations: Some(annotations),
            owner_references: Some(vec![reference(deployment)]),
            ..ObjectMeta::default()
        },
        spec: ReplicaSetSpec {
            replicas: Some(replicas),
            min_ready_seconds: spec.min_ready_seconds,
            selector,
            template: Some(template),
        },
        status: None,
    }
}

/// The ReplicaSets of a Deployment, as its controller holds them.
type SetList = [Arc<ReplicaSet>];
