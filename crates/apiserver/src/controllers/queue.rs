//! What is to be looked at, and when.
//!
//! A key is in the queue at most once and is never handled twice at the same time: what is added
//! while it is being handled comes up again afterwards. Failures come back later and later.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use tokio::time::Instant;

const SHORTEST_BACKOFF: Duration = Duration::from_millis(5);

/// Keys to be handled.
#[derive(Debug)]
pub(super) struct Queue<K> {
    longest_backoff: Duration,
    ready: VecDeque<K>,
    in_ready: BTreeSet<K>,
    busy: BTreeSet<K>,
    /// Added while busy.
    again: BTreeSet<K>,
    delayed: BTreeSet<(Instant, K)>,
    due: BTreeMap<K, Instant>,
    failures: BTreeMap<K, u32>,
}

impl<K: Ord + Clone> Queue<K> {
    pub(super) fn new(longest_backoff: Duration) -> Self {
        Self {
            longest_backoff,
            ready: VecDeque::new(),
            in_ready: BTreeSet::new(),
            busy: BTreeSet::new(),
            again: BTreeSet::new(),
            delayed: BTreeSet::new(),
            due: BTreeMap::new(),
            failures: BTreeMap::new(),
        }
    }

    /// To be handled now.
    pub(super) fn add(&mut self, key: K) {
        if self.busy.contains(&key) {
            self.again.insert(key);
        } else if self.in_ready.insert(key.clone()) {
            self.ready.push_back(key);
        }
    }

    /// To be handled later, or earlier if that was asked for already.
    pub(super) fn add_after(&mut self, key: K, delay: Duration) {
        if delay.is_zero() {
            return self.add(key);
        }
        let at = Instant::now() + delay;
        if let Some(earlier) = self.due.get(&key).copied() {
            if earlier <= at {
                return;
            }
            self.delayed.remove(&(earlier, key.clone()));
        }
        self.due.insert(key.clone(), at);
        self.delayed.insert((at, key));
    }

    /// To be handled again after a failure.
    pub(super) fn retry(&mut self, key: K) {
        let failures = self.failures.entry(key.clone()).or_default();
        let delay = SHORTEST_BACKOFF.saturating_mul(1 << (*failures).min(30));
        *failures = failures.saturating_add(1);
        self.add_after(key, delay.min(self.longest_backoff));
    }

    /// The next failure of this key is its first.
    pub(super) fn succeeded(&mut self, key: &K) {
        self.failures.remove(key);
    }

    /// Takes the next key; call [`Queue::done`] when it is handled.
    pub(super) fn pop(&mut self) -> Option<K> {
        self.promote();
        let key = self.ready.pop_front()?;
        self.in_ready.remove(&key);
        self.busy.insert(key.clone());
        Some(key)
    }

    /// A key that was taken has been handled.
    pub(super) fn done(&mut self, key: &K) {
        self.busy.remove(key);
        if let Some(key) = self.again.take(key) {
            self.add(key);
        }
    }

    /// When the next delayed key is due. Always in the future, for those who are ready have been
    /// moved on.
    pub(super) fn next_due(&mut self) -> Option<Instant> {
        self.promote();
        self.delayed.first().map(|(at, _)| *at)
    }

    fn promote(&mut self) {
        let now = Instant::now();
        while self.delayed.first().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, key)) = self.delayed.pop_first() {
                self.due.remove(&key);
                self.add(key);
            }
        }
    }
}

/// Sleeps until then; for ever if there is no then.
pub(super) async fn wait_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> Queue<&'static str> {
        Queue::new(Duration::from_secs(1))
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_is_handled_once_at_a_time() {
        let mut queue = queue();
        queue.add("a");
        queue.add("a");
        assert_eq!(queue.pop(), Some("a"));
        assert_eq!(queue.pop(), None);
        queue.add("a");
        assert_eq!(queue.pop(), None, "busy");
        queue.done(&"a");
        assert_eq!(queue.pop(), Some("a"));
        queue.done(&"a");
        assert_eq!(queue.pop(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_earliest_time_counts() {
        let mut queue = queue();
        let start = Instant::now();
        queue.add_after("a", Duration::from_secs(5));
        queue.add_after("a", Duration::from_secs(2));
        queue.add_after("a", Duration::from_secs(9));
        assert_eq!(queue.next_due(), Some(start + Duration::from_secs(2)));
        wait_until(queue.next_due()).await;
        assert_eq!(queue.pop(), Some("a"));
        assert_eq!(queue.next_due(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_come_back_later_and_later() {
        let mut queue = queue();
        let mut delays = Vec::new();
        for _ in 0..10 {
            let before = Instant::now();
            queue.retry("a");
            wait_until(queue.next_due()).await;
            assert_eq!(queue.pop(), Some("a"));
            queue.done(&"a");
            delays.push(before.elapsed().as_millis());
        }
        assert_eq!(delays, [5, 10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        queue.succeeded(&"a");
        let before = Instant::now();
        queue.retry("a");
        assert_eq!(queue.next_due(), Some(before + SHORTEST_BACKOFF));
    }
}
