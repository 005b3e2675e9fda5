//! What is there, read in batches.
//!
//! One paginated read per account, region and cluster feeds a cache whose age is known. Nobody
//! asks the cloud about a single instance on the steady path: whoever needs to know something
//! newer than a moment asks for a read that began after it, and all who do so at about the same
//! time share one call.
//!
//! Clouds show a new instance late. What this process did itself is therefore written through and
//! outlives reads that do not show it yet, for a grace time.

mod index;
mod overlay;

use std::{
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use parking_lot::Mutex;
use tokio::{sync::mpsc, time::Instant};

use crate::{Cloud, CloudError, Instance, Tag};
use index::Index;
use overlay::Overlay;

/// How an inventory behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InventoryOptions {
    /// A read waits this long before it begins, so that those who need one at about the same time
    /// share it.
    pub gather: Duration,
    /// How long what we did ourselves counts although reads do not show it.
    pub grace: Duration,
    /// The same for tags. It is longer: to put them on again is of no use, and nobody decides
    /// anything by a tag that is missing.
    pub tag_grace: Duration,
}

impl Default for InventoryOptions {
    fn default() -> Self {
        Self {
            gather: Duration::from_millis(200),
            grace: Duration::from_secs(90),
            tag_grace: Duration::from_mins(15),
        }
    }
}

/// An instance appeared, changed or went away.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The instance's identifier.
    pub id: String,
    /// As it was; none when it is new.
    pub before: Option<Arc<Instance>>,
    /// As it is; none when it is gone.
    pub after: Option<Arc<Instance>>,
}

impl Change {
    /// The newest that is known of it.
    pub fn instance(&self) -> Option<&Arc<Instance>> {
        self.after.as_ref().or(self.before.as_ref())
    }
}

/// The instances of a cluster in one account and region. Clones share everything.
#[derive(Clone)]
pub struct Inventory(Arc<Inner>);

struct Inner {
    cloud: Arc<dyn Cloud>,
    cluster: String,
    options: InventoryOptions,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    index: Index,
    overlay: Overlay,
    /// When the newest read that is in `index` began.
    read_at: Option<Instant>,
    under_way: Option<Read>,
    listeners: Vec<mpsc::UnboundedSender<Change>>,
}

/// A read that is under way. It makes progress while somebody waits for it.
#[derive(Clone)]
struct Read {
    /// None while it gathers: it will begin after whatever moment is now.
    began: Option<Instant>,
    done: Shared<BoxFuture<'static, Result<(), CloudError>>>,
}

impl Inventory {
    /// An inventory that has read nothing yet.
    pub fn new(
        cloud: Arc<dyn Cloud>,
        cluster: impl Into<String>,
        options: InventoryOptions,
    ) -> Self {
        let cluster = cluster.into();
        Self(Arc::new(Inner { cloud, cluster, options, state: Mutex::default() }))
    }

    /// The cloud that it reads.
    pub fn cloud(&self) -> &Arc<dyn Cloud> {
        &self.0.cloud
    }

    /// Makes sure that what is known is not older than `moment`: a read that began then or later
    /// is waited for, and shared with all who want one.
    pub async fn since(&self, moment: Instant) -> Result<(), CloudError> {
        loop {
            let (read, new_enough) = {
                let mut state = self.0.state.lock();
                if state.read_at.is_some_and(|read_at| read_at >= moment) {
                    return Ok(());
                }
                let read = state.under_way.get_or_insert_with(|| self.begin()).clone();
                let new_enough = read.began.is_none_or(|began| began >= moment);
                (read, new_enough)
            };
            let outcome = read.done.await;
            if new_enough {
                return outcome;
            }
        }
    }

    /// Makes sure that what is known is at most this old.
    pub async fn at_most(&self, age: Duration) -> Result<(), CloudError> {
        let now = Instant::now();
        match now.checked_sub(age) {
            Some(moment) => self.since(moment).await,
            None if self.age().is_some() => Ok(()),
            None => self.since(now).await,
        }
    }

    /// Reads again and again, `period` apart, until it is dropped. Errors are left to those who
    /// wait for a read; here they only mean to try again.
    pub async fn keep_fresh(&self, period: Duration) {
        loop {
            let age = self.age().unwrap_or(period);
            if age >= period {
                // A failed read leaves the age as it is: wait before trying again.
                if self.at_most(period.saturating_sub(Duration::from_millis(1))).await.is_err() {
                    tokio::time::sleep(period).await;
                }
            } else {
                tokio::time::sleep(period.saturating_sub(age)).await;
            }
        }
    }

    /// How long ago the newest read began; none before the first.
    pub fn age(&self) -> Option<Duration> {
        self.read_at().map(|read_at| read_at.elapsed())
    }

    /// When the newest read began.
    pub fn read_at(&self) -> Option<Instant> {
        self.0.state.lock().read_at
    }

    /// The instance with this identifier.
    pub fn get(&self, id: &str) -> Option<Arc<Instance>> {
        self.0.state.lock().index.get(id)
    }

    /// The instances of a Machine. More than one means that something went wrong.
    pub fn by_machine_uid(&self, uid: &str) -> Vec<Arc<Instance>> {
        self.0.state.lock().index.by_machine_uid(uid)
    }

    /// The instances with this `Name`.
    pub fn by_name(&self, name: &str) -> Vec<Arc<Instance>> {
        self.0.state.lock().index.by_name(name)
    }

    /// The instances of a gang, in the order of their numbers.
    pub fn by_gang(&self, token: &str) -> Vec<Arc<Instance>> {
        self.0.state.lock().index.by_gang(token)
    }

    /// The instances in a placement group, as far as they are the cluster's.
    pub fn by_group(&self, group: &str) -> Vec<Arc<Instance>> {
        self.0.state.lock().index.by_group(group)
    }

    /// Every instance, sorted by identifier.
    pub fn all(&self) -> Vec<Arc<Instance>> {
        self.0.state.lock().index.all()
    }

    /// Writes through what a launch or a direct read showed.
    pub fn seen(&self, instances: &[Instance]) {
        let mut state = self.0.state.lock();
        for instance in instances {
            state.overlay.saw(instance.clone(), Instant::now());
            state.show_one(&instance.id, Some(instance));
        }
    }

    /// Writes through that tags were put on instances.
    pub fn tagged(&self, ids: &[String], tags: &[Tag]) {
        self.correct(ids, |overlay, instance| overlay.tagged(instance, tags, Instant::now()));
    }

    /// Writes through that instances were told to go.
    pub fn retired(&self, ids: &[String]) {
        self.correct(ids, |overlay, instance| overlay.retired(instance, Instant::now()));
    }

    fn correct(&self, ids: &[String], write: impl Fn(&mut Overlay, &Instance)) {
        let mut state = self.0.state.lock();
        for id in ids {
            if let Some(instance) = state.index.get(id) {
                write(&mut state.overlay, &instance);
                state.show_one(id, Some(&instance));
            }
        }
    }

    /// Every change from here on.
    pub fn changes(&self) -> mpsc::UnboundedReceiver<Change> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.0.state.lock().listeners.push(sender);
        receiver
    }

    /// Begins a read. It is stored where it can be joined before anybody polls it.
    fn begin(&self) -> Read {
        let inner = Arc::downgrade(&self.0);
        let gather = self.0.options.gather;
        let done = async move {
            tokio::time::sleep(gather).await;
            let outcome = read(&inner).await;
            if let Some(inner) = inner.upgrade() {
                inner.state.lock().under_way = None;
            }
            outcome
        };
        Read { began: None, done: done.boxed().shared() }
    }
}

/// Holds nothing of the inventory while it waits: a read that nobody waits for must not keep the
/// inventory that keeps it.
async fn read(inner: &Weak<Inner>) -> Result<(), CloudError> {
    let began = Instant::now();
    let Some((cloud, cluster)) = inner.upgrade().map(|inner| {
        if let Some(read) = &mut inner.state.lock().under_way {
            read.began = Some(began);
        }
        (Arc::clone(&inner.cloud), inner.cluster.clone())
    }) else {
        return Ok(());
    };
    let instances = cloud.inventory(&cluster).await?;
    if let Some(inner) = inner.upgrade() {
        let mut state = inner.state.lock();
        state.read_at = Some(began);
        state.show(instances, began, inner.options);
    }
    Ok(())
}

impl State {
    /// Shows what was read, corrected by what we know better, and tells what changed.
    fn show(&mut self, read: Vec<Instance>, began: Instant, options: InventoryOptions) {
        let corrected = self.overlay.correct(read, began, Instant::now(), options);
        let changes = self.index.replace(corrected);
        self.tell(&changes);
    }

    fn show_one(&mut self, id: &str, shown: Option<&Instance>) {
        let corrected = self.overlay.correct_one(id, shown);
        let change = corrected.and_then(|instance| self.index.replace_one(instance));
        self.tell(change.as_slice());
    }

    fn tell(&mut self, changes: &[Change]) {
        self.listeners.retain(|listener| {
            changes.iter().all(|change| listener.send(change.clone()).is_ok())
                && !listener.is_closed()
        });
    }
}

impl fmt::Debug for Inventory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inventory")
            .field("cluster", &self.0.cluster)
            .field("age", &self.age())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
