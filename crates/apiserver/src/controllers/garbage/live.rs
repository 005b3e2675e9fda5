//! What is read from objects to collect garbage.

use std::collections::BTreeSet;

use fleetwright_kstore::Key;
use serde::Deserialize;
use serde_json::Value;

use super::{graph::Uid, references::OwnerState};
use crate::{
    gvk::GroupVersion,
    object,
    server::Server,
    storage::{Deletion, StoredObject},
};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Header {
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    finalizers: Option<Vec<Box<str>>>,
    owner_references: Option<Vec<Value>>,
}

/// An object as it is now.
pub(super) struct Live {
    /// As it is stored.
    pub stored: StoredObject,
    /// Its finalizers.
    pub finalizers: Vec<Box<str>>,
    /// Its owner references, whole.
    pub owners: Vec<Value>,
}

/// Why the state of an owner is not known.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    /// Its kind is not served. It may be soon.
    Kind,
    /// It is in a namespace and its dependent is not: the reference means nothing.
    Namespace,
}

impl Live {
    /// Reads a stored object.
    pub(super) fn read(stored: StoredObject) -> Self {
        let header: Header = serde_json::from_slice(&stored.json).unwrap_or_default();
        Self {
            stored,
            finalizers: header.metadata.finalizers.unwrap_or_default(),
            owners: header.metadata.owner_references.unwrap_or_default(),
        }
    }

    /// The object under a key, if it is the one with this UID.
    pub(super) fn find(server: &Server, key: &Key, uid: &str) -> Option<Self> {
        let stored = server.storage().get(key)?;
        (*stored.meta.uid == *uid).then(|| Self::read(stored))
    }

    /// Whether it has a finalizer.
    pub(super) fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().any(|finalizer| **finalizer == *name)
    }

    /// Looks every owner up, in order, but for those that are `gone`. The first that cannot be looked up ends it.
    pub(super) fn owner_states(
        &self,
        server: &Server,
        gone: &BTreeSet<Uid>,
    ) -> Result<Vec<OwnerState>, Unknown> {
        let state = |owner: &Value| {
            if gone.contains(object::text(owner, &["uid"])) {
                Ok(OwnerState::Absent)
            } else {
                self.owner_state(server, owner)
            }
        };
        self.owners.iter().map(state).collect()
    }

    fn owner_state(&self, server: &Server, owner: &Value) -> Result<OwnerState, Unknown> {
        let text = |field: &str| object::text(owner, &[field]);
        let version = GroupVersion::parse(text("apiVersion")).ok_or(Unknown::Kind)?;
        let resource = server
            .registry()
            .find_kind(&version.group, &version.version, text("kind"))
            .ok_or(Unknown::Kind)?;
        let namespace = &self.stored.key.namespace;
        if resource.namespaced && namespace.is_empty() {
            return Err(Unknown::Namespace);
        }
        let namespace = if resource.namespaced { namespace.clone() } else { "".into() };
        let key = Key::new(resource.storage.clone(), namespace, text("name"));
        let owner = server.storage().get(&key).filter(|owner| *owner.meta.uid == *text("uid"));
        Ok(match owner.map(|owner| owner.meta.deletion) {
            None => OwnerState::Absent,
            Some(Deletion::Foreground) => OwnerState::WaitsForDependents,
            Some(_) => OwnerState::Solid,
        })
    }
}
