//! Stateful sets.

use fleetwright_kschema::{
    field::{FieldError, Path},
    names,
};
use serde_json::{Value, json};

use super::{
    super::{
        Column, Kind, NameRule,
        age::age,
        check::{
            Errors, at_most_all, each, has, immutable, int_or_percent, none_negative, one_of,
            percent_value, selector_is_empty,
        },
        clear_status,
        core::{persistent_volume::claim_spec, pod},
        internal, shape, tables,
    },
    workload,
};
use crate::{object, request::Context};

const KIND: &str = "apps/v1/StatefulSet";

pub(super) struct StatefulSet;

impl Kind for StatefulSet {
    fn default(&self, object: &mut Value) {
        shape::complete(KIND, object);
    }

    fn prepare_create(&self, _context: &Context, object: &mut Value) {
        clear_status(KIND, object);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let path = Path::new("spec");
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let mut errors = policies(spec, &path);
        errors.extend(none_negative(spec, &["replicas", "minReadySeconds"], &path));
        if let Some(start) = object::integer(spec, &["ordinals", "start"])
            && start < 0
        {
            let reason = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(&path.child("ordinals.start"), start, reason));
        }
        let service = object::text(spec, &["serviceName"]);
        if !service.is_empty() {
            errors.extend(each(
                &path.child("serviceName"),
                service,
                names::dns_1123_label(service),
            ));
        }
        errors.extend(selector(spec, &path.child("selector")));
        errors.extend(template(object));
        errors.extend(workload::runs_forever(object, "StatefulSet"));
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = self.validate_create(new);
        let path = Path::new("spec");
        for key in ["selector", "volumeClaimTemplates", "serviceName", "podManagementPolicy"] {
            let get = |object| object::get(object, &["spec", key]);
            errors.extend(immutable(get(new), get(old), &path.child(key)));
        }
        errors
    }

    fn validate_status_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = workload::counts(
            new,
            &["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
            &["observedGeneration", "collisionCount"],
        );
        let reason = "cannot be greater than status.readyReplicas";
        errors.extend(workload::available_are_ready(new, reason));
        errors.extend(workload::collisions_grow(new, old));
        errors
    }

    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        // The name is checked as a label already.
        let Some(template) = object::get(object, &["spec", "template"]) else { return Vec::new() };
        if old.is_some_and(|old| old.get("spec") == object.get("spec")) {
            return Vec::new();
        }
        pod::template_warnings(template, &Path::new("spec").child("template"))
    }

    fn name_rule(&self) -> NameRule {
        NameRule::Label
    }

    fn has_status(&self) -> bool {
        true
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("apps/v1/statefulsets")
    }

    fn cells(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        let number = |path: &[&str]| object::integer(object, path).unwrap_or_default();
        let ready = number(&["status", "readyReplicas"]);
        let [names, images] =
            tables::containers(object, &["spec", "template", "spec", "containers"]);
        vec![
            tables::name(object),
            format!("{ready}/{}", number(&["spec", "replicas"])).into(),
            age(object, now),
            names,
            images,
        ]
    }
}

fn policies(spec: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let management = object::text(spec, &["podManagementPolicy"]);
    if !matches!(management, "OrderedReady" | "Parallel") {
        let path = path.child("podManagementPolicy");
        let reason = "must be 'OrderedReady' or 'Parallel'";
        errors.push(FieldError::invalid(&path, management, reason));
    }
    errors.extend(update_strategy(spec, &path.child("updateStrategy")));
    for (i, claim) in object::list(spec, &["volumeClaimTemplates"]).iter().enumerate() {
        let path = path.child("volumeClaimTemplates").index(i).child("spec");
        errors.extend(claim_spec(claim.get("spec").unwrap_or(&Value::Null), &path));
    }
    let retention = path.child("persistentVolumeClaimRetentionPolicy");
    for key in ["whenDeleted", "whenScaled"] {
        let policy = object::text(spec, &["persistentVolumeClaimRetentionPolicy", key]);
        errors.extend(one_of(policy, &["Retain", "Delete"], &retention.child(key)));
    }
    errors
}

fn update_strategy(spec: &Value, path: &Path) -> Errors {
    let strategy = spec.get("updateStrategy").unwrap_or(&Value::Null);
    let rolling = strategy.get("rollingUpdate").filter(|rolling| !rolling.is_null());
    let rolling_path = path.child("rollingUpdate");
    match (object::text(strategy, &["type"]), rolling) {
        ("OnDelete", Some(rolling)) => {
            let value = internal::printed("apps.RollingUpdateStatefulSetStrategy", rolling);
            let reason = "only allowed for updateStrategy 'RollingUpdate'";
            vec![FieldError::invalid(&rolling_path, value, reason)]
        }
        ("OnDelete" | "RollingUpdate", None) => Errors::new(),
        ("RollingUpdate", Some(rolling)) => rolling_update(rolling, &rolling_path),
        _ => {
            let value = internal::printed("apps.StatefulSetUpdateStrategy", strategy);
            vec![FieldError::invalid(path, value, "must be 'RollingUpdate' or 'OnDelete'")]
        }
    }
}

fn rolling_update(rolling: &Value, path: &Path) -> Errors {
    let mut errors = none_negative(rolling, &["partition"], path);
    if let Some(unavailable) = rolling.get("maxUnavailable").filter(|value| !value.is_null()) {
        let path = path.child("maxUnavailable");
        errors.extend(int_or_percent(unavailable, &path));
        if percent_value(unavailable) == 0 {
            errors.push(FieldError::invalid(&path, unavailable.clone(), "cannot be 0"));
        }
        errors.extend(at_most_all(unavailable, &path));
    }
    errors
}

fn selector(spec: &Value, path: &Path) -> Errors {
    let Some(selector) = spec.get("selector").filter(|selector| !selector.is_null()) else {
        return vec![FieldError::required(path, "")];
    };
    let mut errors = names::validate_label_selector(selector, path);
    if selector_is_empty(selector) {
        let reason = "empty selector is invalid for statefulset";
        errors.push(FieldError::invalid(path, selector.clone(), reason));
    }
    errors
}

/// The template as the controller completes it: with the claims as volumes, without the names
/// that the controller sets.
fn template(object: &Value) -> Errors {
    let mut object = object.clone();
    for key in ["hostname", "subdomain"] {
        object::remove(&mut object, &["spec", "template", "spec", key]);
    }
    let claims: Vec<String> = object::list(&object, &["spec", "volumeClaimTemplates"])
        .iter()
        .map(|claim| object::name(claim).to_owned())
        .collect();
    if has(&object, &["spec", "volumeClaimTemplates"]) {
        let own = object::list(&object, &["spec", "template", "spec", "volumes"])
            .iter()
            .filter(|volume| !claims.iter().any(|claim| object::text(volume, &["name"]) == claim))
            .cloned();
        let volumes: Vec<Value> = claims
            .iter()
            .map(|claim| json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}}))
            .chain(own)
            .collect();
        object::set(&mut object, &["spec", "template", "spec", "volumes"], volumes);
    }
    let mut errors = workload::labels_match(&object);
    errors.extend(workload::template(&object));
    errors
}

#[cfg(test)]
mod tests {
    use super::super::super::check::texts;
    use super::*;

    fn stateful_set() -> Value {
        let mut object = json!({
            "metadata": {"name": "s"},
            "spec": {
                "selector": {"matchLabels": {"app": "a"}},
                "serviceName": "s",
                "template": {
                    "metadata": {"labels": {"app": "a"}},
                    "spec": {"containers": [{
                        "name": "c",
                        "image": "i",
                        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                    }]},
                },
                "volumeClaimTemplates": [{
                    "metadata": {"name": "data"},
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1Gi"}},
                    },
                }],
            },
        });
        StatefulSet.default(&mut object);
        object
    }

    #[test]
    fn claims_are_volumes() {
        assert_eq!(texts(&StatefulSet.validate_create(&stateful_set())), Vec::<String>::new());
    }

    #[test]
    fn what_identifies_the_pods_stays() {
        let mut new = stateful_set();
        object::set(&mut new, &["spec", "serviceName"], "t");
        object::set(&mut new, &["spec", "podManagementPolicy"], "Parallel");
        assert_eq!(
            texts(&StatefulSet.validate_update(&new, &stateful_set())),
            [
                "spec.serviceName: Invalid value: \"t\": field is immutable",
                "spec.podManagementPolicy: Invalid value: \"Parallel\": field is immutable",
            ]
        );
    }
}
