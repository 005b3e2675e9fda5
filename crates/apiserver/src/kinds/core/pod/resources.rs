//! Requests of a whole pod, from its limits and from what its containers ask for.

use serde_json::Value;

use super::super::super::{
    check::{has, map, quantity},
    quantity::Quantity,
};
use crate::object;

/// Fills in the requests of a pod that has limits as a whole: the sum over its containers where
/// they say something, else the limit.
pub(super) fn complete(pod: &mut Value) {
    if !has(pod, &["spec", "resources", "limits"]) {
        return;
    }
    let limits = map(pod, &["spec", "resources", "limits"]).cloned().unwrap_or_default();
    for (name, limit) in limits {
        let request = match sum(pod, &name) {
            Some(sum) if !name.starts_with("hugepages-") => Value::from(sum),
            _ => limit,
        };
        object::default(pod, &["spec", "resources", "requests", &name], request);
    }
}

/// What all containers together request: those that run at once, or the greatest of those that
/// run before.
fn sum(pod: &Value, name: &str) -> Option<String> {
    let requested = |list: &str, sidecars: Option<bool>| -> Vec<Quantity> {
        object::list(pod, &["spec", list])
            .iter()
            .filter(|container| {
                let sidecar = object::text(container, &["restartPolicy"]) == "Always";
                sidecars.is_none_or(|wanted| wanted == sidecar)
            })
            .filter_map(|container| {
                quantity(object::get(container, &["resources", "requests", name])?)
            })
            .collect()
    };
    let together: Vec<Quantity> = requested("containers", None)
        .into_iter()
        .chain(requested("initContainers", Some(true)))
        .collect();
    let before = requested("initContainers", Some(false));
    if together.is_empty() && before.is_empty() {
        return None;
    }
    let greatest = before.into_iter().max();
    Some(Quantity::sum(together).max(greatest.unwrap_or_default()).to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requests_come_from_containers_or_limits() {
        let mut pod = json!({"spec": {
            "resources": {"limits": {"cpu": "4", "memory": "1Gi"}},
            "containers": [
                {"resources": {"requests": {"cpu": "500m"}}},
                {"resources": {"requests": {"cpu": "1"}}},
            ],
        }});
        complete(&mut pod);
        assert_eq!(pod["spec"]["resources"]["requests"], json!({"cpu": "1500m", "memory": "1Gi"}));
    }
}
