//! Objects that cannot be understood must not stop those that can.
//!
//! kube's `DeserializeGuard` has the same purpose, but forgets that metadata was all that was
//! asked for, and copies every object.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

use crate::ObjectKey;

/// An object, or what is left of one that does not fit its type.
#[derive(Clone, Debug)]
pub(super) enum Guarded<K> {
    /// As it should be.
    Valid(K),
    /// Who it is, and what is wrong with it.
    Invalid { identity: Identity, error: String },
}

/// Just enough to tell objects apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) key: ObjectKey,
    pub(super) uid: String,
    pub(super) version: String,
}

impl<K: kube::Resource> Guarded<K> {
    pub(super) fn identity(&self) -> Identity {
        match self {
            Self::Valid(object) => Identity::of(object),
            Self::Invalid { identity, .. } => identity.clone(),
        }
    }

    /// Forgets what nobody reads: who wrote which field, which is often half of an object, and what
    /// `trim` takes away.
    pub(super) fn trim(&mut self, trim: fn(&mut K)) {
        if let Self::Valid(object) = self {
            object.meta_mut().managed_fields = None;
            trim(object);
        }
    }
}

impl Identity {
    pub(super) fn of<K: kube::Resource>(object: &K) -> Self {
        let meta = object.meta();
        Self {
            key: ObjectKey::of(object),
            uid: meta.uid.clone().unwrap_or_default(),
            version: meta.resource_version.clone().unwrap_or_default(),
        }
    }

    fn read(value: &Value) -> Self {
        let text = |field| value["metadata"][field].as_str().unwrap_or_default().to_owned();
        Self {
            key: ObjectKey::new(text("namespace"), text("name")),
            uid: text("uid"),
            version: text("resourceVersion"),
        }
    }
}

impl<'de, K: DeserializeOwned> Deserialize<'de> for Guarded<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Ok(match K::deserialize(&value) {
            Ok(object) => Self::Valid(object),
            Err(error) => {
                Self::Invalid { identity: Identity::read(&value), error: error.to_string() }
            }
        })
    }
}
