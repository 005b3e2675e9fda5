//! Claims for devices, and templates of them.

use fleetwright_kschema::{
    field::{FieldError, Path},
    names,
};
use serde_json::Value;

use super::{
    super::{
        Column, Kind,
        age::age,
        check::{Errors, IMMUTABLE, each, immutable, same},
        clear_status,
        core::pod,
        shape, tables,
    },
    requests::{devices, entries, label, reference, request_names},
};
use crate::{object, request::Context};

const CLAIM: &str = "resource.k8s.io/v1/ResourceClaim";
const TEMPLATE: &str = "resource.k8s.io/v1/ResourceClaimTemplate";
/// Most users of one claim.
const MOST_USERS: usize = 256;

pub(super) struct ResourceClaim;

impl Kind for ResourceClaim {
    fn default(&self, object: &mut Value) {
        shape::complete(CLAIM, object);
    }

    fn prepare_create(&self, _context: &Context, object: &mut Value) {
        clear_status(CLAIM, object);
    }

    fn prepare_status_update(&self, _context: &Context, new: &mut Value, old: &Value) {
        // Nothing but the status, and who owns it, is taken over.
        let mut kept = old.clone();
        for path in [&["status"][..], &["metadata", "managedFields"]] {
            match object::get(new, path) {
                Some(value) => object::set(&mut kept, path, value.clone()),
                None => {
                    object::remove(&mut kept, path);
                }
            }
        }
        *new = kept;
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        devices(&object["spec"]["devices"], &Path::new("spec").child("devices"))
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        if same(new.get("spec"), old.get("spec")) {
            return Errors::new();
        }
        vec![FieldError::invalid(&Path::new("spec"), new["spec"].clone(), IMMUTABLE)]
    }

    fn validate_status_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let path = Path::new("status");
        let mut errors = users(new, &path.child("reservedFor"));
        let allocation = |claim: &'_ Value| {
            object::get(claim, &["status", "allocation"]).filter(|value| !value.is_null()).cloned()
        };
        let path = path.child("allocation");
        match (allocation(new), allocation(old)) {
            (Some(new), Some(old)) => errors.extend(immutable(Some(&new), Some(&old), &path)),
            (Some(allocation), None) => {
                let names = request_names(object::list(new, &["spec", "devices", "requests"]));
                let path = path.child("devices");
                errors.extend(entries(&allocation["devices"], "results", &path, |result, path| {
                    let text = |key| object::text(result, &[key]);
                    let mut errors = reference(text("request"), &names, &path.child("request"));
                    errors.extend(pod::validate::csi_driver_name(
                        text("driver"),
                        &path.child("driver"),
                    ));
                    errors.extend(pool_name(text("pool"), &path.child("pool")));
                    errors.extend(label(result, "device", path));
                    errors
                }));
            }
            (None, _) => {}
        }
        errors
    }

    fn has_status(&self) -> bool {
        true
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("resource.k8s.io/v1/resourceclaims")
    }

    fn cells(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        vec![tables::name(object), state(object).into(), age(object, now)]
    }
}

fn users(claim: &Value, path: &Path) -> Errors {
    let users = object::list(claim, &["status", "reservedFor"]);
    if users.len() > MOST_USERS {
        return vec![FieldError::too_many(path, Some(users.len()), MOST_USERS)];
    }
    let mut errors = Errors::new();
    for (i, user) in users.iter().enumerate() {
        for key in ["resource", "name", "uid"] {
            if object::text(user, &[key]).is_empty() {
                errors.push(FieldError::required(&path.index(i).child(key), ""));
            }
        }
    }
    let unallocated = object::get(claim, &["status", "allocation"]).is_none_or(Value::is_null);
    if !users.is_empty() && unallocated {
        errors
            .push(FieldError::forbidden(path, "may not be specified when `allocated` is not set"));
    }
    errors
}

/// The name of a pool: subdomains between slashes.
pub(super) fn pool_name(name: &str, path: &Path) -> Errors {
    const MAX: usize = 253;
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = Errors::new();
    if name.len() > MAX {
        errors.push(FieldError::too_long(path, MAX));
    }
    errors
        .extend(name.split('/').flat_map(|part| each(path, part, names::dns_1123_subdomain(part))));
    errors
}

fn state(claim: &Value) -> String {
    let deleted = object::is_terminating(claim);
    let allocated = object::get(claim, &["status", "allocation"]).is_some_and(|a| !a.is_null());
    let reserved = !object::list(claim, &["status", "reservedFor"]).is_empty();
    [
        (deleted, "deleted"),
        (!allocated && !deleted, "pending"),
        (allocated, "allocated"),
        (allocated && reserved, "reserved"),
    ]
    .into_iter()
    .filter_map(|(is, state)| is.then_some(state))
    .collect::<Vec<_>>()
    .join(",")
}

pub(super) struct ResourceClaimTemplate;

impl Kind for ResourceClaimTemplate {
    fn default(&self, object: &mut Value) {
        shape::complete(TEMPLATE, object);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let path = Path::new("spec").child("spec").child("devices");
        devices(&object["spec"]["spec"]["devices"], &path)
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = self.validate_create(new);
        if !same(new.get("spec"), old.get("spec")) {
            errors.push(FieldError::invalid(&Path::new("spec"), new["spec"].clone(), IMMUTABLE));
        }
        errors
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("resource.k8s.io/v1/resourceclaimtemplates")
    }

    fn cells(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        vec![tables::name(object), age(object, now)]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::check::texts;
    use super::*;

    #[test]
    fn a_request_has_a_class_and_a_count() {
        let mut claim = json!({"metadata": {"name": "c"}, "spec": {"devices": {"requests": [
            {"name": "a", "exactly": {"deviceClassName": "gpu"}},
            {"name": "a", "exactly": {"allocationMode": "All", "count": 2}},
            {"name": "b"},
        ]}}});
        ResourceClaim.default(&mut claim);
        assert_eq!(claim["spec"]["devices"]["requests"][0]["exactly"]["count"], 1);
        assert_eq!(
            texts(&ResourceClaim.validate_create(&claim)),
            [
                "spec.devices.requests[1].exactly.deviceClassName: Required value",
                "spec.devices.requests[1].exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'",
                "spec.devices.requests[2]: Required value: exactly one of `exactly` or `firstAvailable` is required",
                "spec.devices.requests[1]: Duplicate value: \"a\"",
            ]
        );
    }

    #[test]
    fn the_state_is_told_in_words() {
        for (claim, expected) in [
            (json!({}), "pending"),
            (json!({"status": {"allocation": {}}}), "allocated"),
            (json!({"status": {"allocation": {}, "reservedFor": [{}]}}), "allocated,reserved"),
            (json!({"metadata": {"deletionTimestamp": "t"}}), "deleted"),
        ] {
            assert_eq!(state(&claim), expected, "{claim}");
        }
    }
}
