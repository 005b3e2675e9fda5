//! Pod disruption budgets.

use std::sync::Arc;

use fleetwright_kschema::{
    field::{FieldError, Path},
    names,
};
use serde_json::Value;

use super::{
    Builtin, Column, Kind, NameRule,
    age::age,
    check::{Errors, at_most_all, conditions, int_or_percent, is_set, none_negative, one_of},
    clear_status, internal, shape, tables,
};
use crate::{gvk::GroupVersionKind, object, request::Context};

const KIND: &str = "policy/v1/PodDisruptionBudget";

/// The kinds of the group `policy`.
pub(super) fn builtins() -> Vec<Builtin> {
    vec![Builtin {
        gvk: GroupVersionKind::new("policy", "v1", "PodDisruptionBudget"),
        plural: "poddisruptionbudgets",
        singular: "poddisruptionbudget",
        short_names: &["pdb"],
        categories: &[],
        namespaced: true,
        subresources: &["status"],
        kind: Arc::new(PodDisruptionBudget),
    }]
}

struct PodDisruptionBudget;

impl Kind for PodDisruptionBudget {
    fn default(&self, object: &mut Value) {
        shape::complete(KIND, object);
    }

    fn prepare_create(&self, _context: &Context, object: &mut Value) {
        clear_status(KIND, object);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let path = Path::new("spec");
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let mut errors = Errors::new();
        if is_set(spec, &["minAvailable"]) && is_set(spec, &["maxUnavailable"]) {
            let value = internal::printed("policy.PodDisruptionBudgetSpec", spec);
            let reason = "minAvailable and maxUnavailable cannot be both set";
            errors.push(FieldError::invalid(&path, value, reason));
        }
        for key in ["minAvailable", "maxUnavailable"] {
            if let Some(value) = spec.get(key).filter(|value| !value.is_null()) {
                errors.extend(int_or_percent(value, &path.child(key)));
                errors.extend(at_most_all(value, &path.child(key)));
            }
        }
        if let Some(selector) = spec.get("selector") {
            errors.extend(names::validate_label_selector(selector, &path.child("selector")));
        }
        if is_set(spec, &["unhealthyPodEvictionPolicy"]) {
            errors.extend(one_of(
                object::text(spec, &["unhealthyPodEvictionPolicy"]),
                &["AlwaysAllow", "IfHealthyBudget"],
                &path.child("unhealthyPodEvictionPolicy"),
            ));
        }
        errors
    }

    fn validate_status_update(&self, new: &Value, _old: &Value) -> Vec<FieldError> {
        let path = Path::new("status");
        let status = new.get("status").unwrap_or(&Value::Null);
        let mut errors =
            conditions(object::list(status, &["conditions"]), &path.child("conditions"));
        let numbers = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
        errors.extend(none_negative(status, &numbers, &path));
        errors
    }

    /// Names of budgets are not checked beyond what a path needs.
    fn name_rule(&self) -> NameRule {
        NameRule::PathSegment
    }

    fn has_status(&self) -> bool {
        true
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("policy/v1/poddisruptionbudgets")
    }

    fn cells(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        let limit = |key| -> Value {
            match object::get(object, &["spec", key]) {
                None | Some(Value::Null) => "N/A".into(),
                Some(Value::String(text)) => text.as_str().into(),
                Some(number) => number.to_string().into(),
            }
        };
        vec![
            tables::name(object),
            limit("minAvailable"),
            limit("maxUnavailable"),
            tables::number(object, &["status", "disruptionsAllowed"]),
            age(object, now),
        ]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::check::texts, *};

    #[test]
    fn one_limit_in_bounds() {
        let budget = json!({"spec": {
            "minAvailable": 1,
            "maxUnavailable": "110%",
            "unhealthyPodEvictionPolicy": "Never",
        }});
        assert_eq!(
            texts(&PodDisruptionBudget.validate_create(&budget)),
            [
                "spec: Invalid value: {\"MinAvailable\":1,\"Selector\":null,\"MaxUnavailable\":\"110%\",\
                 \"UnhealthyPodEvictionPolicy\":\"Never\"}: minAvailable and maxUnavailable cannot be \
                 both set",
                "spec.maxUnavailable: Invalid value: \"110%\": must not be greater than 100%",
                "spec.unhealthyPodEvictionPolicy: Unsupported value: \"Never\": supported values: \
                 \"AlwaysAllow\", \"IfHealthyBudget\"",
            ]
        );
        let budget = json!({"spec": {"minAvailable": "half"}});
        assert_eq!(
            texts(&PodDisruptionBudget.validate_create(&budget)),
            [
                "spec.minAvailable: Invalid value: \"half\": a valid percent string must be a numeric \
              string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is \
              '[0-9]+%')"
            ]
        );
    }

    #[test]
    fn a_new_budget_allows_nothing_yet() {
        let mut budget = json!({"spec": {"minAvailable": 1}, "status": {"disruptionsAllowed": 5}});
        PodDisruptionBudget.default(&mut budget);
        PodDisruptionBudget.prepare_create(&super::super::tests::context(), &mut budget);
        assert_eq!(
            budget["status"],
            json!({"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0})
        );
    }
}
