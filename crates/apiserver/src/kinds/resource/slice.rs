//! Slices: the devices of one node, or of many.

use fleetwright_kschema::{
    field::{FieldError, Path},
    names,
};
use serde_json::Value;

use super::{
    super::{
        Column, Kind,
        age::age,
        check::{Errors, each, immutable},
        core::pod,
        shape, tables,
    },
    claim::pool_name,
    requests::{label, unique},
};
use crate::object;

/// Most devices in one slice, and most of those with taints or counters.
const MOST_DEVICES: usize = 128;
const MOST_ADVANCED: usize = 64;
/// Ways to say which nodes have the devices.
const PLACES: [&str; 4] = ["nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"];

const ONE_PLACE: &str =
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";

pub(super) struct ResourceSlice;

impl Kind for ResourceSlice {
    fn default(&self, object: &mut Value) {
        shape::complete("resource.k8s.io/v1/ResourceSlice", object);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let (spec, path) = (&object["spec"], Path::new("spec"));
        let mut errors = identity(spec, &path);
        errors.extend(place(spec, &path));
        errors.extend(content(spec, &path));
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let (spec, path) = (&new["spec"], Path::new("spec"));
        let mut errors = identity(spec, &path);
        for keys in [&["pool", "name"][..], &["driver"], &["nodeName"]] {
            let path = keys.iter().fold(path.clone(), |path, key| path.child(key));
            let of = |spec| object::get(spec, keys);
            errors.extend(immutable(of(spec), of(&old["spec"]), &path));
        }
        errors.extend(place(spec, &path));
        errors.extend(content(spec, &path));
        errors
    }

    fn has_generation(&self) -> bool {
        true
    }

    fn selectable_field(&self, object: &Value, field: &str) -> Option<String> {
        match field {
            "spec.nodeName" => Some(object::text(object, &["spec", "nodeName"]).to_owned()),
            "spec.driver" => Some(object::text(object, &["spec", "driver"]).to_owned()),
            _ => None,
        }
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("resource.k8s.io/v1/resourceslices")
    }

    fn cells(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        vec![
            tables::name(object),
            tables::text(object, &["spec", "nodeName"]),
            tables::text(object, &["spec", "driver"]),
            tables::text(object, &["spec", "pool", "name"]),
            age(object, now),
        ]
    }
}

/// Whose devices they are.
fn identity(spec: &Value, path: &Path) -> Errors {
    let driver = object::text(spec, &["driver"]);
    let mut errors = pod::validate::csi_driver_name(driver, &path.child("driver"));
    let pool = path.child("pool");
    errors.extend(pool_name(object::text(spec, &["pool", "name"]), &pool.child("name")));
    let number = |key| object::integer(spec, &["pool", key]).unwrap_or(0);
    if number("resourceSliceCount") <= 0 {
        let path = pool.child("resourceSliceCount");
        let count = number("resourceSliceCount");
        errors.push(FieldError::invalid(&path, count, "must be greater than zero"));
    }
    if number("generation") < 0 {
        errors.push(FieldError::invalid(
            &pool.child("generation"),
            number("generation"),
            "must be greater than or equal to zero",
        ));
    }
    errors
}

/// Where they are: said in exactly one way.
fn place(spec: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let mut said = Vec::new();
    for key in PLACES {
        let at = path.child(key);
        match spec.get(key) {
            None | Some(Value::Null) => {}
            Some(Value::String(node)) if node.is_empty() => errors.push(FieldError::invalid(
                &at,
                "",
                "must be either unset or set to a non-empty string",
            )),
            Some(Value::String(node)) => {
                errors.extend(each(&at, node, names::dns_1123_subdomain(node)));
                said.push(format!("`{key}`"));
            }
            Some(Value::Bool(false)) => {
                errors.push(FieldError::invalid(&at, false, "must be either unset or set to true"));
            }
            Some(_) => said.push(format!("`{key}`")),
        }
    }
    match said.len() {
        0 => errors.push(FieldError::required(path, ONE_PLACE)),
        1 => {}
        _ => errors.push(FieldError::invalid(
            path,
            format!("{{{}}}", said.join(", ")),
            format!("{ONE_PLACE}, but multiple fields are set"),
        )),
    }
    errors
}

/// The devices themselves.
fn content(spec: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    if spec.get("sharedCounters").is_some() && spec.get("devices").is_some() {
        errors.push(FieldError::invalid(
            path,
            "",
            "only one of `sharedCounters` or `devices` is allowed",
        ));
    }
    let devices = object::list(spec, &["devices"]);
    let advanced = devices.iter().any(|device| {
        ["taints", "consumesCounters"].iter().any(|key| !object::list(device, &[key]).is_empty())
    });
    let most = if advanced { MOST_ADVANCED } else { MOST_DEVICES };
    errors.extend(unique(devices, "name", most, &path.child("devices"), |device, path| {
        let mut errors = label(device, "name", path);
        let attributes = device.get("attributes").and_then(Value::as_object);
        for (name, attribute) in attributes.into_iter().flatten() {
            let values = attribute.as_object().map_or(0, serde_json::Map::len);
            if values != 1 {
                let path = path.child("attributes").key(name);
                errors.push(FieldError::invalid(&path, "", "exactly one value must be specified"));
            }
        }
        errors
    }));
    errors
}
