//! How much of what there is where: pools of capacity, spot prices, vCPU quotas.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::types::{self, InstanceType};

/// Where an instance draws from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pool {
    /// Zone.
    pub zone: String,
    /// Instance type.
    pub instance_type: String,
    /// Placement group.
    pub group: Option<String>,
    /// Spot or on demand.
    pub spot: bool,
}

/// At most `limit` instances of those that match every given field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Limit {
    /// Zone; absent means any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Instance type; absent means any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    /// Placement group; absent means any instance, in a group or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Spot only, on demand only, or both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spot: Option<bool>,
    /// How many.
    pub limit: u32,
}

impl Limit {
    pub(super) fn covers(&self, pool: &Pool) -> bool {
        self.zone.as_ref().is_none_or(|zone| *zone == pool.zone)
            && self.instance_type.as_ref().is_none_or(|name| *name == pool.instance_type)
            && self.group.as_ref().is_none_or(|group| Some(group) == pool.group.as_ref())
            && self.spot.is_none_or(|spot| spot == pool.spot)
    }

    fn same_place(&self, other: &Self) -> bool {
        Self { limit: 0, ..self.clone() } == Self { limit: 0, ..other.clone() }
    }
}

/// Capacity of a region: without a limit there is always enough.
#[derive(Clone, Debug, Default)]
pub struct Capacity {
    limits: Vec<Limit>,
    used: BTreeMap<Pool, u32>,
    /// Spot prices in millionths of a dollar by (zone, type), where they differ from the usual.
    prices: BTreeMap<(String, String), u64>,
}

impl Capacity {
    /// Sets a limit, in place of one for exactly the same pools.
    pub fn limit(&mut self, limit: Limit) {
        self.limits.retain(|old| !old.same_place(&limit));
        self.limits.push(limit);
    }

    /// Takes away the limit for exactly these pools, whatever its number; all of them without.
    pub fn unlimit(&mut self, limit: Option<&Limit>) {
        self.limits.retain(|old| limit.is_some_and(|limit| !old.same_place(limit)));
    }

    /// The limits in force.
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// How many more fit into the pool.
    pub fn free(&self, pool: &Pool) -> u32 {
        let covering = self.limits.iter().filter(|limit| limit.covers(pool));
        covering.map(|l| l.limit.saturating_sub(self.in_use(l))).min().unwrap_or(u32::MAX)
    }

    /// How many instances a limit counts.
    pub fn in_use(&self, limit: &Limit) -> u32 {
        self.used.iter().filter(|(pool, _)| limit.covers(pool)).map(|(_, n)| n).sum()
    }

    /// An instance takes its place.
    pub fn take(&mut self, pool: Pool) {
        *self.used.entry(pool).or_default() += 1;
    }

    /// An instance leaves.
    pub fn give_back(&mut self, pool: &Pool) {
        if let Some(count) = self.used.get_mut(pool) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.used.remove(pool);
            }
        }
    }

    /// vCPUs in use of one bucket.
    pub fn vcpus(&self, bucket: Bucket, spot: bool) -> u32 {
        self.used
            .iter()
            .filter(|(pool, _)| pool.spot == spot)
            .filter_map(|(pool, count)| {
                let of = types::find(&pool.instance_type)?;
                (Bucket::of(of) == bucket).then_some(of.vcpus * count)
            })
            .sum()
    }

    /// What a spot instance costs.
    pub fn spot_price(&self, zone: &str, of: &InstanceType) -> u64 {
        // Spot usually costs about a third.
        let key = (zone.to_owned(), of.name.to_owned());
        self.prices.get(&key).copied().unwrap_or(of.price_micros * 3 / 10)
    }

    /// Sets a spot price.
    pub fn set_spot_price(&mut self, zone: &str, instance_type: &str, micros: u64) {
        self.prices.insert((zone.to_owned(), instance_type.to_owned()), micros);
    }
}

/// The families that share a vCPU quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bucket {
    /// A, C, D, H, I, M, R, T, Z.
    Standard,
    /// G and VT.
    G,
    /// P.
    P,
    /// Inf.
    Inf,
    /// Trn.
    Trn,
    /// X.
    X,
    /// HPC.
    Hpc,
    /// Mac and others, which are limited as hosts.
    Other,
}

impl Bucket {
    /// The bucket of a type.
    pub fn of(of: &InstanceType) -> Self {
        let family = of.family();
        if family.starts_with("hpc") {
            Self::Hpc
        } else if family.starts_with("inf") {
            Self::Inf
        } else if family.starts_with("trn") {
            Self::Trn
        } else if family.starts_with("mac") {
            Self::Other
        } else {
            match family.as_bytes().first() {
                Some(b'g' | b'v') => Self::G,
                Some(b'p') => Self::P,
                Some(b'x') => Self::X,
                _ => Self::Standard,
            }
        }
    }

    /// Its name in [`super::settings::Quotas`].
    pub fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::G => "g",
            Self::P => "p",
            Self::Inf => "inf",
            Self::Trn => "trn",
            Self::X => "x",
            Self::Hpc => "hpc",
            Self::Other => "other",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(zone: &str, group: Option<&str>, spot: bool) -> Pool {
        Pool {
            zone: zone.to_owned(),
            instance_type: "m5.large".to_owned(),
            group: group.map(str::to_owned),
            spot,
        }
    }

    fn limit(zone: Option<&str>, group: Option<&str>, spot: Option<bool>, limit: u32) -> Limit {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Limit { zone: owned(zone), instance_type: None, group: owned(group), spot, limit }
    }

    #[test]
    fn the_tightest_limit_counts() {
        let mut capacity = Capacity::default();
        assert_eq!(capacity.free(&pool("a", None, false)), u32::MAX);
        capacity.limit(limit(Some("a"), None, None, 3));
        capacity.limit(limit(None, Some("g"), None, 1));
        capacity.take(pool("a", None, false));
        assert_eq!(capacity.free(&pool("a", None, false)), 2);
        assert_eq!(capacity.free(&pool("a", Some("g"), false)), 1);
        capacity.take(pool("a", Some("g"), true));
        assert_eq!(capacity.free(&pool("b", Some("g"), false)), 0);
        assert_eq!(capacity.free(&pool("b", Some("h"), false)), u32::MAX);
        capacity.give_back(&pool("a", Some("g"), true));
        assert_eq!(capacity.free(&pool("b", Some("g"), false)), 1);
    }

    #[test]
    fn a_limit_replaces_one_for_the_same_pools() {
        let mut capacity = Capacity::default();
        capacity.limit(limit(Some("a"), None, Some(true), 3));
        capacity.limit(limit(Some("a"), None, Some(true), 0));
        assert_eq!(capacity.limits().len(), 1);
        assert_eq!(capacity.free(&pool("a", None, true)), 0);
        assert_eq!(capacity.free(&pool("a", None, false)), u32::MAX);
        capacity.unlimit(Some(&limit(Some("a"), None, Some(true), 9)));
        assert!(capacity.limits().is_empty());
    }

    #[test]
    fn buckets_and_vcpus() {
        let bucket = |name| Bucket::of(types::find(name).unwrap());
        assert_eq!(bucket("m7i-flex.large"), Bucket::Standard);
        assert_eq!(bucket("g5.xlarge"), Bucket::G);
        assert_eq!(bucket("hpc6a.48xlarge"), Bucket::Hpc);
        let mut capacity = Capacity::default();
        capacity.take(pool("a", None, false));
        capacity.take(pool("b", None, false));
        assert_eq!(capacity.vcpus(Bucket::Standard, false), 4);
        assert_eq!(capacity.vcpus(Bucket::Standard, true), 0);
    }
}
