//! The objects that an informer knows, sorted, with indices.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kube::Resource;

use super::guard::{Guarded, Identity};
use crate::ObjectKey;

/// What happened to an object.
#[derive(Debug)]
pub enum Change<K> {
    /// It was not known before.
    Added(Arc<K>),
    /// It is another version of the same object.
    Modified {
        /// As it was known before.
        old: Arc<K>,
        /// As it is now.
        new: Arc<K>,
    },
    /// It is gone: deleted, replaced under the same name, or missing from a new list.
    Deleted {
        /// The last that was known of it.
        last: Arc<K>,
    },
}

impl<K> Change<K> {
    /// The object as it is now, or as it was last known.
    pub fn object(&self) -> &Arc<K> {
        match self {
            Self::Added(object) | Self::Modified { new: object, .. } => object,
            Self::Deleted { last } => last,
        }
    }

    /// All that is known of the object: before and after.
    pub fn objects(&self) -> impl Iterator<Item = &Arc<K>> {
        let (first, second) = match self {
            Self::Added(object) | Self::Deleted { last: object } => (object, None),
            Self::Modified { old, new } => (old, Some(new)),
        };
        std::iter::once(first).chain(second)
    }
}

impl<K> Clone for Change<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Added(object) => Self::Added(object.clone()),
            Self::Modified { old, new } => Self::Modified { old: old.clone(), new: new.clone() },
            Self::Deleted { last } => Self::Deleted { last: last.clone() },
        }
    }
}

/// The values under which an object is found.
pub(super) type IndexFn<K> = Arc<dyn Fn(&K) -> Vec<String> + Send + Sync>;

struct Index<K> {
    values_of: IndexFn<K>,
    keys: BTreeMap<String, BTreeSet<ObjectKey>>,
}

pub(super) struct Store<K> {
    objects: BTreeMap<ObjectKey, Arc<K>>,
    indices: BTreeMap<String, Index<K>>,
}

impl<K> Default for Store<K> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), indices: BTreeMap::new() }
    }
}

impl<K: Resource> Store<K> {
    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Arc<K>> {
        self.objects.get(key)
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<K>> {
        self.objects.values()
    }

    pub(super) fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = &Arc<K>> {
        self.objects
            .range(ObjectKey::new(namespace, "")..)
            .take_while(move |(key, _)| key.namespace == namespace)
            .map(|(_, object)| object)
    }

    pub(super) fn add_index(&mut self, name: &str, values_of: IndexFn<K>) {
        let mut index = Index { values_of, keys: BTreeMap::new() };
        for (key, object) in &self.objects {
            index.insert(key, object);
        }
        self.indices.insert(name.to_owned(), index);
    }

    /// The objects under a value, or `None` if there is no such index.
    pub(super) fn by_index(&self, name: &str, value: &str) -> Option<Vec<Arc<K>>> {
        let keys = self.indices.get(name)?.keys.get(value);
        let objects = keys.into_iter().flatten().filter_map(|key| self.objects.get(key));
        Some(objects.cloned().collect())
    }

    /// Takes in one object. Nothing changes if this version of it is known already.
    pub(super) fn apply(&mut self, object: K) -> Vec<Change<K>> {
        let identity = Identity::of(&object);
        let known = self.objects.get(&identity.key).map(|known| Identity::of(known.as_ref()));
        if known.as_ref() == Some(&identity) && !identity.version.is_empty() {
            return Vec::new();
        }
        let new = Arc::new(object);
        let Some(old) = self.insert(identity.key, new.clone()) else {
            return vec![Change::Added(new)];
        };
        if known.is_some_and(|known| known.uid == identity.uid) {
            vec![Change::Modified { old, new }]
        } else {
            // Deleted and created again behind our back.
            vec![Change::Deleted { last: old }, Change::Added(new)]
        }
    }

    /// Forgets an object that the server says is gone. `last` is its final state, if it could
    /// be understood.
    pub(super) fn remove(&mut self, gone: &Identity, last: Option<K>) -> Option<Change<K>> {
        let known = self.objects.get(&gone.key)?;
        let known_uid = known.meta().uid.as_deref().unwrap_or_default();
        if !gone.uid.is_empty() && known_uid != gone.uid {
            // News of an earlier object of this name.
            return None;
        }
        let known = self.take(&gone.key)?;
        Some(Change::Deleted { last: last.map_or(known, Arc::new) })
    }

    /// Takes in a complete list: what is not in it is gone. An object that is there but cannot
    /// be understood stays as it was last understood.
    pub(super) fn replace(&mut self, listed: Vec<Guarded<K>>) -> Vec<Change<K>> {
        let present: BTreeMap<ObjectKey, String> = listed
            .iter()
            .map(Guarded::identity)
            .map(|identity| (identity.key, identity.uid))
            .collect();
        let gone: Vec<ObjectKey> = self
            .objects
            .iter()
            .filter(|(key, object)| {
                present.get(key).is_none_or(|uid| {
                    !uid.is_empty() && object.meta().uid.as_ref().is_some_and(|known| known != uid)
                })
            })
            .map(|(key, _)| key.clone())
            .collect();
        let mut changes: Vec<_> = gone
            .iter()
            .filter_map(|key| self.take(key))
            .map(|last| Change::Deleted { last })
            .collect();
        for object in listed {
            if let Guarded::Valid(object) = object {
                changes.append(&mut self.apply(object));
            }
        }
        changes
    }

    fn insert(&mut self, key: ObjectKey, object: Arc<K>) -> Option<Arc<K>> {
        let old = self.take(&key);
        for index in self.indices.values_mut() {
            index.insert(&key, &object);
        }
        self.objects.insert(key, object);
        old
    }

    fn take(&mut self, key: &ObjectKey) -> Option<Arc<K>> {
        let object = self.objects.remove(key)?;
        for index in self.indices.values_mut() {
            index.remove(key, &object);
        }
        Some(object)
    }
}

impl<K> Index<K> {
    fn insert(&mut self, key: &ObjectKey, object: &K) {
        for value in (self.values_of)(object) {
            self.keys.entry(value).or_default().insert(key.clone());
        }
    }

    fn remove(&mut self, key: &ObjectKey, object: &K) {
        for value in (self.values_of)(object) {
            if let Some(keys) = self.keys.get_mut(&value) {
                keys.remove(key);
                if keys.is_empty() {
                    self.keys.remove(&value);
                }
            }
        }
    }
}
