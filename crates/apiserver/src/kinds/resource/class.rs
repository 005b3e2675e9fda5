//! Classes of devices.

use fleetwright_kschema::field::{FieldError, Path};
use serde_json::Value;

use super::{
    super::{Column, Kind, age::age, shape, tables},
    requests::{configuration, entries, selector},
};

pub(super) struct DeviceClass;

impl Kind for DeviceClass {
    fn default(&self, object: &mut Value) {
        shape::complete("resource.k8s.io/v1/DeviceClass", object);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let path = Path::new("spec");
        let mut errors = entries(&object["spec"], "selectors", &path, selector);
        errors.extend(entries(&object["spec"], "config", &path, configuration));
        errors
    }

    fn has_generation(&self) -> bool {
        true
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("resource.k8s.io/v1/deviceclasses")
    }

    fn cells(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        vec![tables::name(object), age(object, now)]
    }
}
