//! What workloads share: a selector, a template of pods, counts in the status.

use fleetwright_kschema::{
    field::{FieldError, Path},
    names,
};
use serde_json::Value;

use super::super::{
    check::{Errors, immutable, is_set, none_negative, selector_is_empty, selector_matches},
    core::pod,
};
use crate::object;

const MISMATCH: &str = "`selector` does not match template `labels`";

/// A selector that must be there and say something. `kind` is named in the message.
pub(super) fn selector(object: &Value, kind: &str) -> Errors {
    let path = Path::new("spec").child("selector");
    let Some(selector) = object::get(object, &["spec", "selector"]).filter(|s| !s.is_null()) else {
        return vec![FieldError::required(&path, "")];
    };
    let mut errors = names::validate_label_selector(selector, &path);
    if selector_is_empty(selector) {
        let reason = format!("empty selector is invalid for {kind}");
        errors.push(FieldError::invalid(&path, selector.clone(), reason));
    } else if !errors.is_empty() {
        errors.push(FieldError::invalid(&path, selector.clone(), "invalid label selector"));
    }
    errors
}

/// Whether the template's labels match the selector; nothing is said without a selector that
/// could match.
pub(super) fn labels_match(object: &Value) -> Errors {
    let selector = object::get(object, &["spec", "selector"]).filter(|s| !s.is_null());
    let labels = object::get(object, &["spec", "template", "metadata", "labels"]);
    if selector.is_some_and(selector_is_empty) || selector_matches(selector, labels) {
        return Errors::new();
    }
    let path = Path::new("spec").child("template").child("metadata").child("labels");
    let value = labels.cloned().unwrap_or_default();
    vec![FieldError::invalid(&path, value, MISMATCH)]
}

/// The template of pods that always restart.
pub(in super::super) fn template(object: &Value) -> Errors {
    let path = Path::new("spec").child("template");
    let template = object::get(object, &["spec", "template"]).unwrap_or(&Value::Null);
    pod::validate::template(template, &path)
}

/// Pods of services are restarted always and have no deadline.
pub(in super::super) fn runs_forever(object: &Value, kind: &str) -> Errors {
    let mut errors = Errors::new();
    let path = Path::new("spec").child("template").child("spec");
    let policy = object::text(object, &["spec", "template", "spec", "restartPolicy"]);
    if policy != "Always" {
        let path = path.child("restartPolicy");
        errors.push(FieldError::not_supported(&path, policy, &["Always"]));
    }
    if is_set(object, &["spec", "template", "spec", "activeDeadlineSeconds"]) {
        let reason = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.push(FieldError::forbidden(&path.child("activeDeadlineSeconds"), reason));
    }
    errors
}

/// The selector stays.
pub(super) fn same_selector(new: &Value, old: &Value) -> Errors {
    let get = |object| object::get(object, &["spec", "selector"]);
    immutable(get(new), get(old), &Path::new("spec").child("selector"))
}

/// Counts of replicas in a status: not negative, and no part greater than the whole.
pub(in super::super) fn counts(object: &Value, parts: &[&str], others: &[&str]) -> Errors {
    let path = Path::new("status");
    let status = object.get("status").unwrap_or(&Value::Null);
    let mut errors = none_negative(status, &["replicas"], &path);
    errors.extend(none_negative(status, parts, &path));
    errors.extend(none_negative(status, others, &path));
    let number = |key: &str| object::integer(status, &[key]).unwrap_or_default();
    for part in parts.iter().filter(|part| number(part) > number("replicas")) {
        let reason = "cannot be greater than status.replicas";
        errors.push(FieldError::invalid(&path.child(part), number(part), reason));
    }
    errors
}

/// Available replicas are ready ones.
pub(in super::super) fn available_are_ready(object: &Value, reason: &str) -> Errors {
    let number = |key| object::integer(object, &["status", key]).unwrap_or_default();
    if number("availableReplicas") <= number("readyReplicas") {
        return Errors::new();
    }
    let path = Path::new("status").child("availableReplicas");
    vec![FieldError::invalid(&path, number("availableReplicas"), reason)]
}

/// The count of hash collisions only grows.
pub(super) fn collisions_grow(new: &Value, old: &Value) -> Errors {
    let count = |object| object::integer(object, &["status", "collisionCount"]);
    match (count(new), count(old)) {
        (new, Some(old)) if new.unwrap_or_default() < old => {
            let path = Path::new("status").child("collisionCount");
            vec![FieldError::invalid(&path, new.unwrap_or_default(), "cannot be decremented")]
        }
        _ => Errors::new(),
    }
}

/// Warnings for the template, and for a name that ends up in host names.
pub(in super::super) fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let mut warnings = Vec::new();
    if old.is_none() {
        warnings.extend(pod::name_is_no_label(object::name(object), "Pod names and hostnames"));
    } else if old.and_then(|old| old.get("spec")) == object.get("spec") {
        return warnings;
    }
    if let Some(template) = object::get(object, &["spec", "template"]) {
        let path = Path::new("spec").child("template");
        warnings.extend(pod::template_warnings(template, &path));
    }
    warnings
}
