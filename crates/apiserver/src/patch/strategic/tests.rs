use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn patched(document: &Value, patch: &Value) -> Result<Value, String> {
    strategic_merge(document, patch.to_string().as_bytes(), "v1", "Pod", false)
        .map(|patched| patched.object)
        .map_err(|error| error.to_string())
}

#[test]
fn lists_of_objects_merge_by_their_key() {
    let pod = json!({"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b"}, {"name": "c"}]}});
    let names = |patch: Value| -> Vec<String> {
        let pod = patched(&pod, &json!({"spec": patch})).unwrap();
        let names = pod["spec"]["containers"].as_array().unwrap().iter();
        names.map(|container| container["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(json!({"containers": [{"name": "b", "image": "2"}]})), ["a", "b", "c"]);
    assert_eq!(names(json!({"containers": [{"name": "d"}]})), ["d", "a", "b", "c"]);
    assert_eq!(names(json!({"containers": [{"name": "c"}, {"name": "a"}]})), ["b", "c", "a"]);
    assert_eq!(names(json!({"containers": [{"name": "b", "$patch": "delete"}]})), ["a", "c"]);
    assert_eq!(names(json!({"containers": [{"$patch": "replace"}, {"name": "z"}]})), ["z"]);
    assert_eq!(
        names(
            json!({"$setElementOrder/containers": [{"name": "c"}, {"name": "b"}, {"name": "a"}]})
        ),
        ["c", "b", "a"]
    );
}

#[test]
fn lists_of_scalars_are_sets() {
    let pod = json!({"metadata": {"finalizers": ["a", "b", "c"]}});
    for (patch, expected) in [
        (json!({"finalizers": ["c", "d"]}), json!(["a", "b", "c", "d"])),
        (json!({"$deleteFromPrimitiveList/finalizers": ["b"]}), json!(["a", "c"])),
        (json!({"$setElementOrder/finalizers": ["c", "a", "b"]}), json!(["c", "a", "b"])),
    ] {
        let pod = patched(&pod, &json!({"metadata": patch})).unwrap();
        assert_eq!(pod["metadata"]["finalizers"], expected, "{patch}");
    }
    let pod =
        patched(&json!({}), &json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["b"]}}));
    assert_eq!(pod, Ok(json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["b"]}})));
}

#[test]
fn nulls_delete_and_other_lists_are_replaced() {
    let pod = json!({"spec": {"containers": [{"name": "a", "args": ["x"]}], "nodeSelector": {"k": "v"}, "hostname": "h"}});
    let patch = json!({"spec": {"containers": [{"name": "a", "args": ["y"]}], "nodeSelector": {"k": null, "l": "w"}, "hostname": null, "subdomain": null}});
    assert_eq!(
        patched(&pod, &patch),
        Ok(
            json!({"spec": {"containers": [{"name": "a", "args": ["y"]}], "nodeSelector": {"l": "w"}}})
        )
    );
}

#[test]
fn custom_resources_are_refused() {
    let error = strategic_merge(&json!({}), b"{}", "example.org/v1", "Widget", true).unwrap_err();
    assert_eq!(
        error,
        PatchError::Malformed("strategic merge patch format is not supported".into())
    );
}

fn any_pod() -> impl Strategy<Value = Value> {
    // Keys are unique: what a patch does to repeated keys depends on how often it is applied.
    let env = prop::collection::btree_map("[A-C]", "[0-9]", 0..3).prop_map(|env| {
        let env = env.into_iter().map(|(name, value)| json!({"name": name, "value": value}));
        env.collect::<Vec<Value>>()
    });
    let containers = prop::collection::btree_map("[a-c]", ("[x-z]", env), 0..4).prop_map(|map| {
        let containers = map.into_iter();
        let containers = containers
            .map(|(name, (image, env))| json!({"name": name, "image": image, "env": env}));
        containers.collect::<Vec<Value>>()
    });
    let labels = prop::collection::btree_map("[a-c]", "[a-c]", 0..3);
    let finalizers = prop::collection::btree_set("[a-e]", 0..4);
    (containers, labels, finalizers).prop_map(
        |(containers, labels, finalizers)| {
            json!({"metadata": {"labels": labels, "finalizers": finalizers}, "spec": {"containers": containers}})
        },
    )
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3).prop_map(Value::from),
        prop::sample::select(vec!["a", "delete", "replace", "merge"]).prop_map(Value::from),
    ];
    let names = prop::sample::select(vec![
        "metadata",
        "spec",
        "containers",
        "name",
        "env",
        "finalizers",
        "labels",
        "$patch",
        "$retainKeys",
        "$setElementOrder/containers",
        "$setElementOrder/finalizers",
        "$deleteFromPrimitiveList/finalizers",
        "$setElementOrder",
        "ports",
        "containerPort",
    ]);
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(names.clone(), inner, 0..5).prop_map(|map| {
                Value::Object(
                    map.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
                )
            }),
        ]
    })
}

proptest! {
    #[test]
    fn patching_twice_is_patching_once(pod in any_pod(), patch in any_pod()) {
        let once = patched(&pod, &patch).unwrap();
        prop_assert_eq!(patched(&once, &patch), Ok(once));
    }

    #[test]
    fn an_empty_patch_changes_nothing(pod in any_pod()) {
        prop_assert_eq!(patched(&pod, &json!({})), Ok(pod));
    }

    #[test]
    fn any_patch_applies_or_is_refused(document in any_json(), patch in any_json()) {
        let _ = patched(&document, &patch);
        let _ = apply_strategic(&document, patch.to_string().as_bytes(), "v1", "Pod", true);
    }
}
