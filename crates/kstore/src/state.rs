//! What readers see: the objects as of the latest revision, and the recent events.
//!
//! Revisions are dense, one event each, so the history is a queue whose front is the revision
//! after `compacted`. Older states are not kept: an event holds the object before it, so a list
//! at an older revision is the current one with the newer events undone.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
    sync::Arc,
};

use tokio::sync::Notify;

use crate::{
    batch::Batch,
    key::{Key, Scope},
    object::Stored,
    write::{At, Event, EventKind, ListError, Listing, Options},
};

/// The revision of an empty store. Not 0, which Kubernetes clients read as "any revision".
pub(crate) const FIRST_REVISION: u64 = 1;

/// What an event costs besides the bytes of its object, roughly.
const EVENT_OVERHEAD: usize = 256;

pub(crate) struct State<M> {
    pub(crate) revision: u64,
    /// Events up to and with this revision are forgotten.
    pub(crate) compacted: u64,
    pub(crate) resources: BTreeMap<Arc<str>, Resource<M>>,
    /// One mark for each remembered event, oldest first.
    marks: VecDeque<Mark>,
    /// The sum of the marks' bytes.
    bytes: usize,
}

/// Everything that a file holds.
pub(crate) struct Snapshot<M> {
    pub(crate) revision: u64,
    pub(crate) compacted: u64,
    pub(crate) objects: Vec<Arc<Stored<M>>>,
    /// With their times, oldest first.
    pub(crate) events: Vec<(Event<M>, i64)>,
}

/// The objects of one namespace.
pub(crate) type Names<M> = BTreeMap<Arc<str>, Arc<Stored<M>>>;

pub(crate) struct Resource<M> {
    /// By namespace and name.
    pub(crate) objects: BTreeMap<Arc<str>, Names<M>>,
    /// The remembered events of this resource, oldest first.
    pub(crate) events: VecDeque<Event<M>>,
    /// The newest event of this resource that is forgotten.
    pub(crate) forgotten: u64,
    /// Wakes the watches of this resource only.
    pub(crate) changed: Arc<Notify>,
}

/// What is needed to forget an event, without looking at it.
struct Mark {
    resource: Arc<str>,
    bytes: usize,
    /// When it happened, in milliseconds since 1970.
    at: i64,
}

impl Mark {
    fn of<M>(event: &Event<M>, at: i64) -> Self {
        Self {
            resource: Arc::clone(&event.object.key.resource),
            bytes: event.object.json.len() + EVENT_OVERHEAD,
            at,
        }
    }
}

impl<M> Default for Resource<M> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            events: VecDeque::new(),
            forgotten: 0,
            changed: Arc::default(),
        }
    }
}

impl<M> Resource<M> {
    /// The revision of the last event, or of the newest object after a restart that forgot it.
    pub(crate) fn last_revision(&self) -> u64 {
        self.events.back().map_or(self.forgotten, |event| event.revision)
    }
}

impl<M> State<M> {
    pub(crate) fn empty() -> Self {
        Self::at(FIRST_REVISION, FIRST_REVISION)
    }

    /// An empty state, to be filled by [`State::load`] and [`State::recall`].
    pub(crate) fn at(revision: u64, compacted: u64) -> Self {
        Self { revision, compacted, resources: BTreeMap::new(), marks: VecDeque::new(), bytes: 0 }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<Stored<M>>> {
        self.resources.get(&key.resource)?.objects.get(&key.namespace)?.get(&key.name)
    }

    /// The same key, sharing what is already in memory: thousands of objects have few resources
    /// and namespaces.
    pub(crate) fn share(&self, mut key: Key) -> Key {
        if let Some((resource, Resource { objects, .. })) =
            self.resources.get_key_value(&key.resource)
        {
            key.resource = Arc::clone(resource);
            if let Some((namespace, names)) = objects.get_key_value(&key.namespace) {
                key.namespace = Arc::clone(namespace);
                if let Some((name, _)) = names.get_key_value(&key.name) {
                    key.name = Arc::clone(name);
                }
            }
        }
        key
    }

    pub(crate) fn resource(&mut self, name: &Arc<str>) -> &mut Resource<M> {
        self.resources.entry(Arc::clone(name)).or_default()
    }

    /// Puts an object in place without an event.
    pub(crate) fn load(&mut self, object: &Arc<Stored<M>>) {
        self.resource(&object.key.resource).put(object);
    }

    /// All of it, for a new file.
    pub(crate) fn snapshot(&self) -> Snapshot<M> {
        let resources = || self.resources.values();
        let mut events: Vec<Event<M>> =
            resources().flat_map(|resource| &resource.events).cloned().collect();
        events.sort_unstable_by_key(|event| event.revision);
        Snapshot {
            revision: self.revision,
            compacted: self.compacted,
            objects: resources()
                .flat_map(|resource| resource.objects.values())
                .flat_map(BTreeMap::values)
                .cloned()
                .collect(),
            events: events.into_iter().zip(self.marks.iter().map(|mark| mark.at)).collect(),
        }
    }

    /// Appends an event of the past without its effect.
    pub(crate) fn recall(&mut self, event: Event<M>, at: i64) {
        let mark = Mark::of(&event, at);
        self.bytes += mark.bytes;
        self.resource(&mark.resource).events.push_back(event);
        self.marks.push_back(mark);
    }

    /// Up to which revision to forget once `batch` is in, to stay within the options.
    pub(crate) fn floor_with(&self, batch: &Batch<M>, options: &Options) -> u64 {
        let added: Vec<Mark> = batch.events.iter().map(|event| Mark::of(event, batch.at)).collect();
        let mut count = self.marks.len() + added.len();
        let mut bytes = self.bytes + added.iter().map(|mark| mark.bytes).sum::<usize>();
        let age = i64::try_from(options.history_age.as_millis()).unwrap_or(i64::MAX);
        let oldest = batch.at.saturating_sub(age);
        let mut floor = self.compacted;
        for mark in self.marks.iter().chain(&added) {
            let keep = count <= options.history_events
                && bytes <= options.history_bytes
                && mark.at >= oldest;
            if keep && floor >= batch.forget_to {
                break;
            }
            floor += 1;
            count -= 1;
            bytes -= mark.bytes;
        }
        floor
    }

    /// Makes a batch visible, all at once, and returns whom to wake.
    pub(crate) fn publish(&mut self, batch: Batch<M>, floor: u64) -> Vec<Arc<Notify>> {
        let mut touched: BTreeMap<Arc<str>, Arc<Notify>> = BTreeMap::new();
        for event in batch.events {
            self.revision = event.revision;
            let resource = self.resource(&event.object.key.resource);
            touched
                .entry(Arc::clone(&event.object.key.resource))
                .or_insert_with(|| Arc::clone(&resource.changed));
            match event.kind {
                EventKind::Added | EventKind::Modified => resource.put(&event.object),
                EventKind::Deleted => resource.remove(&event.object.key),
            }
            self.recall(event, batch.at);
        }
        self.forget(floor);
        touched.into_values().collect()
    }

    fn forget(&mut self, floor: u64) {
        while self.compacted < floor {
            let Some(mark) = self.marks.pop_front() else { return };
            self.compacted += 1;
            self.bytes -= mark.bytes;
            let revision = self.compacted;
            let resource = self.resource(&mark.resource);
            resource.events.pop_front();
            resource.forgotten = revision;
        }
    }

    pub(crate) fn list(
        &self,
        scope: &Scope,
        at: At,
        after: Option<(&str, &str)>,
    ) -> Result<Listing<M>, ListError> {
        let revision = match at {
            At::Latest => self.revision,
            At::Revision(revision) => revision.max(FIRST_REVISION),
        };
        if revision > self.revision {
            return Err(ListError::Future);
        }
        if revision < self.compacted {
            return Err(ListError::Compacted);
        }
        let items = self
            .resources
            .get(&scope.resource)
            .map(|resource| resource.list(scope, revision, after))
            .unwrap_or_default();
        Ok(Listing { revision, items })
    }

    /// The objects per resource.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&Arc<str>, usize)> {
        self.resources.iter().map(|(name, resource)| {
            (name, resource.objects.values().map(BTreeMap::len).sum::<usize>())
        })
    }
}

impl<M> Resource<M> {
    fn put(&mut self, object: &Arc<Stored<M>>) {
        let Key { namespace, name, .. } = &object.key;
        self.objects
            .entry(Arc::clone(namespace))
            .or_default()
            .insert(Arc::clone(name), Arc::clone(object));
    }

    fn remove(&mut self, key: &Key) {
        if let Some(names) = self.objects.get_mut(&key.namespace) {
            names.remove(&key.name);
            if names.is_empty() {
                self.objects.remove(&key.namespace);
            }
        }
    }

    /// Where the events after `revision` begin.
    pub(crate) fn events_after(&self, revision: u64) -> usize {
        self.events.partition_point(|event| event.revision <= revision)
    }

    pub(crate) fn list(
        &self,
        scope: &Scope,
        revision: u64,
        after: Option<(&str, &str)>,
    ) -> Vec<Arc<Stored<M>>> {
        let current = self.current(scope, after);
        // Going back from the newest event, the last one undone of each object decides.
        let mut undone: BTreeMap<(&str, &str), Option<&Arc<Stored<M>>>> = BTreeMap::new();
        for event in self.events.range(self.events_after(revision)..).rev() {
            let key = &event.object.key;
            let place = (&*key.namespace, &*key.name);
            if scope.covers_namespace(&key.namespace) && after.is_none_or(|after| place > after) {
                undone.insert(place, event.previous.as_ref());
            }
        }
        if undone.is_empty() {
            return current.cloned().collect();
        }
        let mut items: BTreeMap<(&str, &str), &Arc<Stored<M>>> =
            current.map(|item| ((&*item.key.namespace, &*item.key.name), item)).collect();
        for (place, previous) in undone {
            match previous {
                Some(item) => items.insert(place, item),
                None => items.remove(&place),
            };
        }
        items.into_values().cloned().collect()
    }

    /// The objects in scope, strictly after a place, in order.
    fn current(
        &self,
        scope: &Scope,
        after: Option<(&str, &str)>,
    ) -> impl Iterator<Item = &Arc<Stored<M>>> {
        let namespaces: (Bound<&str>, Bound<&str>) = match (scope.namespace.as_deref(), after) {
            (Some(one), _) => (Bound::Included(one), Bound::Included(one)),
            (None, Some((namespace, _))) => (Bound::Included(namespace), Bound::Unbounded),
            (None, None) => (Bound::Unbounded, Bound::Unbounded),
        };
        self.objects
            .range::<str, _>(namespaces)
            // Matters only to a scope of one namespace that lies before the place.
            .filter(move |(namespace, _)| after.is_none_or(|(last, _)| last <= &***namespace))
            .flat_map(move |(namespace, names)| {
                let from = match after {
                    Some((last, name)) if last == &**namespace => Bound::Excluded(name),
                    _ => Bound::Unbounded,
                };
                names.range::<str, _>((from, Bound::Unbounded))
            })
            .map(|(_, object)| object)
    }
}
