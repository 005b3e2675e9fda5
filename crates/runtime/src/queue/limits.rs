//! How soon an item may come back.

use std::{collections::BTreeMap, time::Duration};

use fleetwright_clock::{BackoffPolicy, TokenBucket};

/// How fast items may be retried. The default is client-go's and controller-runtime's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimits {
    /// The wait of an item after its first failure; it doubles with every further one.
    pub initial: Duration,
    /// The longest wait of an item.
    pub max: Duration,
    /// Retries a second that all items together may use.
    pub overall_rate: f64,
    /// Retries that all items together may use at once.
    pub overall_burst: u32,
}

impl Default for RateLimits {
    fn default() -> Self {
        Self {
            initial: Duration::from_millis(5),
            max: Duration::from_secs(1000),
            overall_rate: 10.0,
            overall_burst: 100,
        }
    }
}

/// Counts failures and says how long to wait.
#[derive(Debug)]
pub(super) struct Limiter<T> {
    policy: BackoffPolicy,
    overall: TokenBucket,
    failures: BTreeMap<T, u32>,
}

impl<T: Ord + Clone> Limiter<T> {
    pub(super) fn new(limits: RateLimits) -> Self {
        let RateLimits { initial, max, overall_rate, overall_burst } = limits;
        // No jitter: the items of a queue do not fail in step, and tests can tell the waits.
        let policy = BackoffPolicy { initial, max, factor: 2.0, jitter: 0.0, reset_after: None };
        let overall = TokenBucket::new(overall_rate, overall_burst);
        Self { policy, overall, failures: BTreeMap::new() }
    }

    /// Counts a failure of the item, and takes a place in the overall rate.
    pub(super) fn wait(&mut self, item: &T) -> Duration {
        let failures = self.failures.entry(item.clone()).or_default();
        let own = self.policy.wait(*failures);
        *failures = failures.saturating_add(1);
        own.max(self.overall.reserve())
    }

    pub(super) fn forget(&mut self, item: &T) {
        self.failures.remove(item);
    }

    pub(super) fn failures(&self, item: &T) -> u32 {
        self.failures.get(item).copied().unwrap_or_default()
    }
}
