//! Values against schemas. Long sequences are in `tests/recorded.rs`.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::*;
use crate::fieldpath::{Path, PathElement};

/// A schema with one field of each kind.
fn schema() -> Schema {
    let documents = json!({
        "Tree": {"type": "object", "properties": {
            "name": {"type": "string"}, "left": {"$ref": "#/Tree"}}},
        "Pair": {"type": "object", "properties": {
            "x": {"type": "integer"}, "y": {"type": "integer"}}},
        "Root": {"type": "object", "properties": {
            "text": {"type": "string"},
            "number": {"type": "integer"},
            "flag": {"type": "boolean"},
            "either": {"x-kubernetes-int-or-string": true},
            "atomic": {"type": "array", "items": {"type": "string"}},
            "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "ports": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["port", "protocol"],
                "items": {"type": "object", "properties": {
                    "port": {"type": "integer"},
                    "protocol": {"type": "string", "default": "TCP"},
                    "name": {"type": "string"}}}},
            "named": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"], "items": {"$ref": "#/Tree"}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "tree": {"allOf": [{"$ref": "#/Tree"}]},
            "pair": {"$ref": "#/Pair"},
            "atomicPair": {"$ref": "#/Pair", "x-kubernetes-map-type": "atomic"},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "broken": {"$ref": "#/Missing"},
        }},
    });
    let resolve = |target: &str| documents.get(target.trim_start_matches("#/")).map(Cow::Borrowed);
    Schema::from_openapi(&json!({"$ref": "#/Root"}), &resolve, false).unwrap()
}

fn field_set(schema: &Schema, value: &Value) -> Set {
    Typed::new(Cow::Borrowed(value), schema, Duplicates::Allowed).unwrap().to_field_set().unwrap()
}

#[test]
fn what_does_not_conform_is_named() {
    let schema = schema();
    let cases = [
        (json!({"text": 1}), ".text: expected string, got &value.valueUnstructured{Value:1}"),
        (json!({"number": "a"}), ".number: expected numeric (int or float), got string"),
        (json!({"flag": {"a": [1]}}), ".flag: expected boolean, got &{map[a:[1]]}"),
        (json!({"atomic": {}}), ".atomic: expected list, got &{map[]}"),
        (
            json!({"atomic": ["a", 2]}),
            ".atomic[1]: expected string, got &value.valueUnstructured{Value:2}",
        ),
        (json!({"labels": []}), ".labels: expected map, got &{[]}"),
        (json!({"nope": 1}), ".nope: field not declared in schema"),
        (json!({"set": ["a", "a"]}), ".set: duplicate entries for key [=\"a\"]"),
        (
            json!({"set": [{}]}),
            ".set: element 0: associative list without keys has an element that's a map type",
        ),
        (
            json!({"set": [[]]}),
            ".set: element 0: not supported: associative list with lists as elements",
        ),
        (
            json!({"set": ["a", null]}),
            ".set: element 1: associative list without keys has an element that's an explicit null",
        ),
        (
            json!({"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]}),
            ".ports: duplicate entries for key [port=1,protocol=\"TCP\"]",
        ),
        (
            json!({"ports": [{"port": 1, "name": 2}]}),
            ".ports[port=1,protocol=\"TCP\"].name: expected string, \
             got &value.valueUnstructured{Value:2}",
        ),
        (
            json!({"named": [{}]}),
            ".named: element 0: associative list with keys has an element that omits all key \
             fields [\"name\"] (and doesn't have default values for any key fields)",
        ),
        (
            json!({"named": [null]}),
            ".named: element 0: associative list with keys may not have a null element",
        ),
        (
            json!({"named": ["a"]}),
            ".named: element 0: associative list with keys may not have non-map elements",
        ),
        (
            json!({"tree": {"left": {"left": {"x": 1}}}}),
            ".tree.left.left.x: field not declared in schema",
        ),
        (json!({"broken": 1}), ".broken: schema error: no type found matching: Missing"),
        (json!([]), "expected map, got &{[]}"),
        (
            json!({"number": "a", "text": 1}),
            "errors:\n  .number: expected numeric (int or float), got string\n  \
             .text: expected string, got &value.valueUnstructured{Value:1}",
        ),
    ];
    for (value, expected) in cases {
        let got = Typed::new(Cow::Borrowed(&value), &schema, Duplicates::Refused).unwrap_err();
        assert_eq!(got.to_string(), expected);
    }
    let fine = json!({"either": "1", "free": {"a": [1, {}]}, "tree": null, "set": null,
        "number": 1.5, "atomicPair": {"x": 1}});
    assert!(Typed::new(Cow::Borrowed(&fine), &schema, Duplicates::Refused).is_ok());
    let doubled = json!({"set": ["a", "a"]});
    assert!(Typed::new(Cow::Borrowed(&doubled), &schema, Duplicates::Allowed).is_ok());
}

#[test]
fn depth_is_bounded() {
    let schema = schema();
    let mut value = json!({});
    for _ in 0..=crate::MAX_DEPTH {
        value = json!({"a": value});
    }
    let value = json!({"free": value});
    let error = Typed::new(Cow::Owned(value), &schema, Duplicates::Allowed).unwrap_err();
    assert!(error.to_string().ends_with("exceeded max depth"), "{error}");
}

#[test]
fn merging() {
    let schema = schema();
    let cases = [
        // Leaves: the patch wins, nothing goes.
        (
            json!({"text": "a", "number": 1}),
            json!({"text": "b"}),
            json!({"text": "b", "number": 1}),
        ),
        (json!({"atomic": ["a"]}), json!({"atomic": ["b"]}), json!({"atomic": ["b"]})),
        (
            json!({"atomicPair": {"x": 1}}),
            json!({"atomicPair": {"y": 1}}),
            json!({"atomicPair": {"y": 1}}),
        ),
        (json!({"pair": {"x": 1}}), json!({"pair": {"y": 1}}), json!({"pair": {"x": 1, "y": 1}})),
        // Empty and null are told apart, but do not empty what is there.
        (json!({"labels": {"a": "1"}}), json!({"labels": {}}), json!({"labels": {"a": "1"}})),
        (json!({"labels": {"a": "1"}}), json!({"labels": null}), json!({"labels": {"a": "1"}})),
        (json!({"labels": {}}), json!({"labels": null}), json!({"labels": null})),
        (json!({"text": "a"}), json!({"text": null}), json!({"text": null})),
        // The patch gives the order of what it names.
        (
            json!({"set": ["a", "b", "c"]}),
            json!({"set": ["c", "a"]}),
            json!({"set": ["b", "c", "a"]}),
        ),
        (
            json!({"set": ["a", "b"]}),
            json!({"set": ["x", "b", "y"]}),
            json!({"set": ["a", "x", "b", "y"]}),
        ),
        (json!({"set": ["a", "b", "a"]}), json!({"set": ["a"]}), json!({"set": ["a", "b"]})),
        (
            json!({"ports": [{"port": 1, "name": "a"}, {"port": 2}]}),
            json!({"ports": [{"port": 2, "name": "b"}, {"port": 1, "protocol": "UDP"}]}),
            json!({"ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "b"},
                {"port": 1, "protocol": "UDP"}]}),
        ),
        // Kinds may change where the schema leaves them open.
        (
            json!({"free": {"a": {"b": 1}}}),
            json!({"free": {"a": "c"}}),
            json!({"free": {"a": "c"}}),
        ),
        (
            json!({"free": {"a": [1]}}),
            json!({"free": {"a": {"b": 1}}}),
            json!({"free": {"a": {"b": 1}}}),
        ),
    ];
    for (base, patch, expected) in cases {
        let typed = |value| Typed::new(Cow::Borrowed(value), &schema, Duplicates::Allowed).unwrap();
        let merged = typed(&base).merge(&typed(&patch)).unwrap();
        assert_eq!(*merged.value(), expected, "{base} with {patch}");
    }
}

#[test]
fn comparing() {
    let schema = schema();
    let set = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let cases = [
        (json!({"text": "a"}), json!({"text": "a"}), "", "", ""),
        (json!({"text": "a"}), json!({"text": "b"}), "", ".text", ""),
        (json!({"number": 1}), json!({"number": 1.0}), "", "", ""),
        (json!({}), json!({"pair": {"x": 1}}), "", "", ".pair .pair.x"),
        (json!({"pair": {"x": 1}}), json!({"pair": {"y": 1}}), ".pair.x", "", ".pair.y"),
        (json!({"atomicPair": {"x": 1}}), json!({"atomicPair": {"y": 1}}), "", ".atomicPair", ""),
        (json!({"labels": null}), json!({"labels": {}}), "", ".labels", ""),
        (json!({"labels": null}), json!({"labels": {"a": "1"}}), "", "", ".labels.a"),
        (
            json!({"set": ["a", "b"]}),
            json!({"set": ["b", "c"]}),
            ".set[=\"a\"]",
            "",
            ".set[=\"c\"]",
        ),
        // Elements that share a name count as one.
        (json!({"set": ["a"]}), json!({"set": ["a", "a"]}), ".set[=\"a\"]", "", ".set[=\"a\"]"),
        (json!({"set": ["a", "a"]}), json!({"set": ["a", "a", "a"]}), "", ".set[=\"a\"]", ""),
        (
            json!({"named": [{"name": "a", "left": {}}]}),
            json!({"named": [{"name": "a"}]}),
            ".named[name=\"a\"].left",
            "",
            "",
        ),
        (json!({"free": {"a": {"b": 1}}}), json!({"free": {"a": 1}}), ".free.a.b", ".free.a", ""),
    ];
    for (older, newer, removed, modified, added) in cases {
        let typed = |value| Typed::new(Cow::Borrowed(value), &schema, Duplicates::Allowed).unwrap();
        let changes = typed(&older).compare(&typed(&newer)).unwrap();
        let got =
            [&changes.removed, &changes.modified, &changes.added].map(|s| set(&s.to_string()));
        assert_eq!(got, [set(removed), set(modified), set(added)], "{older} to {newer}");
        assert_eq!(changes.is_same(), (removed, modified, added) == ("", "", ""));
    }
}

#[test]
fn fields_that_are_mentioned() {
    let schema = schema();
    let cases = [
        (json!({"pair": {"x": 1}}), ".pair.x"),
        (json!({"pair": {}}), ".pair"),
        (json!({"pair": null}), ".pair"),
        (json!({"atomicPair": {"x": 1}}), ".atomicPair"),
        (json!({"atomic": []}), ".atomic"),
        (json!({"set": []}), ""),
        (json!({"set": ["a", "a", "b"]}), ".set[=\"a\"]\n.set[=\"b\"]"),
        (json!({"labels": {"a": "1"}}), ".labels.a"),
        (json!({"free": {"a": {"b": 1}}}), ".free.a\n.free.a.b"),
        (
            json!({"ports": [{"port": 1}]}),
            ".ports[port=1,protocol=\"TCP\"]\n.ports[port=1,protocol=\"TCP\"].port",
        ),
    ];
    for (value, expected) in cases {
        assert_eq!(field_set(&schema, &value).to_string(), expected, "{value}");
    }
}

#[test]
fn removing_and_extracting() {
    let schema = schema();
    let value = json!({
        "text": "a", "pair": {"x": 1, "y": 2}, "set": ["a", "b"], "atomic": ["z"],
        "named": [{"name": "a", "left": {"name": "l"}}, {"name": "b"}],
    });
    let element = |name: &str| PathElement::key([("name", name)]);
    let cases = [
        (
            Path::fields(["pair", "x"]),
            json!({"text": "a", "pair": {"y": 2}, "set": ["a", "b"], "atomic": ["z"],
                "named": [{"name": "a", "left": {"name": "l"}}, {"name": "b"}]}),
            json!({"pair": {"x": 1}}),
        ),
        (
            Path(vec!["set".into(), PathElement::value("a")]),
            json!({"text": "a", "pair": {"x": 1, "y": 2}, "set": ["b"], "atomic": ["z"],
                "named": [{"name": "a", "left": {"name": "l"}}, {"name": "b"}]}),
            json!({"set": ["a"]}),
        ),
        (
            Path(vec!["named".into(), element("a"), "left".into(), "name".into()]),
            json!({"text": "a", "pair": {"x": 1, "y": 2}, "set": ["a", "b"], "atomic": ["z"],
                "named": [{"name": "a", "left": null}, {"name": "b"}]}),
            json!({"named": [{"left": {"name": "l"}}]}),
        ),
        (
            Path(vec!["named".into(), element("b")]),
            json!({"text": "a", "pair": {"x": 1, "y": 2}, "set": ["a", "b"], "atomic": ["z"],
                "named": [{"name": "a", "left": {"name": "l"}}]}),
            json!({"named": [{"name": "b"}]}),
        ),
    ];
    let typed = Typed::new(Cow::Borrowed(&value), &schema, Duplicates::Refused).unwrap();
    for (path, removed, extracted) in cases {
        let items: Set = [&path].into_iter().collect();
        assert_eq!(*typed.remove_items(&items).value(), removed, "without {path}");
        assert_eq!(*typed.extract_items(&items).value(), extracted, "only {path}");
    }
}

#[test]
fn what_became_atomic_is_owned_as_a_whole() {
    let schema = schema();
    let mut set: Set = [
        Path::fields(["atomicPair", "x"]),
        Path(vec!["atomic".into(), PathElement::Index(0)]),
        Path::fields(["pair", "x"]),
        Path::fields(["gone", "x"]),
        Path::fields(["free", "a", "b"]),
    ]
    .iter()
    .collect();
    schema.reconcile(&mut set).unwrap();
    let expected = ".atomic\n.atomicPair\n.free.a.b\n.gone.x\n.pair.x";
    assert_eq!(set.to_string(), expected);
}

#[test]
fn schemas_that_make_no_sense() {
    let cases = [
        (json!({"type": "file"}), "unrecognized type: 'file'"),
        (json!({"type": "array"}), "`items` must be specified on arrays"),
        (
            json!({"type": "array", "items": {}, "x-kubernetes-list-type": "bag"}),
            "unknown list type bag",
        ),
        (
            json!({"type": "array", "items": {}, "x-kubernetes-list-type": "map"}),
            "missing map keys",
        ),
        (json!({"type": "object", "x-kubernetes-map-type": "x"}), "unknown map type x"),
    ];
    for (document, expected) in cases {
        let error = Schema::from_openapi(&document, &|_| None, false).unwrap_err();
        assert!(error.to_string().ends_with(expected), "{error}");
    }
}

#[test]
fn objects_in_objects_have_metadata() {
    let schema = Schema::for_custom_resource(
        Some(&json!({"type": "object", "properties": {"template": {
            "type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true}}})),
        false,
    )
    .unwrap();
    let metadata = json!({"finalizers": ["a"], "labels": {"l": "1"}});
    let value = json!({"metadata": metadata, "template": {"metadata": metadata, "x": 1}});
    assert_eq!(
        field_set(&schema, &value).to_string(),
        ".metadata.finalizers[=\"a\"]\n.metadata.labels.l\n.template.x\n\
         .template.metadata.finalizers[=\"a\"]\n.template.metadata.labels.l"
    );
}
