//! Limits on what a namespace may use: quotas and ranges.

use fleetwright_kschema::field::{FieldError, Path};
use serde_json::Value;

use super::super::{
    Column, Kind,
    age::age,
    check::{Errors, map, same},
    clear_status, shape, tables,
};
use super::resources;
use crate::{object, request::Context};

const QUOTA: &str = "v1/ResourceQuota";

pub(super) struct ResourceQuota;

impl Kind for ResourceQuota {
    fn default(&self, object: &mut Value) {
        shape::complete(QUOTA, object);
    }

    fn prepare_create(&self, _context: &Context, object: &mut Value) {
        clear_status(QUOTA, object);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        amounts(object, &["spec", "hard"])
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = self.validate_create(new);
        let scopes = |object| object::get(object, &["spec", "scopes"]);
        if !same(scopes(new), scopes(old)) {
            let path = Path::new("spec").child("scopes");
            let value = scopes(new).cloned().unwrap_or_default();
            errors.push(FieldError::invalid(&path, value, "field is immutable"));
        }
        errors
    }

    fn validate_status_update(&self, new: &Value, _old: &Value) -> Vec<FieldError> {
        let mut errors = amounts(new, &["status", "hard"]);
        errors.extend(amounts(new, &["status", "used"]));
        errors
    }

    fn has_status(&self) -> bool {
        true
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("v1/resourcequotas")
    }

    fn cells(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        let (mut requests, mut limits) = (Vec::new(), Vec::new());
        for (name, hard) in map(object, &["status", "hard"]).into_iter().flatten() {
            let used = object::get(object, &["status", "used", name]).and_then(Value::as_str);
            let line =
                format!("{name}: {}/{}", used.unwrap_or("0"), hard.as_str().unwrap_or_default());
            if name.starts_with("limits.") { limits.push(line) } else { requests.push(line) }
        }
        vec![
            tables::name(object),
            requests.join(", ").into(),
            limits.join(", ").into(),
            age(object, now),
        ]
    }
}

fn amounts(object: &Value, keys: &[&str; 2]) -> Errors {
    let path = Path::new(keys[0]).child(keys[1]);
    let mut errors = Errors::new();
    for (name, value) in map(object, keys).into_iter().flatten() {
        let path = path.key(name);
        errors.extend(resources::quota_name(name, &path));
        errors.extend(resources::amount(name, value, &path));
    }
    errors
}

pub(super) struct LimitRange;

impl Kind for LimitRange {
    fn default(&self, object: &mut Value) {
        shape::complete("v1/LimitRange", object);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Errors::new();
        let mut seen = Vec::new();
        for (i, limit) in object::list(object, &["spec", "limits"]).iter().enumerate() {
            let path = Path::new("spec").child("limits").index(i);
            let kind = object::text(limit, &["type"]);
            if seen.contains(&kind) {
                errors.push(FieldError::duplicate(&path.child("type"), kind));
            }
            seen.push(kind);
        }
        errors
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }
}
