//! Controller revisions.

use fleetwright_kschema::field::{FieldError, Path};
use serde_json::Value;

use super::super::{
    Column, Kind,
    age::age,
    check::{flag, immutable, none_negative},
    shape, tables,
};
use crate::object;

pub(super) struct ControllerRevision;

impl Kind for ControllerRevision {
    fn default(&self, object: &mut Value) {
        shape::complete("apps/v1/ControllerRevision", object);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = none_negative(object, &["revision"], &Path::root());
        let reason = match object.get("data") {
            None | Some(Value::Null) => "data is mandatory",
            Some(Value::Object(_)) => return errors,
            Some(_) => "data must be a valid JSON object",
        };
        errors.push(FieldError::required(&Path::new("data"), reason));
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = none_negative(new, &["revision"], &Path::root());
        errors.extend(immutable(new.get("data"), old.get("data"), &Path::new("data")));
        errors
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("apps/v1/controllerrevisions")
    }

    fn cells(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        vec![
            tables::name(object),
            controller(object).into(),
            tables::number(object, &["revision"]),
            age(object, now),
        ]
    }
}

/// The owner as `daemonset.apps/name`.
fn controller(object: &Value) -> String {
    let owner = object::list(object, &["metadata", "ownerReferences"])
        .iter()
        .find(|owner| flag(owner, &["controller"]));
    let Some(owner) = owner else { return "<none>".to_owned() };
    let kind = object::text(owner, &["kind"]).to_lowercase();
    let group = object::text(owner, &["apiVersion"]).split_once('/').map_or("", |(group, _)| group);
    let name = object::text(owner, &["name"]);
    if group.is_empty() { format!("{kind}/{name}") } else { format!("{kind}.{group}/{name}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::check::texts;
    use super::*;

    #[test]
    fn data_is_there_and_stays() {
        assert_eq!(
            texts(&ControllerRevision.validate_create(&json!({}))),
            ["data: Required value: data is mandatory"]
        );
        let errors = ControllerRevision
            .validate_update(&json!({"data": {"a": 1}}), &json!({"data": {"a": 2}}));
        assert_eq!(texts(&errors), ["data: Invalid value: {\"a\":1}: field is immutable"]);
    }
}
