//! Namespaces.

use fleetwright_kschema::{
    field::{FieldError, Path},
    names::{self, FOREGROUND, ORPHAN},
};
use serde_json::{Value, json};

use super::super::{Column, Kind, NameRule, age::age, check::each, shape, tables};
use crate::{object, request::Context};

/// The finalizer that keeps a namespace until everything in it is gone.
const KUBERNETES: &str = "kubernetes";
/// Every namespace carries its name as a label, for selectors.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

pub(super) struct Namespace;

impl Kind for Namespace {
    fn default(&self, object: &mut Value) {
        shape::complete("v1/Namespace", object);
    }

    fn prepare_create(&self, _context: &Context, object: &mut Value) {
        object::set(object, &["status"], json!({"phase": "Active"}));
        let mut finalizers = object::list(object, &["spec", "finalizers"]).to_vec();
        if !finalizers.iter().any(|f| f == KUBERNETES) {
            finalizers.push(KUBERNETES.into());
            object::set(object, &["spec", "finalizers"], finalizers);
        }
    }

    fn prepare_update(&self, _context: &Context, new: &mut Value, old: &Value) {
        super::super::keep(new, old, "status");
        super::super::keep(new, old, "spec");
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let path = Path::new("spec").child("finalizers");
        finalizers(object).flat_map(|name| finalizer_name(name, &path)).collect()
    }

    fn validate_status_update(&self, new: &Value, _old: &Value) -> Vec<FieldError> {
        let phase = object::text(new, &["status", "phase"]);
        let (expected, reason) = if object::is_terminating(new) {
            ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty")
        } else {
            ("Active", "may only be 'Active' if `deletionTimestamp` is empty")
        };
        if phase == expected {
            return Vec::new();
        }
        vec![FieldError::invalid(&Path::new("status").child("Phase"), phase, reason)]
    }

    fn canonicalize(&self, object: &mut Value) {
        let name = object::name(object).to_owned();
        object::set(object, &["metadata", "labels", NAME_LABEL], name);
    }

    fn name_rule(&self) -> NameRule {
        NameRule::Label
    }

    fn has_status(&self) -> bool {
        true
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn selectable_field(&self, object: &Value, field: &str) -> Option<String> {
        match field {
            "status.phase" => Some(object::text(object, &["status", "phase"]).to_owned()),
            "name" => Some(object::name(object).to_owned()),
            _ => None,
        }
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("v1/namespaces")
    }

    fn cells(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        vec![tables::name(object), tables::text(object, &["status", "phase"]), age(object, now)]
    }
}

fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    object::list(object, &["spec", "finalizers"]).iter().filter_map(Value::as_str)
}

fn finalizer_name(name: &str, path: &Path) -> Vec<FieldError> {
    let mut errors = each(path, name, names::qualified_name(name));
    if !name.contains('/') && !matches!(name, KUBERNETES | ORPHAN | FOREGROUND) {
        let reason = "name is neither a standard finalizer name nor is it fully qualified";
        errors.push(FieldError::invalid(path, name, reason));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::super::super::{check::texts, tests::context};
    use super::*;

    #[test]
    fn a_new_namespace_is_active_and_kept_by_its_finalizer() {
        let mut namespace = json!({"metadata": {"name": "a"}, "status": {"phase": "Terminating"}});
        Namespace.default(&mut namespace);
        Namespace.prepare_create(&context(), &mut namespace);
        assert_eq!(
            namespace,
            json!({
                "metadata": {"name": "a", "labels": {"kubernetes.io/metadata.name": "a"}},
                "spec": {"finalizers": ["kubernetes"]},
                "status": {"phase": "Active"},
            })
        );
    }

    #[test]
    fn finalizers_have_known_or_qualified_names() {
        let namespace = json!({"spec": {"finalizers": ["kubernetes", "a.b/c", "mine"]}});
        assert_eq!(
            texts(&Namespace.validate_create(&namespace)),
            [
                "spec.finalizers: Invalid value: \"mine\": name is neither a standard finalizer name \
              nor is it fully qualified"
            ]
        );
    }

    #[test]
    fn the_phase_follows_the_deletion() {
        let errors =
            Namespace.validate_status_update(&json!({"status": {"phase": "Gone"}}), &json!({}));
        assert_eq!(
            texts(&errors),
            [
                "status.Phase: Invalid value: \"Gone\": may only be 'Active' if `deletionTimestamp` is empty"
            ]
        );
    }
}
