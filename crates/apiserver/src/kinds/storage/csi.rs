//! What CSI drivers tell about themselves.

use fleetwright_kschema::{
    field::{FieldError, Path},
    names,
};
use serde_json::Value;

use super::super::{
    Column, Kind,
    age::age,
    check::{Errors, IMMUTABLE, each, flag, immutable, is_set, none_negative, one_of, quantity},
    core::pod,
    internal, keep, shape, tables,
};
use crate::{object, request::Context};

const NODE_ID_MAX: usize = 192;

pub(super) struct CsiNode;

impl Kind for CsiNode {
    fn default(&self, object: &mut Value) {
        shape::complete("storage.k8s.io/v1/CSINode", object);
    }

    fn prepare_create(&self, _context: &Context, object: &mut Value) {
        object::remove(object, &["status"]);
        shape::complete("storage.k8s.io/v1/CSINode", object);
    }

    fn prepare_update(&self, _context: &Context, new: &mut Value, old: &Value) {
        keep(new, old, "status");
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Errors::new();
        let mut seen = Vec::new();
        for (i, driver) in object::list(object, &["spec", "drivers"]).iter().enumerate() {
            let path = Path::new("spec").child("drivers").index(i);
            errors.extend(node_driver(driver, &path));
            let name = object::text(driver, &["name"]);
            if seen.contains(&name) {
                errors.push(FieldError::duplicate(&path.child("name"), name));
            }
            seen.push(name);
        }
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = self.validate_create(new);
        let path = Path::new("spec").child("drivers");
        let without_count = |driver: &Value| {
            let mut driver = driver.clone();
            object::remove(&mut driver, &["allocatable"]);
            driver
        };
        for old in object::list(old, &["spec", "drivers"]) {
            for new in object::list(new, &["spec", "drivers"]) {
                if new.get("name") == old.get("name") && without_count(new) != without_count(old) {
                    let value = internal::printed("storage.CSINodeDriver", &without_count(new));
                    errors.push(FieldError::invalid(&path, value, IMMUTABLE));
                }
            }
        }
        errors
    }

    fn has_status(&self) -> bool {
        true
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("storage.k8s.io/v1/csinodes")
    }

    fn cells(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        let drivers = tables::count(object, &["spec", "drivers"]);
        vec![tables::name(object), drivers.into(), age(object, now)]
    }
}

fn node_driver(driver: &Value, path: &Path) -> Errors {
    let name = object::text(driver, &["name"]);
    let mut errors = pod::validate::csi_driver_name(name, &path.child("name"));
    let id = object::text(driver, &["nodeID"]);
    let id_path = path.child("nodeID");
    if id.is_empty() {
        errors.push(FieldError::required(&id_path, ""));
    }
    if id.len() > NODE_ID_MAX {
        let reason = format!("must be {NODE_ID_MAX} characters or less");
        errors.push(FieldError::invalid(&id_path, id, reason));
    }
    if let Some(allocatable) = driver.get("allocatable") {
        errors.extend(none_negative(allocatable, &["count"], &path.child("allocatable")));
    }
    let mut seen = Vec::new();
    for key in object::list(driver, &["topologyKeys"]).iter().filter_map(Value::as_str) {
        if key.is_empty() {
            errors.push(FieldError::required(path, ""));
        }
        if seen.contains(&key) {
            errors.push(FieldError::duplicate(path, key));
        }
        seen.push(key);
        errors.extend(each(path, key, names::qualified_name(key)));
    }
    errors
}

pub(super) struct CsiDriver;

impl Kind for CsiDriver {
    fn default(&self, object: &mut Value) {
        shape::complete("storage.k8s.io/v1/CSIDriver", object);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let path = Path::new("spec");
        let mut errors = Errors::new();
        if is_set(object, &["spec", "fsGroupPolicy"]) {
            errors.extend(one_of(
                object::text(object, &["spec", "fsGroupPolicy"]),
                &["File", "None", "ReadWriteOnceWithFSType"],
                &path.child("fsGroupPolicy"),
            ));
        }
        let modes = object::list(object, &["spec", "volumeLifecycleModes"]);
        for mode in modes.iter().filter_map(Value::as_str) {
            let path = path.child("volumeLifecycleModes");
            errors.extend(one_of(mode, &["Persistent", "Ephemeral"], &path));
        }
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = self.validate_create(new);
        let path = Path::new("spec");
        // The name in the message is the real server's.
        let keys = [
            ("attachRequired", "attachedRequired"),
            ("volumeLifecycleModes", "volumeLifecycleModes"),
        ];
        for (key, shown) in keys {
            let get = |object| object::get(object, &["spec", key]);
            errors.extend(immutable(get(new), get(old), &path.child(shown)));
        }
        errors
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("storage.k8s.io/v1/csidrivers")
    }

    fn cells(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        let up = |key| -> Value { flag(object, &["spec", key]).into() };
        let joined = |key, item: &[&str], none: &str| -> Value {
            let Some(list) = object::get(object, &["spec", key]).and_then(Value::as_array) else {
                return none.into();
            };
            let texts: Vec<&str> = list
                .iter()
                .map(|entry| match item {
                    [] => entry.as_str().unwrap_or_default(),
                    path => object::text(entry, path),
                })
                .collect();
            texts.join(",").into()
        };
        vec![
            tables::name(object),
            object::get(object, &["spec", "attachRequired"]).cloned().unwrap_or(true.into()),
            up("podInfoOnMount"),
            up("storageCapacity"),
            joined("tokenRequests", &["audience"], "<unset>"),
            up("requiresRepublish"),
            joined("volumeLifecycleModes", &[], "<none>"),
            age(object, now),
        ]
    }
}

pub(super) struct CsiStorageCapacity;

impl Kind for CsiStorageCapacity {
    fn default(&self, object: &mut Value) {
        shape::complete("storage.k8s.io/v1/CSIStorageCapacity", object);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let path = Path::new("storageClassName");
        let class = object::text(object, &["storageClassName"]);
        let mut errors = each(&path, class, names::dns_1123_subdomain(class));
        for key in ["capacity", "maximumVolumeSize"] {
            if object
                .get(key)
                .and_then(quantity)
                .is_some_and(super::super::quantity::Quantity::is_negative)
            {
                let value = object.get(key).cloned().unwrap_or_default();
                let reason = "must be greater than or equal to 0";
                errors.push(FieldError::invalid(&Path::new(key), value, reason));
            }
        }
        if let Some(selector) = object.get("nodeTopology") {
            errors.extend(names::validate_label_selector(selector, &Path::new("nodeTopology")));
        }
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = self.validate_create(new);
        for key in ["nodeTopology", "storageClassName"] {
            errors.extend(immutable(new.get(key), old.get(key), &Path::new(key)));
        }
        errors
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::check::texts;
    use super::*;

    #[test]
    fn drivers_of_a_node_are_named_once() {
        let node = json!({"spec": {"drivers": [
            {"name": "a", "nodeID": "1"},
            {"name": "a", "nodeID": ""},
        ]}});
        assert_eq!(
            texts(&CsiNode.validate_create(&node)),
            [
                "spec.drivers[1].nodeID: Required value",
                "spec.drivers[1].name: Duplicate value: \"a\""
            ]
        );
    }
}
