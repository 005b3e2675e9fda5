//! A rate that allows bursts.

use std::time::Duration;

use tokio::time::Instant;

/// A token bucket on tokio time: `burst` at once, then `rate` a second.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    rate: f64,
    burst: f64,
    /// Below zero when the future has been promised to somebody.
    tokens: f64,
    filled: Instant,
}

impl TokenBucket {
    /// A full bucket. A rate that is not positive never refills.
    pub fn new(rate: f64, burst: u32) -> Self {
        let burst = f64::from(burst);
        Self { rate: rate.max(0.0), burst, tokens: burst, filled: Instant::now() }
    }

    /// Takes a token if there is one.
    pub fn try_take(&mut self) -> bool {
        self.fill();
        let taken = self.tokens >= 1.0;
        if taken {
            self.tokens -= 1.0;
        }
        taken
    }

    /// Takes a token, perhaps one of the future: the answer is how long to wait for it.
    pub fn reserve(&mut self) -> Duration {
        self.fill();
        self.tokens -= 1.0;
        if self.tokens >= 0.0 {
            return Duration::ZERO;
        }
        Duration::try_from_secs_f64(-self.tokens / self.rate).unwrap_or(Duration::MAX)
    }

    fn fill(&mut self) {
        let now = Instant::now();
        let earned = self.rate * now.duration_since(self.filled).as_secs_f64();
        self.tokens = (self.tokens + earned).min(self.burst);
        self.filled = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_and_then_the_rate() {
        let mut bucket = TokenBucket::new(10.0, 2);
        assert!(bucket.try_take() && bucket.try_take() && !bucket.try_take());
        tokio::time::advance(Duration::from_millis(100)).await;
        assert!(bucket.try_take() && !bucket.try_take());
        tokio::time::advance(Duration::from_mins(10)).await;
        assert!(bucket.try_take() && bucket.try_take() && !bucket.try_take());
    }

    #[tokio::test(start_paused = true)]
    async fn reservations_queue_up() {
        let mut bucket = TokenBucket::new(10.0, 1);
        let waits: Vec<u128> = (0..4).map(|_| bucket.reserve().as_millis()).collect();
        assert_eq!(waits, [0, 100, 200, 300]);
    }

    #[tokio::test(start_paused = true)]
    async fn no_rate_means_never_again() {
        let mut bucket = TokenBucket::new(0.0, 1);
        assert_eq!(bucket.reserve(), Duration::ZERO);
        assert_eq!(bucket.reserve(), Duration::MAX);
    }
}
