//! Objects that kube-apiserver wrote both as protobuf and as JSON must decode to the same.

use std::fs;
use std::path::{Path, PathBuf};

use fleetwright_kproto::{DecodeError, MAX_DEPTH, decode, is_protobuf};
use proptest::prelude::*;
use serde_json::{Value, json};

fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .expect("fixtures")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "pb"));
    paths.sort();
    paths
}

/// Go writes `null` for an unset list that JSON must show; protobuf cannot tell it from none.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Array(list) => Value::Array(list.iter().map(without_nulls).collect()),
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), without_nulls(value))).collect())
        }
        other => other.clone(),
    }
}

#[test]
fn protobuf_and_json_agree() {
    let fixtures = fixtures();
    assert!(fixtures.len() >= 14, "fixtures are missing");
    for path in fixtures {
        let body = fs::read(&path).unwrap();
        assert!(is_protobuf(&body));
        let expected: Value =
            serde_json::from_slice(&fs::read(path.with_extension("json")).unwrap()).unwrap();
        let decoded = decode(&body, None).unwrap();
        assert_eq!(decoded.kind, expected["kind"], "{}", path.display());
        assert_eq!(without_nulls(&decoded.object), without_nulls(&expected), "{}", path.display());
    }
}

/// A record with a length: field number below 16.
fn bytes_field(number: u8, bytes: &[u8]) -> Vec<u8> {
    long_field(&[number << 3 | 2], bytes)
}

fn long_field(tag: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut record = tag.to_vec();
    let mut length = bytes.len();
    while length >= 0x80 {
        record.push(length.to_le_bytes()[0] | 0x80);
        length >>= 7;
    }
    record.push(length.to_le_bytes()[0]);
    record.extend_from_slice(bytes);
    record
}

fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let meta = [bytes_field(1, api_version.as_bytes()), bytes_field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), bytes_field(1, &meta), bytes_field(2, raw)].concat()
}

#[test]
fn delete_options_keep_a_zero_that_was_set() {
    // gracePeriodSeconds 0, orphanDependents absent, propagationPolicy Background.
    let raw = [vec![0x08, 0x00], bytes_field(4, b"Background")].concat();
    let decoded = decode(&envelope("v1", "DeleteOptions", &raw), None).unwrap();
    assert_eq!(
        decoded.object,
        json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "propagationPolicy": "Background"})
    );
}

#[test]
fn pieces_of_a_message_are_joined() {
    let raw = [
        bytes_field(1, &bytes_field(1, b"first")),
        bytes_field(1, &[bytes_field(1, b"second"), bytes_field(3, b"space")].concat()),
    ]
    .concat();
    let decoded = decode(&envelope("v1", "Namespace", &raw), None).unwrap();
    assert_eq!(decoded.object["metadata"], json!({"name": "second", "namespace": "space"}));
}

#[test]
fn the_default_kind_stands_in() {
    let body = envelope("", "", &bytes_field(1, &bytes_field(1, b"a")));
    let decoded = decode(&body, Some(("v1", "Namespace"))).unwrap();
    assert_eq!(decoded.object["kind"], "Namespace");
    assert_eq!(decoded.object["apiVersion"], "v1");
    assert!(matches!(decode(&body, None), Err(DecodeError::MissingKind(_))));
}

#[test]
fn refusals_say_what_is_wrong() {
    for (body, expected) in [
        (Vec::new(), "empty data"),
        (b"k8s\0".to_vec(), "empty body"),
        (
            b"{}".to_vec(),
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
        ),
        (b"k8s\0\x0a\x05a".to_vec(), "unexpected EOF"),
        (
            envelope("v1", "Namespace", &[0x08, 0x01]),
            "proto: wrong wireType = 0 for field Metadata",
        ),
        (envelope("v1", "Namespace", &[0x0a]), "unexpected EOF"),
    ] {
        assert_eq!(decode(&body, None).unwrap_err().to_string(), expected);
    }
    assert!(matches!(
        decode(&envelope("v1", "Nothing", &[]), None),
        Err(DecodeError::UnknownKind { .. })
    ));
}

#[test]
fn nesting_is_bounded() {
    // A schema inside a schema: `not` is field 28.
    const NOT: &[u8] = &[0xe2, 0x01];
    let mut schema = Vec::new();
    for _ in 0..10 * MAX_DEPTH {
        schema = long_field(NOT, &schema);
    }
    let validation = bytes_field(1, &schema);
    let version = bytes_field(4, &validation);
    let spec = bytes_field(7, &version);
    let body =
        envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", &bytes_field(2, &spec));
    let error = decode(&body, None).unwrap_err().to_string();
    assert_eq!(error, format!("nested deeper than {MAX_DEPTH} levels"));
}

proptest! {
    #[test]
    fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes, None);
        for kind in ["Pod", "Event", "Secret"] {
            let _ = decode(&envelope("v1", kind, &bytes), None);
        }
    }

    #[test]
    fn damaged_bodies_never_panic(
        fixture in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let fixtures = fixtures();
        let mut body = fs::read(&fixtures[fixture.index(fixtures.len())]).unwrap();
        for (at, byte) in damage {
            let at = at.index(body.len());
            body[at] = byte;
        }
        let _ = decode(&body, None);
        body.truncate(cut.index(body.len()));
        let _ = decode(&body, None);
    }
}
