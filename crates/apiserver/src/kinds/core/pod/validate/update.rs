//! What may change in a pod that exists: little.

use fleetwright_kschema::{
    field::{FieldError, Path},
    names,
};
use serde_json::Value;

use super::super::super::{
    super::check::{Errors, each, has, immutable, map, same},
    taints,
};
use super::{MIRROR, annotations, ip, whole};
use crate::object;

const ALLOWED: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,\
     `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
     `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// What is wrong with a change of a pod.
pub(in super::super) fn update(new: &Value, old: &Value) -> Errors {
    let path = Path::new("spec");
    let mut errors = whole(new);
    errors.extend(annotation_changes(new, old));
    for list in ["containers", "initContainers"] {
        let (new, old) = (object::list(new, &["spec", list]), object::list(old, &["spec", list]));
        let path = path.child(list);
        if new.len() != old.len() {
            let reason = "pod updates may not add or remove containers";
            errors.push(FieldError::forbidden(&path, reason));
            return errors;
        }
        for (i, container) in new.iter().enumerate() {
            errors.extend(image(container, &path.index(i).child("image")));
        }
    }
    match deadline(new, old, &path.child("activeDeadlineSeconds")) {
        Ok(problem) => errors.extend(problem),
        Err(fatal) => {
            errors.push(fatal);
            return errors;
        }
    }
    errors.extend(tolerations(new, old, &path.child("tolerations")));
    errors.extend(gates(new, old, &path.child("schedulingGates")));
    errors.extend(rest(new, old, &path));
    errors
}

fn image(container: &Value, path: &Path) -> Errors {
    let image = object::text(container, &["image"]);
    if image.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    if image.trim() != image {
        let reason = "must not have leading or trailing whitespace";
        return vec![FieldError::invalid(path, image, reason)];
    }
    Errors::new()
}

fn deadline(new: &Value, old: &Value, path: &Path) -> Result<Option<FieldError>, FieldError> {
    let seconds = |pod| object::integer(pod, &["spec", "activeDeadlineSeconds"]);
    match (seconds(new), seconds(old)) {
        (Some(new), _) if !(0..=i64::from(i32::MAX)).contains(&new) => {
            let reason = format!("must be between 0 and {}, inclusive", i32::MAX);
            Err(FieldError::invalid(path, new, reason))
        }
        (Some(new), Some(old)) if old < new => {
            Err(FieldError::invalid(path, new, "must be less than or equal to previous value"))
        }
        (None, Some(_)) => {
            let reason = "must not update from a positive integer to nil value";
            Ok(Some(FieldError::invalid(path, Value::Null, reason)))
        }
        _ => Ok(None),
    }
}

fn tolerations(new: &Value, old: &Value, path: &Path) -> Errors {
    let list = |pod| object::list(pod, &["spec", "tolerations"]);
    let without_time = |toleration: &Value| {
        let mut toleration = toleration.clone();
        object::remove(&mut toleration, &["tolerationSeconds"]);
        toleration
    };
    let kept = list(old)
        .iter()
        .all(|old| list(new).iter().any(|new| without_time(new) == without_time(old)));
    if !kept {
        let reason = "existing toleration can not be modified except its tolerationSeconds";
        return vec![FieldError::forbidden(path, reason)];
    }
    taints::tolerations(list(new), path)
}

fn gates(new: &Value, old: &Value, path: &Path) -> Errors {
    let names = |pod| -> Vec<&str> {
        let gates = object::list(pod, &["spec", "schedulingGates"]);
        gates.iter().map(|gate| object::text(gate, &["name"])).collect()
    };
    let known = names(old);
    names(new)
        .into_iter()
        .enumerate()
        .filter(|(_, gate)| !known.contains(gate))
        .map(|(i, gate)| {
            let reason =
                format!("only deletion is allowed, but found new scheduling gate '{gate}'");
            FieldError::forbidden(&path.index(i).child("name"), reason)
        })
        .collect()
}

/// Everything else in the spec stays.
fn rest(new: &Value, old: &Value, path: &Path) -> Errors {
    let empty = Value::Null;
    let old_spec = old.get("spec").unwrap_or(&empty);
    let mut spec = new.get("spec").cloned().unwrap_or_default();
    let mut errors = Errors::new();
    if spec == *old_spec {
        return errors;
    }
    for list in ["containers", "initContainers"] {
        let old = object::list(old_spec, &[list]);
        let new = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for (new, old) in new.zip(old) {
            restore(new, old, "image");
        }
    }
    for key in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        restore(&mut spec, old_spec, key);
    }
    let grace = |spec| object::integer(spec, &["terminationGracePeriodSeconds"]);
    if grace(old_spec).is_some_and(|s| s < 0) && grace(&spec) == Some(1) {
        restore(&mut spec, old_spec, "terminationGracePeriodSeconds");
    }
    if has(old_spec, &["schedulingGates"]) {
        // A pod that is not to be scheduled yet may still be told where to go.
        let kept = map(old_spec, &["nodeSelector"])
            .into_iter()
            .flatten()
            .all(|(key, value)| object::get(&spec, &["nodeSelector", key]) == Some(value));
        if !kept {
            let reason =
                "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
            let value = spec.get("nodeSelector").cloned().unwrap_or_default();
            errors.push(FieldError::invalid(&path.child("nodeSelector"), value, reason));
        }
        restore(&mut spec, old_spec, "nodeSelector");
    }
    if !same(Some(&spec), Some(old_spec)) {
        let reason = format!(
            "pod updates may not change fields other than {ALLOWED}\n{}",
            super::super::super::super::internal::difference("core.PodSpec", old_spec, &spec)
        );
        errors.push(FieldError::forbidden(path, reason));
    }
    errors
}

fn restore(new: &mut Value, old: &Value, key: &str) {
    match old.get(key) {
        Some(value) => object::set(new, &[key], value.clone()),
        None => {
            object::remove(new, &[key]);
        }
    }
}

fn annotation_changes(new: &Value, old: &Value) -> Errors {
    let path = Path::new("metadata").child("annotations");
    let value = |pod| object::get(pod, &["metadata", "annotations", MIRROR]);
    let mut errors = Errors::new();
    let change = match (value(new), value(old)) {
        (Some(_), None) => Some("may not add mirror pod annotation"),
        (new, old) if new != old => Some("may not remove or update mirror pod annotation"),
        _ => None,
    };
    if let Some(reason) = change {
        errors.push(FieldError::forbidden(&path.key(MIRROR), reason));
    }
    errors.extend(annotations(new, &path));
    errors
}

/// What is wrong with a change of a pod's status.
pub(in super::super) fn status_update(new: &Value, old: &Value) -> Errors {
    let path = Path::new("status");
    let mut errors = annotation_changes(new, old);
    for (i, condition) in object::list(new, &["status", "conditions"]).iter().enumerate() {
        let kind = object::text(condition, &["type"]);
        if !matches!(kind, "PodScheduled" | "Ready" | "Initialized") {
            let path = path.child("conditions").index(i).child("Type");
            errors.extend(each(&path, kind, names::qualified_name(kind)));
        }
    }
    let nominated = |pod| object::text(pod, &["status", "nominatedNodeName"]);
    let nominated_path = path.child("nominatedNodeName");
    if nominated(new) != nominated(old) && !nominated(new).is_empty() {
        let name = nominated(new);
        errors.extend(each(&nominated_path, name, names::dns_1123_subdomain(name)));
        if has(old, &["spec", "nodeName"]) {
            let reason = "may not be set on pods that are already bound to a node";
            errors.push(FieldError::forbidden(&nominated_path, reason));
        }
    }
    errors.extend(immutable(
        object::get(new, &["status", "qosClass"]),
        object::get(old, &["status", "qosClass"]),
        &path.child("qosClass"),
    ));
    errors.extend(ended_containers(new, old, &path.child("containerStatuses")));
    errors.extend(addresses(new, old, &path.child("podIPs")));
    errors
}

/// A container that ended and will not be restarted does not run again.
fn ended_containers(new: &Value, old: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let policy = object::text(old, &["spec", "restartPolicy"]);
    let statuses = object::list(old, &["status", "containerStatuses"]);
    for (i, status) in statuses.iter().enumerate() {
        let Some(terminated) = object::get(status, &["state", "terminated"]) else { continue };
        let failed = object::integer(terminated, &["exitCode"]).unwrap_or_default() != 0;
        if policy == "Always" || (policy == "OnFailure" && failed) {
            continue;
        }
        let runs_again = object::list(new, &["status", "containerStatuses"]).iter().any(|new| {
            new.get("name") == status.get("name")
                && object::get(new, &["state", "terminated"]).is_none()
        });
        if runs_again {
            let reason = "may not be transitioned to non-terminated state";
            errors.push(FieldError::forbidden(&path.index(i).child("state"), reason));
        }
    }
    errors
}

fn addresses(new: &Value, old: &Value, path: &Path) -> Errors {
    let known = object::list(old, &["status", "podIPs"]);
    let addresses = object::list(new, &["status", "podIPs"]);
    let mut errors = Errors::new();
    for (i, address) in addresses.iter().enumerate() {
        if !known.contains(address) {
            errors.extend(ip(object::text(address, &["ip"]), &path.index(i)));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::super::super::{Kind, check::texts};
    use super::super::super::Pod;
    use super::*;

    fn pod() -> Value {
        let mut pod = json!({
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "a", "image": "b"}], "activeDeadlineSeconds": 10},
        });
        Pod.default(&mut pod);
        pod
    }

    #[test]
    fn images_and_shorter_deadlines_may_change() {
        let mut new = pod();
        object::set(&mut new, &["spec", "activeDeadlineSeconds"], 5);
        new["spec"]["containers"][0]["image"] = "c".into();
        assert!(update(&new, &pod()).is_empty());
    }

    #[test]
    fn the_rest_may_not() {
        let mut new = pod();
        object::set(&mut new, &["spec", "activeDeadlineSeconds"], 11);
        assert_eq!(
            texts(&update(&new, &pod())),
            [
                "spec.activeDeadlineSeconds: Invalid value: 11: must be less than or equal to previous \
              value"
            ]
        );
        let mut new = pod();
        object::set(&mut new, &["spec", "nodeName"], "n");
        let errors = texts(&update(&new, &pod()));
        assert_eq!(errors.len(), 1);
        assert!(
            errors[0].starts_with(
                "spec: Forbidden: pod updates may not change fields other than \
            `spec.containers[*].image`,"
            ),
            "{}",
            errors[0]
        );
        let mut new = pod();
        object::set(&mut new, &["spec", "containers"], json!([]));
        assert!(texts(&update(&new, &pod())).contains(
            &"spec.containers: Forbidden: pod updates may not add or remove containers".to_owned()
        ));
    }

    #[test]
    fn ended_containers_stay_ended() {
        let old = json!({
            "spec": {"restartPolicy": "Never"},
            "status": {"containerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": 1}}}]},
        });
        let new =
            json!({"status": {"containerStatuses": [{"name": "a", "state": {"running": {}}}]}});
        assert_eq!(
            texts(&status_update(&new, &old)),
            ["status.containerStatuses[0].state: Forbidden: may not be transitioned to \
              non-terminated state"]
        );
    }
}
