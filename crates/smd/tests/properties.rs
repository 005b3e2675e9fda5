//! Laws of server-side apply that hold for any objects.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use fleetwright_smd::fieldpath::{FieldFilter, Path, PathElement, Set};
use fleetwright_smd::managed::FieldManager;
use fleetwright_smd::schema::Schema;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Value, json};

const T1: &str = "2024-01-01T00:00:01Z";
const T2: &str = "2024-01-01T00:00:02Z";
const T3: &str = "2024-01-01T00:00:03Z";

fn schema() -> Schema {
    let boxes = json!({"type": "array", "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "properties": {
            "name": {"type": "string"}, "image": {"type": "string"}}}});
    let part = json!({"type": "object", "properties": {
        "text": {"type": "string"},
        "zones": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "args": {"type": "array", "items": {"type": "string"}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "boxes": boxes,
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }});
    let document = json!({"type": "object", "properties": {"left": part, "right": part}});
    Schema::for_custom_resource(Some(&document), false).unwrap()
}

fn with<T>(run: impl FnOnce(FieldManager<'_>) -> T) -> T {
    let (schema, empty) = (schema(), json!({}));
    run(FieldManager {
        schema: &schema,
        api_version: "example.com/v1",
        kind: "Thing",
        subresource: "",
        filter: &FieldFilter::All,
        empty: &empty,
        versions: None,
    })
}

/// One half of a thing.
fn part() -> impl Strategy<Value = Value> {
    let letter = || "[a-c]";
    let text = proptest::option::of(letter().prop_map(|text| json!({"text": text})));
    let zones = proptest::option::of(
        proptest::collection::btree_set(letter(), 0..3).prop_map(|zones| json!({"zones": zones})),
    );
    let args = proptest::option::of(vec(letter(), 0..3).prop_map(|args| json!({"args": args})));
    let labels = proptest::option::of(
        btree_map(letter(), letter(), 0..3).prop_map(|labels| json!({"labels": labels})),
    );
    let boxes = proptest::option::of(btree_map(letter(), letter(), 0..3).prop_map(|boxes| {
        let boxes: Vec<_> =
            boxes.iter().map(|(name, image)| json!({"name": name, "image": image})).collect();
        json!({"boxes": boxes})
    }));
    let free = proptest::option::of(json_map().prop_map(|free| json!({"free": free})));
    (text, zones, args, labels, boxes, free).prop_map(|(a, b, c, d, e, f)| {
        let fields = [a, b, c, d, e, f].into_iter().flatten();
        let all = fields.filter_map(|field| field.as_object().cloned()).flatten();
        Value::Object(all.collect())
    })
}

fn json_map() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3).prop_map(Value::from),
        "[a-c]".prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            btree_map("[a-c]", inner, 0..3).prop_map(|map| json!(map)),
        ]
    });
    btree_map("[a-c]", value, 0..3).prop_map(|map| json!(map))
}

fn thing(left: Option<&Value>, right: Option<&Value>) -> Value {
    let mut thing = json!({"apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": {"name": "a"}});
    for (name, part) in [("left", left), ("right", right)] {
        if let Some(part) = part {
            thing[name] = part.clone();
        }
    }
    thing
}

fn without_times(mut object: Value) -> Value {
    let entries = object["metadata"]["managedFields"].as_array_mut();
    for entry in entries.into_iter().flatten() {
        entry.as_object_mut().unwrap().remove("time");
    }
    object
}

fn element() -> impl Strategy<Value = PathElement> {
    let scalar = || {
        prop_oneof![
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            any::<bool>().prop_map(Value::from),
            (-1000..1000).prop_map(|quarters| Value::from(f64::from(quarters) / 4.0)),
        ]
    };
    prop_oneof![
        any::<String>().prop_map(PathElement::Field),
        btree_map(any::<String>(), scalar(), 1..3).prop_map(PathElement::key),
        scalar().prop_map(PathElement::Value),
        any::<i64>().prop_map(PathElement::Index),
    ]
}

fn set() -> impl Strategy<Value = Set> {
    let letters = "[a-c]".prop_map(PathElement::Field);
    let path = vec(prop_oneof![3 => letters, 1 => element()], 1..4).prop_map(Path);
    vec(path, 0..8).prop_map(|paths| paths.iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 128,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn sets_survive_being_written(set in set()) {
        prop_assert_eq!(Set::from_fields_v1(&set.to_fields_v1()), Ok(set));
    }

    #[test]
    fn sets_obey_their_algebra(a in set(), b in set()) {
        prop_assert_eq!(a.union(&b), b.union(&a));
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        prop_assert_eq!(a.difference(&b).union(&a.intersection(&b)), a.clone());
        prop_assert!(a.difference(&b).intersection(&b).is_empty());
        prop_assert_eq!(a.union(&b).len() + a.intersection(&b).len(), a.len() + b.len());
        let members: Set = a.paths().into_iter().collect();
        prop_assert_eq!(members, a);
    }

    #[test]
    fn any_json_is_read_or_refused_as_a_set(document in json_map()) {
        let _ = Set::from_fields_v1(&document);
    }

    #[test]
    fn applying_twice_is_applying_once(left in part(), right in part(), other in part()) {
        with(|manager| {
            let live = manager
                .apply(&Value::Null, &thing(Some(&left), Some(&right)), "a", false, T1).unwrap();
            let patch = thing(Some(&other), None);
            let once = manager.apply(&live, &patch, "b", true, T2).unwrap();
            let twice = manager.apply(&once, &patch, "b", true, T3).unwrap();
            prop_assert_eq!(once, twice);
            Ok(())
        })?;
    }

    #[test]
    fn managers_of_different_parts_do_not_depend_on_order(left in part(), right in part()) {
        with(|manager| {
            // Everybody states something: an object that nobody owns is not tracked.
            let (mut left, mut right) = (left.clone(), right.clone());
            left["text"] = "a".into();
            right["text"] = "b".into();
            let patches = [("a", thing(Some(&left), None)), ("b", thing(None, Some(&right)))];
            let run = |order: [usize; 2]| {
                order.into_iter().fold(Value::Null, |live, i| {
                    let (name, patch) = &patches[i];
                    manager.apply(&live, patch, name, false, T1).unwrap()
                })
            };
            prop_assert_eq!(without_times(run([0, 1])), without_times(run([1, 0])));
            Ok(())
        })?;
    }

    #[test]
    fn what_one_stops_stating_goes_unless_others_state_it(mine in part(), theirs in part()) {
        with(|manager| {
            let live = manager
                .apply(&Value::Null, &thing(Some(&mine), None), "mine", false, T1).unwrap();
            let live = manager
                .apply(&live, &thing(Some(&theirs), None), "theirs", true, T2).unwrap();
            let after = manager.apply(&live, &thing(None, None), "mine", false, T3).unwrap();
            let alone = manager
                .apply(&Value::Null, &thing(Some(&theirs), None), "theirs", false, T2).unwrap();
            let stated = |object: &Value, field: &str| object["left"].get(field).cloned();
            for field in ["text", "args"] {
                prop_assert_eq!(stated(&after, field), stated(&alone, field));
            }
            let labels = |object: &Value| object["left"]["labels"].as_object().cloned().unwrap_or_default();
            prop_assert_eq!(labels(&after), labels(&alone));
            let mut zones = [&after, &alone].map(|object| {
                let zones = object["left"]["zones"].as_array().cloned().unwrap_or_default();
                zones.into_iter().map(|zone| zone.to_string()).collect::<Vec<_>>()
            });
            for zones in &mut zones {
                zones.sort();
            }
            prop_assert_eq!(&zones[0], &zones[1]);
            Ok(())
        })?;
    }

    #[test]
    fn an_update_that_changes_nothing_changes_nothing(left in part(), right in part()) {
        with(|manager| {
            let mut live = manager.update(&Value::Null, thing(Some(&left), Some(&right)), "a", T1);
            live["metadata"]["uid"] = "1".into();
            prop_assert_eq!(manager.update(&live, live.clone(), "b", T2), live);
            Ok(())
        })?;
    }

    #[test]
    fn every_change_has_one_owner(left in part(), right in part()) {
        with(|manager| {
            let mut live = manager.update(&Value::Null, thing(Some(&left), None), "a", T1);
            live["metadata"]["uid"] = "1".into();
            let mut new = thing(Some(&right), None);
            new["metadata"]["uid"] = "1".into();
            let after = manager.update(&live, new, "b", T2);
            let entries = after["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
            let sets: Vec<Set> = entries
                .iter()
                .map(|entry| Set::from_fields_v1(&entry["fieldsV1"]).unwrap())
                .collect();
            if let [first, second] = sets.as_slice() {
                prop_assert!(first.intersection(second).is_empty(), "{first}\nand\n{second}");
            }
            Ok(())
        })?;
    }
}
