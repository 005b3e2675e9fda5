//! Daemon sets.

use fleetwright_kschema::{
    field::{FieldError, Path},
    names,
};
use serde_json::Value;

use super::{
    super::{
        Column, Kind,
        age::age,
        check::{
            Errors, at_most_all, int_or_percent, none_negative, percent_value, selector_is_empty,
            selector_matches,
        },
        clear_status, internal, keep, shape, tables,
    },
    workload,
};
use crate::{object, request::Context};

const KIND: &str = "apps/v1/DaemonSet";
/// A field of old versions that lives on as an annotation.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

pub(super) struct DaemonSet;

impl Kind for DaemonSet {
    fn default(&self, object: &mut Value) {
        shape::complete(KIND, object);
        // Who sends a daemon set owns the annotation that its old field became.
        if object::text(object, &["metadata", "annotations", TEMPLATE_GENERATION]).is_empty() {
            set_template_generation(object, 0);
        }
    }

    fn prepare_create(&self, _context: &Context, object: &mut Value) {
        clear_status(KIND, object);
        let generation = template_generation(object).max(1);
        set_template_generation(object, generation);
    }

    fn prepare_update(&self, _context: &Context, new: &mut Value, old: &Value) {
        keep(new, old, "status");
        let template = |object| object::get(object, &["spec", "template"]);
        let changed = template(new) != template(old);
        let generation = template_generation(old) + i64::from(changed);
        set_template_generation(new, generation);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let path = Path::new("spec");
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let mut errors = selector(object);
        errors.extend(workload::template(object));
        errors.extend(workload::runs_forever(object, "DaemonSet"));
        errors.extend(none_negative(spec, &["minReadySeconds"], &path));
        errors.extend(strategy(spec, &path.child("updateStrategy")));
        errors.extend(none_negative(spec, &["revisionHistoryLimit"], &path));
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = workload::same_selector(new, old);
        errors.extend(self.validate_create(new));
        errors
    }

    fn validate_status_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let status = new.get("status").unwrap_or(&Value::Null);
        let numbers = [
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        ];
        let mut errors = none_negative(status, &numbers, &Path::new("status"));
        errors.extend(workload::collisions_grow(new, old));
        errors
    }

    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        workload::warnings(object, old)
    }

    fn has_status(&self) -> bool {
        true
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("apps/v1/daemonsets")
    }

    fn cells(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        let number = |key| tables::number(object, &["status", key]);
        let [names, images] =
            tables::containers(object, &["spec", "template", "spec", "containers"]);
        vec![
            tables::name(object),
            number("desiredNumberScheduled"),
            number("currentNumberScheduled"),
            number("numberReady"),
            number("updatedNumberScheduled"),
            number("numberAvailable"),
            tables::labels(object::get(object, &["spec", "template", "spec", "nodeSelector"])),
            age(object, now),
            names,
            images,
            tables::selector(object::get(object, &["spec", "selector"])),
        ]
    }
}

fn template_generation(object: &Value) -> i64 {
    let text = object::text(object, &["metadata", "annotations", TEMPLATE_GENERATION]);
    text.parse().unwrap_or_default()
}

fn set_template_generation(object: &mut Value, generation: i64) {
    let path = ["metadata", "annotations", TEMPLATE_GENERATION];
    object::set(object, &path, generation.to_string());
}

fn selector(object: &Value) -> Errors {
    let path = Path::new("spec").child("selector");
    let selector = object::get(object, &["spec", "selector"]).filter(|s| !s.is_null());
    let mut errors = Errors::new();
    if let Some(selector) = selector {
        errors.extend(names::validate_label_selector(selector, &path));
    }
    let labels = object::get(object, &["spec", "template", "metadata", "labels"]);
    if errors.is_empty() && !selector_matches(selector, labels) {
        let path = Path::new("spec").child("template").child("metadata").child("labels");
        let value = labels.cloned().unwrap_or_default();
        let reason = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid(&path, value, reason));
    }
    if let Some(selector) = selector.filter(|selector| selector_is_empty(selector)) {
        let reason = "empty selector is invalid for daemonset";
        errors.push(FieldError::invalid(&path, selector.clone(), reason));
    }
    errors
}

fn strategy(spec: &Value, path: &Path) -> Errors {
    let strategy = spec.get("updateStrategy").unwrap_or(&Value::Null);
    match object::text(strategy, &["type"]) {
        "OnDelete" => Errors::new(),
        "RollingUpdate" => match strategy.get("rollingUpdate").filter(|r| !r.is_null()) {
            None => vec![FieldError::required(&path.child("rollingUpdate"), "")],
            Some(rolling) => rolling_update(rolling, &path.child("rollingUpdate")),
        },
        _ => vec![FieldError::not_supported(
            path,
            internal::printed("apps.DaemonSetUpdateStrategy", strategy),
            &["RollingUpdate", "OnDelete"],
        )],
    }
}

fn rolling_update(rolling: &Value, path: &Path) -> Errors {
    let unavailable = rolling.get("maxUnavailable").unwrap_or(&Value::Null);
    let surge = rolling.get("maxSurge").unwrap_or(&Value::Null);
    let (unavailable_path, surge_path) = (path.child("maxUnavailable"), path.child("maxSurge"));
    let mut errors = int_or_percent(unavailable, &unavailable_path);
    errors.extend(int_or_percent(surge, &surge_path));
    errors.extend(at_most_all(unavailable, &unavailable_path));
    errors.extend(at_most_all(surge, &surge_path));
    match (percent_value(unavailable) != 0, percent_value(surge) != 0) {
        (true, true) => {
            let reason = "may not be set when maxUnavailable is non-zero";
            errors.push(FieldError::invalid(&surge_path, surge.clone(), reason));
        }
        (false, false) => {
            let reason = "cannot be 0 when maxSurge is 0";
            errors.push(FieldError::required(&unavailable_path, reason));
        }
        _ => {}
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::{check::texts, tests::context};
    use super::*;

    #[test]
    fn the_template_generation_counts_templates() {
        let mut old = json!({"spec": {"template": {"spec": {"containers": [{"name": "a"}]}}}});
        DaemonSet.default(&mut old);
        DaemonSet.prepare_create(&context(), &mut old);
        assert_eq!(template_generation(&old), 1);
        let mut new = old.clone();
        object::set(&mut new, &["metadata", "annotations", TEMPLATE_GENERATION], "7");
        DaemonSet.prepare_update(&context(), &mut new, &old);
        assert_eq!(new, old);
        object::set(&mut new, &["spec", "template", "spec", "hostPID"], true);
        DaemonSet.prepare_update(&context(), &mut new, &old);
        assert_eq!(template_generation(&new), 2);
        assert_eq!(
            old["status"],
            json!({
                "currentNumberScheduled": 0,
                "desiredNumberScheduled": 0,
                "numberMisscheduled": 0,
                "numberReady": 0,
            })
        );
    }

    #[test]
    fn updates_make_progress_in_one_way() {
        let both = json!({"maxUnavailable": 1, "maxSurge": "10%"});
        let none = json!({"maxUnavailable": 0, "maxSurge": 0});
        assert_eq!(
            texts(&rolling_update(&both, &Path::new("r"))),
            ["r.maxSurge: Invalid value: \"10%\": may not be set when maxUnavailable is non-zero"]
        );
        assert_eq!(
            texts(&rolling_update(&none, &Path::new("r"))),
            ["r.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"]
        );
    }
}
