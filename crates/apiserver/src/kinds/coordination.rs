//! Leases.

use std::sync::Arc;

use fleetwright_kschema::field::{FieldError, Path};
use serde_json::Value;

use super::{
    Builtin, Column, Kind,
    age::age,
    check::{Errors, NOT_NEGATIVE, has},
    shape, tables,
};
use crate::{gvk::GroupVersionKind, object, request::Context};

/// The kinds of the group `coordination.k8s.io`.
pub(super) fn builtins() -> Vec<Builtin> {
    vec![Builtin {
        gvk: GroupVersionKind::new("coordination.k8s.io", "v1", "Lease"),
        plural: "leases",
        singular: "lease",
        short_names: &[],
        categories: &[],
        namespaced: true,
        subresources: &[],
        kind: Arc::new(Lease),
    }]
}

struct Lease;

impl Kind for Lease {
    fn default(&self, object: &mut Value) {
        shape::complete("coordination.k8s.io/v1/Lease", object);
    }

    fn prepare_create(&self, _context: &Context, object: &mut Value) {
        drop_coordination(object, None);
    }

    fn prepare_update(&self, _context: &Context, new: &mut Value, old: &Value) {
        drop_coordination(new, Some(old));
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let path = Path::new("spec");
        let mut errors = Errors::new();
        let number = |key| object::integer(object, &["spec", key]);
        if let Some(seconds) = number("leaseDurationSeconds").filter(|&seconds| seconds <= 0) {
            let path = path.child("leaseDurationSeconds");
            errors.push(FieldError::invalid(&path, seconds, "must be greater than 0"));
        }
        if let Some(transitions) = number("leaseTransitions").filter(|&number| number < 0) {
            let path = path.child("leaseTransitions");
            errors.push(FieldError::invalid(&path, transitions, NOT_NEGATIVE));
        }
        if has(object, &["spec", "preferredHolder"]) && !has(object, &["spec", "strategy"]) {
            let path = path.child("preferredHolder");
            let reason = "may only be specified if `strategy` is defined";
            errors.push(FieldError::forbidden(&path, reason));
        }
        errors
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("coordination.k8s.io/v1/leases")
    }

    fn cells(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        vec![
            tables::name(object),
            tables::text(object, &["spec", "holderIdentity"]),
            age(object, now),
        ]
    }
}

/// Fields of a feature that is off by default stay only where they are.
fn drop_coordination(object: &mut Value, old: Option<&Value>) {
    for key in ["strategy", "preferredHolder"] {
        if old.and_then(|old| object::get(old, &["spec", key])).is_none() {
            object::remove(object, &["spec", key]);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::check::texts, *};

    #[test]
    fn durations_are_positive() {
        let lease = json!({"spec": {"leaseDurationSeconds": 0, "leaseTransitions": -1}});
        assert_eq!(
            texts(&Lease.validate_create(&lease)),
            [
                "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
                "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
            ]
        );
    }

    #[test]
    fn times_have_microseconds() {
        let mut lease = json!({"spec": {"renewTime": "2026-01-02T03:04:05Z"}});
        Lease.default(&mut lease);
        assert_eq!(lease["spec"]["renewTime"], "2026-01-02T03:04:05.000000Z");
    }
}
