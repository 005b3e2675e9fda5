//! Patches that kube-apiserver was sent, and what it answered.

use fleetwright_kschema::builtin::{check, normalise};
use serde_json::{Value, json};

use super::*;

/// What defaults add to new elements, which is not the patch's doing.
const DEFAULTED: &[&str] = &[
    "imagePullPolicy",
    "protocol",
    "requests",
    "resources",
    "restartPolicy",
    "dnsPolicy",
    "schedulerName",
    "securityContext",
    "terminationGracePeriodSeconds",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "replicas",
    "type",
];

fn without_defaults(ours: &Value, theirs: &mut Value) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            theirs.retain(|name, _| ours.contains_key(name) || !DEFAULTED.contains(&name.as_str()));
            for (name, ours) in ours {
                if let Some(theirs) = theirs.get_mut(name) {
                    without_defaults(ours, theirs);
                }
            }
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.iter().zip(theirs).for_each(|(ours, theirs)| without_defaults(ours, theirs));
        }
        _ => {}
    }
}

fn without_bookkeeping(object: &mut Value) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for name in ["managedFields", "generation", "resourceVersion"] {
            metadata.remove(name);
        }
    }
}

/// Does what the server does with a patch up to validation.
fn apply(case: &Value, document: &Value) -> Result<Value, PatchError> {
    let body = case["body"].as_str().unwrap().as_bytes();
    let (api_version, kind) =
        (document["apiVersion"].as_str().unwrap(), document["kind"].as_str().unwrap());
    let strict = case["fieldValidation"] == "Strict";
    let mut patched = match case["type"].as_str().unwrap() {
        "json" => json_patch(document, body, strict)?,
        "merge" => merge_patch(document, body, strict)?,
        _ => apply_strategic(document, body, api_version, kind, strict)?,
    };
    if case["type"] != "strategic" {
        if !patched.object.is_object() {
            return Err(patched.invalid("not an object".to_owned()));
        }
        match check(api_version, kind, &patched.object) {
            Ok(unknown) if strict => patched.strict.extend(unknown),
            Ok(_) => {}
            Err(error) => return Err(patched.invalid(error.to_string())),
        }
    }
    if let Some(error) = patched.refuse_fields() {
        return Err(error);
    }
    normalise(api_version, kind, &mut patched.object).unwrap();
    Ok(patched.object)
}

#[test]
fn answers_are_those_of_the_real_server() {
    let recorded: Value = serde_json::from_str(include_str!("recorded.json")).unwrap();
    let cases = recorded["cases"].as_array().unwrap();
    assert!(cases.len() > 150);
    for case in cases {
        let shown = format!("{} {}", case["type"], case["body"]);
        let document = &recorded["objects"][case["path"].as_str().unwrap()];
        let outcome = apply(case, document);
        match (case["outcome"].as_str().unwrap(), outcome) {
            ("patched", Ok(mut ours)) => {
                let changes = case["changes"].to_string();
                let mut theirs = merge_patch(document, changes.as_bytes(), true).unwrap().object;
                without_bookkeeping(&mut ours);
                without_defaults(&ours, &mut theirs);
                assert_eq!(ours, theirs, "{shown}");
            }
            // Refused by a later check; the patch itself applies.
            ("later", Ok(_)) => {}
            ("refused", Err(error)) => {
                assert_eq!(error.status().as_u16(), case["code"], "{shown}: {error}");
                assert_eq!(error.reason(), case["reason"], "{shown}");
                let message = case["message"].as_str().unwrap();
                match &error {
                    // The document that is quoted has its fields in another order.
                    PatchError::Invalid { detail, .. } if case["type"] != "strategic" => {
                        let same = message.ends_with(detail.as_str()) || detail == "not an object";
                        assert!(same, "{shown}: {detail} / {message}");
                    }
                    _ => assert_eq!(error.to_string(), message, "{shown}"),
                }
            }
            (expected, outcome) => panic!("{shown}: expected {expected}, got {outcome:?}"),
        }
    }
}

#[test]
fn the_number_of_operations_is_bounded() {
    let patch = Value::Array(vec![json!({"op": "test", "path": "/a"}); MAX_OPERATIONS + 1]);
    let error = json_patch(&json!({}), patch.to_string().as_bytes(), true).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    );
    assert_eq!(error.status().as_u16(), 413);
}
