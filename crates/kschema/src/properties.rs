//! What holds for any object and any schema.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::CompiledSchema;
use crate::jsonpath::JsonPath;
use crate::schema::Pattern;

/// Names from a small set, so that values and schemas meet.
fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "metadata", "kind", "x-y", "__"])
        .prop_map(str::to_owned)
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-c0-9é\n\"]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(name(), inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string", "maxLength": 2, "pattern": "^a"})),
        Just(json!({"type": "string", "format": "date-time", "nullable": true})),
        Just(json!({"type": "integer", "maximum": 3, "multipleOf": 2, "default": 2})),
        Just(json!({"type": "number", "minimum": 0.5, "enum": [1, 2.5]})),
        Just(json!({"type": "boolean", "default": true})),
        Just(json!({"x-kubernetes-int-or-string": true})),
        Just(json!({"x-kubernetes-preserve-unknown-fields": true})),
        Just(json!({"type": "string", "x-kubernetes-validations": [
            {"rule": "self.size() < 2 || self == oldSelf"}]})),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            (inner.clone(), any::<bool>()).prop_map(|(items, set)| {
                let kind = if set { "set" } else { "atomic" };
                json!({"type": "array", "maxItems": 2, "items": items,
                    "x-kubernetes-list-type": kind})
            }),
            inner.clone().prop_map(|values| {
                json!({"type": "object", "additionalProperties": values, "minProperties": 1})
            }),
            (prop::collection::btree_map(name(), inner, 0..4), any::<bool>()).prop_map(
                |(properties, embedded)| {
                    json!({"type": "object", "required": ["a"], "properties": properties,
                        "x-kubernetes-embedded-resource": embedded,
                        "oneOf": [{"required": ["b"]}, {"minProperties": 2}]})
                }
            ),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn objects_settle_and_nothing_panics(schema in schema(), object in value(), old in value()) {
        let compiled = CompiledSchema::new(&json!({
            "type": "object", "properties": {"spec": schema}})).unwrap();
        let mut object = json!({ "spec": object });
        compiled.prune_stored(&mut object);
        compiled.default(&mut object);
        let once = object.clone();
        compiled.prune_stored(&mut object);
        compiled.default(&mut object);
        prop_assert_eq!(&object, &once, "pruning and defaulting twice changes nothing more");
        prop_assert!(compiled.unknown_fields(&object).is_empty());

        let old = json!({ "spec": old });
        let _ = compiled.validate_create_all(&object, None, Vec::new());
        let _ = compiled.validate_update_all(&object, &old, None, Vec::new());
        let update = compiled.validate_update(&object, &object);
        let create = compiled.validate(&object);
        prop_assert!(update.len() <= create.len(), "what did not change is no worse than new");
    }

    #[test]
    fn texts_are_parsed_or_refused(text in "[a-z0-9.\\[\\]'\"?()@*:,=<>!\\\\{}$^+-é]{0,12}") {
        let _ = Pattern::new(&text).is_match(&text);
        if let Ok(path) = JsonPath::parse(&text) {
            let _ = path.find(&json!({"a": [1, {"b": null}]}));
        }
    }
}
