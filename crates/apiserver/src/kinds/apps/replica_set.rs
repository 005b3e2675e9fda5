//! Replica sets.

use fleetwright_kschema::field::{FieldError, Path};
use serde_json::Value;

use super::{
    super::{Column, Kind, age::age, check::none_negative, clear_status, shape, tables},
    workload,
};
use crate::{object, request::Context};

const KIND: &str = "apps/v1/ReplicaSet";

pub(super) struct ReplicaSet;

impl Kind for ReplicaSet {
    fn default(&self, object: &mut Value) {
        shape::complete(KIND, object);
    }

    fn prepare_create(&self, _context: &Context, object: &mut Value) {
        clear_status(KIND, object);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let mut errors = none_negative(spec, &["replicas", "minReadySeconds"], &Path::new("spec"));
        let selector = workload::selector(object, "deployment");
        let valid_selector = selector.iter().all(|error| error.detail != "invalid label selector");
        errors.extend(selector);
        if valid_selector {
            errors.extend(workload::labels_match(object));
            errors.extend(workload::template(object));
            errors.extend(workload::runs_forever(object, "ReplicaSet"));
        }
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = self.validate_create(new);
        errors.extend(workload::same_selector(new, old));
        errors
    }

    fn validate_status_update(&self, new: &Value, _old: &Value) -> Vec<FieldError> {
        let mut errors = workload::counts(
            new,
            &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
            &["observedGeneration", "terminatingReplicas"],
        );
        errors.extend(workload::available_are_ready(new, "cannot be greater than readyReplicas"));
        errors
    }

    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        workload::warnings(object, old)
    }

    fn has_status(&self) -> bool {
        true
    }

    fn selectable_field(&self, object: &Value, field: &str) -> Option<String> {
        (field == "status.replicas").then(|| {
            object::integer(object, &["status", "replicas"]).unwrap_or_default().to_string()
        })
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("apps/v1/replicasets")
    }

    fn cells(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        let [names, images] =
            tables::containers(object, &["spec", "template", "spec", "containers"]);
        vec![
            tables::name(object),
            tables::number(object, &["spec", "replicas"]),
            tables::number(object, &["status", "replicas"]),
            tables::number(object, &["status", "readyReplicas"]),
            age(object, now),
            names,
            images,
            tables::selector(object::get(object, &["spec", "selector"])),
        ]
    }
}
