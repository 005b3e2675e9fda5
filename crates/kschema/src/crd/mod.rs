//! CustomResourceDefinitions: their defaults, and the rules that they must meet.

mod conversion;
mod defaults;
mod names;
mod openapi_rules;
mod prepare;
mod render;
mod spec;
mod structural;
mod versions;
mod warnings;

#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::field::{FieldError, Path};
use crate::formats::is_absolute_uri;
use crate::names as meta_names;
use spec::Spec;

pub use prepare::{default_crd, prepare_crd_for_create, prepare_crd_for_update};
pub use warnings::crd_warnings;

const APPROVAL: &str = "api-approved.kubernetes.io";

/// Checks a new definition, after defaulting and preparation.
pub fn validate_crd(crd: &Value) -> Vec<FieldError> {
    let spec = Spec::parse(crd);
    let mut errors = new_metadata(crd, &spec);
    errors.extend(versions::validate_spec(&spec, false));
    status_errors(crd, &mut errors);
    stored_versions(crd, &spec, &mut errors);
    approval(crd, None, &spec, &mut errors);
    preserve_unknown_fields(&spec, None, &mut errors);
    errors
}

/// Checks a definition that replaces another, after defaulting and preparation.
pub fn validate_crd_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let spec = Spec::parse(new);
    let old_spec = Spec::parse(old);
    let mut errors = changed_metadata(new, old);
    let established = is_established(old);
    errors.extend(versions::validate_spec(&spec, established));
    let path = Path::new("spec");
    if established {
        immutable(&spec.scope, &old_spec.scope, &path.child("scope"), &mut errors);
        let kind_path = path.child("names").child("kind");
        immutable(&spec.names.kind, &old_spec.names.kind, &kind_path, &mut errors);
    }
    immutable(&spec.group, &old_spec.group, &path.child("group"), &mut errors);
    let plural_path = path.child("names").child("plural");
    immutable(&spec.names.plural, &old_spec.names.plural, &plural_path, &mut errors);
    status_errors(new, &mut errors);
    stored_versions(new, &spec, &mut errors);
    approval(new, Some(old), &spec, &mut errors);
    preserve_unknown_fields(&spec, Some(&old_spec), &mut errors);
    errors
}

/// Checks a definition whose status changed.
pub fn validate_crd_status_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = changed_metadata(new, old);
    status_errors(new, &mut errors);
    errors
}

fn new_metadata(crd: &Value, spec: &Spec) -> Vec<FieldError> {
    let path = Path::new("metadata");
    let meta = crd.get("metadata").unwrap_or(&Value::Null);
    let check = meta_names::name_is_dns_subdomain;
    let mut errors = meta_names::validate_object_meta(meta, false, check, &path);
    let required = format!("{}.{}", spec.names.plural, spec.group);
    let mut at = 0;
    for field in ["generateName", "name"] {
        let name = meta.get(field).and_then(Value::as_str).unwrap_or_default();
        let place = path.child(field);
        // Right after the other errors of the same name.
        at = errors.iter().rposition(|error| error.path == place).map_or(at, |i| i + 1);
        if !name.is_empty() && name != required {
            let detail = "must be spec.names.plural+\".\"+spec.group";
            errors.insert(at, FieldError::invalid(&place, name, detail));
            at += 1;
        }
    }
    errors
}

fn changed_metadata(new: &Value, old: &Value) -> Vec<FieldError> {
    let meta = |crd: &Value| crd.get("metadata").cloned().unwrap_or_default();
    meta_names::validate_object_meta_update(&meta(new), &meta(old), &Path::new("metadata"))
}

fn immutable(new: &str, old: &str, path: &Path, errors: &mut Vec<FieldError>) {
    if new != old {
        errors.push(FieldError::invalid(path, new, "field is immutable"));
    }
}

fn is_established(crd: &Value) -> bool {
    let conditions = crd.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        condition.get("type").and_then(Value::as_str) == Some("Established")
            && condition.get("status").and_then(Value::as_str) == Some("True")
    })
}

fn status_errors(crd: &Value, errors: &mut Vec<FieldError>) {
    let accepted = crd.pointer("/status/acceptedNames").unwrap_or(&Value::Null);
    let path = Path::new("status").child("acceptedNames");
    names::validate(&spec::Names::parse(accepted), &path, errors);
}

fn stored_versions(crd: &Value, spec: &Spec, errors: &mut Vec<FieldError>) {
    let path = Path::new("status").child("storedVersions");
    let stored: Vec<&str> = crd
        .pointer("/status/storedVersions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if stored.is_empty() {
        let value = crd.pointer("/status/storedVersions").cloned().unwrap_or_default();
        let detail = "must have at least one stored version";
        errors.push(FieldError::invalid(&path, value, detail));
        return;
    }
    for version in spec.versions.iter().filter(|version| version.storage) {
        if !stored.contains(&version.name.as_str()) {
            let detail = format!("must have the storage version {}", version.name);
            errors.push(FieldError::invalid(&path, stored.clone(), detail));
        }
    }
    for (i, name) in stored.iter().enumerate() {
        if !spec.versions.iter().any(|version| version.name == *name) {
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must \
                 remain in spec.versions until a storage migration ensures no data remains \
                 persisted in {name} and removes {name} from status.storedVersions"
            );
            errors.push(FieldError::invalid(&path.index(i), *name, detail));
        }
    }
}

/// Whether a definition in a group of the Kubernetes project was approved.
#[derive(PartialEq)]
enum Approval {
    Missing,
    Bypassed,
    Approved,
    Invalid,
}

impl Approval {
    fn of(crd: &Value) -> Self {
        match annotation(crd) {
            "" => Self::Missing,
            text if text.starts_with("unapproved") => Self::Bypassed,
            text if is_absolute_uri(text) => Self::Approved,
            _ => Self::Invalid,
        }
    }
}

fn annotation(crd: &Value) -> &str {
    let annotations = crd.pointer("/metadata/annotations");
    annotations.and_then(|a| a.get(APPROVAL)).and_then(Value::as_str).unwrap_or_default()
}

fn approval(crd: &Value, old: Option<&Value>, spec: &Spec, errors: &mut Vec<FieldError>) {
    let group = spec.group.as_str();
    let is_protected = ["k8s.io", "kubernetes.io"].iter().any(|domain| {
        group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    });
    let state = Approval::of(crd);
    if !is_protected || old.is_some_and(|old| Approval::of(old) == state) {
        return;
    }
    let path = Path::new("metadata").child("annotations").key(APPROVAL);
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    match state {
        Approval::Missing => {
            let detail =
                format!("protected groups must have approval annotation \"{APPROVAL}\", {see}");
            errors.push(FieldError::required(&path, detail));
        }
        Approval::Invalid => {
            let detail = format!(
                "protected groups must have approval annotation \"{APPROVAL}\" with either a URL \
                 or a reason starting with \"unapproved\", {see}"
            );
            errors.push(FieldError::invalid(&path, annotation(crd), detail));
        }
        Approval::Bypassed | Approval::Approved => {}
    }
}

fn preserve_unknown_fields(spec: &Spec, old: Option<&Spec>, errors: &mut Vec<FieldError>) {
    if spec.preserve_unknown_fields && old.is_none_or(|old| !old.preserve_unknown_fields) {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                      spec.versions[*].schema instead";
        let path = Path::new("spec").child("preserveUnknownFields");
        errors.push(FieldError::invalid(&path, true, detail));
    }
}
