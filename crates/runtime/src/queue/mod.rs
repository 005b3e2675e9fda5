//! The work queue between informers and reconciles, with client-go's rules.
//!
//! - An item that is queued is not queued twice; one that is added while it is being processed
//!   is processed again afterwards, never twice at once.
//! - First come, first served: the order is the same in every run.
//! - [`WorkQueue::add_after`] keeps the earliest of the times asked for.
//! - [`WorkQueue::add_rate_limited`] waits longer after each failure of the same item, and never
//!   lets all items together exceed an overall rate.
//!
//! There is no background task: those who wait in [`WorkQueue::get`] keep the time.

mod limits;
mod state;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use self::{
    limits::Limiter,
    state::{Added, State},
};
use crate::metrics::{Metrics, QueueMetrics};

pub use limits::RateLimits;

/// A queue of items to process. Clones share it.
pub struct WorkQueue<T>(Arc<Shared<T>>);

struct Shared<T> {
    state: Mutex<State<T>>,
    limiter: Mutex<Limiter<T>>,
    /// Something can be taken, or the time to wait for has changed.
    ready: Notify,
    /// Somebody finished.
    finished: Notify,
    /// `shut_down` after `shut_down_and_drain` ends the wait of the latter.
    draining: Mutex<bool>,
    metrics: QueueMetrics,
}

impl<T: Ord + Clone + Send + 'static> WorkQueue<T> {
    /// An empty queue.
    pub fn new(name: &str, limits: RateLimits, metrics: &Metrics) -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            limiter: Mutex::new(Limiter::new(limits)),
            ready: Notify::new(),
            finished: Notify::new(),
            draining: Mutex::new(false),
            metrics: metrics.queue(name),
        });
        let weak = Arc::downgrade(&shared);
        metrics.refresh_with(move || refresh(&weak));
        Self(shared)
    }

    /// Queues the item, unless it is queued already. Ignored once the queue is shutting down.
    pub fn add(&self, item: T) {
        let now = Instant::now();
        let mut state = self.0.state.lock();
        // What was due before goes before.
        let mut added = state.promote(now);
        added.push(state.add(item, now));
        self.note(added);
    }

    /// Queues the item after `delay`. Of several such calls the earliest time counts.
    pub fn add_after(&self, item: T, delay: Duration) {
        let now = Instant::now();
        let mut state = self.0.state.lock();
        if state.is_shutting_down() {
            return;
        }
        self.0.metrics.retries.inc();
        if delay.is_zero() {
            drop(state);
            self.add(item);
        } else if let Some(at) = now.checked_add(delay)
            && state.add_at(item, at)
        {
            // Everybody who waits has to wait for the new time: whom we would pick might leave.
            self.0.ready.notify_waiters();
        }
    }

    /// Queues the item after the wait that its failures so far and the overall rate call for.
    pub fn add_rate_limited(&self, item: T) {
        let wait = self.0.limiter.lock().wait(&item);
        self.add_after(item, wait);
    }

    /// The item did well: its next failure is its first.
    pub fn forget(&self, item: &T) {
        self.0.limiter.lock().forget(item);
    }

    /// How often the item was added rate-limited since it was last forgotten.
    pub fn failures(&self, item: &T) -> u32 {
        self.0.limiter.lock().failures(item)
    }

    /// Waits for an item; `None` when the queue has shut down and is empty. The caller must call
    /// [`WorkQueue::done`] with it. Dropping the future loses nothing.
    pub async fn get(&self) -> Option<T> {
        loop {
            let notified = self.0.ready.notified();
            tokio::pin!(notified);
            // From here on no notification is missed.
            notified.as_mut().enable();
            let next_time = {
                let now = Instant::now();
                let mut state = self.0.state.lock();
                self.note(state.promote(now));
                if let Some((item, since)) = state.take(now) {
                    self.0.metrics.depth.dec();
                    let waited = now.saturating_duration_since(since);
                    self.0.metrics.queue_duration.observe(waited.as_secs_f64());
                    return Some(item);
                }
                if state.is_shutting_down() {
                    return None;
                }
                state.next_time()
            };
            match next_time {
                None => notified.await,
                Some(at) => tokio::select! {
                    biased;
                    () = notified => {}
                    () = sleep_until(at) => {}
                },
            }
        }
    }

    /// Ends the processing of an item from [`WorkQueue::get`].
    pub fn done(&self, item: &T) {
        let mut state = self.0.state.lock();
        // What was due while it was being processed was asked for before it ended.
        self.note(state.promote(Instant::now()));
        if let Some((since, again)) = state.done(item) {
            self.0.metrics.work_duration.observe(since.elapsed().as_secs_f64());
            if again {
                self.0.ready.notify_one();
            }
            self.0.finished.notify_waiters();
        }
    }

    /// Takes no more items. What is queued can still be taken; what was for later is dropped.
    pub fn shut_down(&self) {
        *self.0.draining.lock() = false;
        self.0.state.lock().shut_down();
        self.0.ready.notify_waiters();
        self.0.finished.notify_waiters();
    }

    /// As [`WorkQueue::shut_down`], and waits until everything queued has been processed.
    pub async fn shut_down_and_drain(&self) {
        self.shut_down();
        *self.0.draining.lock() = true;
        loop {
            let finished = self.0.finished.notified();
            tokio::pin!(finished);
            finished.as_mut().enable();
            if self.0.state.lock().is_idle() || !*self.0.draining.lock() {
                return;
            }
            finished.await;
        }
    }

    /// Whether the queue has been told to stop.
    pub fn is_shutting_down(&self) -> bool {
        self.0.state.lock().is_shutting_down()
    }

    /// How many items can be taken now.
    pub fn len(&self) -> usize {
        let mut state = self.0.state.lock();
        self.note(state.promote(Instant::now()));
        state.len()
    }

    /// Whether no item can be taken now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is being processed at the moment.
    pub fn in_progress(&self) -> Vec<T> {
        self.0.state.lock().in_progress().map(|(item, _)| item.clone()).collect()
    }

    /// Counts what was added and wakes one waiter for each item that can be taken.
    fn note(&self, added: Vec<Added>) {
        for added in added {
            match added {
                Added::Ignored => continue,
                Added::Ready => self.0.ready.notify_one(),
                Added::Later => {}
            }
            self.0.metrics.adds.inc();
            self.0.metrics.depth.inc();
        }
    }
}

/// Measures the work in progress; false when the queue is gone.
fn refresh<T: Ord + Clone>(queue: &Weak<Shared<T>>) -> bool {
    let Some(queue) = queue.upgrade() else {
        return false;
    };
    let (mut total, mut longest) = (0.0_f64, 0.0_f64);
    for (_, since) in queue.state.lock().in_progress() {
        let seconds = since.elapsed().as_secs_f64();
        total += seconds;
        longest = longest.max(seconds);
    }
    queue.metrics.unfinished_work.set(total);
    queue.metrics.longest_running.set(longest);
    true
}

impl<T> Clone for WorkQueue<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> fmt::Debug for WorkQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WorkQueue")
    }
}
