//! Definitions, with the answers that kube-apiserver 1.37.1 gave.

use serde_json::{Value, json};

use super::*;
use crate::field::aggregate_message;

/// Upstream also estimates what rules cost at most; here only their evaluation is bounded.
const NOT_ESTIMATED: [&str; 1] = ["xv cost"];

#[test]
fn definitions_are_answered_as_by_the_real_server() {
    let recorded: Value = serde_json::from_str(include_str!("../../testdata/crd.json")).unwrap();
    let mut differences = Vec::new();
    for case in recorded.as_array().unwrap() {
        let label = case["label"].as_str().unwrap();
        if NOT_ESTIMATED.contains(&label) {
            continue;
        }
        let mut crd = case["crd"].clone();
        default_crd(&mut crd);
        prepare_crd_for_create(&mut crd);
        let expected = case["message"].as_str().unwrap();
        let found = aggregate_message(&validate_crd(&crd)).unwrap_or_default();
        if found != expected {
            differences.push(format!("{label}\n  expected {expected}\n  found    {found}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn defaults_and_preparation() {
    let mut crd = json!({"metadata": {"name": "x"}, "status": {"acceptedNames": {"kind": "Z"}},
        "spec": {"names": {"kind": "Thing"}, "versions": [{"name": "v1", "storage": true}],
            "conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {"service": {}}}}}});
    default_crd(&mut crd);
    assert_eq!(
        crd["spec"]["names"],
        json!({"kind": "Thing", "singular": "thing",
        "listKind": "ThingList"})
    );
    assert_eq!(
        crd.pointer("/spec/conversion/webhook/clientConfig/service/port"),
        Some(&json!(443))
    );
    prepare_crd_for_create(&mut crd);
    assert_eq!(crd["status"], json!({"storedVersions": ["v1"]}));
    assert_eq!(crd["metadata"]["generation"], 1);

    let mut new = crd.clone();
    new["spec"]["versions"] = json!([{"name": "v1"}, {"name": "v2", "storage": true}]);
    prepare_crd_for_update(&mut new, &crd);
    assert_eq!(new["status"], json!({"storedVersions": ["v1", "v2"]}));
    assert_eq!(new["metadata"]["generation"], 2);
}

#[test]
fn updates() {
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object"}}})
    };
    let mut old = json!({"metadata": {"name": "things.x.io", "resourceVersion": "1"},
        "spec": {"group": "x.io", "scope": "Cluster", "versions": [version("v1", true)],
            "names": {"plural": "things", "kind": "Thing"}}});
    default_crd(&mut old);
    old["status"]["conditions"] = json!([{"type": "Established", "status": "True"}]);
    let shown = |new: &Value| -> Vec<String> {
        let mut new = new.clone();
        prepare_crd_for_update(&mut new, &old);
        validate_crd_update(&new, &old).iter().map(ToString::to_string).collect()
    };
    assert_eq!(shown(&old), Vec::<String>::new());
    let mut new = old.clone();
    new["spec"]["scope"] = json!("Namespaced");
    new["spec"]["group"] = json!("y.io");
    new["spec"]["names"]["plural"] = json!("others");
    new["spec"]["names"]["kind"] = json!("Other");
    new["spec"]["versions"] = json!([version("v2", true)]);
    assert_eq!(
        shown(&new),
        [
            "spec.scope: Invalid value: \"Namespaced\": field is immutable",
            "spec.names.kind: Invalid value: \"Other\": field is immutable",
            "spec.group: Invalid value: \"y.io\": field is immutable",
            "spec.names.plural: Invalid value: \"others\": field is immutable",
            "status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was \
             previously a storage version, and must remain in spec.versions until a storage \
             migration ensures no data remains persisted in v1 and removes v1 from \
             status.storedVersions",
        ]
    );
    let mut new = old.clone();
    new["status"]["acceptedNames"] = json!({"plural": "A"});
    assert!(
        validate_crd_status_update(&new, &old)[0]
            .to_string()
            .starts_with("status.acceptedNames.plural: Invalid value: \"A\": a DNS-1035 label")
    );
}

#[test]
fn garbage_does_not_panic() {
    for crd in [
        json!(null),
        json!([]),
        json!({"spec": 1}),
        json!({"spec": {"versions": [null, 1, {}], "names": [], "conversion": 3}}),
        json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {"properties": []}}}]}}),
        json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": []}, "subresources": 1,
            "additionalPrinterColumns": [1], "selectableFields": [1]}]}, "status": []}),
    ] {
        let mut crd = crd;
        default_crd(&mut crd);
        prepare_crd_for_create(&mut crd);
        let _ = validate_crd(&crd);
        let _ = validate_crd_update(&crd, &crd);
        let _ = crd_warnings(&crd, None);
    }
}
