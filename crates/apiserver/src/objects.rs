//! Parsed objects of the few kinds that every request needs (roles, bindings, webhooks).

use std::sync::Arc;

use fleetwright_kstore::{At, Key, Scope};
use serde_json::Value;

use crate::{
    auth::{ObjectSource, source::PODS},
    storage::{self, Storage},
};

/// Reads objects straight from the store.
pub struct Objects(Arc<Storage>);

impl Objects {
    /// Objects of `storage`.
    pub fn new(storage: Arc<Storage>) -> Self {
        Self(storage)
    }
}

impl ObjectSource for Objects {
    fn list(&self, resource: &str, namespace: Option<&str>) -> Vec<Arc<Value>> {
        let scope = match namespace {
            None => Scope::all(resource),
            Some(namespace) => Scope::in_namespace(resource, namespace),
        };
        let Ok(listing) = self.0.list(&scope, At::Latest, None) else { return Vec::new() };
        listing
            .items
            .iter()
            .filter_map(|stored| storage::parse(&stored.json).ok())
            .map(Arc::new)
            .collect()
    }

    fn get(&self, resource: &str, namespace: Option<&str>, name: &str) -> Option<Arc<Value>> {
        let key = Key::new(resource, namespace.unwrap_or_default(), name);
        let stored = self.0.get(&key)?;
        storage::parse(&stored.json).ok().map(Arc::new)
    }

    fn pods_of_node(&self, node: &str, namespace: &str) -> Vec<Arc<Value>> {
        let scope = Scope::in_namespace(PODS, namespace);
        let Ok(listing) = self.0.list(&scope, At::Latest, None) else { return Vec::new() };
        listing
            .items
            .iter()
            .filter(|pod| pod.meta.field("spec.nodeName") == Some(node))
            .filter_map(|stored| storage::parse(&stored.json).ok())
            .map(Arc::new)
            .collect()
    }

    fn version(&self, resource: &str) -> u64 {
        self.0.resource_revision(resource)
    }
}
