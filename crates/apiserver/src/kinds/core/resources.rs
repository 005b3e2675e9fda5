//! Names and amounts of resources: cpu, memory, devices.

use fleetwright_kschema::{
    field::{FieldError, Path},
    names,
};
use serde_json::Value;

use super::super::{
    check::{Errors, NOT_NEGATIVE, each, map, quantity},
    quantity::Quantity,
};
use crate::object;

const HUGE_PAGES: &str = "hugepages-";
const NOT_INTEGER: &str = "must be an integer";
const COUNTED: &[&str] = &[
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
const STANDARD: &[&str] = &[
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];

fn is_huge_pages(name: &str) -> bool {
    name.starts_with(HUGE_PAGES)
}

/// Whether a resource belongs to Kubernetes rather than to a device plugin.
pub(super) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::qualified_name(&format!("requests.{name}")).is_empty()
}

fn is_whole(name: &str) -> bool {
    COUNTED.contains(&name) || is_extended(name)
}

/// What is wrong with the amount of one resource.
pub(crate) fn amount(name: &str, value: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let Some(amount) = quantity(value) else { return errors };
    if amount.is_negative() {
        errors.push(FieldError::invalid(path, value.clone(), NOT_NEGATIVE));
    }
    if is_whole(name) && !amount.is_whole() {
        errors.push(FieldError::invalid(path, value.clone(), NOT_INTEGER));
    }
    errors
}

/// What is wrong with the name of a resource.
pub(crate) fn resource_name(name: &str, path: &Path) -> Errors {
    let errors = each(path, name, names::qualified_name(name));
    if errors.is_empty()
        && !name.contains('/')
        && !STANDARD.contains(&name)
        && !is_huge_pages(name)
        && !name.starts_with("requests.hugepages-")
    {
        let reason = "must be a standard resource type or fully qualified";
        return vec![FieldError::invalid(path, name, reason)];
    }
    errors
}

/// What is wrong with the name of a resource in a quota.
pub(super) fn quota_name(name: &str, path: &Path) -> Errors {
    let mut errors = resource_name(name, path);
    let known = STANDARD.contains(&name) && name != "storage"
        || is_huge_pages(name)
        || name.starts_with("requests.hugepages-")
        || name.starts_with("count/");
    if !name.contains('/') && !known {
        errors.push(FieldError::invalid(path, name, "must be a standard resource for quota"));
    }
    errors
}

fn container_resource_name(name: &str, path: &Path) -> Errors {
    let mut errors = resource_name(name, path);
    if !name.contains('/') {
        if !matches!(name, "cpu" | "memory" | "ephemeral-storage") && !is_huge_pages(name) {
            errors.push(FieldError::invalid(
                path,
                name,
                "must be a standard resource for containers",
            ));
        }
    } else if !is_native(name) && !is_extended(name) {
        let reason = "doesn't follow extended resource name standard";
        errors.push(FieldError::invalid(path, name, reason));
    }
    errors
}

/// What is wrong with the requests and limits of a container.
pub(super) fn requirements(resources: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let mut names = Vec::new();
    for list in ["limits", "requests"] {
        let path = path.child(list);
        for (name, value) in map(resources, &[list]).into_iter().flatten() {
            let entry = path.key(name);
            errors.extend(container_resource_name(name, &entry));
            errors.extend(amount(name, value, &entry));
            if list == "requests" {
                errors.extend(within_limit(resources, name, value, &path));
            }
            errors.extend(whole_pages(name, value, &entry));
            names.push(name.as_str());
        }
    }
    let huge_pages = names.iter().any(|name| is_huge_pages(name));
    if huge_pages && !names.iter().any(|name| matches!(*name, "cpu" | "memory")) {
        errors.push(FieldError::forbidden(path, "HugePages require cpu or memory"));
    }
    errors
}

fn within_limit(resources: &Value, name: &str, request: &Value, path: &Path) -> Errors {
    let overcommit = is_native(name) && !is_huge_pages(name);
    let limit = object::get(resources, &["limits", name]).filter(|limit| !limit.is_null());
    let Some(limit) = limit else {
        if overcommit {
            return Errors::new();
        }
        let limits = Path::from(path.as_str().replace("requests", "limits"));
        let reason = "Limit must be set for non overcommitable resources";
        return vec![FieldError::required(&limits, reason)];
    };
    let (Some(asked), Some(allowed)) = (quantity(request), quantity(limit)) else {
        return Errors::new();
    };
    let relation = if !overcommit && asked != allowed {
        "equal to"
    } else if asked > allowed {
        "less than or equal to"
    } else {
        return Errors::new();
    };
    let limit = limit.as_str().unwrap_or_default();
    let reason = format!("must be {relation} {name} limit of {limit}");
    vec![FieldError::invalid(path, request.clone(), reason)]
}

fn whole_pages(name: &str, value: &Value, path: &Path) -> Errors {
    let Some(size) = name.strip_prefix(HUGE_PAGES) else { return Errors::new() };
    let Some(amount) = quantity(value) else { return Errors::new() };
    let size = Quantity::parse(size).map_or(0, Quantity::value);
    if size > 0 && amount.value() % size == 0 {
        return Errors::new();
    }
    let text = value.as_str().unwrap_or_default();
    let reason = format!("{text} is not positive integer multiple of {name}");
    vec![FieldError::invalid(path, text, reason)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::check::texts;
    use super::*;

    #[test]
    fn requests_fit_in_limits_and_names_are_known() {
        let resources = json!({
            "limits": {"cpu": "1", "gpu": "1", "x.io/dev": "1500m"},
            "requests": {"cpu": "2", "memory": "-1", "y.io/dev": "1"},
        });
        assert_eq!(
            texts(&requirements(&resources, &Path::new("r"))),
            [
                "r.limits[gpu]: Invalid value: \"gpu\": must be a standard resource type or fully \
                 qualified",
                "r.limits[gpu]: Invalid value: \"gpu\": must be a standard resource for containers",
                "r.limits[x.io/dev]: Invalid value: \"1500m\": must be an integer",
                "r.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1",
                "r.requests[memory]: Invalid value: \"-1\": must be greater than or equal to 0",
                "r.limits: Required value: Limit must be set for non overcommitable resources",
            ]
        );
    }

    #[test]
    fn huge_pages_come_in_pages() {
        let resources = json!({"limits": {"hugepages-2Mi": "3Mi"}});
        assert_eq!(
            texts(&requirements(&resources, &Path::new("r"))),
            [
                "r.limits[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi is not positive integer multiple \
                 of hugepages-2Mi",
                "r: Forbidden: HugePages require cpu or memory",
            ]
        );
    }
}
