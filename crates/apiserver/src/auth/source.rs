//! Where roles, bindings, accounts and webhook configurations are read from.

use std::sync::Arc;

use serde_json::Value;

/// Service accounts, as an [`ObjectSource`] knows them.
pub const SERVICE_ACCOUNTS: &str = "/serviceaccounts";
/// Pods.
pub const PODS: &str = "/pods";
/// Secrets.
pub const SECRETS: &str = "/secrets";
/// Nodes.
pub const NODES: &str = "/nodes";
/// Namespaces.
pub const NAMESPACES: &str = "/namespaces";

/// The stored objects, as far as authentication, authorization and admission need them.
///
/// Resources are named with their group, as they are in the store: `/serviceaccounts`,
/// `rbac.authorization.k8s.io/roles`.
pub trait ObjectSource: Send + Sync {
    /// All objects of a resource, or those of one namespace.
    fn list(&self, resource: &str, namespace: Option<&str>) -> Vec<Arc<Value>>;

    /// One object; `namespace` is `None` for cluster-scoped resources.
    fn get(&self, resource: &str, namespace: Option<&str>, name: &str) -> Option<Arc<Value>>;

    /// The pods of one namespace that are bound to a node.
    fn pods_of_node(&self, node: &str, namespace: &str) -> Vec<Arc<Value>> {
        let mut pods = self.list(PODS, Some(namespace));
        pods.retain(|pod| crate::object::text(pod, &["spec", "nodeName"]) == node);
        pods
    }

    /// A number that changes whenever an object of the resource changes, and that is cheap to
    /// read: what is compiled from the objects is kept for as long as it stays the same.
    fn version(&self, resource: &str) -> u64;
}

impl<T: ObjectSource + ?Sized> ObjectSource for Arc<T> {
    fn list(&self, resource: &str, namespace: Option<&str>) -> Vec<Arc<Value>> {
        (**self).list(resource, namespace)
    }

    fn get(&self, resource: &str, namespace: Option<&str>, name: &str) -> Option<Arc<Value>> {
        (**self).get(resource, namespace, name)
    }

    fn pods_of_node(&self, node: &str, namespace: &str) -> Vec<Arc<Value>> {
        (**self).pods_of_node(node, namespace)
    }

    fn version(&self, resource: &str) -> u64 {
        (**self).version(resource)
    }
}

/// A source of objects in memory, for tests.
#[cfg(test)]
pub(crate) mod memory {
    use std::{
        collections::BTreeMap,
        sync::{
            Arc,
            atomic::{AtomicU64, Ordering},
        },
    };

    use parking_lot::Mutex;
    use serde_json::Value;

    use super::ObjectSource;
    use crate::object;

    type Key = (String, String, String);

    /// Objects by resource, namespace and name.
    #[derive(Default)]
    pub(crate) struct MemorySource {
        objects: Mutex<BTreeMap<Key, Arc<Value>>>,
        versions: Mutex<BTreeMap<String, u64>>,
        clock: AtomicU64,
        /// How often a list was asked for.
        pub(crate) lists: AtomicU64,
    }

    impl MemorySource {
        /// Stores an object and gives it a resource version.
        pub(crate) fn put(&self, resource: &str, mut value: Value) {
            let version = self.clock.fetch_add(1, Ordering::Relaxed) + 1;
            object::set(&mut value, &["metadata", "resourceVersion"], version.to_string());
            object::default(&mut value, &["metadata", "uid"], format!("uid-{version}"));
            let key = (
                resource.to_owned(),
                object::namespace(&value).to_owned(),
                object::name(&value).to_owned(),
            );
            self.objects.lock().insert(key, Arc::new(value));
            self.versions.lock().insert(resource.to_owned(), version);
        }

        /// Takes an object away.
        pub(crate) fn delete(&self, resource: &str, namespace: &str, name: &str) {
            let version = self.clock.fetch_add(1, Ordering::Relaxed) + 1;
            self.objects.lock().remove(&(
                resource.to_owned(),
                namespace.to_owned(),
                name.to_owned(),
            ));
            self.versions.lock().insert(resource.to_owned(), version);
        }
    }

    impl ObjectSource for MemorySource {
        fn list(&self, resource: &str, namespace: Option<&str>) -> Vec<Arc<Value>> {
            self.lists.fetch_add(1, Ordering::Relaxed);
            self.objects
                .lock()
                .iter()
                .filter(|((r, ns, _), _)| r == resource && namespace.is_none_or(|n| n == ns))
                .map(|(_, value)| Arc::clone(value))
                .collect()
        }

        fn get(&self, resource: &str, namespace: Option<&str>, name: &str) -> Option<Arc<Value>> {
            let key =
                (resource.to_owned(), namespace.unwrap_or_default().to_owned(), name.to_owned());
            self.objects.lock().get(&key).cloned()
        }

        fn version(&self, resource: &str) -> u64 {
            self.versions.lock().get(resource).copied().unwrap_or_default()
        }
    }
}
