//! Replication controllers.

use fleetwright_kschema::field::{FieldError, Path};
use serde_json::{Value, json};

use super::super::{
    Column, Kind,
    age::age,
    apps::workload,
    check::{has, none_negative, selector_matches},
    clear_status, shape, tables,
};
use crate::{object, request::Context};

const KIND: &str = "v1/ReplicationController";

pub(super) struct ReplicationController;

impl Kind for ReplicationController {
    fn default(&self, object: &mut Value) {
        shape::complete(KIND, object);
    }

    fn prepare_create(&self, _context: &Context, object: &mut Value) {
        clear_status(KIND, object);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let path = Path::new("spec");
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let mut errors = none_negative(spec, &["minReadySeconds"], &path);
        if !has(spec, &["selector"]) {
            errors.push(FieldError::required(&path.child("selector"), ""));
        }
        errors.extend(none_negative(spec, &["replicas"], &path));
        if spec.get("template").is_none_or(Value::is_null) {
            errors.push(FieldError::required(&path.child("template"), ""));
            return errors;
        }
        let labels = object::get(spec, &["template", "metadata", "labels"]);
        let selector = json!({"matchLabels": spec.get("selector")});
        if has(spec, &["selector"]) && !selector_matches(Some(&selector), labels) {
            let path = path.child("template").child("metadata").child("labels");
            let value = labels.cloned().unwrap_or_default();
            let reason = "`selector` does not match template `labels`";
            errors.push(FieldError::invalid(&path, value, reason));
        }
        errors.extend(workload::template(object));
        errors.extend(workload::runs_forever(object, "ReplicationController"));
        errors
    }

    fn validate_status_update(&self, new: &Value, _old: &Value) -> Vec<FieldError> {
        let mut errors = workload::counts(
            new,
            &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
            &["observedGeneration"],
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

    fn orphans_by_default(&self) -> bool {
        true
    }

    fn selectable_field(&self, object: &Value, field: &str) -> Option<String> {
        (field == "status.replicas").then(|| {
            object::integer(object, &["status", "replicas"]).unwrap_or_default().to_string()
        })
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("v1/replicationcontrollers")
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
            tables::labels(object::get(object, &["spec", "selector"])),
        ]
    }
}
