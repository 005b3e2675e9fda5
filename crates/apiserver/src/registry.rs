//! The resources that are served.

use std::{collections::BTreeMap, sync::Arc};

use fleetwright_kschema::CompiledSchema;
use parking_lot::RwLock;

use crate::{
    gvk::{GroupResource, GroupVersion, GroupVersionKind},
    kinds::Kind,
};

/// One resource in one version.
pub struct Resource {
    /// What its objects are.
    pub gvk: GroupVersionKind,
    /// `pods`.
    pub plural: Arc<str>,
    /// `pod`.
    pub singular: Arc<str>,
    /// `PodList`.
    pub list_kind: Arc<str>,
    /// Short names for kubectl.
    pub short_names: Vec<String>,
    /// Categories for kubectl, such as `all`.
    pub categories: Vec<String>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Where its objects are stored: `group/plural`.
    pub storage: Arc<str>,
    /// The version that they are stored in.
    pub storage_version: GroupVersion,
    /// Where its shape is described.
    pub schema: Schema,
    /// Whether there is a `status` subresource.
    pub status: bool,
    /// The `scale` subresource.
    pub scale: Option<Scale>,
    /// The warning for everybody who uses this version.
    pub deprecation: Option<String>,
    /// What is special about it.
    pub kind: Arc<dyn Kind>,
}

/// Where the shape of a kind is described.
#[derive(Clone)]
pub enum Schema {
    /// In the OpenAPI document of Kubernetes.
    Builtin,
    /// In a CustomResourceDefinition.
    Custom(Arc<CustomSchema>),
}

/// The shape of a custom kind.
pub struct CustomSchema {
    /// Pruning, defaults and validation.
    pub compiled: CompiledSchema,
    /// Who owns what.
    pub managed: fleetwright_smd::schema::Schema,
    /// Fields that selectors may name, as JSON paths.
    pub selectable: Vec<String>,
}

/// Where a kind keeps what its `scale` subresource shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Such as `.spec.replicas`.
    pub spec_replicas: String,
    /// Such as `.status.replicas`.
    pub status_replicas: String,
    /// Such as `.status.selector`, a string; empty if there is none.
    pub selector: String,
    /// Whether the selector is an object (`spec.selector`), as in built-in kinds.
    pub selector_is_object: bool,
}

impl Resource {
    /// The group and plural name, as in messages.
    pub fn group_resource(&self) -> GroupResource {
        GroupResource { group: self.gvk.group.clone(), resource: self.plural.clone() }
    }

    /// The group and version.
    pub fn group_version(&self) -> GroupVersion {
        self.gvk.group_version()
    }

    /// Whether it is described by a CustomResourceDefinition.
    pub fn is_custom(&self) -> bool {
        matches!(self.schema, Schema::Custom(_))
    }
}

type Table = BTreeMap<(Arc<str>, Arc<str>, Arc<str>), Arc<Resource>>;

/// All resources that are served now. Readers take a snapshot; CustomResourceDefinitions replace
/// it.
#[derive(Default)]
pub struct Registry(RwLock<Arc<Table>>);

impl Registry {
    /// Looks a resource up by group, version and plural name.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        let table = self.snapshot();
        table.get(&(group.into(), version.into(), plural.into())).cloned()
    }

    /// Looks a resource up by group, version and kind.
    pub fn find_kind(&self, group: &str, version: &str, kind: &str) -> Option<Arc<Resource>> {
        self.all()
            .into_iter()
            .find(|r| *r.gvk.group == *group && *r.gvk.version == *version && *r.gvk.kind == *kind)
    }

    /// Whether anything of this group is served.
    pub fn has_group(&self, group: &str) -> bool {
        self.snapshot().keys().any(|(g, ..)| **g == *group)
    }

    /// Every resource, by group, version and name.
    pub fn all(&self) -> Vec<Arc<Resource>> {
        self.snapshot().values().cloned().collect()
    }

    /// One resource for each kind of stored object, in its storage version if that is served.
    pub fn stored(&self) -> Vec<Arc<Resource>> {
        let mut by_storage: BTreeMap<Arc<str>, Arc<Resource>> = BTreeMap::new();
        for resource in self.all() {
            let preferred = resource.group_version() == resource.storage_version;
            if preferred || !by_storage.contains_key(&resource.storage) {
                by_storage.insert(resource.storage.clone(), resource);
            }
        }
        by_storage.into_values().collect()
    }

    /// Adds resources.
    pub fn add(&self, resources: impl IntoIterator<Item = Resource>) {
        let mut guard = self.0.write();
        let mut table = Table::clone(&guard);
        for resource in resources {
            table.insert(key(&resource), Arc::new(resource));
        }
        *guard = Arc::new(table);
    }

    /// Replaces all versions of one custom resource; an empty list removes it.
    pub fn replace(&self, group: &str, plural: &str, resources: Vec<Resource>) {
        let mut guard = self.0.write();
        let mut table = Table::clone(&guard);
        table.retain(|(g, _, p), _| !(**g == *group && **p == *plural));
        for resource in resources {
            table.insert(key(&resource), Arc::new(resource));
        }
        *guard = Arc::new(table);
    }

    fn snapshot(&self) -> Arc<Table> {
        Arc::clone(&self.0.read())
    }
}

fn key(resource: &Resource) -> (Arc<str>, Arc<str>, Arc<str>) {
    (resource.gvk.group.clone(), resource.gvk.version.clone(), resource.plural.clone())
}
