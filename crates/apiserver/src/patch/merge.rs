//! Merge patch (RFC 7386), as the library of kube-apiserver applies it.

use fleetwright_kschema::builtin::gojson::Node;
use serde_json::{Map, Value};

use super::{PatchError, Patched, not_a_map, parse};

const NOT_A_PATCH: &str = "Invalid JSON Patch";

/// Applies a merge patch. Fields of the patch itself are checked where asked for.
pub fn merge_patch(
    document: &Value,
    body: &[u8],
    check_fields: bool,
) -> Result<Patched, PatchError> {
    let body = parse(body)?;
    if check_fields && !matches!(body, Node::Object(_) | Node::Null) {
        let message = format!("error decoding patch: {}", not_a_map(&body));
        return Err(PatchError::Malformed(message));
    }
    let strict = if check_fields { body.duplicates() } else { Vec::new() };
    let mut object = document.clone();
    match (&mut object, body.to_value()) {
        (Value::Object(document), Value::Object(patch)) => merge_maps(document, patch),
        // The caller finds that a list is no object of any kind.
        (_, mut patch @ (Value::Array(_) | Value::Object(_))) => {
            prune_nulls(&mut patch);
            object = patch;
        }
        _ => return Err(PatchError::Malformed(NOT_A_PATCH.to_owned())),
    }
    Ok(Patched { object, strict, quoted: None })
}

fn merge_maps(document: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (name, mut value) in patch {
        if value.is_null() {
            document.remove(&name);
            continue;
        }
        match document.get_mut(&name) {
            None | Some(Value::Null) => {
                prune_nulls(&mut value);
                document.insert(name, value);
            }
            Some(current) => merge_value(current, value),
        }
    }
}

fn merge_value(current: &mut Value, mut patch: Value) {
    match (current, patch) {
        (Value::Object(current), Value::Object(patch)) => merge_maps(current, patch),
        // A map that becomes a list keeps the nulls inside of it: a quirk of the library.
        (current @ Value::Object(_), other) => *current = other,
        (current, other) => {
            patch = other;
            prune_nulls(&mut patch);
            *current = patch;
        }
    }
}

/// Removes null fields. Nulls that are list elements stay.
fn prune_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(prune_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(prune_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn patched(document: &Value, patch: &Value) -> Result<Value, PatchError> {
        merge_patch(document, patch.to_string().as_bytes(), true).map(|patched| patched.object)
    }

    #[test]
    fn maps_merge_lists_are_replaced_and_nulls_delete() {
        for (document, patch, expected) in [
            (json!({"a": 1}), json!({"b": 2}), json!({"a": 1, "b": 2})),
            (json!({"a": {"b": 1, "c": 2}}), json!({"a": {"b": null}}), json!({"a": {"c": 2}})),
            (json!({"a": [1, 2]}), json!({"a": [3]}), json!({"a": [3]})),
            (json!({}), json!({"a": {"b": null, "c": [{"d": null}]}}), json!({"a": {"c": [{}]}})),
            (json!({"a": [1]}), json!({"a": [{"d": null}, null]}), json!({"a": [{}, null]})),
            (json!({"a": {"x": 1}}), json!({"a": [{"d": null}]}), json!({"a": [{"d": null}]})),
            (json!({"a": 1}), json!({"a": {"b": null}}), json!({"a": {}})),
            (json!({"a": null}), json!({"a": {"b": null}}), json!({"a": {}})),
        ] {
            assert_eq!(patched(&document, &patch), Ok(expected), "{document} {patch}");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<bool>().prop_map(Value::from), (0..5).prop_map(Value::from)];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-d]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn any_map() -> impl Strategy<Value = Value> {
        prop::collection::btree_map("[a-d]", any_json(), 0..4)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
    }

    /// The merge patch that leads from one document to another.
    fn difference(from: &Value, to: &Value) -> Value {
        let (Value::Object(old), Value::Object(new)) = (from, to) else { return to.clone() };
        let mut patch = Map::new();
        for name in old.keys().filter(|name| !new.contains_key(*name)) {
            patch.insert(name.clone(), Value::Null);
        }
        for (name, value) in new {
            match old.get(name) {
                Some(before) if before == value => {}
                Some(before) => {
                    patch.insert(name.clone(), difference(before, value));
                }
                None => {
                    patch.insert(name.clone(), value.clone());
                }
            }
        }
        Value::Object(patch)
    }

    proptest! {
        #[test]
        fn the_difference_leads_to_the_other_document(from in any_map(), to in any_map()) {
            prop_assert_eq!(patched(&from, &difference(&from, &to)), Ok(to));
        }

        #[test]
        fn patching_twice_is_patching_once(document in any_map(), patch in any_map()) {
            let once = patched(&document, &patch).unwrap();
            prop_assert_eq!(patched(&once, &patch), Ok(once));
        }
    }
}
