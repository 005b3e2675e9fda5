//! A local, sorted copy of the objects of one kind, kept up to date, and news of their changes.
//!
//! Informers own the truth about deletes: an object that a new list no longer has was deleted,
//! also when nobody saw the event, and an object with another UID under the same name means that
//! the old one was deleted. Listeners hear of both as [`Change::Deleted`].
//!
//! The copy has no `managedFields`: nobody here reads them, and they are often half of an object.
//!
//! Objects that do not fit their type are skipped, counted and logged. They do not count as
//! deleted: the last version that was understood stays.

mod guard;
mod list_watch;
mod store;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use fleetwright_clock::Random;
use kube::{Api, Resource};
use parking_lot::{Mutex, RwLock};
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use self::{
    guard::Guarded,
    list_watch::{News, Source},
    store::Store,
};
use crate::{
    ObjectKey,
    metrics::{InformerMetrics, Metrics},
    panic_message,
};

pub use list_watch::Selection;
pub use store::Change;

/// Watches the objects of one [`Api`]. Clones share the copy.
pub struct Informer<K>(Arc<Shared<K>>);

struct Shared<K> {
    source: Source,
    /// Takes away what nobody reads.
    trim: fn(&mut K),
    store: RwLock<Store<K>>,
    /// Held while a change is told, so that a new listener misses nothing and hears nothing
    /// twice.
    listeners: Mutex<Vec<Listener<K>>>,
    synced: watch::Sender<bool>,
    metrics: InformerMetrics,
}

/// Hears a change; false when it wants to hear no more.
type Listener<K> = Box<dyn Fn(&Change<K>) -> bool + Send>;

impl<K> Informer<K>
where
    K: Resource + Clone + DeserializeOwned + fmt::Debug + Send + Sync + 'static,
{
    /// An informer of everything that `api` shows. It is empty until [`Informer::run`].
    pub fn new(name: &str, api: Api<K>, metrics: &Metrics) -> Self {
        Self::selecting(name, api, Selection::default(), metrics)
    }

    /// An informer of the objects that match `selection`.
    pub fn selecting(name: &str, api: Api<K>, selection: Selection, metrics: &Metrics) -> Self {
        Self::with(name, api, selection, |_| {}, metrics)
    }

    /// An informer of everything that `api` shows, which keeps each object without what `trim`
    /// takes away: for kinds of which there are many, and of which little is read.
    pub fn trimming(name: &str, api: Api<K>, trim: fn(&mut K), metrics: &Metrics) -> Self {
        Self::with(name, api, Selection::default(), trim, metrics)
    }

    fn with(
        name: &str,
        api: Api<K>,
        selection: Selection,
        trim: fn(&mut K),
        metrics: &Metrics,
    ) -> Self {
        let source = Source {
            name: name.to_owned(),
            url: api.resource_url().to_owned(),
            client: api.into_client(),
            metadata_only: K::metadata_api(),
            selection,
        };
        Self(Arc::new(Shared {
            source,
            trim,
            store: RwLock::default(),
            listeners: Mutex::default(),
            synced: watch::Sender::new(false),
            metrics: metrics.informer(name),
        }))
    }

    /// Lists and watches until `stop`. To be called once.
    pub async fn run(self, random: Random, stop: CancellationToken) {
        let shared = &self.0;
        let follow =
            shared.source.follow(random, &shared.metrics, shared.trim, |news| shared.take_in(news));
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = follow => {}
        }
    }

    /// The informer's name.
    pub fn name(&self) -> &str {
        &self.0.source.name
    }

    /// Whether the first list has come in and all listeners have heard of it.
    pub fn has_synced(&self) -> bool {
        *self.0.synced.borrow()
    }

    /// Waits until [`Informer::has_synced`].
    pub async fn wait_synced(&self) {
        // The sender lives as long as the informer.
        let _ = self.0.synced.subscribe().wait_for(|synced| *synced).await;
    }

    /// One object.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.0.store.read().get(key).cloned()
    }

    /// All objects, sorted by namespace and name.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.0.store.read().all().cloned().collect()
    }

    /// The objects of one namespace, sorted by name.
    pub fn list_in(&self, namespace: &str) -> Vec<Arc<K>> {
        self.0.store.read().in_namespace(namespace).cloned().collect()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.0.store.read().len()
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Lets objects be found by the values that `values_of` gives, which must depend on the
    /// object alone.
    pub fn index<F>(&self, name: &str, values_of: F)
    where
        F: Fn(&K) -> Vec<String> + Send + Sync + 'static,
    {
        self.0.store.write().add_index(name, Arc::new(values_of));
    }

    /// The objects that an index has under `value`, sorted by namespace and name.
    pub fn by_index(&self, name: &str, value: &str) -> Vec<Arc<K>> {
        let found = self.0.store.read().by_index(name, value);
        debug_assert!(found.is_some(), "informer {} has no index {name}", self.name());
        found.unwrap_or_default()
    }

    /// Calls `listen` for every change, in order, after the copy has it. What is known already
    /// is told first. `listen` must be quick and must not add listeners; it may panic.
    pub fn on_change(&self, listen: impl Fn(&Change<K>) + Send + 'static) {
        self.0.listen(Box::new(move |change| {
            listen(change);
            true
        }));
    }

    /// Every change, in order, for a listener that may be slow. What is known already comes
    /// first. Drop the receiver to end it.
    pub fn subscribe(&self) -> mpsc::UnboundedReceiver<Change<K>> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.0.listen(Box::new(move |change| sender.send(change.clone()).is_ok()));
        receiver
    }
}

impl<K: Resource> Shared<K> {
    fn take_in(&self, news: News<K>) {
        let mut listeners = self.listeners.lock();
        let first_list = matches!(news, News::Listed(_)) && !*self.synced.borrow();
        let changes = {
            let mut store = self.store.write();
            let changes = match news {
                News::Listed(listed) => {
                    for object in &listed {
                        self.complain(object);
                    }
                    store.replace(listed)
                }
                News::Applied(object) => {
                    self.complain(&object);
                    match object {
                        Guarded::Valid(object) => store.apply(object),
                        Guarded::Invalid { .. } => Vec::new(),
                    }
                }
                News::Deleted(object) => {
                    let gone = object.identity();
                    let last = match object {
                        Guarded::Valid(object) => Some(object),
                        Guarded::Invalid { .. } => None,
                    };
                    store.remove(&gone, last).into_iter().collect()
                }
            };
            self.metrics.objects.set(i64::try_from(store.len()).unwrap_or(i64::MAX));
            changes
        };
        for change in &changes {
            listeners.retain(|listener| self.tell(listener, change));
        }
        drop(listeners);
        if first_list {
            self.synced.send_replace(true);
        }
    }

    fn listen(&self, listener: Listener<K>) {
        let mut listeners = self.listeners.lock();
        let known: Vec<_> = self.store.read().all().cloned().map(Change::Added).collect();
        if known.iter().all(|change| self.tell(&listener, change)) {
            listeners.push(listener);
        }
    }

    /// One listener's panic is not the others' loss.
    fn tell(&self, listener: &Listener<K>, change: &Change<K>) -> bool {
        catch_unwind(AssertUnwindSafe(|| listener(change))).unwrap_or_else(|panic| {
            self.metrics.handler_panics.inc();
            let panic = panic_message(panic.as_ref());
            tracing::error!(informer = self.source.name, panic, "a listener panicked");
            true
        })
    }

    fn complain(&self, object: &Guarded<K>) {
        if let Guarded::Invalid { identity, error } = object {
            self.metrics.invalid.inc();
            tracing::warn!(
                informer = self.source.name,
                object = %identity.key,
                error,
                "skipped an object that does not fit its type"
            );
        }
    }
}

impl<K> Clone for Informer<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K> fmt::Debug for Informer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Informer").field(&self.0.source.name).finish()
    }
}
