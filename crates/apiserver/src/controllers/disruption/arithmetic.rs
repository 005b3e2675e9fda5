//! The arithmetic of disruption budgets.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{handlers::timestamp, object};

/// How long a pod that was evicted may take until its deletion is seen.
const DELETION_TIMEOUT: SignedDuration = SignedDuration::from_mins(2);

/// How many pods a budget asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Pods that there should be.
    pub expected: i64,
    /// Pods that must be healthy.
    pub desired_healthy: i64,
}

/// What a budget says about the number of its pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// At least so many are healthy, of those there are.
    AtLeast(i64),
    /// At least this share is healthy, of those there should be.
    AtLeastPercent(Value),
    /// At most so many are not healthy, of those there should be.
    AtMost(Value),
    /// Nothing.
    Nothing,
}

impl Rule {
    /// Reads the spec of a budget.
    pub(super) fn of(budget: &Value) -> Self {
        let field = |name: &str| object::get(budget, &["spec", name]).filter(|v| !v.is_null());
        if let Some(most) = field("maxUnavailable") {
            return Self::AtMost(most.clone());
        }
        match field("minAvailable") {
            None => Self::Nothing,
            Some(least) => match least.as_i64() {
                Some(least) => Self::AtLeast(least),
                None => Self::AtLeastPercent(least.clone()),
            },
        }
    }

    /// Whether the number of pods that there should be must be asked of their controllers.
    pub(super) fn needs_scale(&self) -> bool {
        matches!(self, Self::AtLeastPercent(_) | Self::AtMost(_))
    }

    /// What it asks for, given how many pods there are and how many their controllers want.
    pub(super) fn wanted(&self, pods: i64, scale: i64) -> Result<Wanted, String> {
        Ok(match self {
            Self::Nothing => Wanted::default(),
            Self::AtLeast(least) => Wanted { expected: pods, desired_healthy: *least },
            Self::AtLeastPercent(least) => {
                Wanted { expected: scale, desired_healthy: scaled(least, scale)? }
            }
            Self::AtMost(most) => {
                let healthy = scale.saturating_sub(scaled(most, scale)?).max(0);
                Wanted { expected: scale, desired_healthy: healthy }
            }
        })
    }
}

/// A number as it is, or a percentage of `total`, rounded up.
fn scaled(value: &Value, total: i64) -> Result<i64, String> {
    if let Some(number) = value.as_i64() {
        return Ok(number);
    }
    let text = value.as_str().unwrap_or_default();
    let Some(digits) = text.strip_suffix('%') else {
        return Err(
            "invalid value for IntOrString: invalid type: string is not a percentage".to_owned()
        );
    };
    let percent: i64 = digits.parse().map_err(|_| {
        let quote = fleetwright_kschema::gotext::quote;
        format!(
            "invalid value for IntOrString: invalid value {}: strconv.Atoi: parsing {}: invalid syntax",
            quote(text),
            quote(digits)
        )
    })?;
    let product = i128::from(percent) * i128::from(total);
    let ceiling = -(-product).div_euclid(100);
    Ok(i64::try_from(ceiling).unwrap_or(i64::MAX))
}

/// The evicted pods that are still waited for, and when that ends.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Disrupted {
    /// When each was evicted, by name.
    pub pods: BTreeMap<String, Timestamp>,
    /// When the first of them has taken too long.
    pub recheck: Option<Timestamp>,
    /// Those that have taken too long, by name.
    pub overdue: Vec<String>,
}

/// Which of a budget's evicted pods are still waited for.
pub(super) fn disrupted(budget: &Value, pods: &[Value], now: Timestamp) -> Disrupted {
    let mut result = Disrupted::default();
    let known = object::get(budget, &["status", "disruptedPods"]).and_then(Value::as_object);
    let Some(known) = known else { return result };
    for pod in pods.iter().filter(|pod| !object::is_terminating(pod)) {
        let name = object::name(pod);
        let time = known.get(name).and_then(Value::as_str).and_then(|time| time.parse().ok());
        let Some(time): Option<Timestamp> = time else { continue };
        let expected = time.checked_add(DELETION_TIMEOUT).unwrap_or(time);
        if expected < now {
            result.overdue.push(name.to_owned());
            continue;
        }
        result.recheck = Some(result.recheck.map_or(expected, |first| first.min(expected)));
        result.pods.insert(name.to_owned(), time);
    }
    result
}

/// Pods that are ready and stay.
pub(super) fn healthy(pods: &[Value], disrupted: &Disrupted, now: Timestamp) -> i64 {
    let leaves = |pod: &Value| {
        object::is_terminating(pod)
            || disrupted.pods.get(object::name(pod)).is_some_and(|time| {
                time.checked_add(DELETION_TIMEOUT).is_ok_and(|expected| expected > now)
            })
    };
    let healthy = pods.iter().filter(|pod| !leaves(pod) && is_ready(pod)).count();
    i64::try_from(healthy).unwrap_or(i64::MAX)
}

fn is_ready(pod: &Value) -> bool {
    object::list(pod, &["status", "conditions"]).iter().any(|condition| {
        object::text(condition, &["type"]) == "Ready"
            && object::text(condition, &["status"]) == "True"
    })
}

/// The new status of a budget, or `None` if it has it already.
pub(super) fn status(
    budget: &Value,
    wanted: Wanted,
    healthy: i64,
    disrupted: &Disrupted,
    now: Timestamp,
) -> Option<Value> {
    let spare = healthy - wanted.desired_healthy;
    let allowed = if wanted.expected <= 0 || spare <= 0 { 0 } else { spare };
    let pods: BTreeMap<&str, String> =
        disrupted.pods.iter().map(|(name, time)| (name.as_str(), timestamp(*time))).collect();
    let mut status = json!({
        "currentHealthy": healthy,
        "desiredHealthy": wanted.desired_healthy,
        "disruptionsAllowed": allowed,
        "expectedPods": wanted.expected,
        "observedGeneration": object::generation(budget),
        "conditions": object::list(budget, &["status", "conditions"]),
    });
    if !pods.is_empty() {
        object::set(&mut status, &["disruptedPods"], json!(pods));
    }
    let (value, reason) =
        if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    if is_current(budget, &status, value, reason) {
        return None;
    }
    set_condition(&mut status, value, reason, "", object::generation(budget), now);
    Some(status)
}

/// The status of a budget that could not be computed: nothing is allowed.
pub(super) fn failed_status(budget: &Value, why: &str, now: Timestamp) -> Value {
    let mut status = budget.get("status").cloned().unwrap_or_else(|| json!({}));
    object::set(&mut status, &["disruptionsAllowed"], 0);
    for field in ["currentHealthy", "desiredHealthy", "expectedPods"] {
        object::default(&mut status, &[field], 0);
    }
    let observed = object::integer(&status, &["observedGeneration"]).unwrap_or(0);
    set_condition(&mut status, "False", "SyncFailed", why, observed, now);
    status
}

/// Whether a budget has a status already, but for the condition's details.
fn is_current(budget: &Value, status: &Value, value: &str, reason: &str) -> bool {
    let number = |of: &Value, field: &str| object::integer(of, &[field]).unwrap_or(0);
    let none = json!({});
    let current = budget.get("status").unwrap_or(&none);
    let numbers = [
        "currentHealthy",
        "desiredHealthy",
        "disruptionsAllowed",
        "expectedPods",
        "observedGeneration",
    ];
    let pods = |of: &Value| of.get("disruptedPods").cloned().unwrap_or_else(|| json!({}));
    numbers.iter().all(|field| number(current, field) == number(status, field))
        && pods(current) == pods(status)
        && object::list(current, &["conditions"]).iter().any(|condition| {
            object::text(condition, &["type"]) == "DisruptionAllowed"
                && object::text(condition, &["status"]) == value
                && object::text(condition, &["reason"]) == reason
        })
}

fn set_condition(
    status: &mut Value,
    value: &str,
    reason: &str,
    message: &str,
    generation: i64,
    now: Timestamp,
) {
    let mut conditions = object::list(status, &["conditions"]).to_vec();
    let mut condition = json!({
        "type": "DisruptionAllowed",
        "status": value,
        "reason": reason,
        "message": message,
        "lastTransitionTime": timestamp(now),
    });
    if generation != 0 {
        object::set(&mut condition, &["observedGeneration"], generation);
    }
    let known = conditions.iter_mut().find(|c| c["type"] == condition["type"]);
    match known {
        Some(known) => {
            if known["status"] == condition["status"] {
                condition["lastTransitionTime"] = known["lastTransitionTime"].clone();
            }
            *known = condition;
        }
        None => conditions.push(condition),
    }
    object::set(status, &["conditions"], conditions);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn pod(name: &str, ready: bool) -> Value {
        let status = if ready { "True" } else { "False" };
        json!({
            "metadata": {"name": name},
            "status": {"conditions": [{"type": "Ready", "status": status}]},
        })
    }

    #[test]
    fn budgets_ask_for_pods() {
        let table = [
            // What the budget says, pods, scale, expected, desired.
            (json!({"minAvailable": 3}), 5, 9, 5, 3),
            (json!({"minAvailable": 0}), 5, 9, 5, 0),
            (json!({"minAvailable": "50%"}), 5, 7, 7, 4),
            (json!({"minAvailable": "30%"}), 5, 10, 10, 3),
            (json!({"minAvailable": "100%"}), 5, 7, 7, 7),
            (json!({"minAvailable": "0%"}), 5, 7, 7, 0),
            (json!({"maxUnavailable": 1}), 5, 7, 7, 6),
            (json!({"maxUnavailable": 9}), 5, 7, 7, 0),
            (json!({"maxUnavailable": "30%"}), 5, 7, 7, 4),
            (json!({"maxUnavailable": "10%"}), 5, 7, 7, 6),
            (json!({"maxUnavailable": "0%"}), 5, 7, 7, 7),
            (json!({"maxUnavailable": 1, "minAvailable": 1}), 5, 7, 7, 6),
            (json!({}), 5, 7, 0, 0),
        ];
        for (spec, pods, scale, expected, desired_healthy) in table {
            let rule = Rule::of(&json!({"spec": spec}));
            let wanted = rule.wanted(pods, scale).unwrap();
            assert_eq!(wanted, Wanted { expected, desired_healthy }, "{spec}");
        }
    }

    #[test]
    fn what_is_no_percentage_is_refused() {
        let refusal = |text: &str| {
            Rule::of(&json!({"spec": {"maxUnavailable": text}})).wanted(1, 1).unwrap_err()
        };
        assert_eq!(
            refusal("x"),
            "invalid value for IntOrString: invalid type: string is not a percentage"
        );
        assert_eq!(
            refusal("x%"),
            r#"invalid value for IntOrString: invalid value "x%": strconv.Atoi: parsing "x": invalid syntax"#
        );
    }

    #[test]
    fn evicted_pods_are_waited_for_two_minutes() {
        let budget = json!({"status": {"disruptedPods": {
            "a": "2025-01-01T00:00:00Z",
            "b": "2025-01-01T00:01:00Z",
            "going": "2025-01-01T00:01:00Z",
            "gone": "2025-01-01T00:01:00Z",
        }}});
        let mut going = pod("going", true);
        going["metadata"]["deletionTimestamp"] = "2025-01-01T00:02:00Z".into();
        let pods = [pod("a", true), pod("b", true), going, pod("c", true), pod("sick", false)];
        let table = [
            // Now, those waited for, the next look, healthy.
            ("2025-01-01T00:01:30Z", vec!["a", "b"], Some("2025-01-01T00:02:00Z"), 1),
            ("2025-01-01T00:02:00Z", vec!["a", "b"], Some("2025-01-01T00:02:00Z"), 2),
            ("2025-01-01T00:02:01Z", vec!["b"], Some("2025-01-01T00:03:00Z"), 2),
            ("2025-01-01T00:04:00Z", vec![], None, 3),
        ];
        for (now, names, recheck, well) in table {
            let now = time(now);
            let found = disrupted(&budget, &pods, now);
            assert_eq!(found.pods.keys().collect::<Vec<_>>(), names, "{now}");
            assert_eq!(found.recheck, recheck.map(time), "{now}");
            assert_eq!(found.overdue.len() + found.pods.len(), 2, "{now}");
            assert_eq!(healthy(&pods, &found, now), well, "{now}");
        }
    }

    #[test]
    fn the_status_says_how_many_disruptions_are_allowed() {
        let now = time("2025-01-01T00:00:00Z");
        let budget = json!({"metadata": {"generation": 2}});
        let none = Disrupted::default();
        let table = [
            // Expected, desired, healthy, allowed.
            (5, 3, 5, 2),
            (5, 5, 5, 0),
            (5, 3, 2, 0),
            (0, 0, 0, 0),
            (0, 0, 3, 0),
        ];
        for (expected, desired_healthy, well, allowed) in table {
            let wanted = Wanted { expected, desired_healthy };
            let status = status(&budget, wanted, well, &none, now).unwrap();
            assert_eq!(status["disruptionsAllowed"], allowed);
            assert_eq!(status["observedGeneration"], 2);
            assert_eq!(status.get("disruptedPods"), None);
            let reason = if allowed > 0 { "SufficientPods" } else { "InsufficientPods" };
            assert_eq!(
                status["conditions"],
                json!([{
                    "type": "DisruptionAllowed",
                    "status": if allowed > 0 { "True" } else { "False" },
                    "reason": reason,
                    "message": "",
                    "observedGeneration": 2,
                    "lastTransitionTime": "2025-01-01T00:00:00Z",
                }])
            );
        }
    }

    #[test]
    fn an_unchanged_status_is_not_written() {
        let now = time("2025-01-01T00:00:00Z");
        let later = time("2025-01-01T01:00:00Z");
        let mut budget = json!({"metadata": {"generation": 1}});
        let wanted = Wanted { expected: 2, desired_healthy: 1 };
        let none = Disrupted::default();
        budget["status"] = status(&budget, wanted, 2, &none, now).unwrap();
        assert_eq!(status(&budget, wanted, 2, &none, later), None);
        let changed = status(&budget, wanted, 1, &none, later).unwrap();
        assert_eq!(changed["conditions"][0]["lastTransitionTime"], "2025-01-01T01:00:00Z");
        budget["metadata"]["generation"] = 2.into();
        let observed = status(&budget, wanted, 2, &none, later).unwrap();
        assert_eq!(observed["conditions"][0]["lastTransitionTime"], "2025-01-01T00:00:00Z");
        assert_eq!(observed["conditions"][0]["observedGeneration"], 2);
    }

    #[test]
    fn a_failure_allows_nothing() {
        let now = time("2025-01-01T00:00:00Z");
        let mut budget = json!({"metadata": {"generation": 1}});
        let wanted = Wanted { expected: 2, desired_healthy: 1 };
        budget["status"] = status(&budget, wanted, 2, &Disrupted::default(), now).unwrap();
        let failed = failed_status(&budget, "why", now);
        assert_eq!(failed["disruptionsAllowed"], 0);
        assert_eq!(failed["currentHealthy"], 2);
        assert_eq!(failed["conditions"][0]["reason"], "SyncFailed");
        assert_eq!(failed["conditions"][0]["message"], "why");
    }
}
