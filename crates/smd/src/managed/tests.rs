//! The field manager as an API server uses it.

#![expect(clippy::needless_pass_by_value, reason = "literals read better without borrows")]

use serde_json::{Value, json};

use super::*;

const T1: &str = "2024-01-01T00:00:01Z";
const T2: &str = "2024-01-01T00:00:02Z";
const T3: &str = "2024-01-01T00:00:03Z";

/// A custom resource with one list of each kind, and maps of both kinds.
fn schema() -> Schema {
    let strings = json!({"type": "array", "items": {"type": "string"}});
    let mut set = strings.clone();
    set["x-kubernetes-list-type"] = "set".into();
    Schema::for_custom_resource(
        Some(&json!({
            "type": "object",
            "properties": {
                "spec": {"type": "object", "properties": {
                    "replicas": {"type": "integer"},
                    "image": {"type": "string"},
                    "args": strings,
                    "zones": set,
                    "color": {"type": "object", "x-kubernetes-map-type": "atomic",
                        "additionalProperties": {"type": "integer"}},
                    "ports": {"type": "array", "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["port", "protocol"],
                        "items": {"type": "object", "properties": {
                            "port": {"type": "integer"},
                            "protocol": {"type": "string", "default": "TCP"},
                            "name": {"type": "string"},
                            "host": {"type": "string"}}}},
                }},
                "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            },
        })),
        false,
    )
    .unwrap()
}

fn with<T>(run: impl FnOnce(FieldManager<'_>) -> T) -> T {
    let (schema, empty) = (schema(), json!({}));
    let filter = FieldFilter::except(["status"]);
    run(FieldManager {
        schema: &schema,
        api_version: "example.com/v1",
        kind: "Thing",
        subresource: "",
        filter: &filter,
        empty: &empty,
        versions: None,
    })
}

fn thing(spec: Value) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": {"name": "a", "namespace": "b"}, "spec": spec,
    })
}

/// A thing as it is stored: created and with a UID.
fn stored(mut object: Value) -> Value {
    object["metadata"]["uid"] = "1".into();
    object
}

fn entry(manager: &str, operation: &str, time: &str, fields: Value) -> Value {
    json!({
        "manager": manager, "operation": operation, "apiVersion": "example.com/v1", "time": time,
        "fieldsType": "FieldsV1", "fieldsV1": fields,
    })
}

fn book(object: &Value) -> &Value {
    &object["metadata"]["managedFields"]
}

#[test]
fn who_creates_owns_everything_but_identity() {
    with(|manager| {
        let mut new = thing(json!({"replicas": 1, "args": ["x"], "zones": ["a"]}));
        new["metadata"]["labels"] = json!({"l": "1"});
        new["status"] = json!({"ready": true});
        let created = manager.update(&Value::Null, new, "m", T1);
        let fields = json!({
            "f:metadata": {"f:labels": {".": {}, "f:l": {}}},
            "f:spec": {".": {}, "f:replicas": {}, "f:args": {},
                "f:zones": {".": {}, "v:\"a\"": {}}},
        });
        assert_eq!(*book(&created), json!([entry("m", "Update", T1, fields)]));
    });
}

#[test]
fn updates_take_over_what_they_change_and_only_then_change_times() {
    with(|manager| {
        let v1 = stored(manager.update(
            &Value::Null,
            thing(json!({"replicas": 1, "image": "x"})),
            "one",
            T1,
        ));
        let same = manager.update(&v1, v1.clone(), "two", T2);
        assert_eq!(same, v1, "an equal write changes nothing");

        let mut v2 = v1.clone();
        v2["spec"]["replicas"] = 2.into();
        let v2 = manager.update(&v1, v2, "two", T2);
        assert_eq!(
            *book(&v2),
            json!([
                entry("one", "Update", T1, json!({"f:spec": {".": {}, "f:image": {}}})),
                entry("two", "Update", T2, json!({"f:spec": {"f:replicas": {}}})),
            ])
        );

        let mut v3 = v2.clone();
        v3["spec"].as_object_mut().unwrap().remove("replicas");
        let v3 = manager.update(&v2, v3, "three", T3);
        assert_eq!(
            *book(&v3),
            json!([entry("one", "Update", T1, json!({"f:spec": {".": {}, "f:image": {}}}))]),
            "who removes a field owns nothing by it"
        );
    });
}

#[test]
fn requests_may_leave_out_reset_or_spoil_the_book() {
    with(|manager| {
        let live = stored(manager.update(&Value::Null, thing(json!({"replicas": 1})), "one", T1));
        let send = |entries: Value| {
            let mut new = live.clone();
            new["metadata"]["managedFields"] = entries;
            book(&manager.update(&live, new, "two", T2)).clone()
        };
        let kept = book(&live).clone();
        assert_eq!(send(Value::Null), kept);
        assert_eq!(send(json!([{"manager": "x"}])), kept, "what cannot be decoded is ignored");
        assert_eq!(send(json!([])), Value::Null);
        assert_eq!(send(json!([{}])), Value::Null);
        let own = json!([entry("new", "Apply", T1, json!({"f:spec": {"f:replicas": {}}}))]);
        assert_eq!(send(own.clone()), own, "the book may be edited");

        // Without a book nothing is tracked until somebody applies.
        let mut untracked = live.clone();
        untracked["metadata"].as_object_mut().unwrap().remove("managedFields");
        let mut new = untracked.clone();
        new["spec"]["replicas"] = 2.into();
        let updated = manager.update(&untracked, new, "two", T2);
        assert_eq!(*book(&updated), Value::Null);
        let patch = thing(json!({"image": "x"}));
        let applied = manager.apply(&updated, &patch, "ssa", false, T3).unwrap();
        assert_eq!(
            *book(&applied),
            json!([
                entry("ssa", "Apply", T3, json!({"f:spec": {"f:image": {}}})),
                entry(
                    "before-first-apply",
                    "Update",
                    T3,
                    json!({"f:spec": {".": {}, "f:replicas": {}}})
                ),
            ])
        );
    });
}

#[test]
fn conflicts_are_reported_by_owner() {
    with(|manager| {
        let live = stored(manager.update(
            &Value::Null,
            thing(json!({"replicas": 1, "image": "x"})),
            "one",
            T1,
        ));
        let live = manager
            .apply(&live, &thing(json!({"zones": ["a"], "color": {"r": 1}})), "two", false, T2)
            .unwrap();
        let patch = thing(json!({"replicas": 2, "image": "x"}));
        let Err(ApplyError::Conflicts(conflicts)) = manager.apply(&live, &patch, "ssa", false, T3)
        else {
            panic!("no conflict")
        };
        assert_eq!(
            conflict_message(&conflicts),
            "Apply failed with 1 conflict: conflict with \"one\" using example.com/v1: .spec.replicas"
        );
        assert_eq!(
            conflict_causes(&conflicts),
            [ConflictCause {
                reason: "FieldManagerConflict",
                message: "conflict with \"one\" using example.com/v1".to_owned(),
                field: ".spec.replicas".to_owned(),
            }]
        );
        let patch = thing(json!({"replicas": 2, "image": "y", "color": {"r": 2}}));
        let error = manager.apply(&live, &patch, "ssa", false, T3).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Apply failed with 3 conflicts: conflicts with \"one\" using example.com/v1:\n\
             - .spec.image\n- .spec.replicas\nconflicts with \"two\":\n- .spec.color"
        );
        let forced = manager.apply(&live, &patch, "ssa", true, T3).unwrap();
        assert_eq!(forced["spec"]["replicas"], 2);
        assert_eq!(
            *book(&forced),
            json!([
                entry("two", "Apply", T2, json!({"f:spec": {"f:zones": {"v:\"a\"": {}}}})),
                entry(
                    "ssa",
                    "Apply",
                    T3,
                    json!({"f:spec": {"f:color": {}, "f:image": {}, "f:replicas": {}}})
                ),
                entry("one", "Update", T1, json!({"f:spec": {}})),
            ])
        );
    });
}

#[test]
fn what_is_no_longer_applied_goes_if_nobody_else_owns_it() {
    with(|manager| {
        let spec = json!({
            "replicas": 1, "image": "x", "zones": ["a", "b"],
            "ports": [{"port": 80, "name": "web"}, {"port": 80, "protocol": "UDP"}],
        });
        let live = stored(manager.apply(&Value::Null, &thing(spec), "ssa", false, T1).unwrap());
        let live = manager
            .apply(&live, &thing(json!({"image": "x", "zones": ["b"]})), "other", false, T2)
            .unwrap();
        let patch = thing(json!({"replicas": 1, "ports": [{"port": 80, "name": "web"}]}));
        let live = manager.apply(&live, &patch, "ssa", false, T3).unwrap();
        assert_eq!(
            live["spec"],
            json!({"replicas": 1, "image": "x", "zones": ["b"],
                "ports": [{"port": 80, "name": "web"}]})
        );
        let again = manager.apply(&live, &patch, "ssa", false, "2025-01-01T00:00:00Z").unwrap();
        assert_eq!(again, live, "applying the same again changes nothing");
    });
}

#[test]
fn wrong_patches() {
    with(|manager| {
        let cases = [
            (
                json!({"metadata": {"managedFields": []}}),
                ApplyError::BadRequest("metadata.managedFields must be nil".into()),
            ),
            (
                json!({"kind": "Other"}),
                ApplyError::BadRequest("invalid object type: example.com/v1, Kind=Other".into()),
            ),
            (
                json!({"apiVersion": "v1"}),
                ApplyError::BadRequest("invalid object type: /v1, Kind=Thing".into()),
            ),
            (
                json!({"spec": {"nope": 1}}),
                ApplyError::Failed(
                    "failed to create typed patch object (b/a; example.com/v1, Kind=Thing): \
                     .spec.nope: field not declared in schema"
                        .into(),
                ),
            ),
        ];
        for (change, expected) in cases {
            let mut patch = thing(json!({}));
            for (name, value) in change.as_object().unwrap() {
                if name == "metadata" {
                    patch["metadata"]["managedFields"] = value["managedFields"].clone();
                } else {
                    patch[name] = value.clone();
                }
            }
            assert_eq!(manager.apply(&Value::Null, &patch, "m", false, T1), Err(expected));
        }
    });
}

#[test]
fn the_oldest_updaters_are_put_together() {
    with(|manager| {
        let mut live = stored(manager.update(
            &Value::Null,
            thing(json!({"replicas": 0})),
            "m00",
            "2024-01-01T00:00:00Z",
        ));
        for i in 1..=12 {
            let mut new = live.clone();
            new["metadata"]["labels"][format!("l{i}")] = "x".into();
            live = manager.update(
                &live,
                new,
                &format!("m{i:02}"),
                &format!("2024-01-01T00:00:{i:02}Z"),
            );
        }
        let entries = book(&live).as_array().unwrap();
        assert_eq!(entries.len(), 10);
        assert_eq!(entries[0]["manager"], "ancient-changes");
        assert_eq!(entries[0]["time"], "2024-01-01T00:00:03Z");
        assert_eq!(
            entries[0]["fieldsV1"],
            json!({
                "f:metadata": {"f:labels": {".": {}, "f:l1": {}, "f:l2": {}, "f:l3": {}}},
                "f:spec": {".": {}, "f:replicas": {}},
            })
        );
        assert_eq!(entries[1]["manager"], "m04");
    });
}

#[test]
fn client_side_apply_is_upgraded_by_kubectl_only() {
    with(|manager| {
        let mut object = thing(json!({"replicas": 1, "image": "x"}));
        let last = thing(json!({"replicas": 1, "image": "x"})).to_string();
        object["metadata"]["annotations"] = json!({LAST_APPLIED: last});
        let live = stored(manager.update(&Value::Null, object, "kubectl-client-side-apply", T1));
        let patch = thing(json!({"replicas": 2, "image": "x"}));
        assert!(manager.apply(&live, &patch, "other", false, T2).is_err());
        let applied = manager.apply(&live, &patch, "kubectl", false, T2).unwrap();
        assert_eq!(applied["spec"]["replicas"], 2);
        assert_eq!(applied["metadata"]["annotations"][LAST_APPLIED], format!("{patch}\n"));

        // What has changed since is somebody else's.
        let mut changed = live.clone();
        changed["spec"]["replicas"] = 5.into();
        let changed = manager.update(&live, changed, "scaler", T2);
        let error = manager.apply(&changed, &patch, "kubectl", false, T3).unwrap_err();
        assert!(error.to_string().contains("\"scaler\""), "{error}");
    });
}

#[test]
fn subresources_are_managers_of_their_own_and_ignore_the_book_of_the_request() {
    with(|manager| {
        let live = stored(manager.update(&Value::Null, thing(json!({"replicas": 1})), "m", T1));
        let filter = FieldFilter::except(["spec", "metadata"]);
        let status = FieldManager { subresource: "status", filter: &filter, ..manager };
        let mut new = live.clone();
        new["status"] = json!({"ready": true});
        new["metadata"]["managedFields"] = json!([]);
        let updated = status.update(&live, new, "m", T2);
        let mut expected = entry("m", "Update", T2, json!({"f:status": {".": {}, "f:ready": {}}}));
        expected["subresource"] = "status".into();
        assert_eq!(book(&updated)[0], book(&live)[0]);
        assert_eq!(book(&updated)[1], expected);
        let mut patch = thing(json!({}));
        patch["status"] = json!({"ready": false});
        let error = status.apply(&updated, &patch, "ssa", false, T3).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Apply failed with 1 conflict: conflict with \"m\" with subresource \"status\" \
             using example.com/v1: .status.ready"
        );
    });
}

#[test]
fn an_update_that_cannot_be_tracked_keeps_the_book() {
    with(|manager| {
        let live = stored(manager.update(&Value::Null, thing(json!({"replicas": 1})), "m", T1));
        let mut new = live.clone();
        new["spec"]["undeclared"] = true.into();
        let updated = manager.update(&live, new, "n", T2);
        assert_eq!(book(&updated), book(&live));
        assert_eq!(updated["spec"]["undeclared"], true);
    });
}

#[test]
fn changed_times_alone_are_no_change() {
    let object = |time: &str, value: u8| {
        json!({"metadata": {"name": "a", "managedFields": [{"manager": "m", "time": time}]},
            "spec": value})
    };
    let mut new = object(T2, 1);
    ignore_changed_timestamps(&mut new, &object(T1, 1));
    assert_eq!(new, object(T1, 1));
    let mut new = object(T2, 2);
    ignore_changed_timestamps(&mut new, &object(T1, 1));
    assert_eq!(new, object(T2, 2));
}

#[test]
fn scale_sees_the_replicas_only() {
    let paths: ReplicasPaths =
        [("apps/v1".to_owned(), Some(Path::fields(["spec", "replicas"])))].into();
    let entry = |manager: &str, operation: &str, version: &str, fields: Value| {
        json!({"manager": manager, "operation": operation, "apiVersion": version, "time": T1,
            "fieldsType": "FieldsV1", "fieldsV1": fields})
    };
    let replicas = json!({"f:spec": {"f:replicas": {}}});
    let parent = json!([
        entry("a", "Apply", "apps/v1", json!({"f:spec": {"f:replicas": {}, "f:x": {}}})),
        entry("b", "Update", "apps/v1", json!({"f:spec": {"f:y": {}}})),
        entry("c", "Update", "gone/v1", json!({"f:spec": {"f:y": {}}})),
    ]);
    let scale = scale_to_subresource(Some(&parent), &paths).unwrap().unwrap();
    assert_eq!(scale, json!([entry("a", "Apply", "autoscaling/v1", replicas.clone())]));

    let kept = scale_to_parent(Some(&parent), Some(&scale), "apps/v1", &paths).unwrap().unwrap();
    assert_eq!(kept, json!([parent[0], parent[1]]));

    let mut taken = json!([entry("d", "Update", "autoscaling/v1", replicas.clone())]);
    taken[0]["subresource"] = "scale".into();
    let after = scale_to_parent(Some(&parent), Some(&taken), "apps/v1", &paths).unwrap().unwrap();
    assert_eq!(after[0]["fieldsV1"], json!({"f:spec": {"f:x": {}}}));
    let new = after.as_array().unwrap().iter().find(|entry| entry["manager"] == "d").unwrap();
    assert_eq!(new["apiVersion"], "apps/v1");
    assert_eq!(new["subresource"], "scale");
    assert_eq!(new["fieldsV1"], replicas);
}
