use std::fs;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::builtin::{Builtins, body};

/// Requests with `fieldValidation=Strict` and what kube-apiserver said to them.
#[test]
fn refusals_are_those_of_the_real_server() {
    let recorded: Vec<Value> = serde_json::from_str(include_str!("recorded.json")).unwrap();
    assert!(recorded.len() > 80);
    for case in recorded {
        let text = |field: &str| case[field].as_str().unwrap().to_owned();
        let (sent, kind) = (text("body"), text("kind"));
        let outcome = body::read(sent.as_bytes(), &text("apiVersion"), &kind);
        let refusal = match &outcome {
            Ok(body) => body.strict_refusal(&kind, sent.as_bytes()),
            Err(message) => Some(message.clone()),
        };
        // Other codes come from later checks: such a body decodes.
        let expected = (case["code"] == 400).then(|| text("message"));
        assert_eq!(refusal, expected, "{sent}");
    }
}

#[test]
fn another_kind_is_refused_as_the_real_server_does() {
    let sent = br#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}"#;
    assert_eq!(
        body::read(sent, "v1", "Namespace"),
        Err("Pod in version \"v1\" cannot be handled as a Namespace: converting (v1.Pod) to (core.Namespace): unknown conversion".into())
    );
    let sent = br#"{"apiVersion":"foo/v1","kind":"Namespace"}"#;
    assert_eq!(
        body::read(sent, "v1", "Namespace"),
        Err("Namespace in version \"v1\" cannot be handled as a Namespace: no kind \"Namespace\" is registered for version \"foo/v1\" in scheme \"pkg/runtime/scheme.go:111\"".into())
    );
    let body = body::read(br#"{"metadata":{"name":"a"}}"#, "v1", "Namespace").unwrap();
    assert_eq!(body.meta.kind, "Namespace");
}

/// Objects that kube-apiserver wrote: normalising changes nothing, neither from JSON nor from
/// the protobuf of the same object.
#[test]
fn what_the_real_server_wrote_stays_as_it_is() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kproto/tests/fixtures");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        count += 1;
        let expected: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let api_version = expected["apiVersion"].as_str().unwrap();
        let kind = expected["kind"].as_str().unwrap();
        let decoded = decode_value(api_version, kind, &expected).unwrap();
        assert_eq!(decoded.object, expected, "{}", path.display());
        assert_eq!(decoded.strict, Vec::<String>::new(), "{}", path.display());

        let bytes = fs::read(path.with_extension("pb")).unwrap();
        let mut object = fleetwright_kproto::decode(&bytes, None).unwrap().object;
        normalise(api_version, kind, &mut object).unwrap();
        assert_eq!(object, expected, "{}", path.display());
    }
    assert!(count >= 14);
}

fn normalised(api_version: &str, kind: &str, mut object: Value) -> Value {
    normalise(api_version, kind, &mut object).unwrap();
    object
}

#[test]
fn go_leaves_out_what_is_empty_and_keeps_what_is_not_optional() {
    assert_eq!(
        normalised("apps/v1", "Deployment", json!({"metadata": {"name": "", "labels": {}}})),
        json!({
            "metadata": {},
            "spec": {
                "selector": null,
                "strategy": {},
                "template": {"metadata": {}, "spec": {"containers": null}},
            },
            "status": {},
        })
    );
    assert_eq!(
        normalised(
            "v1",
            "Pod",
            json!({"spec": {"containers": [null, {"name": "a", "args": [], "foo": 1, "resources": null}], "hostNetwork": false, "terminationGracePeriodSeconds": 0, "nodeSelector": null}})
        ),
        json!({
            "metadata": {},
            "spec": {
                "containers": [{"name": "", "resources": {}}, {"name": "a", "resources": {}}],
                "terminationGracePeriodSeconds": 0,
            },
            "status": {},
        })
    );
    assert_eq!(
        normalised("rbac.authorization.k8s.io/v1", "Role", json!({"rules": []})),
        json!({"metadata": {}, "rules": null})
    );
    assert_eq!(
        normalised("v1", "Service", json!({"spec": {"ports": [{"port": 80}]}})),
        json!({"metadata": {}, "spec": {"ports": [{"port": 80, "targetPort": 0}]}, "status": {"loadBalancer": {}}})
    );
}

#[test]
fn quantities_and_times_are_rewritten() {
    let node = json!({"metadata": {"creationTimestamp": "2024-01-01T02:00:00+02:00"}, "status": {"capacity": {"cpu": 1.5, "memory": "1024Ki", "x": "1u"}}});
    let node = normalised("v1", "Node", node);
    assert_eq!(node["metadata"]["creationTimestamp"], "2024-01-01T00:00:00Z");
    assert_eq!(node["status"]["capacity"], json!({"cpu": "1500m", "memory": "1Mi", "x": "1m"}));
    let quota = json!({"spec": {"resources": {"requests": {"storage": "0.5Gi"}}}});
    let claim = normalised("v1", "PersistentVolumeClaim", quota);
    assert_eq!(claim["spec"]["resources"]["requests"]["storage"], "512Mi");
}

/// Recorded from kube-apiserver.
#[test]
fn nulls_and_numbers_come_out_as_the_real_server_writes_them() {
    let secret = json!({"data": {"a": null, "b": "", "c": "aGk="}, "stringData": {}});
    assert_eq!(
        normalised("v1", "Secret", secret),
        json!({"metadata": {}, "data": {"a": "", "b": "", "c": "aGk="}})
    );
    let config = json!({"metadata": {"labels": {"x": null}, "finalizers": []}, "data": {"a": null}, "binaryData": {"q": null}});
    assert_eq!(
        normalised("v1", "ConfigMap", config),
        json!({"metadata": {"labels": {"x": ""}}, "data": {"a": ""}, "binaryData": {"q": ""}})
    );
    let schema = |schema: Value| {
        let crd = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}});
        let crd = normalised("apiextensions.k8s.io/v1", "CustomResourceDefinition", crd);
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
    };
    let properties = json!({
        "a": {"type": "string", "enum": [], "default": null},
        "b": {"properties": {}, "additionalProperties": false},
        "d": {"default": 1.0, "minimum": 0, "maximum": 2.0, "multipleOf": 0.5},
        "e": {"nullable": true, "x-kubernetes-int-or-string": true, "items": null},
    });
    assert_eq!(
        schema(json!({"required": [], "properties": properties}))["properties"],
        json!({
            "a": {"type": "string"},
            "b": {"additionalProperties": false},
            "d": {"default": 1, "minimum": 0, "maximum": 2, "multipleOf": 0.5},
            "e": {"nullable": true, "x-kubernetes-int-or-string": true},
        })
    );
    assert_eq!(
        normalised("v1", "Event", json!({"involvedObject": {}})),
        json!({"metadata": {}, "involvedObject": {}, "source": {}, "firstTimestamp": null, "lastTimestamp": null, "eventTime": null, "reportingComponent": "", "reportingInstance": ""})
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z0-9.Ki]{0,4}".prop_map(Value::from),
    ];
    let name = prop::sample::select(vec![
        "metadata",
        "spec",
        "status",
        "containers",
        "template",
        "labels",
        "name",
        "replicas",
        "selector",
        "matchLabels",
        "volumes",
        "resources",
        "limits",
        "data",
        "type",
        "items",
        "properties",
        "versions",
        "schema",
        "openAPIV3Schema",
        "additionalProperties",
    ]);
    leaf.prop_recursive(6, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..5).prop_map(|map| {
                Value::Object(
                    map.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
                )
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_object_is_decoded_or_refused_and_normalising_twice_changes_nothing(
        object in any_json(),
        kind in any::<prop::sample::Index>(),
    ) {
        let kinds: Vec<_> = Builtins::shared().kinds().collect();
        let (api_version, kind) = kinds[kind.index(kinds.len())];
        if let Ok(decoded) = decode_value(api_version, kind, &object) {
            let again = decode_value(api_version, kind, &decoded.object).unwrap();
            prop_assert_eq!(&again.object, &decoded.object);
            prop_assert!(again.strict.is_empty());
        }
    }
}
