//! What admission adds to every pod: tolerations of short outages, and a priority.

use serde_json::{Value, json};

use super::super::super::{
    Find,
    check::has,
    scheduling::{class_kind, default_class, system_value},
};
use crate::object;

/// How long a pod stays on a node that is not ready or not reachable.
const SECONDS: i64 = 300;

/// Adds the tolerations that every pod has unless it says otherwise.
pub(super) fn tolerate_short_outages(pod: &mut Value) {
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerations = object::list(pod, &["spec", "tolerations"]);
        let covered = tolerations.iter().any(|toleration| {
            let text = |field| object::text(toleration, &[field]);
            (text("key") == key || text("key").is_empty())
                && matches!(text("effect"), "NoExecute" | "")
        });
        if !covered {
            let mut tolerations = tolerations.to_vec();
            tolerations.push(json!({
                "key": key,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": SECONDS,
            }));
            object::set(pod, &["spec", "tolerations"], tolerations);
        }
    }
}

const PREEMPT: &str = "PreemptLowerPriority";

/// Sets the priority that the pod's class has, or says why the pod is refused.
pub(super) fn prioritise(pod: &mut Value, find: &dyn Find) -> Result<(), String> {
    let name = object::text(pod, &["spec", "priorityClassName"]).to_owned();
    let mut priority = 0;
    let mut policy = PREEMPT.to_owned();
    let class = if name.is_empty() {
        default_class(find)
    } else if let Some(value) = system_value(&name) {
        priority = value;
        None
    } else {
        let class = find.named(&class_kind(), &name);
        Some(class.ok_or_else(|| format!("no PriorityClass with name {name} was found"))?)
    };
    if let Some(class) = class {
        object::set(pod, &["spec", "priorityClassName"], object::name(&class));
        priority = object::integer(&class, &["value"]).unwrap_or_default();
        let own = object::text(&class, &["preemptionPolicy"]);
        if !own.is_empty() {
            own.clone_into(&mut policy);
        }
    }
    if let Some(given) = object::integer(pod, &["spec", "priority"]).filter(|&p| p != priority) {
        return Err(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority \
             admission controller computed {priority} from the given PriorityClass name"
        ));
    }
    let given = object::text(pod, &["spec", "preemptionPolicy"]);
    if !given.is_empty() && given != policy {
        return Err(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; \
             priority admission controller computed {policy} from the given PriorityClass name"
        ));
    }
    object::set(pod, &["spec", "priority"], priority);
    object::set(pod, &["spec", "preemptionPolicy"], policy);
    Ok(())
}

/// The priority of a pod that admission has not seen: that of the classes that are always there.
pub(super) fn default_priority(pod: &mut Value) {
    let name = object::text(pod, &["spec", "priorityClassName"]);
    let priority = system_value(name).unwrap_or(0);
    object::default(pod, &["spec", "priority"], priority);
    object::default(pod, &["spec", "preemptionPolicy"], PREEMPT);
}

/// Only a runtime class gives a pod overhead.
pub(super) fn overhead(pod: &Value) -> Result<(), String> {
    if has(pod, &["spec", "overhead"]) && !has(pod, &["spec", "runtimeClassName"]) {
        let reason =
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
        return Err(reason.to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gvk::GroupVersionKind;

    #[test]
    fn classes_give_priority() {
        let class = |name: &str, value: i64, default: bool| {
            let metadata = json!({"name": name});
            let policy = if default { "PreemptLowerPriority" } else { "Never" };
            json!({"metadata": metadata, "value": value, "globalDefault": default, "preemptionPolicy": policy})
        };
        let find = Known(vec![class("high", 7, false)]);
        let mut pod = json!({"spec": {"priorityClassName": "high"}});
        prioritise(&mut pod, &find).unwrap();
        assert_eq!(pod["spec"]["priority"], 7);
        assert_eq!(pod["spec"]["preemptionPolicy"], "Never");
        let mut pod = json!({"spec": {"priorityClassName": "nope"}});
        assert_eq!(
            prioritise(&mut pod, &find).unwrap_err(),
            "no PriorityClass with name nope was found"
        );
        let mut pod = json!({"spec": {"priority": 7}});
        assert_eq!(
            prioritise(&mut pod, &find).unwrap_err(),
            "the integer value of priority (7) must not be provided in pod spec; priority admission \
             controller computed 0 from the given PriorityClass name"
        );

        let find =
            Known(vec![class("high", 7, false), class("usual", 5, true), class("low", 3, true)]);
        let mut pod = json!({"spec": {}});
        prioritise(&mut pod, &find).unwrap();
        assert_eq!(
            pod["spec"],
            json!({
                "priority": 3,
                "priorityClassName": "low",
                "preemptionPolicy": "PreemptLowerPriority",
            })
        );
    }

    /// What can be found.
    struct Known(Vec<Value>);

    impl Find for Known {
        fn named(&self, _: &GroupVersionKind, name: &str) -> Option<Value> {
            self.0.iter().find(|object| object::name(object) == name).cloned()
        }

        fn all(&self, _: &GroupVersionKind) -> Vec<Value> {
            self.0.clone()
        }
    }
}
