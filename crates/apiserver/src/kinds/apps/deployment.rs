//! Deployments.

use fleetwright_kschema::field::{FieldError, Path};
use serde_json::Value;

use super::{
    super::{
        Column, Kind,
        age::age,
        check::{Errors, at_most_all, int_or_percent, none_negative, percent_value, same},
        clear_status, internal, keep, shape, tables,
    },
    workload,
};
use crate::{object, request::Context};

const KIND: &str = "apps/v1/Deployment";

pub(super) struct Deployment;

impl Kind for Deployment {
    fn default(&self, object: &mut Value) {
        shape::complete(KIND, object);
    }

    fn prepare_create(&self, _context: &Context, object: &mut Value) {
        clear_status(KIND, object);
    }

    fn prepare_status_update(&self, _context: &Context, new: &mut Value, old: &Value) {
        keep(new, old, "spec");
        match object::get(old, &["metadata", "labels"]) {
            Some(labels) => object::set(new, &["metadata", "labels"], labels.clone()),
            None => {
                object::remove(new, &["metadata", "labels"]);
            }
        }
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let path = Path::new("spec");
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let mut errors = none_negative(spec, &["replicas"], &path);
        let selector = workload::selector(object, "deployment");
        let valid_selector = selector.iter().all(|error| error.detail != "invalid label selector");
        errors.extend(selector);
        if valid_selector {
            errors.extend(workload::labels_match(object));
            errors.extend(workload::template(object));
            errors.extend(workload::runs_forever(object, "ReplicaSet"));
        }
        errors.extend(strategy(spec, &path.child("strategy")));
        let numbers = ["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"];
        errors.extend(none_negative(spec, &numbers, &path));
        let seconds = |key| object::integer(spec, &[key]);
        if let Some(deadline) = seconds("progressDeadlineSeconds")
            && deadline <= seconds("minReadySeconds").unwrap_or_default()
        {
            let path = path.child("progressDeadlineSeconds");
            let reason = "must be greater than minReadySeconds";
            errors.push(FieldError::invalid(&path, deadline, reason));
        }
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = self.validate_create(new);
        errors.extend(workload::same_selector(new, old));
        errors
    }

    fn validate_status_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = workload::counts(
            new,
            &["updatedReplicas", "readyReplicas", "availableReplicas"],
            &["observedGeneration", "unavailableReplicas", "terminatingReplicas", "collisionCount"],
        );
        errors.extend(workload::available_are_ready(new, "cannot be greater than readyReplicas"));
        errors.extend(workload::collisions_grow(new, old));
        errors
    }

    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        workload::warnings(object, old)
    }

    fn has_status(&self) -> bool {
        true
    }

    /// Annotations are copied to replica sets, so they count too.
    fn generation_changes(&self, new: &Value, old: &Value) -> bool {
        let annotations = |object| object::get(object, &["metadata", "annotations"]);
        new.get("spec") != old.get("spec") || !same(annotations(new), annotations(old))
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("apps/v1/deployments")
    }

    fn cells(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        let number = |path: &[&str]| object::integer(object, path).unwrap_or_default();
        let ready = number(&["status", "readyReplicas"]);
        let [names, images] =
            tables::containers(object, &["spec", "template", "spec", "containers"]);
        vec![
            tables::name(object),
            format!("{ready}/{}", number(&["spec", "replicas"])).into(),
            tables::number(object, &["status", "updatedReplicas"]),
            tables::number(object, &["status", "availableReplicas"]),
            age(object, now),
            names,
            images,
            tables::selector_line(object::get(object, &["spec", "selector"])).into(),
        ]
    }
}

fn strategy(spec: &Value, path: &Path) -> Errors {
    let strategy = spec.get("strategy").unwrap_or(&Value::Null);
    let rolling = strategy.get("rollingUpdate").filter(|rolling| !rolling.is_null());
    let rolling_path = path.child("rollingUpdate");
    match (object::text(strategy, &["type"]), rolling) {
        ("Recreate", None) => Errors::new(),
        ("Recreate", Some(_)) => {
            let reason = "may not be specified when strategy `type` is 'Recreate'";
            vec![FieldError::forbidden(&rolling_path, reason)]
        }
        ("RollingUpdate", None) => {
            let reason = "this should be defaulted and never be nil";
            vec![FieldError::required(&rolling_path, reason)]
        }
        ("RollingUpdate", Some(rolling)) => rolling_update(rolling, &rolling_path),
        _ => vec![FieldError::not_supported(
            path,
            internal::printed("apps.DeploymentStrategy", strategy),
            &["Recreate", "RollingUpdate"],
        )],
    }
}

fn rolling_update(rolling: &Value, path: &Path) -> Errors {
    let unavailable = rolling.get("maxUnavailable").unwrap_or(&Value::Null);
    let surge = rolling.get("maxSurge").unwrap_or(&Value::Null);
    let unavailable_path = path.child("maxUnavailable");
    let mut errors = int_or_percent(unavailable, &unavailable_path);
    errors.extend(int_or_percent(surge, &path.child("maxSurge")));
    if percent_value(unavailable) == 0 && percent_value(surge) == 0 {
        let reason = "may not be 0 when `maxSurge` is 0";
        errors.push(FieldError::invalid(&unavailable_path, unavailable.clone(), reason));
    }
    errors.extend(at_most_all(unavailable, &unavailable_path));
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::{check::texts, tests::context};
    use super::*;

    fn deployment() -> Value {
        let mut object = json!({
            "metadata": {"name": "d"},
            "spec": {
                "selector": {"matchLabels": {"app": "a"}},
                "template": {
                    "metadata": {"labels": {"app": "a"}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                },
            },
        });
        Deployment.default(&mut object);
        object
    }

    #[test]
    fn defaults_and_status_are_filled_in() {
        let mut object = deployment();
        Deployment.prepare_create(&context(), &mut object);
        let spec = &object["spec"];
        assert_eq!(spec["replicas"], 1);
        assert_eq!(
            spec["strategy"],
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}})
        );
        assert_eq!(spec["revisionHistoryLimit"], 10);
        assert_eq!(spec["progressDeadlineSeconds"], 600);
        assert_eq!(object["status"], json!({}));
        assert!(Deployment.validate_create(&object).is_empty());
    }

    #[test]
    fn the_selector_selects_the_template_and_stays() {
        let mut object = deployment();
        object::set(&mut object, &["spec", "selector", "matchLabels", "app"], "b");
        assert_eq!(
            texts(&Deployment.validate_update(&object, &deployment())),
            [
                "spec.template.metadata.labels: Invalid value: {\"app\":\"a\"}: `selector` does not \
                 match template `labels`",
                "spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"b\"}}: field is immutable",
            ]
        );
        object::remove(&mut object, &["spec", "selector"]);
        assert_eq!(
            texts(&Deployment.validate_create(&object)),
            [
                "spec.selector: Required value",
                "spec.template.metadata.labels: Invalid value: {\"app\":\"a\"}: `selector` does not \
                 match template `labels`",
            ]
        );
    }

    #[test]
    fn strategies_make_progress() {
        let mut object = deployment();
        let rolling = json!({"maxSurge": 0, "maxUnavailable": "0%"});
        object::set(&mut object, &["spec", "strategy", "rollingUpdate"], rolling);
        object::set(&mut object, &["spec", "replicas"], -1);
        object::set(&mut object, &["spec", "template", "spec", "restartPolicy"], "Never");
        assert_eq!(
            texts(&Deployment.validate_create(&object)),
            [
                "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
                "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \
                 \"Always\"",
                "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"0%\": may not be 0 when \
                 `maxSurge` is 0",
            ]
        );
        object::set(&mut object, &["spec", "strategy"], json!({"type": "Slow"}));
        assert!(texts(&Deployment.validate_create(&object)).contains(
            &"spec.strategy: Unsupported value: {\"Type\":\"Slow\",\"RollingUpdate\":null}: supported \
              values: \"Recreate\", \"RollingUpdate\"".to_owned()
        ));
    }

    #[test]
    fn annotations_make_a_generation() {
        let old = deployment();
        let mut new = deployment();
        assert!(!Deployment.generation_changes(&new, &old));
        object::set(&mut new, &["metadata", "annotations", "a"], "b");
        assert!(Deployment.generation_changes(&new, &old));
    }
}
