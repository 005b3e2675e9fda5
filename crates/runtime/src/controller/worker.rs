//! One worker: takes a key, reconciles it, decides when it comes back.

use std::{any::Any, future::Future, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::{Action, Key};
use crate::{WorkQueue, error_chain, metrics::ControllerMetrics, panic_message};

pub(super) struct Worker<K, R> {
    pub(super) name: String,
    pub(super) queue: WorkQueue<K>,
    pub(super) metrics: ControllerMetrics,
    pub(super) timeout: Option<Duration>,
    pub(super) reconcile: R,
}

/// Why a reconcile did not go well.
#[derive(Debug)]
enum Failure<E> {
    Error(E),
    Timeout(Duration),
    Panic(Box<dyn Any + Send>),
}

impl<K, R, F, E> Worker<K, R>
where
    K: Key,
    R: Fn(K) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Action, E>> + Send + 'static,
    E: std::error::Error + Send + 'static,
{
    pub(super) async fn run(self: Arc<Self>, stop: CancellationToken) {
        loop {
            let key = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                key = self.queue.get() => match key {
                    Some(key) => key,
                    None => return,
                },
            };
            let span = tracing::info_span!("reconcile", controller = self.name, object = %key);
            self.process(key).instrument(span).await;
        }
    }

    async fn process(&self, key: K) {
        self.metrics.active.inc();
        let start = Instant::now();
        let outcome = self.call(key.clone()).await;
        self.metrics.time.observe(start.elapsed().as_secs_f64());
        self.metrics.active.dec();
        match outcome {
            Ok(Action { requeue_after }) => {
                // Forgotten before it is added, so that the wait it asked for is the wait it gets.
                self.queue.forget(&key);
                if let Some(delay) = requeue_after {
                    self.metrics.requeued.inc();
                    self.queue.add_after(key.clone(), delay);
                } else {
                    self.metrics.succeeded.inc();
                }
            }
            Err(failure) => {
                self.note(&failure, self.queue.failures(&key).saturating_add(1));
                self.queue.add_rate_limited(key.clone());
            }
        }
        self.queue.done(&key);
    }

    async fn call(&self, key: K) -> Result<Action, Failure<E>> {
        // The call itself may panic as well as the future that it returns.
        let reconcile = AssertUnwindSafe(async { (self.reconcile)(key).await }).catch_unwind();
        let ended = match self.timeout {
            None => reconcile.await,
            Some(limit) => match tokio::time::timeout(limit, reconcile).await {
                Ok(ended) => ended,
                Err(_elapsed) => return Err(Failure::Timeout(limit)),
            },
        };
        ended.map_err(Failure::Panic)?.map_err(Failure::Error)
    }

    fn note(&self, failure: &Failure<E>, failures: u32) {
        if let Failure::Error(error) = failure
            && is_conflict(error)
        {
            // Somebody else wrote first, and what they wrote comes to us.
            self.metrics.requeued.inc();
            tracing::debug!(failures, error = error_chain(error), "written by others: again");
            return;
        }
        self.metrics.failed.inc();
        self.metrics.errors.inc();
        match failure {
            // Once is nothing: a cache that lags.
            Failure::Error(error) if failures <= 1 => {
                tracing::info!(failures, error = error_chain(error), "reconcile failed");
            }
            Failure::Error(error) => {
                tracing::warn!(failures, error = error_chain(error), "reconcile failed");
            }
            Failure::Timeout(limit) => {
                self.metrics.timeouts.inc();
                tracing::error!(failures, ?limit, "reconcile took too long and was ended");
            }
            Failure::Panic(panic) => {
                self.metrics.panics.inc();
                tracing::error!(
                    failures,
                    panic = panic_message(panic.as_ref()),
                    "reconcile panicked"
                );
            }
        }
    }
}

/// Whether a write was refused because the object had changed.
fn is_conflict(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut error = Some(error);
    while let Some(inner) = error {
        if let Some(kube::Error::Api(status)) = inner.downcast_ref() {
            return status.is_conflict();
        }
        error = inner.source();
    }
    false
}
