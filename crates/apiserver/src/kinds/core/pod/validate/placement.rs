//! Affinities and spreading.

use fleetwright_kschema::{
    field::{FieldError, Path},
    names,
};
use serde_json::Value;

use super::super::super::super::check::{Errors, each, has, is_set, one_of};
use crate::object;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// What is wrong with the affinity of a pod.
pub(super) fn affinity(spec: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    if let Some(node) = object::get(spec, &["affinity", "nodeAffinity"]) {
        errors.extend(node_affinity(node, &path.child("nodeAffinity")));
    }
    for key in ["podAffinity", "podAntiAffinity"] {
        let Some(pods) = object::get(spec, &["affinity", key]) else { continue };
        let path = path.child(key);
        for (i, term) in object::list(pods, &[REQUIRED]).iter().enumerate() {
            errors.extend(pod_term(term, &path.child(REQUIRED).index(i)));
        }
        for (i, weighted) in object::list(pods, &[PREFERRED]).iter().enumerate() {
            let path = path.child(PREFERRED).index(i);
            errors.extend(weight(weighted, &path));
            if let Some(term) = weighted.get("podAffinityTerm") {
                errors.extend(pod_term(term, &path.child("podAffinityTerm")));
            }
        }
    }
    errors
}

fn node_affinity(affinity: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    if let Some(required) = affinity.get(REQUIRED).filter(|required| !required.is_null()) {
        errors.extend(node_selector(required, &path.child(REQUIRED)));
    }
    for (i, preferred) in object::list(affinity, &[PREFERRED]).iter().enumerate() {
        let path = path.child(PREFERRED).index(i);
        errors.extend(weight(preferred, &path));
        if let Some(term) = preferred.get("preference") {
            errors.extend(node_term(term, false, &path.child("preference")));
        }
    }
    errors
}

/// What is wrong with a node selector.
pub(crate) fn node_selector(selector: &Value, path: &Path) -> Errors {
    let terms = object::list(selector, &["nodeSelectorTerms"]);
    let path = path.child("nodeSelectorTerms");
    if terms.is_empty() {
        return vec![FieldError::required(&path, "must have at least one node selector term")];
    }
    terms.iter().enumerate().flat_map(|(i, term)| node_term(term, true, &path.index(i))).collect()
}

fn weight(term: &Value, path: &Path) -> Errors {
    let weight = object::integer(term, &["weight"]).unwrap_or_default();
    if (1..=100).contains(&weight) {
        return Errors::new();
    }
    vec![FieldError::invalid(&path.child("weight"), weight, "must be in the range 1-100")]
}

fn node_term(term: &Value, strict_values: bool, path: &Path) -> Errors {
    let mut errors = Errors::new();
    for (i, requirement) in object::list(term, &["matchExpressions"]).iter().enumerate() {
        let path = path.child("matchExpressions").index(i);
        errors.extend(node_requirement(requirement, strict_values, &path));
    }
    for (i, requirement) in object::list(term, &["matchFields"]).iter().enumerate() {
        errors.extend(field_requirement(requirement, &path.child("matchFields").index(i)));
    }
    errors
}

fn node_requirement(requirement: &Value, strict_values: bool, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let operator = object::text(requirement, &["operator"]);
    let values = object::list(requirement, &["values"]);
    let values_path = path.child("values");
    match operator {
        "In" | "NotIn" if values.is_empty() => errors.push(FieldError::required(
            &values_path,
            "must be specified when `operator` is 'In' or 'NotIn'",
        )),
        "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(FieldError::forbidden(
            &values_path,
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        )),
        "Gt" | "Lt" if values.len() != 1 => errors.push(FieldError::required(
            &values_path,
            "must be specified single value when `operator` is 'Lt' or 'Gt'",
        )),
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        _ => errors.push(not_an_operator(operator, path)),
    }
    let key = object::text(requirement, &["key"]);
    errors.extend(each(&path.child("key"), key, names::qualified_name(key)));
    if strict_values {
        for (i, value) in values.iter().filter_map(Value::as_str).enumerate() {
            errors.extend(each(&values_path.index(i), value, names::label_value(value)));
        }
    }
    errors
}

fn not_an_operator(operator: &str, path: &Path) -> FieldError {
    FieldError::invalid(&path.child("operator"), operator, "not a valid selector operator")
}

fn field_requirement(requirement: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let operator = object::text(requirement, &["operator"]);
    let values = object::list(requirement, &["values"]);
    if !matches!(operator, "In" | "NotIn") {
        errors.push(not_an_operator(operator, path));
    } else if values.len() != 1 {
        let reason =
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
        errors.push(FieldError::required(&path.child("values"), reason));
    }
    let key = object::text(requirement, &["key"]);
    if key == "metadata.name" {
        for (i, value) in values.iter().filter_map(Value::as_str).enumerate() {
            let path = path.child("values").index(i);
            errors.extend(each(&path, value, names::dns_1123_subdomain(value)));
        }
    } else {
        let reason = "not a valid field selector key";
        errors.push(FieldError::invalid(&path.child("key"), key, reason));
    }
    errors
}

fn pod_term(term: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    for key in ["labelSelector", "namespaceSelector"] {
        if let Some(selector) = term.get(key) {
            errors.extend(names::validate_label_selector(selector, &path.child(key)));
        }
    }
    for name in object::list(term, &["namespaces"]).iter().filter_map(Value::as_str) {
        errors.extend(each(&path.child("namespace"), name, names::dns_1123_label(name)));
    }
    let key = object::text(term, &["topologyKey"]);
    let key_path = path.child("topologyKey");
    if key.is_empty() {
        errors.push(FieldError::required(&key_path, "can not be empty"));
    }
    errors.extend(each(&key_path, key, names::qualified_name(key)));
    errors
}

/// What is wrong with how pods are to be spread.
pub(super) fn spread(spec: &Value, path: &Path) -> Errors {
    let constraints = object::list(spec, &["topologySpreadConstraints"]);
    let mut errors = Errors::new();
    for (i, constraint) in constraints.iter().enumerate() {
        let path = path.index(i);
        let text = |key| object::text(constraint, &[key]);
        let skew = object::integer(constraint, &["maxSkew"]).unwrap_or_default();
        if skew <= 0 {
            let reason = "must be greater than zero";
            errors.push(FieldError::invalid(&path.child("maxSkew"), skew, reason));
        }
        if !has(constraint, &["topologyKey"]) {
            let path = path.child("topologyKey");
            errors.push(FieldError::required(&path, "can not be empty"));
        }
        let action = text("whenUnsatisfiable");
        let actions = ["DoNotSchedule", "ScheduleAnyway"];
        errors.extend(one_of(action, &actions, &path.child("whenUnsatisfiable")));
        let repeated = constraints.iter().skip(i + 1).any(|other| {
            object::text(other, &["topologyKey"]) == text("topologyKey")
                && object::text(other, &["whenUnsatisfiable"]) == action
        });
        if repeated {
            let path = path.child("{topologyKey, whenUnsatisfiable}");
            let value = format!("{{{}, {action}}}", text("topologyKey"));
            errors.push(FieldError::duplicate(&path, value));
        }
        if is_set(constraint, &["minDomains"]) {
            errors.extend(min_domains(constraint, action, &path.child("minDomains")));
        }
        if let Some(selector) = constraint.get("labelSelector") {
            errors.extend(names::validate_label_selector(selector, &path.child("labelSelector")));
        }
    }
    errors
}

fn min_domains(constraint: &Value, action: &str, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let domains = object::integer(constraint, &["minDomains"]).unwrap_or_default();
    if domains <= 0 {
        errors.push(FieldError::invalid(path, domains, "must be greater than zero"));
    }
    if action != "DoNotSchedule" {
        let reason =
            format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
        errors.push(FieldError::invalid(path, domains, reason));
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::super::super::check::texts;
    use super::*;

    #[test]
    fn affinities_are_well_formed() {
        let spec = json!({"affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "a", "operator": "In"}, {"key": "b", "operator": "Is"}]},
                    {"matchFields": [{"key": "x", "operator": "In", "values": ["y"]}]},
                ]},
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 0, "preference": {}}],
            },
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": ""}]},
        }});
        assert_eq!(
            texts(&affinity(&spec, &Path::new("a"))),
            [
                "a.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]\
                 .matchExpressions[0].values: Required value: must be specified when `operator` is \
                 'In' or 'NotIn'",
                "a.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]\
                 .matchExpressions[1].operator: Invalid value: \"Is\": not a valid selector operator",
                "a.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[1]\
                 .matchFields[0].key: Invalid value: \"x\": not a valid field selector key",
                "a.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid \
                 value: 0: must be in the range 1-100",
                "a.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: \
                 Required value: can not be empty",
                "a.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: \
                 Invalid value: \"\": name part must be non-empty",
                "a.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: \
                 Invalid value: \"\": name part must consist of alphanumeric characters, '-', '_' or \
                 '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or \
                 'my.name',  or '123-abc', regex used for validation is \
                 '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            ]
        );
    }

    #[test]
    fn spreading_is_well_formed() {
        let spec = json!({"topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"},
            {"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 0},
            {"maxSkew": 1, "whenUnsatisfiable": "Never"},
        ]});
        assert_eq!(
            texts(&spread(&spec, &Path::new("s"))),
            [
                "s[0].{topologyKey, whenUnsatisfiable}: Duplicate value: \"{z, DoNotSchedule}\"",
                "s[1].maxSkew: Invalid value: 0: must be greater than zero",
                "s[1].minDomains: Invalid value: 0: must be greater than zero",
                "s[2].topologyKey: Required value: can not be empty",
                "s[2].whenUnsatisfiable: Unsupported value: \"Never\": supported values: \
                 \"DoNotSchedule\", \"ScheduleAnyway\"",
            ]
        );
    }
}
