//! Labels, annotations and taints that a Node gets from its machine.
//!
//! What a machine says is added or corrected; nothing is ever taken away, since the kubelet, the
//! cloud and users write to the same Node. A taint that the Node has under the same key and effect
//! stays as it is.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Taint};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::{Map, Value, json};

/// Annotation of a Node: the Machine that it is, `namespace/name`.
pub const MACHINE_ANNOTATION: &str = "machine.openshift.io/machine";

/// What a Node should have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Taints.
    pub taints: Vec<Taint>,
}

/// The least patch that gives a Node what it should have; none when it has it.
pub fn patch(node: &Node, wanted: &Wanted) -> Option<Value> {
    let mut metadata = Map::new();
    let mut spec = Map::new();
    let mut add = |name: &str, have: &BTreeMap<String, String>, want: &BTreeMap<String, String>| {
        let missing: Map<String, Value> = want
            .iter()
            .filter(|(key, value)| have.get(*key) != Some(value))
            .map(|(key, value)| (key.clone(), value.as_str().into()))
            .collect();
        if !missing.is_empty() {
            metadata.insert(name.to_owned(), missing.into());
        }
    };
    add("labels", node.labels(), &wanted.labels);
    add("annotations", node.annotations(), &wanted.annotations);
    if let Some(taints) = merged_taints(node, &wanted.taints) {
        spec.insert("taints".to_owned(), json!(taints));
        // The list is written as a whole, so nobody else may have written it meanwhile.
        if let Some(version) = node.resource_version() {
            metadata.insert("resourceVersion".to_owned(), version.into());
        }
    }
    let parts = [("metadata", metadata), ("spec", spec)];
    let parts: Map<String, Value> = parts
        .into_iter()
        .filter(|(_, part)| !part.is_empty())
        .map(|(name, part)| (name.to_owned(), part.into()))
        .collect();
    (!parts.is_empty()).then(|| parts.into())
}

fn merged_taints(node: &Node, wanted: &[Taint]) -> Option<Vec<Taint>> {
    let mut taints = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
    let before = taints.len();
    for taint in wanted {
        let has = |known: &Taint| known.key == taint.key && known.effect == taint.effect;
        if !taints.iter().any(has) {
            taints.push(taint.clone());
        }
    }
    (taints.len() > before).then_some(taints)
}

/// Gives a Node what it should have. Says whether it had to. A conflict means that somebody wrote
/// to the Node meanwhile: decide again on the newer one.
pub async fn apply(
    api: &Api<Node>,
    node: &Node,
    wanted: &Wanted,
    manager: &str,
) -> Result<bool, kube::Error> {
    if node.metadata.deletion_timestamp.is_some() {
        return Ok(false);
    }
    let Some(patch) = patch(node, wanted) else { return Ok(false) };
    let params = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
    api.patch(&node.name_any(), &params, &Patch::Merge(&patch)).await?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taint(key: &str, effect: &str, value: &str) -> Taint {
        Taint {
            key: key.to_owned(),
            effect: effect.to_owned(),
            value: Some(value.to_owned()),
            time_added: None,
        }
    }

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn node() -> Node {
        serde_json::from_value(json!({
            "metadata": {
                "name": "n1",
                "resourceVersion": "7",
                "labels": {"kept": "by-the-kubelet", "changed": "old"},
            },
            "spec": {"taints": [
                {"key": "a", "effect": "NoSchedule", "value": "theirs"},
                {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
            ]},
        }))
        .unwrap()
    }

    #[test]
    fn only_what_is_missing_or_other() {
        let wanted = Wanted {
            labels: map(&[("changed", "new"), ("kept", "by-the-kubelet"), ("fresh", "")]),
            annotations: map(&[(MACHINE_ANNOTATION, "openshift-machine-api/m1")]),
            taints: vec![taint("a", "NoSchedule", "ours")],
        };
        assert_eq!(
            patch(&node(), &wanted).unwrap(),
            json!({"metadata": {
                "labels": {"changed": "new", "fresh": ""},
                "annotations": {MACHINE_ANNOTATION: "openshift-machine-api/m1"},
            }})
        );
    }

    #[test]
    fn nothing_when_it_has_everything() {
        let wanted = Wanted { labels: map(&[("changed", "old")]), ..Wanted::default() };
        assert_eq!(patch(&node(), &wanted), None);
        assert_eq!(patch(&Node::default(), &Wanted::default()), None);
    }

    #[test]
    fn taints_are_added_to_the_others_and_guard_against_them() {
        let wanted = Wanted {
            taints: vec![taint("a", "NoExecute", "x"), taint("a", "NoSchedule", "ours")],
            ..Wanted::default()
        };
        let patch = patch(&node(), &wanted).unwrap();
        assert_eq!(
            patch,
            json!({
                "metadata": {"resourceVersion": "7"},
                "spec": {"taints": [
                    {"key": "a", "effect": "NoSchedule", "value": "theirs"},
                    {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
                    {"key": "a", "effect": "NoExecute", "value": "x"},
                ]},
            })
        );
    }
}
