//! The writes of a pass: metadata with spec, then status, each only if something changed, and as a
//! patch of what changed.

use fleetwright_api::machine::Machine;
use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams},
};
use serde_json::{Map, Value, json};

use super::{FIELD_MANAGER, observe::Draft};

/// Writes what differs between a Machine and its draft, and says which versions of the Machine that
/// replaced. The writes hold only for the version that the draft was made from: another writer's
/// news is not undone.
pub(crate) async fn write(
    api: &Api<Machine>,
    machine: &Machine,
    draft: &Draft,
) -> Result<Vec<String>, kube::Error> {
    let name = machine.name_any();
    let params =
        PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let mut version = machine.resource_version();
    let mut replaced = Vec::new();
    let mut now_at = |version: &mut Option<String>, written: &Machine| {
        // A write that changes nothing has no echo.
        if *version != written.resource_version() {
            replaced.extend(std::mem::replace(version, written.resource_version()));
        }
    };
    if let Some(mut patch) = metadata_patch(machine, draft) {
        patch["metadata"]["resourceVersion"] = json!(version);
        let written = api.patch(&name, &params, &Patch::Merge(patch)).await?;
        now_at(&mut version, &written);
    }
    if let Some(mut patch) = status_patch(machine, draft) {
        patch["metadata"] = json!({"resourceVersion": version});
        let written = api.patch_status(&name, &params, &Patch::Merge(patch)).await?;
        now_at(&mut version, &written);
    }
    Ok(replaced)
}

fn metadata_patch(machine: &Machine, draft: &Draft) -> Option<Value> {
    let before = Draft::of(machine);
    let mut metadata = Map::new();
    let mut take = |key: &str, before: Value, after: Value| {
        if let Some(change) = difference(&before, &after) {
            metadata.insert(key.to_owned(), change);
        }
    };
    take("labels", json!(before.labels), json!(draft.labels));
    take("annotations", json!(before.annotations), json!(draft.annotations));
    take("finalizers", json!(before.finalizers), json!(draft.finalizers));
    let spec = difference(&json!(before.spec), &json!(draft.spec));
    if metadata.is_empty() && spec.is_none() {
        return None;
    }
    let mut patch = json!({"metadata": metadata});
    if let Some(spec) = spec {
        patch["spec"] = spec;
    }
    Some(patch)
}

fn status_patch(machine: &Machine, draft: &Draft) -> Option<Value> {
    let before = json!(machine.status.clone().unwrap_or_default());
    difference(&before, &json!(draft.status)).map(|status| json!({"status": status}))
}

/// The merge patch from one value to another; none when they are equal.
fn difference(before: &Value, after: &Value) -> Option<Value> {
    if before == after {
        return None;
    }
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        return Some(after.clone());
    };
    let mut patch = Map::new();
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in after {
        let change = match before.get(key) {
            None => Some(value.clone()),
            Some(known) => difference(known, value),
        };
        if let Some(change) = change {
            patch.insert(key.clone(), change);
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_names_what_differs_and_nothing_else() {
        let before = json!({"a": 1, "b": {"c": 1, "d": 2}, "e": [1], "f": 1});
        let after = json!({"a": 1, "b": {"c": 1, "d": 3}, "e": [2], "g": null});
        let patch = difference(&before, &after).unwrap();
        assert_eq!(patch, json!({"b": {"d": 3}, "e": [2], "f": null, "g": null}));
        assert_eq!(difference(&before, &before), None);
    }
}
