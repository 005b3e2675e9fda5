//! How objects are kept.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use fleetwright_kstore::{Body, Index, Key, Store, Stored};
use serde::Deserialize;
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
    /// `metadata.labels`.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// `metadata.ownerReferences`.
    pub owners: Box<[Owner]>,
    /// Fields that selectors ask for often; see [`indexed_fields`].
    pub fields: Box<[(&'static str, Box<str>)]>,
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
    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(k, _)| (**k).cmp(key)).ok()?;
        Some(&self.labels[at].1)
    }
}

/// Fields that are read when an object is written, because selectors on them are hot paths: pods
/// of a node (every drain), events of an object (every describe).
fn indexed_fields(resource: &str) -> &'static [&'static str] {
    match resource {
        "/pods" => &["spec.nodeName"],
        "/events" => &["involvedObject.uid", "involvedObject.name"],
        _ => &[],
    }
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
    labels: Option<BTreeMap<Box<str>, Box<str>>>,
    owner_references: Option<Vec<Owner>>,
}

impl Index for ObjectIndex {
    type Meta = Meta;

    fn index(&self, key: &Key, json: &[u8]) -> Meta {
        let header: Header = serde_json::from_slice(json).unwrap_or_default();
        let wanted = indexed_fields(&key.resource);
        let fields = if wanted.is_empty() {
            Box::default()
        } else {
            let object: Value = serde_json::from_slice(json).unwrap_or_default();
            wanted
                .iter()
                .map(|field| {
                    let path: Vec<&str> = field.split('.').collect();
                    (*field, crate::object::text(&object, &path).into())
                })
                .collect()
        };
        Meta {
            api_version: header.api_version,
            uid: header.metadata.uid,
            labels: header.metadata.labels.unwrap_or_default().into_iter().collect(),
            owners: header.metadata.owner_references.unwrap_or_default().into(),
            fields,
        }
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
