//! Priority classes.

use std::sync::Arc;

use fleetwright_kschema::field::{FieldError, Path};
use serde_json::Value;

use super::{
    Builtin, Column, Find, Kind,
    age::age,
    check::{Errors, flag, immutable, one_of},
    shape, tables,
};
use crate::{gvk::GroupVersionKind, object};

/// The highest priority that users may give.
const HIGHEST: i64 = 1_000_000_000;
/// Names that begin so are the system's.
const SYSTEM_PREFIX: &str = "system-";
/// The classes that are always there: their names, values and descriptions.
pub(crate) const SYSTEM: &[(&str, i64, &str)] = &[
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
];

/// The value of a class that is always there.
pub(super) fn system_value(name: &str) -> Option<i64> {
    SYSTEM.iter().find(|(class, _, _)| *class == name).map(|(_, value, _)| *value)
}

/// The kinds of the group `scheduling.k8s.io`.
pub(super) fn builtins() -> Vec<Builtin> {
    vec![
        Builtin {
            gvk: GroupVersionKind::new("scheduling.k8s.io", "v1", "PriorityClass"),
            plural: "priorityclasses",
            singular: "priorityclass",
            short_names: &["pc"],
            categories: &[],
            namespaced: true,
            subresources: &[],
            kind: Arc::new(PriorityClass),
        }
        .cluster_wide(),
    ]
}

/// The kind of priority classes.
pub(super) fn class_kind() -> GroupVersionKind {
    GroupVersionKind::new("scheduling.k8s.io", "v1", "PriorityClass")
}

/// The class of pods that name none: the lowest of those that are to be the default.
pub(super) fn default_class(find: &dyn Find) -> Option<Value> {
    find.all(&class_kind())
        .into_iter()
        .filter(|class| flag(class, &["globalDefault"]))
        .min_by_key(|class| object::integer(class, &["value"]).unwrap_or_default())
}

/// Refuses a second default.
fn only_default(
    class: &Value,
    find: &dyn Find,
    clashes: impl Fn(&Value) -> bool,
) -> Result<(), String> {
    if !flag(class, &["globalDefault"]) {
        return Ok(());
    }
    match default_class(find).filter(clashes) {
        Some(default) => Err(format!(
            "PriorityClass {} is already marked as default. Only one default can exist",
            object::name(&default)
        )),
        None => Ok(()),
    }
}

struct PriorityClass;

impl Kind for PriorityClass {
    fn default(&self, object: &mut Value) {
        shape::complete("scheduling.k8s.io/v1/PriorityClass", object);
    }

    fn admit_create(&self, object: &mut Value, find: &dyn Find) -> Result<(), String> {
        only_default(object, find, |_| true)
    }

    fn admit_update(&self, new: &Value, find: &dyn Find) -> Result<(), String> {
        only_default(new, find, |default| object::name(default) != object::name(new))
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Errors::new();
        let name = object::name(object);
        let value = object::integer(object, &["value"]).unwrap_or_default();
        if name.starts_with(SYSTEM_PREFIX) {
            if let Some(why) = not_system(object, name, value) {
                let reason = format!(
                    "priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use \
                     only. error: {why}"
                );
                errors.push(FieldError::forbidden(&Path::new("metadata").child("name"), reason));
            }
        } else if value > HIGHEST {
            let reason = format!("maximum allowed value of a user defined priority is {HIGHEST}");
            errors.push(FieldError::forbidden(&Path::new("value"), reason));
        }
        let policies = ["PreemptLowerPriority", "Never"];
        let policy = object::text(object, &["preemptionPolicy"]);
        errors.extend(one_of(policy, &policies, &Path::new("preemptionPolicy")));
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = Errors::new();
        if new.get("value") != old.get("value") {
            let reason = "may not be changed in an update.";
            errors.push(FieldError::forbidden(&Path::new("value"), reason));
        }
        errors.extend(immutable(
            new.get("preemptionPolicy"),
            old.get("preemptionPolicy"),
            &Path::new("preemptionPolicy"),
        ));
        errors
    }

    fn has_generation(&self) -> bool {
        true
    }

    /// The generation is set and never counted.
    fn generation_changes(&self, _new: &Value, _old: &Value) -> bool {
        false
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("scheduling.k8s.io/v1/priorityclasses")
    }

    fn cells(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        vec![
            tables::name(object),
            tables::number(object, &["value"]),
            flag(object, &["globalDefault"]).into(),
            age(object, now),
            tables::text(object, &["preemptionPolicy"]),
        ]
    }
}

/// Why a class with the system's prefix is not one of the system's.
fn not_system(object: &Value, name: &str, value: i64) -> Option<String> {
    let Some(expected) = system_value(name) else {
        return Some(format!("{name} is not a known system priority class"));
    };
    if value != expected {
        return Some(format!("value of {name} PriorityClass must be {expected}"));
    }
    flag(object, &["globalDefault"])
        .then(|| format!("globalDefault of {name} PriorityClass must be false"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::check::texts, *};

    #[test]
    fn users_stay_below_the_system() {
        let mut class = json!({"metadata": {"name": "system-x"}, "value": 1});
        PriorityClass.default(&mut class);
        assert_eq!(
            texts(&PriorityClass.validate_create(&class)),
            [
                "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for \
              system use only. error: system-x is not a known system priority class"
            ]
        );
        let mut class = json!({"metadata": {"name": "x"}, "value": 1_000_000_001});
        PriorityClass.default(&mut class);
        assert_eq!(
            texts(&PriorityClass.validate_create(&class)),
            ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"]
        );
    }
}
