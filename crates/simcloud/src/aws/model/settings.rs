//! What can be chosen about the simulated region.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

/// Every choice. The defaults are those of AWS where AWS documents them, and quick otherwise.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    /// The account's number.
    pub account: String,
    /// The region's name.
    pub region: String,
    /// How long things take.
    pub delays: Delays,
    /// How long after a call its effect shows in Describe calls.
    pub lag: Lag,
    /// What the account may have.
    pub quotas: Quotas,
    /// Rates of calls.
    pub throttling: Throttling,
    /// Every answer takes this long.
    #[serde(with = "seconds")]
    pub latency: Duration,
    /// Whether requests must carry a signature by a known key.
    pub signatures: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            account: "123456789012".to_owned(),
            region: "us-east-1".to_owned(),
            delays: Delays::default(),
            lag: Lag::default(),
            quotas: Quotas::default(),
            throttling: Throttling::default(),
            latency: Duration::ZERO,
            signatures: true,
        }
    }
}

/// How long things take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Delays {
    /// From pending to running.
    #[serde(with = "seconds")]
    pub boot: Duration,
    /// From shutting-down to terminated.
    #[serde(with = "seconds")]
    pub shut_down: Duration,
    /// From stopping to stopped.
    #[serde(with = "seconds")]
    pub stop: Duration,
    /// How long a terminated instance is still listed.
    #[serde(with = "seconds")]
    pub remember_terminated: Duration,
    /// How long a client token is remembered after its instances are terminated.
    #[serde(with = "seconds")]
    pub remember_token: Duration,
    /// From pending to available, for a placement group.
    #[serde(with = "seconds")]
    pub group_available: Duration,
    /// From deleting to gone, for a placement group.
    #[serde(with = "seconds")]
    pub group_deleted: Duration,
    /// Between the notice of a spot interruption and the interruption.
    #[serde(with = "seconds")]
    pub spot_notice: Duration,
    /// Until a registered target is healthy.
    #[serde(with = "seconds")]
    pub target_healthy: Duration,
    /// Until a deregistered target is gone.
    #[serde(with = "seconds")]
    pub target_drained: Duration,
    /// Until a started instance passes its status checks.
    #[serde(with = "seconds")]
    pub status_checks: Duration,
}

impl Default for Delays {
    fn default() -> Self {
        Self {
            boot: Duration::from_secs(5),
            shut_down: Duration::from_secs(10),
            stop: Duration::from_secs(10),
            remember_terminated: Duration::from_hours(1),
            remember_token: Duration::from_hours(24),
            group_available: Duration::ZERO,
            group_deleted: Duration::from_secs(1),
            spot_notice: Duration::from_mins(2),
            target_healthy: Duration::from_secs(10),
            target_drained: Duration::from_secs(10),
            status_checks: Duration::from_secs(20),
        }
    }
}

impl Delays {
    /// Nothing takes time, except what AWS promises to remember.
    pub fn none() -> Self {
        let kept = Self::default();
        let zero = Duration::ZERO;
        Self {
            boot: zero,
            shut_down: zero,
            stop: zero,
            group_available: zero,
            group_deleted: zero,
            target_healthy: zero,
            target_drained: zero,
            status_checks: zero,
            ..kept
        }
    }

    /// Everything the simulation invents takes `1/speed` of its time. What AWS promises (how
    /// long it remembers) stays.
    #[must_use]
    pub fn faster(self, speed: f64) -> Self {
        let factor = if speed.is_finite() && speed > 0.0 { 1.0 / speed } else { 1.0 };
        let quick = |d: Duration| d.mul_f64(factor);
        Self {
            boot: quick(self.boot),
            shut_down: quick(self.shut_down),
            stop: quick(self.stop),
            remember_terminated: self.remember_terminated,
            remember_token: self.remember_token,
            group_available: quick(self.group_available),
            group_deleted: quick(self.group_deleted),
            spot_notice: quick(self.spot_notice),
            target_healthy: quick(self.target_healthy),
            target_drained: quick(self.target_drained),
            status_checks: quick(self.status_checks),
        }
    }
}

/// How far readers lag behind, by the action that wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Lag {
    /// For actions not named below.
    #[serde(with = "seconds")]
    pub default: Duration,
    /// By action, such as `RunInstances`, in seconds.
    #[serde(with = "seconds::map")]
    pub actions: BTreeMap<String, Duration>,
}

impl Lag {
    /// The same lag after every write.
    pub fn of_all(lag: Duration) -> Self {
        Self { default: lag, actions: BTreeMap::new() }
    }

    /// The lag after a write by `action`.
    pub fn after(&self, action: &str) -> Duration {
        self.actions.get(action).copied().unwrap_or(self.default)
    }
}

/// What the account may have. `None` is no limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Quotas {
    /// vCPUs of running on-demand instances, by bucket (see [`super::capacity::Bucket`]).
    pub on_demand_vcpus: BTreeMap<String, u32>,
    /// vCPUs of spot instances, by bucket.
    pub spot_vcpus: BTreeMap<String, u32>,
    /// Placement groups.
    pub placement_groups: usize,
    /// Running instances of a spread group per zone.
    pub spread_per_zone: u32,
    /// Most instances that one RunInstances may ask for.
    pub instances_per_call: u32,
    /// Dedicated Hosts of one family.
    pub hosts_per_family: u32,
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            on_demand_vcpus: BTreeMap::new(),
            spot_vcpus: BTreeMap::new(),
            placement_groups: 500,
            spread_per_zone: 7,
            instances_per_call: 1000,
            hosts_per_family: 20,
        }
    }
}

/// Rates of calls, as EC2 documents them: a bucket that holds `burst` and gains `rate` a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Throttling {
    /// Whether calls are throttled at all.
    pub on: bool,
    /// Describe calls with filters, identifiers or pages.
    pub describe: Rate,
    /// Describe calls without any of them.
    pub describe_all: Rate,
    /// Calls that change something.
    pub mutate: Rate,
    /// Calls that cost EC2 more, by action.
    pub actions: BTreeMap<String, Rate>,
    /// Resources touched, by action: a call takes one token per instance.
    pub resources: BTreeMap<String, Rate>,
}

/// A token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// What it holds.
    pub burst: f64,
    /// What it gains a second.
    pub rate: f64,
}

impl Default for Throttling {
    fn default() -> Self {
        let rate = |burst, rate| Rate { burst, rate };
        let named = |rates: &[(&str, Rate)]| {
            rates.iter().map(|(name, rate)| ((*name).to_owned(), *rate)).collect()
        };
        Self {
            on: true,
            describe: rate(100.0, 20.0),
            describe_all: rate(50.0, 10.0),
            mutate: rate(50.0, 5.0),
            actions: named(&[
                ("RunInstances", rate(5.0, 2.0)),
                ("StartInstances", rate(5.0, 2.0)),
                ("TerminateInstances", rate(100.0, 5.0)),
                ("CreateTags", rate(100.0, 10.0)),
                ("DeleteTags", rate(100.0, 10.0)),
            ]),
            resources: named(&[
                ("RunInstances", rate(1000.0, 2.0)),
                ("StartInstances", rate(1000.0, 2.0)),
                ("TerminateInstances", rate(1000.0, 20.0)),
                ("StopInstances", rate(1000.0, 20.0)),
            ]),
        }
    }
}

impl Throttling {
    /// Any rate is fine.
    pub fn off() -> Self {
        Self { on: false, ..Self::default() }
    }
}

/// Durations as seconds with fractions.
mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// Times past this are a mistake, and could overflow.
    const LONGEST: f64 = 10.0 * 365.0 * 86_400.0;

    pub(super) fn serialize<S: Serializer>(d: &Duration, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_f64(d.as_secs_f64())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Duration, D::Error> {
        checked(f64::deserialize(d)?)
    }

    fn checked<E: Error>(seconds: f64) -> Result<Duration, E> {
        if (0.0..=LONGEST).contains(&seconds) {
            Ok(Duration::from_secs_f64(seconds))
        } else {
            Err(E::custom(format!("not a sensible number of seconds: {seconds}")))
        }
    }

    pub(super) mod map {
        use std::{collections::BTreeMap, time::Duration};

        use serde::{Deserialize, Deserializer, Serialize, Serializer};

        type Durations = BTreeMap<String, Duration>;

        pub(in super::super) fn serialize<S: Serializer>(
            durations: &Durations,
            s: S,
        ) -> Result<S::Ok, S::Error> {
            let seconds: BTreeMap<_, _> =
                durations.iter().map(|(name, d)| (name, d.as_secs_f64())).collect();
            seconds.serialize(s)
        }

        pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
            d: D,
        ) -> Result<Durations, D::Error> {
            let seconds = BTreeMap::<String, f64>::deserialize(d)?;
            seconds.into_iter().map(|(name, s)| Ok((name, super::checked(s)?))).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_from_json_with_defaults() {
        let text =
            r#"{"delays": {"boot": 1.5}, "lag": {"default": 2, "actions": {"CreateTags": 0}}}"#;
        let settings: Settings = serde_json::from_str(text).unwrap();
        assert_eq!(settings.delays.boot, Duration::from_millis(1500));
        assert_eq!(settings.delays.stop, Delays::default().stop);
        assert_eq!(settings.lag.after("CreateTags"), Duration::ZERO);
        assert_eq!(settings.lag.after("RunInstances"), Duration::from_secs(2));
        let written = serde_json::to_string(&settings).unwrap();
        assert!(serde_json::from_str::<Settings>(&written).is_ok());
        for bad in [r#"{"delays": {"boot": -1}}"#, r#"{"delays": {"boot": 1e300}}"#, r#"{"x": 1}"#]
        {
            assert!(serde_json::from_str::<Settings>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn speed_shortens_only_what_is_invented() {
        let quick = Delays::default().faster(10.0);
        assert_eq!(quick.boot, Duration::from_millis(500));
        assert_eq!(quick.remember_terminated, Duration::from_hours(1));
    }
}
