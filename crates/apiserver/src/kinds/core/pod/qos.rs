//! The quality of service that a pod gets, from what its containers ask for.

use serde_json::Value;

use super::super::super::check::{is_set, quantity};
use crate::object;

const GUARANTEED: &str = "Guaranteed";
const BURSTABLE: &str = "Burstable";
const BEST_EFFORT: &str = "BestEffort";

/// The class of a pod.
pub(super) fn class(pod: &Value) -> &'static str {
    if is_set(pod, &["spec", "resources", "limits"])
        || is_set(pod, &["spec", "resources", "requests"])
    {
        return of_requirements(pod.get("spec").and_then(|s| s.get("resources")));
    }
    let mut classes = ["initContainers", "containers"]
        .iter()
        .flat_map(|list| object::list(pod, &["spec", list]))
        .map(|container| of_requirements(container.get("resources")));
    let Some(first) = classes.next() else { return BEST_EFFORT };
    if classes.all(|class| class == first) { first } else { BURSTABLE }
}

fn of_requirements(resources: Option<&Value>) -> &'static str {
    let amount = |list: &str, name: &str| {
        let value = resources?.get(list)?.get(name)?;
        quantity(value).filter(|amount| !amount.is_zero())
    };
    let names = ["cpu", "memory"];
    if names
        .iter()
        .all(|name| amount("requests", name).is_none() && amount("limits", name).is_none())
    {
        return BEST_EFFORT;
    }
    let guaranteed = names.iter().all(|name| {
        let limit = amount("limits", name);
        limit.is_some() && limit == amount("requests", name)
    });
    if guaranteed { GUARANTEED } else { BURSTABLE }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn classes_follow_requests_and_limits() {
        let full = json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1Gi"}});
        let part = json!({"requests": {"cpu": "1"}});
        let cases = [
            (vec![json!({})], BEST_EFFORT),
            (vec![full.clone()], GUARANTEED),
            (vec![full.clone(), full.clone()], GUARANTEED),
            (vec![part.clone()], BURSTABLE),
            (vec![full.clone(), json!({})], BURSTABLE),
            (vec![json!({"requests": {"cpu": "0"}})], BEST_EFFORT),
        ];
        for (resources, expected) in cases {
            let containers: Vec<Value> =
                resources.into_iter().map(|r| json!({"resources": r})).collect();
            assert_eq!(class(&json!({"spec": {"containers": containers}})), expected);
        }
    }
}
