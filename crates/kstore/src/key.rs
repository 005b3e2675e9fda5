//! What an object is stored under, and which objects a list or a watch covers.

use std::{fmt, sync::Arc};

/// Where an object is stored. Ordered by resource, then namespace, then name, which is the order
/// of every list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// "group/resource", for example `apps/deployments` or `/pods`.
    pub resource: Arc<str>,
    /// The namespace, or "" for a cluster-scoped object.
    pub namespace: Arc<str>,
    /// The object's name.
    pub name: Arc<str>,
}

impl Key {
    /// The key of one object; `namespace` is "" for a cluster-scoped one.
    pub fn new(
        resource: impl Into<Arc<str>>,
        namespace: impl Into<Arc<str>>,
        name: impl Into<Arc<str>>,
    ) -> Self {
        Self { resource: resource.into(), namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, namespace, name } = self;
        if namespace.is_empty() {
            write!(f, "{resource} {name}")
        } else {
            write!(f, "{resource} {namespace}/{name}")
        }
    }
}

/// The objects of one resource, in one namespace or in all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scope {
    /// "group/resource".
    pub resource: Arc<str>,
    /// One namespace, or all of them (and cluster-scoped objects).
    pub namespace: Option<Arc<str>>,
}

impl Scope {
    /// Every object of a resource.
    pub fn all(resource: impl Into<Arc<str>>) -> Self {
        Self { resource: resource.into(), namespace: None }
    }

    /// The objects of a resource in one namespace.
    pub fn in_namespace(resource: impl Into<Arc<str>>, namespace: impl Into<Arc<str>>) -> Self {
        Self { resource: resource.into(), namespace: Some(namespace.into()) }
    }

    /// Whether the object under `key` is covered.
    pub fn contains(&self, key: &Key) -> bool {
        self.resource == key.resource && self.covers_namespace(&key.namespace)
    }

    pub(crate) fn covers_namespace(&self, namespace: &str) -> bool {
        self.namespace.as_deref().is_none_or(|wanted| wanted == namespace)
    }
}
