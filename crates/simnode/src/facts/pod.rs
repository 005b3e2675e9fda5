//! The state of a pod.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::core::v1::{Pod, PodCondition, PodSpec, Toleration},
    apimachinery::pkg::apis::meta::v1::Time,
};

pub(crate) const READY: &str = "Ready";
pub(crate) const PENDING: &str = "Pending";
pub(crate) const RUNNING: &str = "Running";
pub(crate) const SUCCEEDED: &str = "Succeeded";
pub(crate) const FAILED: &str = "Failed";

pub(crate) fn node_name(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())
}

pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or(PENDING)
}

/// Whether it has come to its end.
pub(crate) fn is_over(pod: &Pod) -> bool {
    matches!(phase(pod), SUCCEEDED | FAILED)
}

pub(crate) fn is_terminating(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Whether it counts for the controller that owns it.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !is_over(pod) && !is_terminating(pod)
}

pub(crate) fn tolerations(spec: &PodSpec) -> &[Toleration] {
    spec.tolerations.as_deref().unwrap_or_default()
}

pub(crate) fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == kind)
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    condition(pod, READY).is_some_and(|ready| ready.status == "True")
}

/// Since when it is ready.
pub(crate) fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let ready = condition(pod, READY).filter(|ready| ready.status == "True")?;
    ready.last_transition_time.as_ref().map(|Time(time)| *time)
}

/// When it will have been ready long enough to count as available; `None` if it is not ready.
pub(crate) fn available_at(pod: &Pod, min_ready_seconds: i32) -> Option<Timestamp> {
    if min_ready_seconds <= 0 {
        return is_ready(pod).then_some(Timestamp::MIN);
    }
    let wait = SignedDuration::from_secs(min_ready_seconds.into());
    ready_since(pod).map(|since| since.saturating_add(wait).unwrap_or(since))
}

pub(crate) fn created(pod: &Pod) -> Timestamp {
    pod.metadata.creation_timestamp.as_ref().map_or(Timestamp::MAX, |Time(time)| *time)
}
