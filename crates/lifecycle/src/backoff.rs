//! Slowing down repairs that do not help.
//!
//! A Machine that cannot be launched is Failed; a health check deletes it, its set makes another,
//! and that fails too: several times a second, each time a call to the cloud. So repairs are
//! counted by owner and [`Cause`], and each waits longer than the one before. Only causes that a
//! replacement is likely to share are counted; an instance that the cloud took back is lost
//! already, and its replacement is never delayed.
//!
//! The state is small and persisted as text on the health check. Losing it costs one early repair.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{health::Cause, moment::after};

/// Annotation of a health check with the state.
pub const BACKOFF_ANNOTATION: &str = "healthcheck.machine.openshift.io/backoff";
/// Condition of a health check: repairs wait.
pub const REMEDIATION_BACKOFF: &str = "RemediationBackoff";

/// How slow it gets.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The wait before the second repair; zero never waits.
    pub first: Duration,
    /// The longest wait.
    pub longest: Duration,
    /// How much a wait may differ, as a share of it.
    pub jitter: f64,
    /// How long a replacement must be healthy until all is forgotten.
    pub healthy_for: Duration,
    /// How long nothing must have failed until all is forgotten.
    pub quiet_for: Duration,
    /// How many Machines of one owner are repaired at once, after the first time.
    pub at_once: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(30),
            longest: Duration::from_mins(30),
            jitter: 0.1,
            healthy_for: Duration::from_mins(10),
            // As long as the cluster autoscaler remembers.
            quiet_for: Duration::from_hours(3),
            at_once: 1,
        }
    }
}

/// Whether repairs for this cause wait for one another.
pub fn is_counted(cause: &Cause) -> bool {
    matches!(cause, Cause::LaunchFailed | Cause::StartupTimeout)
}

/// A Machine that needs a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patient {
    /// The UID of its controller.
    pub owner: String,
    /// What its owner makes Machines from; another value is another attempt.
    pub template: String,
    /// Why it needs a repair.
    pub cause: Cause,
}

/// A Machine that is healthy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The UID of its controller.
    pub owner: String,
    /// When it was made.
    pub created: Timestamp,
    /// Since when it is healthy.
    pub healthy_since: Timestamp,
}

/// What is remembered, by owner and cause.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    #[serde(rename = "v")]
    version: u32,
    #[serde(rename = "e", default)]
    entries: BTreeMap<String, Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    /// How many repairs there were.
    #[serde(rename = "n")]
    steps: u32,
    /// When the last was, in seconds.
    #[serde(rename = "t")]
    last: i64,
    /// When the next may be, in seconds.
    #[serde(rename = "d")]
    due: i64,
    /// What the Machines were made from.
    #[serde(rename = "h")]
    template: String,
}

/// The version that is written; another is not understood.
const VERSION: u32 = 1;

impl State {
    /// Reads a state. What cannot be read is nothing.
    pub fn parse(text: &str) -> Self {
        serde_json::from_str(text)
            .ok()
            .filter(|state: &Self| state.version == VERSION)
            .unwrap_or_default()
    }

    /// The state as text; empty when there is nothing to remember.
    pub fn to_text(&self) -> String {
        if self.entries.is_empty() {
            return String::new();
        }
        let state = Self { version: VERSION, entries: self.entries.clone() };
        serde_json::to_string(&state).unwrap_or_default()
    }

    /// Whether it remembers nothing.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The owners that it remembers.
    pub fn owners(&self) -> BTreeSet<String> {
        self.entries.keys().map(|key| owner_of(key).to_owned()).collect()
    }

    /// Forgets what does not matter any more: owners that are gone, and those that recovered.
    pub fn forget(
        &mut self,
        settings: &Settings,
        owners: &BTreeSet<String>,
        recovered: &[Recovered],
        now: Timestamp,
    ) {
        self.entries.retain(|key, entry| {
            let owner = owner_of(key);
            let last = Timestamp::from_second(entry.last).unwrap_or(Timestamp::MIN);
            let helped = recovered.iter().any(|machine| {
                machine.owner == owner
                    && machine.created >= last
                    && after(machine.healthy_since, settings.healthy_for) <= now
            });
            // While a repair waits, the quiet is ours.
            let quiet_from = Timestamp::from_second(entry.due.max(entry.last)).unwrap_or(last);
            owners.contains(owner) && !helped && now < after(quiet_from, settings.quiet_for)
        });
    }
}

/// The owner in the key of an entry.
fn owner_of(key: &str) -> &str {
    key.split_once('/').map_or(key, |(owner, _)| owner)
}

/// Whom to repair now. Numbers are places in the list that came in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Those to repair.
    pub repair: Vec<usize>,
    /// Those that wait, and until when at least.
    pub deferred: Vec<(usize, Timestamp)>,
    /// When the first of those is due.
    pub next: Option<Timestamp>,
}

/// Decides whom to repair, and counts it. `chance` gives numbers from -1 to 1.
pub fn decide(
    settings: &Settings,
    state: &mut State,
    patients: &[Patient],
    mut chance: impl FnMut() -> f64,
    now: Timestamp,
) -> Decision {
    let mut decision = Decision::default();
    let mut batches: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (place, patient) in patients.iter().enumerate() {
        if is_counted(&patient.cause) && !settings.first.is_zero() {
            let key = format!("{}/{}", patient.owner, patient.cause);
            batches.entry(key).or_default().push(place);
        } else {
            decision.repair.push(place);
        }
    }
    for (key, places) in batches {
        let template = &patients[places[0]].template;
        let known = state.entries.get(&key).filter(|entry| entry.template == *template);
        let (steps, due) =
            known.map_or((0, None), |entry| (entry.steps, Timestamp::from_second(entry.due).ok()));
        if let Some(due) = due.filter(|due| now < *due) {
            decision.deferred.extend(places.into_iter().map(|place| (place, due)));
            continue;
        }
        // The first time nobody knows that it will not help; later one is enough to find out.
        let count = if steps == 0 { places.len() } else { settings.at_once };
        let (repaired, rest) = places.split_at(count.min(places.len()));
        let entry = Entry {
            steps: steps.saturating_add(1),
            last: now.as_second(),
            due: after(now, wait(settings, steps.saturating_add(1), chance())).as_second(),
            template: template.clone(),
        };
        let due = Timestamp::from_second(entry.due).unwrap_or(now);
        decision.repair.extend(repaired);
        decision.deferred.extend(rest.iter().map(|place| (*place, due)));
        state.entries.insert(key, entry);
    }
    decision.repair.sort_unstable();
    decision.deferred.sort_unstable();
    decision.next = decision.deferred.iter().map(|(_, due)| *due).min();
    decision
}

/// The wait after so many repairs.
fn wait(settings: &Settings, steps: u32, chance: f64) -> Duration {
    let doubled = 2_u32.saturating_pow(steps.saturating_sub(1));
    let plain = settings.first.saturating_mul(doubled).min(settings.longest);
    let factor = (1.0 + settings.jitter * chance.clamp(-1.0, 1.0)).max(0.0);
    Duration::try_from_secs_f64(plain.as_secs_f64() * factor).unwrap_or(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Timestamp {
        Timestamp::UNIX_EPOCH + Duration::from_secs(1_000_000 + second)
    }

    fn patient(owner: &str, cause: Cause) -> Patient {
        Patient { owner: owner.to_owned(), template: "t1".to_owned(), cause }
    }

    fn failed() -> Patient {
        patient("set", Cause::LaunchFailed)
    }

    fn decide_at(state: &mut State, patients: &[Patient], second: u64) -> Decision {
        decide(&Settings::default(), state, patients, || 0.0, at(second))
    }

    #[test]
    fn each_repair_waits_longer_up_to_half_an_hour() {
        let mut state = State::default();
        let mut second = 0;
        let mut waits = Vec::new();
        for _ in 0..9 {
            let found = decide_at(&mut state, &[failed()], second);
            assert_eq!(found.repair, [0]);
            let next = decide_at(&mut state, &[failed()], second).next.unwrap();
            let wait = next.duration_since(at(second)).as_secs();
            waits.push(wait);
            let early = decide_at(&mut state, &[failed()], second + wait.unsigned_abs() - 1);
            assert!(early.repair.is_empty());
            second += wait.unsigned_abs();
        }
        assert_eq!(waits, [30, 60, 120, 240, 480, 960, 1800, 1800, 1800]);
    }

    #[test]
    fn what_the_cloud_takes_back_is_never_delayed() {
        let condition =
            |kind: &str| Cause::NodeCondition { kind: kind.to_owned(), status: "True".to_owned() };
        let patients = [
            patient("set", condition("Terminating")),
            patient("set", Cause::InstanceGone),
            patient("set", Cause::NodeMissing),
        ];
        let mut state = State::default();
        for second in 0..5 {
            assert_eq!(decide_at(&mut state, &patients, second).repair, [0, 1, 2]);
        }
        assert!(state.is_empty());
    }

    #[test]
    fn a_batch_is_one_step_and_then_one_is_enough() {
        let mut state = State::default();
        let batch = [failed(), failed(), failed(), patient("other", Cause::LaunchFailed)];
        assert_eq!(decide_at(&mut state, &batch, 0).repair, [0, 1, 2, 3]);
        let again = decide_at(&mut state, &batch[..3], 30);
        assert_eq!(again.repair, [0]);
        assert_eq!(again.deferred, [(1, at(90)), (2, at(90))]);
        assert_eq!(again.next, Some(at(90)));
    }

    #[test]
    fn another_template_is_another_attempt() {
        let mut state = State::default();
        decide_at(&mut state, &[failed()], 0);
        let fixed = Patient { template: "t2".to_owned(), ..failed() };
        assert_eq!(decide_at(&mut state, &[fixed], 1).repair, [0]);
    }

    #[test]
    fn forgotten_when_it_helped_or_nobody_cares() {
        let settings = Settings::default();
        let owners = BTreeSet::from(["set".to_owned()]);
        let fresh = || {
            let mut state = State::default();
            decide_at(&mut state, &[failed()], 0);
            state
        };
        let healthy = |created: u64, since: u64| Recovered {
            owner: "set".to_owned(),
            created: at(created),
            healthy_since: at(since),
        };
        let forgets = |owners: &BTreeSet<String>, recovered: &[Recovered], second: u64| {
            let mut state = fresh();
            state.forget(&settings, owners, recovered, at(second));
            state.is_empty()
        };
        assert!(!forgets(&owners, &[], 600));
        assert!(forgets(&BTreeSet::new(), &[], 0), "the owner is gone");
        assert!(forgets(&owners, &[healthy(5, 100)], 700));
        assert!(!forgets(&owners, &[healthy(5, 101)], 700), "not long enough");
        assert!(!forgets(&owners, &[healthy(5, 100)], 699));
        let before = Recovered { created: at(0) - Duration::from_secs(1), ..healthy(0, 0) };
        assert!(!forgets(&owners, &[before], 700), "it was there before the repair");
        assert!(forgets(&owners, &[], 30 + 3 * 3600));
    }

    #[test]
    fn survives_a_restart_and_nonsense() {
        let mut state = State::default();
        decide_at(&mut state, &[failed()], 0);
        let text = state.to_text();
        assert_eq!(
            text,
            r#"{"v":1,"e":{"set/launch-failed":{"n":1,"t":1000000,"d":1000030,"h":"t1"}}}"#
        );
        assert_eq!(State::parse(&text).to_text(), text);
        for nonsense in ["", "{", "[]", r#"{"v":2,"e":{}}"#, r#"{"v":1,"e":[1]}"#] {
            assert!(State::parse(nonsense).is_empty(), "{nonsense}");
        }
        assert_eq!(State::default().to_text(), "");
    }

    #[test]
    fn chance_moves_a_wait_by_a_tenth() {
        let settings = Settings::default();
        let whole = |chance| wait(&settings, 1, chance).as_secs();
        assert_eq!((whole(-1.0), whole(0.0), whole(1.0), whole(50.0)), (27, 30, 33, 33));
    }
}
