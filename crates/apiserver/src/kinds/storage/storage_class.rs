//! Storage classes.

use fleetwright_kschema::{
    field::{FieldError, Path},
    names,
};
use serde_json::Value;

use super::super::{
    Column, Kind,
    age::age,
    check::{Errors, IMMUTABLE, each, flag, one_of, same},
    shape, tables,
};
use crate::object;

pub(super) struct StorageClass;

impl Kind for StorageClass {
    fn default(&self, object: &mut Value) {
        shape::complete("storage.k8s.io/v1/StorageClass", object);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Errors::new();
        let path = Path::new("provisioner");
        let provisioner = object::text(object, &["provisioner"]).to_lowercase();
        if provisioner.is_empty() {
            errors.push(FieldError::required(&path, ""));
        } else {
            errors.extend(each(&path, &provisioner, names::qualified_name(&provisioner)));
        }
        let policy = object::text(object, &["reclaimPolicy"]);
        if !policy.is_empty() {
            errors.extend(one_of(policy, &["Delete", "Retain"], &Path::new("reclaimPolicy")));
        }
        errors.extend(one_of(
            object::text(object, &["volumeBindingMode"]),
            &["Immediate", "WaitForFirstConsumer"],
            &Path::new("volumeBindingMode"),
        ));
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let keys = ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"];
        keys.iter()
            .filter(|key| !same(new.get(key), old.get(key)))
            .map(|key| FieldError::invalid(&Path::new(key), Value::Null, IMMUTABLE))
            .collect()
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("storage.k8s.io/v1/storageclasses")
    }

    fn cells(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        vec![
            tables::name(object),
            tables::text(object, &["provisioner"]),
            tables::text_or(object, &["reclaimPolicy"], "Delete"),
            tables::text_or(object, &["volumeBindingMode"], "Immediate"),
            flag(object, &["allowVolumeExpansion"]).into(),
            age(object, now),
        ]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::check::texts;
    use super::*;

    #[test]
    fn a_class_has_a_provisioner_and_stays() {
        let mut class = json!({});
        StorageClass.default(&mut class);
        assert_eq!(texts(&StorageClass.validate_create(&class)), ["provisioner: Required value"]);
        let errors = StorageClass.validate_update(
            &json!({"parameters": {"a": "b"}}),
            &json!({"parameters": {"a": "c"}}),
        );
        assert_eq!(texts(&errors), ["parameters: Invalid value: null: field is immutable"]);
    }
}
