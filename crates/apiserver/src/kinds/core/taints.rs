//! Taints of nodes and tolerations of pods.

use std::collections::BTreeSet;

use fleetwright_kschema::{
    field::{FieldError, Path},
    names,
};
use serde_json::Value;

use super::super::{
    check::{Errors, duplicate, each, is_set, one_of},
    internal,
};
use crate::object;

const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// What is wrong with the taints of a node.
pub(super) fn taints(taints: &[Value], path: &Path) -> Errors {
    let mut errors = Errors::new();
    let mut seen = BTreeSet::new();
    for (i, taint) in taints.iter().enumerate() {
        let path = path.index(i);
        let key = object::text(taint, &["key"]);
        let value = object::text(taint, &["value"]);
        let effect = object::text(taint, &["effect"]);
        errors.extend(each(&path.child("key"), key, names::qualified_name(key)));
        let reasons = names::label_value(value);
        if !reasons.is_empty() {
            errors.push(FieldError::invalid(&path.child("value"), value, reasons.join(";")));
        }
        if effect.is_empty() {
            errors.push(FieldError::required(&path.child("effect"), ""));
        } else {
            errors.extend(known_effect(effect, &path.child("effect")));
        }
        if !seen.insert((key, effect)) {
            let detail = "taints must be unique by key and effect pair";
            errors.push(duplicate(&path, internal::printed("core.Taint", taint), detail));
        }
    }
    errors
}

fn known_effect(effect: &str, path: &Path) -> Errors {
    one_of(effect, EFFECTS, path)
}

/// What is wrong with the tolerations of a pod.
pub(super) fn tolerations(tolerations: &[Value], path: &Path) -> Errors {
    let mut errors = Errors::new();
    for (i, toleration) in tolerations.iter().enumerate() {
        errors.extend(check_toleration(toleration, &path.index(i)));
    }
    errors
}

fn check_toleration(toleration: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let text = |key| object::text(toleration, &[key]);
    let (key, operator, value, effect) =
        (text("key"), text("operator"), text("value"), text("effect"));
    let operator_path = path.child("operator");
    if !key.is_empty() {
        errors.extend(each(&path.child("key"), key, names::qualified_name(key)));
    } else if operator != "Exists" {
        let reason = "operator must be Exists when `key` is empty, which means \"match all values \
                      and all keys\"";
        errors.push(FieldError::invalid(&operator_path, operator, reason));
    }
    if is_set(toleration, &["tolerationSeconds"]) && effect != "NoExecute" {
        let reason = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(FieldError::invalid(&path.child("effect"), effect, reason));
    }
    match operator {
        "" | "Equal" => {
            let reasons = names::label_value(value);
            if !reasons.is_empty() {
                errors.push(FieldError::invalid(&operator_path, value, reasons.join(";")));
            }
        }
        "Exists" if value.is_empty() => {}
        "Exists" => {
            let reason = "value must be empty when `operator` is 'Exists'";
            errors.push(FieldError::invalid(&operator_path, value, reason));
        }
        "Lt" | "Gt" => {
            let supported = ["Equal", "Exists", "Lt", "Gt"];
            errors.push(FieldError::not_supported(&operator_path, operator, &supported));
        }
        _ => {
            errors.push(FieldError::not_supported(&operator_path, operator, &["Equal", "Exists"]));
        }
    }
    if !effect.is_empty() {
        errors.extend(known_effect(effect, &path.child("effect")));
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::check::texts;
    use super::*;

    #[test]
    fn taints_are_unique_and_well_formed() {
        let list = json!([
            {"key": "a", "effect": "NoSchedule"},
            {"key": "a", "effect": "NoSchedule"},
            {"key": "b"},
            {"key": "c", "effect": "Never"},
        ]);
        assert_eq!(
            texts(&taints(list.as_array().unwrap(), &Path::new("metadata").child("taints"))),
            [
                "metadata.taints[1]: Duplicate value: {\"Key\":\"a\",\"Value\":\"\",\"Effect\":\
                 \"NoSchedule\",\"TimeAdded\":null}: taints must be unique by key and effect pair",
                "metadata.taints[2].effect: Required value",
                "metadata.taints[3].effect: Unsupported value: \"Never\": supported values: \
                 \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"",
            ]
        );
    }

    #[test]
    fn tolerations_are_consistent() {
        let list = json!([
            {"operator": "Equal", "value": "x"},
            {"key": "a", "operator": "Exists", "value": "x"},
            {"key": "a", "operator": "Like"},
            {"key": "a", "tolerationSeconds": 1, "effect": "NoSchedule"},
        ]);
        assert_eq!(
            texts(&tolerations(list.as_array().unwrap(), &Path::new("t"))),
            [
                "t[0].operator: Invalid value: \"Equal\": operator must be Exists when `key` is \
                 empty, which means \"match all values and all keys\"",
                "t[1].operator: Invalid value: \"x\": value must be empty when `operator` is 'Exists'",
                "t[2].operator: Unsupported value: \"Like\": supported values: \"Equal\", \"Exists\"",
                "t[3].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when \
                 `tolerationSeconds` is set",
            ]
        );
    }
}
