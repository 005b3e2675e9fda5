//! Objects as they are kept, and as they are handed in.
//!
//! An object is kept as the bytes that a client is sent. Its `metadata.resourceVersion` is only
//! known when the write is given its revision, so a body arrives in two halves around those
//! digits, and the stored object remembers where they are: nothing is parsed or searched again.

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::key::Key;

/// Derives, on write and on load, what the server wants to look up quickly (labels, selectable
/// fields, owners).
pub trait Index: Send + Sync + 'static {
    /// What is derived.
    type Meta: Send + Sync + 'static;

    /// Derives it from an object's JSON. It must not panic: what it is given was accepted before.
    fn index(&self, key: &Key, json: &[u8]) -> Self::Meta;
}

/// An object in the store.
#[derive(Debug)]
pub struct Stored<M> {
    /// Where it is.
    pub key: Key,
    /// The revision of its last write.
    pub revision: u64,
    /// The revision of its first write.
    pub created: u64,
    /// The whole object; its `metadata.resourceVersion` is [`Stored::revision`].
    pub json: Bytes,
    /// What the [`Index`] derived.
    pub meta: M,
    /// Where the digits of the resourceVersion begin in `json`.
    pub(crate) digits_at: usize,
}

impl<M> Stored<M> {
    /// The same object, shown at another revision.
    #[must_use]
    pub fn json_at(&self, revision: u64) -> Bytes {
        self.body().at(revision).0
    }

    /// The halves around the revision.
    pub fn body(&self) -> Body {
        let after = (self.digits_at + decimal_len(self.revision)).min(self.json.len());
        Body { head: self.json.slice(..self.digits_at.min(after)), tail: self.json.slice(after..) }
    }
}

fn decimal_len(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

/// An object to be written: its JSON, cut where the digits of `metadata.resourceVersion` go
/// (between the quotes).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// Up to and with the opening quote of the resourceVersion.
    pub head: Bytes,
    /// From the closing quote on.
    pub tail: Bytes,
}

/// A body must be a JSON object whose `metadata`, if any, is one as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the object or its metadata is not a JSON object")]
pub struct NotAnObject;

impl Body {
    /// Serialises an object. Whatever `metadata.resourceVersion` it has is left out, and the
    /// place for it is found by its position in the structure, so no content can be mistaken for
    /// it. A missing `metadata` is added.
    pub fn from_json(object: &Value) -> Result<Self, NotAnObject> {
        let object = object.as_object().ok_or(NotAnObject)?;
        let none = Map::new();
        let metadata = match object.get("metadata") {
            Some(metadata) => metadata.as_object().ok_or(NotAnObject)?,
            None => &none,
        };
        let (before, after) = around(object, "metadata");
        let (meta_before, meta_after) = around(metadata, "resourceVersion");

        let mut head = Vec::from(b"{");
        before.for_each(|entry| push_entry(&mut head, entry, End::Comma));
        head.extend_from_slice(br#""metadata":{"#);
        meta_before.for_each(|entry| push_entry(&mut head, entry, End::Comma));
        head.extend_from_slice(br#""resourceVersion":""#);

        let mut tail = Vec::from(b"\"");
        meta_after.for_each(|entry| push_entry(&mut tail, entry, End::Nothing));
        tail.push(b'}');
        after.for_each(|entry| push_entry(&mut tail, entry, End::Nothing));
        tail.push(b'}');
        Ok(Self { head: Bytes::from(head), tail: Bytes::from(tail) })
    }

    /// The object at a revision, and where the digits begin. One exact allocation.
    pub(crate) fn at(&self, revision: u64) -> (Bytes, usize) {
        let mut json =
            Vec::with_capacity(self.head.len() + decimal_len(revision) + self.tail.len());
        json.extend_from_slice(&self.head);
        json.extend_from_slice(revision.to_string().as_bytes());
        json.extend_from_slice(&self.tail);
        (Bytes::from(json), self.head.len())
    }
}

type Entry<'a> = (&'a String, &'a Value);

/// The entries sorted before and after where `name` goes, without it.
fn around<'a>(
    map: &'a Map<String, Value>,
    name: &'a str,
) -> (impl Iterator<Item = Entry<'a>>, impl Iterator<Item = Entry<'a>>) {
    (
        map.iter().filter(move |(key, _)| key.as_str() < name),
        map.iter().filter(move |(key, _)| key.as_str() > name),
    )
}

/// On which side of an entry its comma goes: the resourceVersion or the metadata is always there
/// to be separated from, so entries before it end with one and entries after it begin with one.
#[derive(Clone, Copy)]
enum End {
    Comma,
    Nothing,
}

fn push_entry(json: &mut Vec<u8>, (name, value): Entry<'_>, end: End) {
    if matches!(end, End::Nothing) {
        json.push(b',');
    }
    // Neither a JSON value nor memory refuses to be written.
    let _ = serde_json::to_writer(&mut *json, name);
    json.push(b':');
    let _ = serde_json::to_writer(&mut *json, value);
    if matches!(end, End::Comma) {
        json.push(b',');
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn stored(body: &Body, revision: u64) -> Stored<()> {
        let (json, digits_at) = body.at(revision);
        Stored { key: Key::new("/pods", "a", "b"), revision, created: 1, json, meta: (), digits_at }
    }

    #[test]
    fn the_revision_is_put_where_it_belongs() {
        for (object, expected) in [
            (json!({}), json!({"metadata": {"resourceVersion": "42"}})),
            (
                json!({"metadata": {"name": "x", "resourceVersion": "7", "uid": "u"}, "spec": {}}),
                json!({"metadata": {"name": "x", "resourceVersion": "42", "uid": "u"}, "spec": {}}),
            ),
            (
                json!({"a": "\"metadata\":{\"resourceVersion\":\"", "metadata": {"a\"": 1}, "z": 2}),
                json!({"a": "\"metadata\":{\"resourceVersion\":\"",
                    "metadata": {"a\"": 1, "resourceVersion": "42"}, "z": 2}),
            ),
        ] {
            let (json, _) = Body::from_json(&object).unwrap().at(42);
            assert_eq!(serde_json::from_slice::<Value>(&json).unwrap(), expected);
        }
    }

    #[test]
    fn what_is_not_an_object_is_refused() {
        for value in [json!(1), json!([]), json!({"metadata": "x"}), json!({"metadata": null})] {
            assert_eq!(Body::from_json(&value), Err(NotAnObject));
        }
    }

    #[test]
    fn decimal_lengths() {
        for number in [0, 1, 9, 10, 99, 100, 101, u64::MAX] {
            assert_eq!(decimal_len(number), number.to_string().len());
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "\\PC*|metadata|resourceVersion".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map("metadata|resourceVersion|\\PC{0,4}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn only_the_revision_changes(object in value(), first: u64, second: u64) {
            let Ok(body) = Body::from_json(&object) else { return Ok(()) };
            let mut expected = object;
            expected["metadata"]["resourceVersion"] = Value::from(first.to_string());
            let stored = stored(&body, first);
            prop_assert_eq!(&serde_json::from_slice::<Value>(&stored.json).unwrap(), &expected);
            // Sorted maps and compact writing: the same bytes as the plain serialisation.
            prop_assert_eq!(&stored.json, &Bytes::from(expected.to_string()));
            expected["metadata"]["resourceVersion"] = Value::from(second.to_string());
            prop_assert_eq!(stored.json_at(second), Bytes::from(expected.to_string()));
        }
    }
}
