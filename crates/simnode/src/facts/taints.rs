//! Taints of nodes and what pods tolerate.

use k8s_openapi::api::core::v1::{Taint, Toleration};

pub(crate) const NO_SCHEDULE: &str = "NoSchedule";
pub(crate) const PREFER_NO_SCHEDULE: &str = "PreferNoSchedule";
pub(crate) const NO_EXECUTE: &str = "NoExecute";

pub(crate) const NOT_READY: &str = "node.kubernetes.io/not-ready";
pub(crate) const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
pub(crate) const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
pub(crate) const MEMORY_PRESSURE: &str = "node.kubernetes.io/memory-pressure";
pub(crate) const DISK_PRESSURE: &str = "node.kubernetes.io/disk-pressure";
pub(crate) const PID_PRESSURE: &str = "node.kubernetes.io/pid-pressure";
pub(crate) const NETWORK_UNAVAILABLE: &str = "node.kubernetes.io/network-unavailable";

/// A taint without a value.
pub(crate) fn taint(key: &str, effect: &str) -> Taint {
    Taint { key: key.to_owned(), effect: effect.to_owned(), time_added: None, value: None }
}

/// Whether a toleration covers a taint. An operator that is not known covers nothing.
pub(crate) fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let text = |text: &Option<String>| text.as_deref().unwrap_or_default().to_owned();
    let (key, effect) = (text(&toleration.key), text(&toleration.effect));
    if !effect.is_empty() && effect != taint.effect {
        return false;
    }
    if !key.is_empty() && key != taint.key {
        return false;
    }
    match toleration.operator.as_deref().unwrap_or_default() {
        "" | "Equal" => !key.is_empty() && text(&toleration.value) == text(&taint.value),
        "Exists" => true,
        _ => false,
    }
}

/// The first taint with one of the effects that nothing tolerates.
pub(crate) fn untolerated<'a>(
    taints: &'a [Taint],
    tolerations: &[Toleration],
    effects: &[&str],
) -> Option<&'a Taint> {
    taints.iter().find(|taint| {
        effects.contains(&taint.effect.as_str())
            && !tolerations.iter().any(|toleration| tolerates(toleration, taint))
    })
}

/// Whether two taints are the same to Kubernetes, which tells them by key and effect.
pub(crate) fn same(one: &Taint, other: &Taint) -> bool {
    one.key == other.key && one.effect == other.effect
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_covers_what() {
        let gpu = Taint { value: Some("a".into()), ..taint("gpu", NO_SCHEDULE) };
        for (toleration, expected) in [
            (json!({"operator": "Exists"}), true),
            (json!({"key": "gpu", "operator": "Exists"}), true),
            (json!({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}), false),
            (json!({"key": "gpu", "value": "a"}), true),
            (json!({"key": "gpu", "operator": "Equal", "value": "b"}), false),
            (json!({"key": "other", "operator": "Exists"}), false),
            (json!({"key": "gpu", "operator": "Gt", "value": "a"}), false),
        ] {
            let parsed: Toleration = serde_json::from_value(toleration.clone()).unwrap();
            assert_eq!(tolerates(&parsed, &gpu), expected, "{toleration}");
        }
    }
}
