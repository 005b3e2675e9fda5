//! How objects are kept.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use fleetwright_kschema::names::{FOREGROUND, ORPHAN};
use fleetwright_kstore::{Body, Index, Key, Store, Stored};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;

use crate::status::{ApiError, Result};

/// The server's store.
pub type Storage = Store<ObjectIndex>;

/// An object in it.
pub type StoredObject = Arc<Stored<Meta>>;

/// What is looked up without parsing objects.
#[derive(Debug, Default)]
pub struct Meta {
    /// The version that the object is stored in.
    pub api_version: Box<str>,
    /// `metadata.uid`.
    pub uid: Box<str>,
    /// How the object is being deleted.
    pub deletion: Deletion,
    /// `metadata.labels`.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// `metadata.ownerReferences`.
    pub owners: Box<[Owner]>,
    /// Fields that selectors ask for often; see [`indexed_fields`].
    pub fields: Box<[(&'static str, Box<str>)]>,
}

/// How an object is being deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deletion {
    /// It is not.
    #[default]
    None,
    /// Nothing is asked of its dependents.
    Plain,
    /// Its dependents go first.
    Foreground,
    /// Its dependents stay.
    Orphan,
}

/// An owner reference, as the garbage collector needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Owner {
    /// The owner's `apiVersion`.
    pub api_version: Box<str>,
    /// The owner's kind.
    pub kind: Box<str>,
    /// The owner's name.
    pub name: Box<str>,
    /// The owner's UID.
    pub uid: Box<str>,
    /// Whether the owner's foreground deletion waits for this object.
    pub block_owner_deletion: bool,
}

impl Meta {
    /// Whether deletion was asked for.
    pub fn is_terminating(&self) -> bool {
        self.deletion != Deletion::None
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(k, _)| (**k).cmp(key)).ok()?;
        Some(&self.labels[at].1)
    }

    /// The value of an indexed field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| *field == name).map(|(_, value)| &**value)
    }
}

/// Fields that are read when an object is written, because selectors on them are hot paths: pods
/// of a node (every drain), events of an object (every describe).
fn indexed_fields(resource: &str, json: &[u8]) -> Box<[(&'static str, Box<str>)]> {
    match resource {
        "/pods" => {
            let pod: PodHeader = serde_json::from_slice(json).unwrap_or_default();
            Box::new([("spec.nodeName", pod.spec.node_name)])
        }
        "/events" => {
            let event: EventHeader = serde_json::from_slice(json).unwrap_or_default();
            let about = event.involved_object;
            Box::new([("involvedObject.uid", about.uid), ("involvedObject.name", about.name)])
        }
        _ => Box::default(),
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodHeader {
    spec: PodSpecHeader,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodSpecHeader {
    node_name: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct EventHeader {
    involved_object: Involved,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Involved {
    uid: Box<str>,
    name: Box<str>,
}

/// Reads [`Meta`] from objects.
#[derive(Debug, Default)]
pub struct ObjectIndex;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Header {
    api_version: Box<str>,
    metadata: HeaderMetadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct HeaderMetadata {
    uid: Box<str>,
    deletion_timestamp: Option<IgnoredAny>,
    finalizers: Option<Vec<Box<str>>>,
    labels: Option<BTreeMap<Box<str>, Box<str>>>,
    owner_references: Option<Vec<Owner>>,
}

impl Index for ObjectIndex {
    type Meta = Meta;

    fn index(&self, key: &Key, json: &[u8]) -> Meta {
        let header: Header = serde_json::from_slice(json).unwrap_or_default();
        Meta {
            api_version: header.api_version,
            deletion: deletion(&header.metadata),
            uid: header.metadata.uid,
            labels: header.metadata.labels.unwrap_or_default().into_iter().collect(),
            owners: header.metadata.owner_references.unwrap_or_default().into(),
            fields: indexed_fields(&key.resource, json),
        }
    }
}

fn deletion(metadata: &HeaderMetadata) -> Deletion {
    let has =
        |name: &str| metadata.finalizers.iter().flatten().any(|finalizer| **finalizer == *name);
    match metadata.deletion_timestamp {
        None => Deletion::None,
        Some(_) if has(ORPHAN) => Deletion::Orphan,
        Some(_) if has(FOREGROUND) => Deletion::Foreground,
        Some(_) => Deletion::Plain,
    }
}

/// Parses a stored object.
pub fn parse(json: &Bytes) -> Result<Value> {
    serde_json::from_slice(json)
        .map_err(|error| ApiError::internal(format!("a stored object cannot be read: {error}")))
}

/// Makes an object ready to be written.
pub fn body(object: &Value) -> Result<Body> {
    Body::from_json(object).map_err(ApiError::internal)
}
