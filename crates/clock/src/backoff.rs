//! Waiting longer after every failure.

use std::time::Duration;

use tokio::time::Instant;

use crate::Random;

/// How waits grow. The same for everybody who retries; only the numbers differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BackoffPolicy {
    /// The first wait.
    pub initial: Duration,
    /// The longest wait, before jitter.
    pub max: Duration,
    /// What each wait is multiplied by to give the next.
    pub factor: f64,
    /// Up to this fraction of a wait is added at random, so that clients that failed together
    /// do not come back together.
    pub jitter: f64,
    /// A pause this long without asking for a wait means that all is well again.
    pub reset_after: Option<Duration>,
}

impl BackoffPolicy {
    /// The wait before attempt `attempt` (0 is the first), without jitter.
    pub fn wait(&self, attempt: u32) -> Duration {
        let exponent = i32::try_from(attempt).unwrap_or(i32::MAX);
        let seconds = self.initial.as_secs_f64() * self.factor.powi(exponent);
        // A wait too long for `Duration`, or not a number, is longer than the longest.
        Duration::try_from_secs_f64(seconds).map_or(self.max, |wait| wait.min(self.max))
    }
}

/// One client's waits under a [`BackoffPolicy`].
#[derive(Clone, Debug)]
pub struct Backoff {
    policy: BackoffPolicy,
    random: Random,
    attempt: u32,
    asked: Option<Instant>,
}

impl Backoff {
    /// Starts at the first wait.
    pub fn new(policy: BackoffPolicy, random: Random) -> Self {
        Self { policy, random, attempt: 0, asked: None }
    }

    /// The next wait.
    pub fn next_wait(&mut self) -> Duration {
        let now = Instant::now();
        if let (Some(asked), Some(reset_after)) = (self.asked, self.policy.reset_after)
            && now.duration_since(asked) > reset_after
        {
            self.reset();
        }
        let wait = self.random.jitter(self.policy.wait(self.attempt), self.policy.jitter);
        self.attempt = self.attempt.saturating_add(1);
        // Counted from the end of the wait: waiting is not the same as being well.
        self.asked = Some(now + wait);
        wait
    }

    /// Back to the first wait.
    pub fn reset(&mut self) {
        self.attempt = 0;
        self.asked = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: BackoffPolicy = BackoffPolicy {
        initial: Duration::from_millis(800),
        max: Duration::from_secs(30),
        factor: 2.0,
        jitter: 0.0,
        reset_after: Some(Duration::from_mins(2)),
    };

    #[test]
    fn waits_double_up_to_the_longest() {
        let waits: Vec<u128> = (0..8).map(|attempt| POLICY.wait(attempt).as_millis()).collect();
        assert_eq!(waits, [800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]);
        assert_eq!(POLICY.wait(u32::MAX), POLICY.max);
    }

    #[tokio::test(start_paused = true)]
    async fn a_healthy_while_starts_again_but_waiting_does_not_count() {
        let mut backoff = Backoff::new(POLICY, Random::seeded(1));
        for expected in [800, 1600, 3200] {
            let wait = backoff.next_wait();
            assert_eq!(wait.as_millis(), expected);
            tokio::time::sleep(wait).await;
        }
        tokio::time::sleep(Duration::from_secs(121)).await;
        assert_eq!(backoff.next_wait().as_millis(), 800);
    }

    #[tokio::test(start_paused = true)]
    async fn jitter_only_adds_and_replays_from_the_seed() {
        let policy = BackoffPolicy { jitter: 1.0, ..POLICY };
        let draw = |seed| {
            let mut backoff = Backoff::new(policy, Random::seeded(seed));
            (0..5).map(|_| backoff.next_wait()).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        for (attempt, wait) in (0..).zip(draw(7)) {
            assert!(wait >= POLICY.wait(attempt) && wait <= POLICY.wait(attempt) * 2);
        }
    }
}
