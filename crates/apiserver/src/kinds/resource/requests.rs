//! What a claim asks for: requests, what they have in common, how devices are set up.

use std::collections::BTreeSet;

use fleetwright_kschema::{
    field::{FieldError, Path},
    names,
};
use serde_json::Value;

use super::super::{
    check::{Errors, each, one_of},
    core::pod,
};
use crate::object;

/// Most entries of requests, constraints, configurations and selectors each.
pub(super) const MOST: usize = 32;
/// Most alternatives of one request.
const MOST_ALTERNATIVES: usize = 8;

/// What is wrong with the devices that are claimed.
pub(super) fn devices(devices: &Value, path: &Path) -> Errors {
    let requests = object::list(devices, &["requests"]);
    let names = request_names(requests);
    let mut errors = unique(requests, "name", MOST, &path.child("requests"), request);
    errors.extend(entries(devices, "constraints", path, |constraint, path| {
        let mut errors = references(constraint, &names, path);
        let set = |key| constraint.get(key).is_some();
        if !set("matchAttribute") && !set("distinctAttribute") {
            errors.push(FieldError::required(
                path,
                "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set",
            ));
        }
        errors
    }));
    errors.extend(entries(devices, "config", path, |config, path| {
        let mut errors = references(config, &names, path);
        errors.extend(configuration(config, path));
        errors
    }));
    errors
}

/// The names of requests, and of their alternatives behind a slash.
pub(super) fn request_names(requests: &[Value]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for request in requests {
        let name = object::text(request, &["name"]);
        names.insert(name.to_owned());
        for part in object::list(request, &["firstAvailable"]) {
            names.insert(format!("{name}/{}", object::text(part, &["name"])));
        }
    }
    names
}

fn request(request: &Value, path: &Path) -> Errors {
    let mut errors = label(request, "name", path);
    let alternatives = object::list(request, &["firstAvailable"]);
    match (request.get("exactly").filter(|exactly| !exactly.is_null()), alternatives) {
        (None, []) => errors.push(FieldError::required(
            path,
            "exactly one of `exactly` or `firstAvailable` is required",
        )),
        (Some(exactly), []) => errors.extend(wanted(exactly, &path.child("exactly"))),
        (None, several) => {
            let path = path.child("firstAvailable");
            errors.extend(unique(several, "name", MOST_ALTERNATIVES, &path, |part, path| {
                let mut errors = label(part, "name", path);
                errors.extend(wanted(part, path));
                errors
            }));
        }
        (Some(_), _) => errors.push(FieldError::invalid(
            path,
            Value::Null,
            "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set",
        )),
    }
    errors
}

/// What is wrong with the devices that one request, or one alternative of it, wants.
fn wanted(request: &Value, path: &Path) -> Errors {
    let class = object::text(request, &["deviceClassName"]);
    let class_path = path.child("deviceClassName");
    let mut errors = if class.is_empty() {
        vec![FieldError::required(&class_path, "")]
    } else {
        each(&class_path, class, names::dns_1123_subdomain(class))
    };
    errors.extend(entries(request, "selectors", path, selector));
    let count = object::integer(request, &["count"]).unwrap_or(0);
    let count_path = path.child("count");
    match object::text(request, &["allocationMode"]) {
        "All" if count != 0 => errors.push(FieldError::invalid(
            &count_path,
            count,
            "must not be specified when allocationMode is 'All'",
        )),
        "ExactCount" if count <= 0 => {
            errors.push(FieldError::invalid(&count_path, count, "must be greater than zero"));
        }
        mode => {
            let path = path.child("allocationMode");
            errors.extend(one_of(mode, &["All", "ExactCount"], &path));
        }
    }
    errors
}

/// What is wrong with a choice among devices.
pub(super) fn selector(selector: &Value, path: &Path) -> Errors {
    let path = path.child("cel");
    match selector.get("cel").filter(|cel| !cel.is_null()) {
        None => vec![FieldError::required(&path, "")],
        Some(cel) if object::text(cel, &["expression"]).is_empty() => {
            vec![FieldError::required(&path.child("expression"), "")]
        }
        Some(_) => Errors::new(),
    }
}

/// What is wrong with how a driver is to set up devices.
pub(super) fn configuration(config: &Value, path: &Path) -> Errors {
    let path = path.child("opaque");
    let Some(opaque) = config.get("opaque").filter(|opaque| !opaque.is_null()) else {
        return vec![FieldError::required(&path, "")];
    };
    let driver = object::text(opaque, &["driver"]);
    let mut errors = pod::validate::csi_driver_name(driver, &path.child("driver"));
    let parameters = path.child("parameters");
    match opaque.get("parameters") {
        None | Some(Value::Null) => errors.push(FieldError::required(&parameters, "")),
        Some(Value::Object(_)) => {}
        Some(_) => errors.push(FieldError::invalid(
            &parameters,
            "<value omitted>",
            "must be a valid JSON object",
        )),
    }
    errors
}

/// The requests that a constraint or configuration is about must be there.
fn references(part: &Value, names: &BTreeSet<String>, path: &Path) -> Errors {
    let path = path.child("requests");
    let mut errors = Errors::new();
    for (i, name) in object::list(part, &["requests"]).iter().enumerate() {
        let name = name.as_str().unwrap_or_default();
        errors.extend(reference(name, names, &path.index(i)));
    }
    errors
}

/// A request that is referred to must be there.
pub(super) fn reference(name: &str, names: &BTreeSet<String>, path: &Path) -> Errors {
    let mut errors = Errors::new();
    if name.split('/').count() <= 2 {
        errors
            .extend(name.split('/').flat_map(|part| each(path, part, names::dns_1123_label(part))));
    }
    if !names.contains(name) {
        errors.push(FieldError::invalid(
            path,
            name,
            "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'",
        ));
    }
    errors
}

/// A text that must be a DNS label.
pub(super) fn label(object: &Value, key: &str, path: &Path) -> Errors {
    let text = object::text(object, &[key]);
    each(&path.child(key), text, names::dns_1123_label(text))
}

/// What is wrong with each entry of a list, which has a limit.
pub(super) fn entries(
    object: &Value,
    key: &str,
    path: &Path,
    check: impl Fn(&Value, &Path) -> Errors,
) -> Errors {
    let (list, path) = (object::list(object, &[key]), path.child(key));
    if list.len() > MOST {
        return vec![FieldError::too_many(&path, Some(list.len()), MOST)];
    }
    list.iter().enumerate().flat_map(|(i, entry)| check(entry, &path.index(i))).collect()
}

/// What is wrong with each entry of a list whose entries differ in a key.
pub(super) fn unique(
    list: &[Value],
    key: &str,
    most: usize,
    path: &Path,
    check: impl Fn(&Value, &Path) -> Errors,
) -> Errors {
    if list.len() > most {
        return vec![FieldError::too_many(path, Some(list.len()), most)];
    }
    let mut errors: Errors =
        list.iter().enumerate().flat_map(|(i, entry)| check(entry, &path.index(i))).collect();
    let mut seen = BTreeSet::new();
    for (i, entry) in list.iter().enumerate() {
        let name = object::text(entry, &[key]);
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path.index(i), name));
        }
    }
    errors
}
