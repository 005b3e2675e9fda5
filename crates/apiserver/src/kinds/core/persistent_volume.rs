//! Persistent volumes and claims on them.

use fleetwright_kschema::{
    field::{FieldError, Path},
    names,
};
use serde_json::{Value, json};

use super::super::{
    Column, Kind,
    age::age,
    check::{Errors, each, has, immutable, is_set, map, one_of, quantity, same},
    clear_status, internal, shape, tables,
};
use super::{pod::validate::node_selector, resources};
use crate::{object, request::Context};

const VOLUME: &str = "v1/PersistentVolume";
const CLAIM: &str = "v1/PersistentVolumeClaim";
const ACCESS_MODES: &[&str] =
    &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const VOLUME_MODES: &[&str] = &["Block", "Filesystem"];
const NOT_POSITIVE: &str = "must be greater than zero";
/// Fields of a volume that do not say where it is.
const NOT_A_SOURCE: &[&str] = &[
    "capacity",
    "accessModes",
    "claimRef",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "mountOptions",
    "volumeMode",
    "nodeAffinity",
    "volumeAttributesClassName",
];

pub(super) struct PersistentVolume;

impl Kind for PersistentVolume {
    fn default(&self, object: &mut Value) {
        shape::complete(VOLUME, object);
    }

    fn prepare_create(&self, _context: &Context, object: &mut Value) {
        protect(object, "kubernetes.io/pv-protection");
        clear_status(VOLUME, object);
        if let Some(now) = object::get(object, &["metadata", "creationTimestamp"]).cloned() {
            object::set(object, &["status", "lastPhaseTransitionTime"], now);
        }
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let path = Path::new("spec");
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let mut errors = access_modes(spec, "", &path.child("accessModes"));
        errors.extend(capacity(spec, &path.child("capacity")));
        errors.extend(one_of(
            object::text(spec, &["persistentVolumeReclaimPolicy"]),
            &["Delete", "Recycle", "Retain"],
            &path.child("persistentVolumeReclaimPolicy"),
        ));
        if let Some(required) = object::get(spec, &["nodeAffinity", "required"]) {
            let path = path.child("nodeAffinity").child("required");
            errors.extend(node_selector(required, &path));
        }
        errors.extend(source(spec, &path));
        errors.extend(class(spec, &path.child("storageClassName")));
        errors.extend(one_of(
            object::text(spec, &["volumeMode"]),
            VOLUME_MODES,
            &path.child("volumeMode"),
        ));
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = self.validate_create(new);
        let source = |object: &Value| {
            let mut spec = object.get("spec").cloned().unwrap_or_default();
            for key in NOT_A_SOURCE {
                object::remove(&mut spec, &[key]);
            }
            spec
        };
        if source(new) != source(old) {
            let reason = format!(
                "spec.persistentvolumesource is immutable after creation\n{}",
                internal::difference("core.PersistentVolumeSource", &source(old), &source(new))
            );
            let path = Path::new("spec").child("persistentvolumesource");
            errors.push(FieldError::forbidden(&path, reason));
        }
        errors.extend(immutable(
            object::get(new, &["spec", "volumeMode"]),
            object::get(old, &["spec", "volumeMode"]),
            &Path::new("volumeMode"),
        ));
        errors
    }

    fn has_status(&self) -> bool {
        true
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn selectable_field(&self, object: &Value, field: &str) -> Option<String> {
        (field == "name").then(|| object::name(object).to_owned())
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("v1/persistentvolumes")
    }

    fn cells(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        let claim = if is_set(object, &["spec", "claimRef"]) {
            let text = |key| object::text(object, &["spec", "claimRef", key]);
            format!("{}/{}", text("namespace"), text("name"))
        } else {
            String::new()
        };
        vec![
            tables::name(object),
            tables::text_or(object, &["spec", "capacity", "storage"], "0"),
            short_modes(object::list(object, &["spec", "accessModes"])).into(),
            tables::text(object, &["spec", "persistentVolumeReclaimPolicy"]),
            phase(object),
            claim.into(),
            tables::text(object, &["spec", "storageClassName"]),
            tables::text_or(object, &["spec", "volumeAttributesClassName"], "<unset>"),
            tables::text(object, &["status", "reason"]),
            age(object, now),
            tables::text_or(object, &["spec", "volumeMode"], "<unset>"),
        ]
    }
}

pub(super) struct PersistentVolumeClaim;

impl Kind for PersistentVolumeClaim {
    fn default(&self, object: &mut Value) {
        shape::complete(CLAIM, object);
    }

    fn prepare_create(&self, _context: &Context, object: &mut Value) {
        protect(object, "kubernetes.io/pvc-protection");
        clear_status(CLAIM, object);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        claim_spec(object.get("spec").unwrap_or(&Value::Null), &Path::new("spec"))
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = self.validate_create(new);
        let empty = Value::Null;
        let old_spec = old.get("spec").unwrap_or(&empty);
        let mut spec = new.get("spec").cloned().unwrap_or_default();
        // The volume may be set once, and a bound claim may grow.
        let mut mutable: Vec<&[&str]> = Vec::new();
        if !has(old_spec, &["volumeName"]) {
            mutable.push(&["volumeName"]);
        }
        if object::text(new, &["status", "phase"]) == "Bound" {
            mutable.push(&["resources", "requests", "storage"]);
            mutable.push(&["volumeAttributesClassName"]);
        }
        for path in mutable {
            match object::get(old_spec, path) {
                Some(value) => object::set(&mut spec, path, value.clone()),
                None => {
                    object::remove(&mut spec, path);
                }
            }
        }
        if !same(Some(&spec), Some(old_spec)) {
            let reason = format!(
                "spec is immutable after creation except resources.requests and \
                 volumeAttributesClassName for bound claims\n{}",
                internal::difference("core.PersistentVolumeClaimSpec", old_spec, &spec)
            );
            errors.push(FieldError::forbidden(&Path::new("spec"), reason));
        }
        errors.extend(does_not_shrink(new, old));
        errors.extend(immutable(
            object::get(new, &["spec", "volumeMode"]),
            object::get(old, &["spec", "volumeMode"]),
            &Path::new("volumeMode"),
        ));
        errors
    }

    fn has_status(&self) -> bool {
        true
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn selectable_field(&self, object: &Value, field: &str) -> Option<String> {
        (field == "name").then(|| object::name(object).to_owned())
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("v1/persistentvolumeclaims")
    }

    fn cells(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        let bound = has(object, &["spec", "volumeName"]);
        let (capacity, modes) = if bound {
            (
                tables::text_or(object, &["status", "capacity", "storage"], "0"),
                short_modes(object::list(object, &["status", "accessModes"])),
            )
        } else {
            ("".into(), String::new())
        };
        vec![
            tables::name(object),
            phase(object),
            tables::text(object, &["spec", "volumeName"]),
            capacity,
            modes.into(),
            tables::text(object, &["spec", "storageClassName"]),
            tables::text_or(object, &["spec", "volumeAttributesClassName"], "<unset>"),
            age(object, now),
            tables::text_or(object, &["spec", "volumeMode"], "<unset>"),
        ]
    }
}

/// Keeps an object while it is in use.
fn protect(object: &mut Value, finalizer: &str) {
    let mut finalizers = object::list(object, &["metadata", "finalizers"]).to_vec();
    if !finalizers.iter().any(|known| known == finalizer) {
        finalizers.push(finalizer.into());
        object::set(object, &["metadata", "finalizers"], json!(finalizers));
    }
}

fn phase(object: &Value) -> Value {
    if object::is_terminating(object) {
        return "Terminating".into();
    }
    tables::text(object, &["status", "phase"])
}

fn short_modes(modes: &[Value]) -> String {
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let found: Vec<&str> = short
        .iter()
        .filter(|(mode, _)| modes.iter().any(|m| m == mode))
        .map(|(_, short)| *short)
        .collect();
    found.join(",")
}

fn access_modes(spec: &Value, missing: &str, path: &Path) -> Errors {
    let modes: Vec<&str> =
        object::list(spec, &["accessModes"]).iter().filter_map(Value::as_str).collect();
    let mut errors = Errors::new();
    if modes.is_empty() {
        errors.push(FieldError::required(path, missing));
    }
    for mode in &modes {
        errors.extend(one_of(mode, ACCESS_MODES, path));
    }
    let single = modes.contains(&"ReadWriteOncePod");
    if single && modes.iter().any(|m| *m != "ReadWriteOncePod" && ACCESS_MODES.contains(m)) {
        let reason = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden(path, reason));
    }
    errors
}

fn capacity(spec: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let capacity = map(spec, &["capacity"]);
    if capacity.is_none_or(serde_json::Map::is_empty) {
        errors.push(FieldError::required(path, ""));
    }
    if capacity.is_none_or(|c| c.len() != 1 || !c.contains_key("storage")) {
        let value = spec.get("capacity").cloned().unwrap_or_default();
        errors.push(FieldError::not_supported(path, value, &["storage"]));
    }
    for (name, value) in capacity.into_iter().flatten() {
        errors.extend(positive(value, &path.key(name)));
    }
    errors
}

fn positive(value: &Value, path: &Path) -> Errors {
    match quantity(value) {
        Some(amount) if amount.is_zero() || amount.is_negative() => {
            vec![FieldError::invalid(path, value.clone(), NOT_POSITIVE)]
        }
        _ => Errors::new(),
    }
}

fn source(spec: &Value, path: &Path) -> Errors {
    let sources: Vec<&String> = spec
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, value)| !NOT_A_SOURCE.contains(&key.as_str()) && !value.is_null())
        .map(|(key, _)| key)
        .collect();
    match sources.as_slice() {
        [] => vec![FieldError::required(path, "must specify a volume type")],
        [_, rest @ ..] => rest
            .iter()
            .map(|key| {
                let reason = "may not specify more than 1 volume type";
                FieldError::forbidden(&path.child(key), reason)
            })
            .collect(),
    }
}

fn class(spec: &Value, path: &Path) -> Errors {
    match object::text(spec, &["storageClassName"]) {
        "" => Errors::new(),
        name => each(path, name, names::dns_1123_subdomain(name)),
    }
}

/// What is wrong with what a claim asks for.
pub(in super::super) fn claim_spec(spec: &Value, path: &Path) -> Errors {
    let missing = "at least 1 access mode is required";
    let mut errors = Errors::new();
    if !has(spec, &["accessModes"]) {
        errors.push(FieldError::required(&path.child("accessModes"), missing));
    }
    if let Some(selector) = spec.get("selector") {
        errors.extend(names::validate_label_selector(selector, &path.child("selector")));
    }
    if has(spec, &["accessModes"]) {
        errors.extend(access_modes(spec, missing, &path.child("accessModes")));
    }
    let storage = path.child("resources").key("storage");
    match object::get(spec, &["resources", "requests", "storage"]) {
        None => errors.push(FieldError::required(&storage, "")),
        Some(value) => {
            let problems = positive(value, &storage);
            if problems.is_empty() {
                errors.extend(resources::amount("storage", value, &storage));
            }
            errors.extend(problems);
        }
    }
    errors.extend(class(spec, &path.child("storageClassName")));
    errors.extend(one_of(
        object::text(spec, &["volumeMode"]),
        VOLUME_MODES,
        &path.child("volumeMode"),
    ));
    errors
}

fn does_not_shrink(new: &Value, old: &Value) -> Errors {
    let size = |object, path: &[&str]| object::get(object, path).and_then(quantity);
    let requested = |object| size(object, &["spec", "resources", "requests", "storage"]);
    let (Some(wanted), Some(before)) = (requested(new), requested(old)) else {
        return Errors::new();
    };
    let real = size(old, &["status", "capacity", "storage"]).unwrap_or_default();
    if wanted >= before || wanted > real {
        return Errors::new();
    }
    let path = Path::new("spec").child("resources").child("requests").child("storage");
    vec![FieldError::forbidden(&path, "field can not be less than status.capacity")]
}

#[cfg(test)]
mod tests {
    use super::super::super::{check::texts, tests::context};
    use super::*;

    #[test]
    fn a_claim_says_how_much_and_how() {
        let mut claim = json!({"spec": {"accessModes": ["Any"]}});
        PersistentVolumeClaim.default(&mut claim);
        PersistentVolumeClaim.prepare_create(&context(), &mut claim);
        assert_eq!(claim["metadata"]["finalizers"], json!(["kubernetes.io/pvc-protection"]));
        assert_eq!(claim["status"], json!({"phase": "Pending"}));
        assert_eq!(
            texts(&PersistentVolumeClaim.validate_create(&claim)),
            [
                "spec.accessModes: Unsupported value: \"Any\": supported values: \"ReadOnlyMany\", \
                 \"ReadWriteMany\", \"ReadWriteOnce\", \"ReadWriteOncePod\"",
                "spec.resources[storage]: Required value",
            ]
        );
    }

    #[test]
    fn a_volume_has_one_source() {
        let mut volume =
            json!({"spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "0"}}});
        PersistentVolume.default(&mut volume);
        assert_eq!(
            texts(&PersistentVolume.validate_create(&volume)),
            [
                "spec.capacity[storage]: Invalid value: \"0\": must be greater than zero",
                "spec: Required value: must specify a volume type",
            ]
        );
    }
}
