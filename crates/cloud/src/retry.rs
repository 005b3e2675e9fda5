//! Asking again, within limits.
//!
//! What a refusal means is decided by its code, so retries sit above the decoding of answers and
//! not between the adapter and the wire. A lack of capacity is never asked again here: only the
//! controller knows where else there may be some.

use std::{sync::Arc, time::Duration};

use fleetwright_clock::{Backoff, BackoffPolicy, Random};

use crate::{
    CloudError, ErrorClass,
    limiter::{Lane, RateLimiter},
};

/// How often, and how long between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    /// Attempts in all; at least one is made.
    pub attempts: u32,
    /// The waits between them.
    pub backoff: BackoffPolicy,
}

impl Default for RetryPolicy {
    /// Four attempts within a few seconds: longer waits are the work queue's, which does not hold
    /// up a worker.
    fn default() -> Self {
        Self {
            attempts: 4,
            backoff: BackoffPolicy {
                initial: Duration::from_millis(300),
                max: Duration::from_secs(5),
                factor: 2.0,
                jitter: 1.0,
                reset_after: None,
            },
        }
    }
}

/// What a call is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallKind {
    /// Whether it changes something.
    pub lane: Lane,
    /// Whether doing it twice is the same as doing it once. Only such a call is repeated when its
    /// answer was lost.
    pub idempotent: bool,
}

impl CallKind {
    /// It changes nothing.
    pub const READ: Self = Self { lane: Lane::Read, idempotent: true };
    /// It changes something, and twice is the same as once.
    pub const REPEATABLE_WRITE: Self = Self { lane: Lane::Write, idempotent: true };
    /// It changes something each time.
    pub const WRITE: Self = Self { lane: Lane::Write, idempotent: false };
}

/// Makes calls for one account: under its limiter, and again where that may help.
#[derive(Clone, Debug)]
pub struct Caller {
    limiter: Arc<RateLimiter>,
    policy: RetryPolicy,
    random: Random,
}

impl Caller {
    /// A caller for an account.
    pub fn new(limiter: Arc<RateLimiter>, policy: RetryPolicy, random: Random) -> Self {
        Self { limiter, policy, random }
    }

    /// Makes a call.
    pub async fn call<T, F>(
        &self,
        kind: CallKind,
        mut attempt: impl FnMut() -> F,
    ) -> Result<T, CloudError>
    where
        F: Future<Output = Result<T, CloudError>>,
    {
        let mut backoff = Backoff::new(self.policy.backoff, self.random.clone());
        let mut left = self.policy.attempts;
        loop {
            self.limiter.turn(kind.lane).await;
            let error = match attempt().await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            if error.class == ErrorClass::Throttled {
                self.limiter.throttled(kind.lane);
            }
            left = left.saturating_sub(1);
            if left == 0 || !may_help(&error, kind) {
                return Err(error);
            }
            let wait = backoff.next_wait();
            match error.retry_after {
                // Longer than we wait here: the work queue does.
                Some(after) if after > self.policy.backoff.max => return Err(error),
                Some(after) => tokio::time::sleep(wait.max(after)).await,
                None => tokio::time::sleep(wait).await,
            }
        }
    }
}

fn may_help(error: &CloudError, kind: CallKind) -> bool {
    match error.class {
        ErrorClass::Throttled | ErrorClass::Transient => true,
        ErrorClass::AnswerLost => kind.idempotent,
        ErrorClass::Configuration
        | ErrorClass::Capacity
        | ErrorClass::SpreadLimit
        | ErrorClass::Quota
        | ErrorClass::Credentials
        | ErrorClass::NotFound
        | ErrorClass::AlreadyExists
        | ErrorClass::InUse
        | ErrorClass::BatchTooBig
        | ErrorClass::TokenMismatch
        | ErrorClass::TokenSpent => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limiter::LimitPolicy;

    async fn attempts(class: ErrorClass, kind: CallKind) -> u32 {
        let limiter = Arc::new(RateLimiter::new(LimitPolicy::default()));
        let caller = Caller::new(Arc::clone(&limiter), RetryPolicy::default(), Random::seeded(1));
        let mut made = 0;
        let answer: Result<(), CloudError> = caller
            .call(kind, || {
                made += 1;
                async move { Err(CloudError::new(class, "Do", "Code", "no")) }
            })
            .await;
        assert_eq!(answer.unwrap_err().class, class);
        let slower =
            limiter.rate(kind.lane) < RateLimiter::new(LimitPolicy::default()).rate(kind.lane);
        assert_eq!(slower, class == ErrorClass::Throttled);
        made
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_asked_again() {
        for (class, kind, expected) in [
            (ErrorClass::Throttled, CallKind::WRITE, 4),
            (ErrorClass::Transient, CallKind::WRITE, 4),
            (ErrorClass::Transient, CallKind::READ, 4),
            (ErrorClass::AnswerLost, CallKind::READ, 4),
            (ErrorClass::AnswerLost, CallKind::REPEATABLE_WRITE, 4),
            (ErrorClass::AnswerLost, CallKind::WRITE, 1),
            (ErrorClass::Capacity, CallKind::REPEATABLE_WRITE, 1),
            (ErrorClass::SpreadLimit, CallKind::REPEATABLE_WRITE, 1),
            (ErrorClass::Quota, CallKind::REPEATABLE_WRITE, 1),
            (ErrorClass::Configuration, CallKind::READ, 1),
            (ErrorClass::Credentials, CallKind::READ, 1),
            (ErrorClass::NotFound, CallKind::READ, 1),
        ] {
            assert_eq!(attempts(class, kind).await, expected, "{class:?} {kind:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_may_work_the_third_time_and_waits_as_long_as_it_is_told() {
        let limiter = Arc::new(RateLimiter::new(LimitPolicy::default()));
        let caller = Caller::new(limiter, RetryPolicy::default(), Random::seeded(1));
        let start = tokio::time::Instant::now();
        let mut made = 0;
        let answer = caller
            .call(CallKind::READ, || {
                made += 1;
                let attempt = made;
                async move {
                    if attempt == 3 {
                        return Ok(attempt);
                    }
                    let mut error = CloudError::new(ErrorClass::Transient, "Do", "Busy", "later");
                    error.retry_after = Some(Duration::from_secs(4));
                    Err(error)
                }
            })
            .await;
        assert_eq!(answer.unwrap(), 3);
        assert!(start.elapsed() >= Duration::from_secs(8));
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_wait_is_left_to_the_queue() {
        let limiter = Arc::new(RateLimiter::new(LimitPolicy::default()));
        let caller = Caller::new(limiter, RetryPolicy::default(), Random::seeded(1));
        let mut made = 0;
        let answer: Result<(), CloudError> = caller
            .call(CallKind::READ, || {
                made += 1;
                let mut error = CloudError::new(ErrorClass::Throttled, "Do", "Busy", "later");
                error.retry_after = Some(Duration::from_mins(1));
                async move { Err(error) }
            })
            .await;
        assert!(answer.is_err());
        assert_eq!(made, 1);
    }
}
