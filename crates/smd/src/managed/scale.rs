//! The book of an object as its scale subresource sees it.
//!
//! The scale subresource shows one field of its parent, the number of replicas, under a path
//! of its own. Its requests must neither see nor lose the rest of the parent's book.

use std::collections::BTreeMap;

use serde_json::Value;

use super::entries::{DecodeError, Managed};
use crate::fieldpath::{Path, Set};
use crate::merge::VersionedSet;

/// Where the number of replicas is in each version of the parent; `None` in versions that
/// have no scale subresource.
pub type ReplicasPaths = BTreeMap<String, Option<Path>>;

/// The version in which the scale subresource is written.
const SCALE_VERSION: &str = "autoscaling/v1";

fn replicas_in_scale() -> Path {
    Path::fields(["spec", "replicas"])
}

/// `managedFields` of the scale subresource from those of its parent.
pub fn scale_to_subresource(
    parent: Option<&Value>,
    paths: &ReplicasPaths,
) -> Result<Option<Value>, DecodeError> {
    let mut book = Managed::decode(parent)?;
    book.managers.retain(|_, entry| {
        let path = paths.get(&entry.api_version).and_then(Option::as_ref);
        path.is_some_and(|path| entry.set.contains(path))
    });
    for entry in book.managers.values_mut() {
        entry.set = [replicas_in_scale()].iter().collect();
        SCALE_VERSION.clone_into(&mut entry.api_version);
    }
    Ok(book.encode())
}

/// `managedFields` of the parent, in version `api_version`, after the scale subresource has
/// been written with managed fields `scale`.
pub fn scale_to_parent(
    parent: Option<&Value>,
    scale: Option<&Value>,
    api_version: &str,
    paths: &ReplicasPaths,
) -> Result<Option<Value>, DecodeError> {
    let mut book = Managed::decode(parent)?;
    let mut scale = Managed::decode(scale)?;
    book.managers.retain(|key, entry| {
        let Some(path) = paths.get(&entry.api_version) else { return false };
        let Some(path) = path.as_ref().filter(|path| entry.set.contains(path)) else { return true };
        if scale.managers.remove(key).is_none() {
            // Somebody else has set the replicas since.
            entry.set.subtract(&[path].into_iter().collect());
        }
        !entry.set.is_empty()
    });
    let replicas: Set = paths.get(api_version).and_then(Option::as_ref).into_iter().collect();
    for (key, entry) in std::mem::take(&mut scale.managers) {
        if !entry.set.contains(&replicas_in_scale()) {
            continue;
        }
        book.introduce(scale.identity(&key));
        let (set, applied) = (replicas.clone(), entry.applied);
        let api_version = api_version.to_owned();
        book.managers.insert(key, VersionedSet { set, api_version, applied });
    }
    Ok(book.encode())
}
