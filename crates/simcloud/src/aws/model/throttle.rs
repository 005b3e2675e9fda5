//! Token buckets per action, as EC2 throttles.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{
    error::{ApiError, Outcome},
    settings::{Rate, Throttling},
};

/// The buckets of one account.
#[derive(Clone, Debug, Default)]
pub struct Throttle {
    buckets: BTreeMap<String, Bucket>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    filled: Timestamp,
}

/// What a call costs.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// It only reads.
    pub reads: bool,
    /// A read that names what it wants, or asks for pages.
    pub narrow: bool,
    /// How many resources it touches.
    pub resources: u32,
}

impl Throttle {
    /// Takes what the call costs, or refuses it and takes nothing.
    pub fn take(
        &mut self,
        rules: &Throttling,
        action: &str,
        cost: Cost,
        now: Timestamp,
    ) -> Outcome<()> {
        if !rules.on {
            return Ok(());
        }
        let (class, rate) = match rules.actions.get(action) {
            Some(rate) => (action, *rate),
            None if !cost.reads => ("mutate", rules.mutate),
            None if cost.narrow => ("describe", rules.describe),
            None => ("describe all", rules.describe_all),
        };
        let mut wanted = vec![(class.to_owned(), rate, 1.0)];
        if let Some(rate) = rules.resources.get(action) {
            wanted.push((format!("{action} resources"), *rate, f64::from(cost.resources)));
        }
        for (name, rate, amount) in &wanted {
            if self.fill(name, *rate, now).tokens < *amount {
                return Err(ApiError::throttled());
            }
        }
        for (name, _, amount) in &wanted {
            if let Some(bucket) = self.buckets.get_mut(name) {
                bucket.tokens -= amount;
            }
        }
        Ok(())
    }

    fn fill(&mut self, name: &str, rate: Rate, now: Timestamp) -> Bucket {
        let full = Bucket { tokens: rate.burst, filled: now };
        let bucket = self.buckets.entry(name.to_owned()).or_insert(full);
        let passed = now.duration_since(bucket.filled).as_secs_f64().max(0.0);
        bucket.tokens = (bucket.tokens + passed * rate.rate).min(rate.burst);
        bucket.filled = now;
        *bucket
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).unwrap()
    }

    const LAUNCH: Cost = Cost { reads: false, narrow: false, resources: 1 };

    #[test]
    fn run_instances_is_throttled_by_calls() {
        let (rules, mut throttle) = (Throttling::default(), Throttle::default());
        let mut run = |now| throttle.take(&rules, "RunInstances", LAUNCH, at(now)).is_ok();
        assert_eq!((0..6).filter(|_| run(0)).count(), 5);
        assert!(run(500) && !run(500));
    }

    #[test]
    fn run_instances_is_throttled_by_instances() {
        let (rules, mut throttle) = (Throttling::default(), Throttle::default());
        let mut run = |resources, now| {
            let cost = Cost { resources, ..LAUNCH };
            throttle.take(&rules, "RunInstances", cost, at(now)).is_ok()
        };
        assert!(run(600, 0) && !run(600, 1000));
        // A refusal takes nothing: 400 and the second's two are still there.
        assert!(run(402, 1000));
    }

    #[test]
    fn reads_and_writes_have_their_own_buckets() {
        let (rules, mut throttle) = (Throttling::default(), Throttle::default());
        let wide = Cost { reads: true, narrow: false, resources: 0 };
        let mut describe = |cost| throttle.take(&rules, "DescribeInstances", cost, at(0)).is_ok();
        assert_eq!((0..200).filter(|_| describe(wide)).count(), 50);
        assert_eq!((0..200).filter(|_| describe(Cost { narrow: true, ..wide })).count(), 100);
    }
}
