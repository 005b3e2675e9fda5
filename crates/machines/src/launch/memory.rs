//! What is known of pools of capacity: a full one is probed by one launch, not by all.

use std::{collections::BTreeMap, time::Duration};

use fleetwright_clock::BackoffPolicy;
use fleetwright_cloud::{CloudError, Shape};
use jiff::Timestamp;

/// How a full pool is probed: soon at first, for capacity comes back in bits.
const PROBES: BackoffPolicy = BackoffPolicy {
    initial: Duration::from_secs(15),
    max: Duration::from_mins(2),
    factor: 2.0,
    jitter: 0.0,
    reset_after: None,
};

/// Where capacity is taken from. A full group says nothing of the same type outside it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pool {
    account: String,
    group: Option<String>,
    partition: Option<u32>,
    instance_type: String,
    zone: String,
    interruptible: bool,
    tenancy: Option<String>,
}

impl Pool {
    /// The pool of launches of this shape in an account.
    pub fn of(account: &str, shape: &Shape) -> Self {
        Self {
            account: account.to_owned(),
            group: shape.group.clone(),
            partition: shape.partition,
            instance_type: shape.instance_type.clone(),
            zone: shape.zone.clone(),
            interruptible: shape.interruptible,
            tenancy: shape.tenancy.clone(),
        }
    }
}

/// A pool that refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// So many at once are more than it has.
    pub min: u32,
    /// In its words.
    pub error: CloudError,
    /// It is not asked before.
    pub until: Timestamp,
    refusals: u32,
}

/// The pools that refused lately.
#[derive(Clone, Debug, Default)]
pub struct CapacityMemory {
    pools: BTreeMap<Pool, Refusal>,
}

impl CapacityMemory {
    /// The refusal that a launch of at least `min` would meet.
    pub fn refusal(&self, pool: &Pool, min: u32) -> Option<&Refusal> {
        self.pools.get(pool).filter(|refusal| min >= refusal.min)
    }

    /// A launch of at least `min` was refused.
    pub fn refused(&mut self, pool: Pool, min: u32, error: CloudError, now: Timestamp) {
        let known = self.pools.get(&pool);
        let refusals = known.map_or(0, |known| known.refusals);
        // What is known of fewer holds for more.
        let min = known.map_or(min, |known| known.min.min(min));
        let wait = PROBES.wait(refusals).max(error.retry_after.unwrap_or_default());
        let until = now.saturating_add(wait).unwrap_or(Timestamp::MAX);
        self.pools.insert(pool, Refusal { min, error, until, refusals: refusals + 1 });
    }

    /// A launch went well.
    pub fn served(&mut self, pool: &Pool) {
        self.pools.remove(pool);
    }

    /// Forgets what nobody has asked about for long.
    pub fn prune(&mut self, now: Timestamp) {
        let old = now.saturating_sub(PROBES.max * 5).unwrap_or(Timestamp::MIN);
        self.pools.retain(|_, refusal| refusal.until > old);
    }
}

#[cfg(test)]
mod tests {
    use fleetwright_cloud::ErrorClass;

    use super::*;

    #[test]
    fn a_refusal_holds_for_as_many_or_more_and_for_its_own_pool() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let error = CloudError::new(ErrorClass::Capacity, "RunInstances", "ICE", "none");
        let shape = Shape { zone: "a".to_owned(), ..Shape::default() };
        let in_group = Shape { group: Some("g".to_owned()), ..shape.clone() };
        let (pool, other) = (Pool::of("x", &in_group), Pool::of("x", &shape));
        let mut memory = CapacityMemory::default();
        memory.refused(pool.clone(), 4, error.clone(), now);
        assert!(memory.refusal(&pool, 4).is_some() && memory.refusal(&pool, 9).is_some());
        assert!(memory.refusal(&pool, 2).is_none() && memory.refusal(&other, 9).is_none());
        memory.refused(pool.clone(), 2, error.clone(), now);
        memory.refused(pool.clone(), 4, error, now);
        let refusal = memory.refusal(&pool, 2).unwrap();
        assert_eq!(refusal.until, now + Duration::from_mins(1));
        memory.served(&pool);
        assert!(memory.refusal(&pool, 9).is_none());
    }
}
