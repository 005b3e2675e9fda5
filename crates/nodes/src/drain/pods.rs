//! What a drain reads off a pod.

use std::time::Duration;

use fleetwright_lifecycle::drain::{
    Controller, DEFAULT_GRACE, DRAIN_LABEL, Existence, MIRROR_ANNOTATION, Pod as PodFacts, Wish,
};
use fleetwright_runtime::ObjectKey;
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::ResourceExt;

/// Pods from here on are the cluster's own.
const SYSTEM_CRITICAL_PRIORITY: i32 = 2_000_000_000;

fn controller(pod: &Pod) -> Option<&OwnerReference> {
    pod.owner_references().iter().find(|owner| owner.controller == Some(true))
}

/// The DaemonSet of a pod, if it has one whose existence matters.
pub(super) fn daemon_set(pod: &Pod) -> Option<ObjectKey> {
    let facts = facts(pod, |_| Existence::Exists);
    let owner = facts.controller.filter(Controller::is_daemon_set)?;
    (!facts.finished).then(|| ObjectKey::new(facts.namespace, owner.name))
}

/// What the owner of a pod asks of a drain, in Cluster API.
pub(super) fn wish(pod: &Pod) -> Wish {
    pod.labels().get(DRAIN_LABEL).map_or(Wish::Drain, |label| Wish::parse(label))
}

/// What matters of a pod.
pub(super) fn facts(pod: &Pod, existence: impl Fn(&ObjectKey) -> Existence) -> PodFacts {
    let namespace = pod.namespace().unwrap_or_default();
    let spec = pod.spec.as_ref();
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let grace = pod
        .metadata
        .deletion_grace_period_seconds
        .or_else(|| spec?.termination_grace_period_seconds)
        .and_then(|seconds| u64::try_from(seconds).ok())
        .map_or(DEFAULT_GRACE, Duration::from_secs);
    let controller = controller(pod).map(|owner| Controller {
        api_version: owner.api_version.clone(),
        kind: owner.kind.clone(),
        name: owner.name.clone(),
        existence: existence(&ObjectKey::new(&namespace, &owner.name)),
    });
    let volumes = spec.and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    PodFacts {
        name: pod.name_any(),
        uid: pod.uid().unwrap_or_default(),
        controller,
        mirror: pod.annotations().contains_key(MIRROR_ANNOTATION),
        local_storage: volumes.iter().any(|volume| volume.empty_dir.is_some()),
        finished: matches!(phase, Some("Succeeded" | "Failed")),
        deletion: pod.metadata.deletion_timestamp.as_ref().map(|time| time.0),
        grace,
        critical: spec
            .and_then(|spec| spec.priority)
            .is_some_and(|priority| priority >= SYSTEM_CRITICAL_PRIORITY),
        wish: Wish::Drain,
        namespace,
    }
}
