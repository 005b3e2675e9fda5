//! Values against schemas, with the texts that kube-apiserver answers.

use super::*;
use serde_json::json;

fn shown(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn errors_of(property: &Value, value: &Value) -> Vec<String> {
    let schema = Schema::parse(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"x": property}}}}))
    .unwrap();
    shown(&validate(&json!({"spec": {"x": value}}), &schema, &Path::root()))
}

#[test]
fn values_against_one_property() {
    let cases: Vec<(Value, Value, Vec<&str>)> = vec![
        (json!({"type": "integer"}), json!(3), vec![]),
        (json!({"type": "integer"}), json!(3.0), vec![]),
        (json!({"type": "number"}), json!(3), vec![]),
        (json!({"type": "string", "nullable": true}), json!(null), vec![]),
        (
            json!({"type": "integer"}),
            json!("string"),
            vec![
                "spec.x: Invalid value: \"string\": spec.x in body must be of type integer: \
                 \"string\"",
            ],
        ),
        (
            json!({"type": "string"}),
            json!(null),
            vec![
                "spec.x: Invalid value: \"null\": spec.x in body must be of type string: \"null\"",
            ],
        ),
        (
            json!({"type": "integer"}),
            json!(1.5),
            vec![
                "spec.x: Invalid value: \"number\": spec.x in body must be of type integer: \
                 \"number\"",
                "<nil>: Invalid value: \"\": Checked value must be of type integer (default \
                 format) in spec.x",
            ],
        ),
        (
            json!({"type": "integer", "format": "int32"}),
            json!(3_000_000_000_i64),
            vec![
                "<nil>: Invalid value: \"\": Checked value must be of type integer with format \
                 int32 in spec.x",
            ],
        ),
        (
            json!({"type": "integer", "maximum": 10}),
            json!(11),
            vec!["spec.x: Invalid value: 11: spec.x in body should be less than or equal to 10"],
        ),
        (
            json!({"type": "integer", "maximum": 10, "exclusiveMaximum": true}),
            json!(10),
            vec!["spec.x: Invalid value: 10: spec.x in body should be less than 10"],
        ),
        (
            json!({"type": "number", "minimum": 1.5}),
            json!(0.5),
            vec![
                "spec.x: Invalid value: 0.5: spec.x in body should be greater than or equal to 1.5",
            ],
        ),
        (
            json!({"type": "number", "minimum": 0, "exclusiveMinimum": true}),
            json!(-1),
            vec!["spec.x: Invalid value: -1: spec.x in body should be greater than 0"],
        ),
        (
            json!({"type": "integer", "multipleOf": 5}),
            json!(7),
            vec!["spec.x: Invalid value: 7: spec.x in body should be a multiple of 5"],
        ),
        (json!({"type": "number", "multipleOf": 0.1}), json!(0.3), vec![]),
        (
            json!({"type": "string", "maxLength": 2}),
            json!("éab"),
            vec!["spec.x: Too long: may not be more than 2 bytes"],
        ),
        (
            json!({"type": "string", "minLength": 2}),
            json!("é"),
            vec!["spec.x: Invalid value: \"é\": spec.x in body should be at least 2 chars long"],
        ),
        (
            json!({"type": "string", "pattern": "^a+$"}),
            json!("b"),
            vec!["spec.x: Invalid value: \"b\": spec.x in body should match '^a+$'"],
        ),
        (
            json!({"type": "string", "enum": ["a", "b"]}),
            json!("c"),
            vec!["spec.x: Unsupported value: \"c\": supported values: \"a\", \"b\""],
        ),
        (
            json!({"type": "integer", "enum": [1, 2]}),
            json!(3),
            vec!["spec.x: Unsupported value: 3: supported values: \"1\", \"2\""],
        ),
        (
            json!({"type": "string", "format": "date-time"}),
            json!("today"),
            vec![
                "spec.x: Invalid value: \"today\": spec.x in body must be of type date-time: \"today\"",
            ],
        ),
        (
            json!({"type": "array", "items": {"type": "integer"}, "minItems": 3}),
            json!([1, "a"]),
            vec![
                "spec.x[1]: Invalid value: \"string\": spec.x[1] in body must be of type integer: \
                 \"string\"",
                "spec.x: Invalid value: 2: spec.x in body should have at least 3 items",
            ],
        ),
        (
            json!({"type": "array", "items": {"type": "integer"}, "maxItems": 1}),
            json!([1, 2]),
            vec!["spec.x: Too many: 2: must have at most 1 item"],
        ),
        (
            json!({"type": "object", "minProperties": 1}),
            json!({}),
            vec!["spec.x: Invalid value: 0: spec.x in body should have at least 1 properties"],
        ),
        (
            json!({"type": "object", "maxProperties": 1}),
            json!({"a": 1, "b": 2}),
            vec!["spec.x: Too many: 2: must have at most 1 item"],
        ),
        (
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}),
            json!({}),
            vec!["spec.x.a: Required value"],
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"k": 1}),
            vec![
                "spec.x.k: Invalid value: \"integer\": spec.x.k in body must be of type string: \
                 \"integer\"",
            ],
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!(true),
            vec![
                "spec.x: Invalid value: \"boolean\": spec.x in body must be of type \
                 integer,string: \"boolean\"",
            ],
        ),
        (
            json!({"type": "string", "not": {"pattern": "^a"}}),
            json!("ab"),
            vec!["<nil>: Invalid value: \"\": \"spec.x\" must not validate the schema (not)"],
        ),
        (
            json!({"type": "string", "anyOf": [{"pattern": "^a"}, {"minLength": 3}]}),
            json!("b"),
            vec![
                "<nil>: Invalid value: \"\": \"spec.x\" must validate at least one schema (anyOf)",
                "spec.x: Invalid value: \"b\": spec.x in body should match '^a'",
            ],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({}),
            vec![
                "<nil>: Invalid value: \"\": \"spec.x\" must validate one and only one schema \
                 (oneOf). Found none valid",
                "spec.x.a: Required value",
            ],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({"a": "", "b": ""}),
            vec![
                "<nil>: Invalid value: \"\": \"spec.x\" must validate one and only one schema \
                 (oneOf). Found 2 valid alternatives",
            ],
        ),
        (
            json!({"type": "string", "allOf": [{"pattern": "^a"}, {"minLength": 3}]}),
            json!("b"),
            vec![
                "spec.x: Invalid value: \"b\": spec.x in body should match '^a'",
                "spec.x: Invalid value: \"b\": spec.x in body should be at least 3 chars long",
                "<nil>: Invalid value: \"\": \"spec.x\" must validate all the schemas (allOf). \
                 None validated",
            ],
        ),
    ];
    for (schema, value, expected) in cases {
        let label = format!("{schema} on {value}");
        assert_eq!(errors_of(&schema, &value), expected, "{label}");
    }
}

#[test]
fn errors_at_the_root_and_below_a_base() {
    let schema = Schema::parse(&json!({"type": "object", "required": ["spec"],
        "properties": {"spec": {"type": "object"}}}))
    .unwrap();
    assert_eq!(shown(&validate(&json!({}), &schema, &Path::root())), ["spec: Required value"]);
    assert_eq!(
        shown(&validate(&json!({"spec": 1}), &schema, &Path::new("status"))),
        [
            "status.spec: Invalid value: \"integer\": spec in body must be of type object: \"integer\""
        ]
    );
    assert_eq!(
        shown(&validate(&json!(1), &schema, &Path::new("status"))),
        ["status: Invalid value: \"integer\":  in body must be of type object: \"integer\""]
    );
}

fn update(schema: &Value, new: &Value, old: &Value) -> Vec<String> {
    let schema = Schema::parse(schema).unwrap();
    shown(&validate_update(new, Some(old), &schema, &Path::root()))
}

#[test]
fn unchanged_parts_are_forgiven_on_update() {
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "string", "maxLength": 1},
        "b": {"type": "string"},
        "set": {"type": "array", "items": {"type": "string", "maxLength": 1}},
        "map": {"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object", "properties": {
                "k": {"type": "string"}, "v": {"type": "integer", "maximum": 1}}}},
        "need": {"type": "object", "required": ["r"], "properties": {
            "r": {"type": "string"}, "s": {"type": "string"}}},
        "all": {"type": "object", "properties": {"p": {"type": "string"}, "q": {"type": "string"}},
            "allOf": [{"properties": {"p": {"maxLength": 1}}}]},
    }});
    let cases = [
        (json!({"a": "xx", "b": "1"}), json!({"a": "xx", "b": "2"}), vec![]),
        (json!({"a": "xxx"}), json!({"a": "xx"}), vec!["a: Too long: may not be more than 1 byte"]),
        (json!({"set": ["xx"], "b": "1"}), json!({"set": ["xx"]}), vec![]),
        (
            json!({"set": ["xx", "y"]}),
            json!({"set": ["xx"]}),
            vec!["set[0]: Too long: may not be more than 1 byte"],
        ),
        (
            json!({"map": [{"k": "n"}, {"k": "a", "v": 5}]}),
            json!({"map": [{"k": "a", "v": 5}]}),
            vec![],
        ),
        (
            json!({"map": [{"k": "a", "v": 6}]}),
            json!({"map": [{"k": "a", "v": 5}]}),
            vec!["map[0].v: Invalid value: 6: map[0].v in body should be less than or equal to 1"],
        ),
        (json!({"need": {"s": "1"}, "b": "x"}), json!({"need": {"s": "1"}}), vec![]),
        (json!({"need": {"s": "2"}}), json!({"need": {"s": "1"}}), vec!["need.r: Required value"]),
        (
            json!({"all": {"p": "xx", "q": "2"}}),
            json!({"all": {"p": "xx", "q": "1"}}),
            vec![
                "all.p: Too long: may not be more than 1 byte",
                "<nil>: Invalid value: \"\": \"all\" must validate all the schemas (allOf). None \
                 validated",
            ],
        ),
    ];
    for (new, old, expected) in cases {
        let label = format!("{old} to {new}");
        assert_eq!(update(&schema, &new, &old), expected, "{label}");
    }
}
