//! Calls a reconcile function for every key that needs it, one at a time per key.
//!
//! A reconcile gets a key and nothing else: it reads what it needs from informers and decides
//! afresh. When it fails, runs too long or panics, its key comes back later, each time later
//! than before, and the other keys are not affected.

#[cfg(test)]
mod tests;
mod worker;

use std::{fmt, future::Future, sync::Arc, time::Duration};

use futures::future::{BoxFuture, FutureExt, join_all};
use kube::Resource;
use serde::de::DeserializeOwned;
use tokio::{task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    Informer, RateLimits, WorkQueue,
    metrics::{ControllerMetrics, Metrics},
};

/// What a reconcile that went well wants next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Action {
    /// Call again after this time, even if nothing changes.
    pub requeue_after: Option<Duration>,
}

impl Action {
    /// Call again when something changes.
    pub const fn await_change() -> Self {
        Self { requeue_after: None }
    }

    /// Call again after `delay`, or earlier when something changes.
    pub const fn requeue_after(delay: Duration) -> Self {
        Self { requeue_after: Some(delay) }
    }
}

/// Numbers that a controller can be given.
#[derive(Clone, Copy, Debug)]
pub struct ControllerOptions {
    /// How many keys are reconciled at the same time.
    pub workers: usize,
    /// How soon a key that failed comes back.
    pub limits: RateLimits,
    /// A reconcile that takes longer is ended and counts as failed.
    pub reconcile_timeout: Option<Duration>,
    /// How long reconciles may go on after the controller was told to stop.
    pub stop_limit: Duration,
}

impl Default for ControllerOptions {
    fn default() -> Self {
        Self {
            workers: 1,
            limits: RateLimits::default(),
            reconcile_timeout: None,
            // controller-runtime's grace period.
            stop_limit: Duration::from_secs(30),
        }
    }
}

/// Reconciles did not end in time after the controller was told to stop, and were cut off.
#[derive(Debug, thiserror::Error)]
#[error("controller {controller} stopped while still at work on: {}", .keys.join(", "))]
pub struct CutOff {
    /// The controller's name.
    pub controller: String,
    /// What was being reconciled.
    pub keys: Vec<String>,
}

/// What a key must be able to do.
pub trait Key: Ord + Clone + fmt::Display + Send + Sync + 'static {}

impl<T: Ord + Clone + fmt::Display + Send + Sync + 'static> Key for T {}

/// A controller that has not started yet.
pub struct Controller<K> {
    name: String,
    options: ControllerOptions,
    queue: WorkQueue<K>,
    metrics: ControllerMetrics,
    synced: Vec<BoxFuture<'static, ()>>,
}

impl<K: Key> Controller<K> {
    /// A controller without sources.
    pub fn new(name: &str, options: ControllerOptions, metrics: &Metrics) -> Self {
        Self {
            name: name.to_owned(),
            options,
            queue: WorkQueue::new(name, options.limits, metrics),
            metrics: metrics.controller(name),
            synced: Vec::new(),
        }
    }

    /// Reconciles the keys that `keys_of` gives for an object whenever it changes: those of the
    /// object before and after, so that who loses it hears of it too.
    #[must_use]
    pub fn watches<O, I>(
        self,
        informer: &Informer<O>,
        keys_of: impl Fn(&O) -> I + Send + 'static,
    ) -> Self
    where
        O: Resource + Clone + DeserializeOwned + fmt::Debug + Send + Sync + 'static,
        I: IntoIterator<Item = K>,
    {
        let queue = self.queue.clone();
        informer.on_change(move |change| {
            for object in change.objects() {
                for key in keys_of(object) {
                    queue.add(key);
                }
            }
        });
        self.waits_for(informer)
    }

    /// Starts only after the informer has synced.
    #[must_use]
    pub fn waits_for<O>(mut self, informer: &Informer<O>) -> Self
    where
        O: Resource + Clone + DeserializeOwned + fmt::Debug + Send + Sync + 'static,
    {
        let informer = informer.clone();
        self.synced.push(async move { informer.wait_synced().await }.boxed());
        self
    }

    /// The queue, for sources that are not informers.
    pub fn queue(&self) -> WorkQueue<K> {
        self.queue.clone()
    }

    /// Reconciles until `stop`; then starts nothing more, and waits for what is under way up to
    /// the limit.
    pub async fn run<R, F, E>(self, reconcile: R, stop: CancellationToken) -> Result<(), CutOff>
    where
        R: Fn(K) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Action, E>> + Send + 'static,
        E: std::error::Error + Send + 'static,
    {
        let Self { name, options, queue, metrics, synced } = self;
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            _ = join_all(synced) => {}
        }
        tracing::info!(controller = name, workers = options.workers, "starting");
        metrics.max_concurrent.set(i64::try_from(options.workers).unwrap_or(i64::MAX));
        let worker = Arc::new(worker::Worker {
            name: name.clone(),
            queue: queue.clone(),
            metrics,
            timeout: options.reconcile_timeout,
            reconcile,
        });
        let mut workers = JoinSet::new();
        for _ in 0..options.workers.max(1) {
            workers.spawn(worker.clone().run(stop.clone()));
        }
        stop.cancelled().await;
        queue.shut_down();
        let ended = timeout(options.stop_limit, async {
            while let Some(ended) = workers.join_next().await {
                if let Err(error) = ended {
                    tracing::error!(controller = name, %error, "a worker ended badly");
                }
            }
        })
        .await;
        if ended.is_ok() {
            tracing::info!(controller = name, "stopped");
            return Ok(());
        }
        let keys = queue.in_progress().iter().map(ToString::to_string).collect();
        workers.shutdown().await;
        Err(CutOff { controller: name, keys })
    }
}

impl<K> fmt::Debug for Controller<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Controller").field(&self.name).finish()
    }
}
