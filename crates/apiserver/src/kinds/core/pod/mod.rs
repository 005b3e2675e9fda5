//! Pods.

mod admission;
mod qos;
mod resources;
mod table;
pub(crate) mod validate;
mod warnings;

pub(crate) use warnings::{name_is_no_label, of_template as template_warnings};

use fleetwright_kschema::field::FieldError;
use serde_json::{Value, json};

use super::super::{
    Column, Find, Grace, Kind,
    check::{flag, has},
    keep, shape, tables,
};
use crate::{object, request::Context};

pub(super) struct Pod;

impl Kind for Pod {
    fn default(&self, object: &mut Value) {
        shape::complete("v1/Pod", object);
    }

    fn admit_create(&self, object: &mut Value, find: &dyn Find) -> Result<(), String> {
        admission::tolerate_short_outages(object);
        admission::prioritise(object, find)?;
        admission::overhead(object)
    }

    fn prepare_create(&self, _context: &Context, object: &mut Value) {
        admission::tolerate_short_outages(object);
        admission::default_priority(object);
        resources::complete(object);
        let mut status = json!({"phase": "Pending", "qosClass": qos::class(object)});
        if has(object, &["spec", "schedulingGates"]) {
            object::set(
                &mut status,
                &["conditions"],
                json!([{
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                    "lastTransitionTime": object::get(object, &["metadata", "creationTimestamp"]),
                }]),
            );
        }
        object::set(object, &["status"], status);
        shape::complete("v1/Pod", object);
    }

    fn prepare_update(&self, _context: &Context, new: &mut Value, old: &Value) {
        keep(new, old, "status");
        admission::tolerate_short_outages(new);
        // What admission set at creation stays when a client leaves it out.
        for key in ["priority", "preemptionPolicy", "resources"] {
            if let Some(value) = object::get(old, &["spec", key]) {
                object::default(new, &["spec", key], value.clone());
            }
        }
    }

    fn prepare_status_update(&self, _context: &Context, new: &mut Value, old: &Value) {
        keep(new, old, "spec");
        // Old kubelets would break garbage collection.
        for key in ["ownerReferences", "deletionTimestamp"] {
            match object::get(old, &["metadata", key]) {
                Some(value) => object::set(new, &["metadata", key], value.clone()),
                None => {
                    object::remove(new, &["metadata", key]);
                }
            }
        }
        for key in ["qosClass", "observedGeneration", "resourceClaimStatuses"] {
            if let Some(value) = object::get(old, &["status", key]) {
                object::default(new, &["status", key], value.clone());
            }
        }
        keep_observed_generations(new, old);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        validate::create(object)
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        validate::update(new, old)
    }

    fn validate_status_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        validate::status_update(new, old)
    }

    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        if old.is_some() { Vec::new() } else { warnings::pod(object) }
    }

    fn has_status(&self) -> bool {
        true
    }

    fn generation_changes(&self, new: &Value, old: &Value) -> bool {
        new.get("spec") != old.get("spec")
    }

    fn grace(&self, object: &Value, requested: Option<i64>) -> Grace {
        let waits = has(object, &["spec", "nodeName"])
            && !matches!(object::text(object, &["status", "phase"]), "Failed" | "Succeeded");
        if !waits {
            return Grace { seconds: 0 };
        }
        let own = object::integer(object, &["spec", "terminationGracePeriodSeconds"]);
        let seconds = requested.or(own).unwrap_or_default();
        Grace { seconds: if seconds < 0 { 1 } else { seconds } }
    }

    fn selectable_field(&self, object: &Value, field: &str) -> Option<String> {
        let path: Vec<&str> = field.split('.').collect();
        match field {
            "spec.nodeName"
            | "spec.restartPolicy"
            | "spec.schedulerName"
            | "spec.serviceAccountName"
            | "status.phase"
            | "status.podIP"
            | "status.nominatedNodeName" => Some(object::text(object, &path).to_owned()),
            "spec.hostNetwork" => Some(flag(object, &path).to_string()),
            _ => None,
        }
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("v1/pods")
    }

    fn cells(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        table::cells(object, now)
    }

    fn row_conditions(&self, object: &Value) -> Vec<Value> {
        let (reason, message) = match object::text(object, &["status", "phase"]) {
            "Succeeded" => ("Succeeded", "The pod has completed successfully."),
            "Failed" => ("Failed", "The pod failed."),
            _ => return Vec::new(),
        };
        vec![json!({"type": "Completed", "status": "True", "reason": reason, "message": message})]
    }
}

/// A client that does not know about generations of conditions does not take them away.
fn keep_observed_generations(new: &mut Value, old: &Value) {
    let mut known: Vec<(&str, &Value)> = object::list(old, &["status", "conditions"])
        .iter()
        .filter_map(|c| Some((c.get("type")?.as_str()?, c.get("observedGeneration")?)))
        .collect();
    let conditions = new.get_mut("status").and_then(|s| s.get_mut("conditions"));
    for condition in conditions.and_then(Value::as_array_mut).into_iter().flatten() {
        let kind = object::text(condition, &["type"]).to_owned();
        if let Some(i) = known.iter().position(|(k, _)| *k == kind) {
            let (_, generation) = known.remove(i);
            object::default(condition, &["observedGeneration"], generation.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::context;
    use super::*;

    #[test]
    fn a_new_pod_is_pending_and_tolerates_short_outages() {
        let mut pod = json!({
            "spec": {"containers": [{"name": "a", "image": "b:1"}]},
            "status": {"phase": "Running"},
        });
        Pod.default(&mut pod);
        Pod.prepare_create(&context(), &mut pod);
        assert_eq!(pod["status"], json!({"phase": "Pending", "qosClass": "BestEffort"}));
        assert_eq!(pod["spec"]["priority"], 0);
        assert_eq!(pod["spec"]["preemptionPolicy"], "PreemptLowerPriority");
        let keys: Vec<&str> = object::list(&pod, &["spec", "tolerations"])
            .iter()
            .map(|t| object::text(t, &["key"]))
            .collect();
        assert_eq!(keys, ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]);
    }

    #[test]
    fn only_a_running_pod_gets_time_to_end() {
        let running = json!({"spec": {"nodeName": "n", "terminationGracePeriodSeconds": 30}});
        assert_eq!(Pod.grace(&running, None).seconds, 30);
        assert_eq!(Pod.grace(&running, Some(5)).seconds, 5);
        assert_eq!(Pod.grace(&running, Some(-5)).seconds, 1);
        let waiting = json!({"spec": {"terminationGracePeriodSeconds": 30}});
        assert_eq!(Pod.grace(&waiting, Some(5)).seconds, 0);
        let done = json!({"spec": {"nodeName": "n"}, "status": {"phase": "Failed"}});
        assert_eq!(Pod.grace(&done, Some(5)).seconds, 0);
    }

    #[test]
    fn status_updates_touch_the_status_only() {
        let old = json!({
            "metadata": {"ownerReferences": [{"uid": "1"}]},
            "spec": {"nodeName": "a"},
            "status": {"qosClass": "BestEffort", "conditions": [{"type": "Ready", "observedGeneration": 2}]},
        });
        let mut new = json!({
            "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"nodeName": "b"},
            "status": {"conditions": [{"type": "Ready"}]},
        });
        Pod.prepare_status_update(&context(), &mut new, &old);
        assert_eq!(new, old);
    }
}
