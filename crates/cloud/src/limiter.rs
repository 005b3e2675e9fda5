//! How fast an account may be asked.
//!
//! Clouds throttle per account and region, so everybody who works for an account shares one
//! limiter. It slows down when the cloud says "too many" and finds its way back by itself. Reads
//! and writes have lanes of their own, as they have at the clouds: a long inventory does not hold
//! up a launch.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

/// The pace of one lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Calls a second when all is well.
    pub rate: f64,
    /// Calls at once.
    pub burst: u32,
}

/// How a limiter behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LimitPolicy {
    /// Calls that change nothing.
    pub reads: Pace,
    /// Calls that change something.
    pub writes: Pace,
    /// Never slower than this many calls a second.
    pub floor: f64,
    /// From the floor back to the full rate.
    pub recovery: Duration,
}

impl Default for LimitPolicy {
    /// Half of what EC2 documents as its refill rates: others use the account as well.
    fn default() -> Self {
        Self {
            reads: Pace { rate: 10.0, burst: 50 },
            writes: Pace { rate: 5.0, burst: 50 },
            floor: 0.5,
            recovery: Duration::from_mins(1),
        }
    }
}

/// What kind of call waits for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// It changes nothing.
    Read,
    /// It changes something.
    Write,
}

/// Calls that are refused together are one piece of news: the rate is cut once.
const ONE_CUT: Duration = Duration::from_secs(1);

/// A limiter that learns from refusals.
#[derive(Debug)]
pub struct RateLimiter {
    reads: Mutex<Bucket>,
    writes: Mutex<Bucket>,
}

impl RateLimiter {
    /// A limiter at its full rate.
    pub fn new(policy: LimitPolicy) -> Self {
        Self {
            reads: Mutex::new(Bucket::new(policy.reads, &policy)),
            writes: Mutex::new(Bucket::new(policy.writes, &policy)),
        }
    }

    /// Waits for its turn.
    pub async fn turn(&self, lane: Lane) {
        let wait = self.lane(lane).lock().reserve(Instant::now());
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    /// The cloud said "too many": half the rate, and no burst.
    pub fn throttled(&self, lane: Lane) {
        self.lane(lane).lock().cut(Instant::now());
    }

    /// Calls a second at present.
    pub fn rate(&self, lane: Lane) -> f64 {
        let mut bucket = self.lane(lane).lock();
        bucket.advance(Instant::now());
        bucket.rate
    }

    fn lane(&self, lane: Lane) -> &Mutex<Bucket> {
        match lane {
            Lane::Read => &self.reads,
            Lane::Write => &self.writes,
        }
    }
}

/// A bucket of tokens whose rate climbs back to the full one.
#[derive(Debug)]
struct Bucket {
    full: Pace,
    floor: f64,
    /// What the rate gains in a second.
    gain: f64,
    rate: f64,
    /// Below zero when the future has been promised to somebody.
    tokens: f64,
    advanced: Instant,
    cut: Option<Instant>,
}

impl Bucket {
    fn new(full: Pace, policy: &LimitPolicy) -> Self {
        Self {
            full,
            floor: policy.floor.min(full.rate),
            gain: full.rate / policy.recovery.as_secs_f64().max(1.0),
            rate: full.rate,
            tokens: f64::from(full.burst),
            advanced: Instant::now(),
            cut: None,
        }
    }

    fn advance(&mut self, now: Instant) {
        let seconds = now.duration_since(self.advanced).as_secs_f64();
        self.advanced = now;
        let before = self.rate;
        self.rate = (before + self.gain * seconds).min(self.full.rate);
        let earned = f64::midpoint(before, self.rate) * seconds;
        self.tokens = (self.tokens + earned).min(f64::from(self.full.burst));
    }

    fn reserve(&mut self, now: Instant) -> Duration {
        self.advance(now);
        self.tokens -= 1.0;
        if self.tokens >= 0.0 {
            return Duration::ZERO;
        }
        Duration::try_from_secs_f64(-self.tokens / self.rate).unwrap_or(ONE_CUT)
    }

    fn cut(&mut self, now: Instant) {
        self.advance(now);
        if self.cut.is_some_and(|cut| now.duration_since(cut) < ONE_CUT) {
            return;
        }
        self.cut = Some(now);
        self.rate = (self.rate / 2.0).max(self.floor);
        self.tokens = self.tokens.min(0.0);
    }
}

/// The limiters of all accounts, one for each account and region.
#[derive(Debug, Default)]
pub struct Limits {
    policy: LimitPolicy,
    limiters: Mutex<BTreeMap<(String, String), Arc<RateLimiter>>>,
}

impl Limits {
    /// Limiters that behave so.
    pub fn new(policy: LimitPolicy) -> Self {
        Self { policy, limiters: Mutex::default() }
    }

    /// The limiter of an account, by whatever names it, in a region.
    pub fn of(&self, account: &str, region: &str) -> Arc<RateLimiter> {
        let mut limiters = self.limiters.lock();
        let key = (account.to_owned(), region.to_owned());
        Arc::clone(limiters.entry(key).or_insert_with(|| Arc::new(RateLimiter::new(self.policy))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: LimitPolicy = LimitPolicy {
        reads: Pace { rate: 10.0, burst: 2 },
        writes: Pace { rate: 4.0, burst: 1 },
        floor: 1.0,
        recovery: Duration::from_secs(10),
    };

    async fn time_of(limiter: &RateLimiter, lane: Lane, calls: u32) -> Duration {
        let start = Instant::now();
        for _ in 0..calls {
            limiter.turn(lane).await;
        }
        start.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_and_then_the_rate_in_each_lane() {
        let limiter = RateLimiter::new(POLICY);
        assert_eq!(time_of(&limiter, Lane::Read, 2).await, Duration::ZERO);
        let ten = time_of(&limiter, Lane::Read, 10).await;
        assert!((990..=1010).contains(&ten.as_millis()), "{ten:?}");
        assert_eq!(time_of(&limiter, Lane::Write, 1).await, Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn refusals_that_come_together_cut_the_rate_once_and_it_recovers() {
        let limiter = RateLimiter::new(POLICY);
        for _ in 0..20 {
            limiter.throttled(Lane::Read);
        }
        assert!((limiter.rate(Lane::Read) - 5.0).abs() < 0.01);
        assert!((limiter.rate(Lane::Write) - 4.0).abs() < 0.01, "the other lane is not at fault");
        for _ in 0..20 {
            tokio::time::advance(ONE_CUT).await;
            limiter.throttled(Lane::Read);
        }
        let slow = limiter.rate(Lane::Read);
        assert!((1.0..2.0).contains(&slow), "{slow}");
        tokio::time::advance(Duration::from_secs(10)).await;
        assert!((limiter.rate(Lane::Read) - 10.0).abs() < 0.01);
    }

    #[tokio::test(start_paused = true)]
    async fn an_account_has_one_limiter_in_a_region() {
        let limits = Limits::new(POLICY);
        let one = limits.of("a", "us-east-1");
        assert!(Arc::ptr_eq(&one, &limits.of("a", "us-east-1")));
        assert!(!Arc::ptr_eq(&one, &limits.of("a", "us-west-2")));
        assert!(!Arc::ptr_eq(&one, &limits.of("b", "us-east-1")));
    }
}
