//! The status of an AWSPlacementGroup: read, compared, written only when it changes.

use fleetwright_api::placement::{
    AWSPartitionPlacement, AWSPlacementGroupStatus, GroupType, ManagedAWSPlacementGroup,
    ManagementState,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::{Value, json};

use super::{
    names::{CREATION_SUCCEEDED, DELETING, READY},
    wanted::{Configuration, Management, group_type, parse_group_type},
};

/// The three values of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Nobody knows.
    Unknown,
}

impl Truth {
    /// As conditions write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    fn parse(text: &str) -> Self {
        match text {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }
}

/// What a condition says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it holds.
    pub truth: Truth,
    /// Why, in one word.
    pub reason: String,
    /// Why, in full.
    pub message: String,
}

impl Verdict {
    /// It holds.
    pub fn yes(reason: &str, message: impl Into<String>) -> Self {
        Self { truth: Truth::True, reason: reason.to_owned(), message: message.into() }
    }

    /// It does not.
    pub fn no(reason: &str, message: impl Into<String>) -> Self {
        Self { truth: Truth::False, reason: reason.to_owned(), message: message.into() }
    }

    /// Nobody knows.
    pub fn unknown(reason: &str, message: impl Into<String>) -> Self {
        Self { truth: Truth::Unknown, reason: reason.to_owned(), message: message.into() }
    }
}

/// What the status says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Condition `Ready`.
    pub ready: Option<Verdict>,
    /// Condition `Deleting`.
    pub deleting: Option<Verdict>,
    /// Until when the rest may be trusted.
    pub expires_at: Option<Timestamp>,
    /// Instances in the group; none is not zero.
    pub replicas: Option<u32>,
    /// Who looks after the group.
    pub management: Option<Management>,
    /// What the group in the cloud is.
    pub observed: Option<Configuration>,
}

impl Status {
    /// What an object's status says.
    pub fn of(status: Option<&AWSPlacementGroupStatus>) -> Self {
        let Some(status) = status else { return Self::default() };
        let verdict = |type_: &str| {
            let condition = status.conditions.iter().find(|condition| condition.type_ == type_)?;
            Some(Verdict {
                truth: Truth::parse(&condition.status),
                reason: condition.reason.clone(),
                message: condition.message.clone(),
            })
        };
        Self {
            ready: verdict(READY),
            deleting: verdict(DELETING),
            expires_at: status.expires_at.as_ref().map(|time| time.0),
            replicas: status.replicas.and_then(|replicas| u32::try_from(replicas).ok()),
            management: status
                .management_state
                .as_ref()
                .and_then(|state| Management::parse(state.as_str())),
            observed: status.observed_configuration.as_ref().and_then(configuration),
        }
    }

    /// Whether machines may be put into the group, as far as the status knows.
    pub fn is_ready(&self) -> bool {
        self.ready.as_ref().is_some_and(|ready| ready.truth == Truth::True)
    }

    /// Whether the last that was heard of the group is that it was made.
    pub fn was_just_created(&self) -> bool {
        self.is_ready()
            && self.ready.as_ref().is_some_and(|ready| ready.reason == CREATION_SUCCEEDED)
    }
}

/// What an observed configuration says, if it is one that we know.
pub fn configuration(observed: &ManagedAWSPlacementGroup) -> Option<Configuration> {
    let strategy = parse_group_type(observed.group_type.as_str())?;
    let count = observed.partition.as_ref().and_then(|partition| partition.count);
    let partitions = count.and_then(|count| u32::try_from(count).ok()).filter(|count| *count > 0);
    Some(Configuration { strategy, partitions })
}

/// The patch that makes an object's status say `wanted`; none when it says so already. Times are
/// written in whole seconds, as Kubernetes does.
pub fn patch(
    current: Option<&AWSPlacementGroupStatus>,
    wanted: &Status,
    generation: Option<i64>,
    now: Timestamp,
) -> Option<Value> {
    let current = current.cloned().unwrap_or_default();
    let next = AWSPlacementGroupStatus {
        conditions: conditions(&current.conditions, wanted, generation, now),
        expires_at: wanted.expires_at.map(|time| Time(whole_seconds(time))),
        replicas: wanted.replicas.map(|replicas| i32::try_from(replicas).unwrap_or(i32::MAX)),
        management_state: wanted.management.map(|state| ManagementState::from(state.as_str())),
        observed_configuration: wanted.observed.map(|observed| ManagedAWSPlacementGroup {
            group_type: GroupType::from(group_type(observed.strategy)),
            partition: observed.partitions.map(|count| AWSPartitionPlacement {
                count: Some(i32::try_from(count).unwrap_or(i32::MAX)),
            }),
        }),
    };
    if next == current {
        return None;
    }
    // Null takes a field away in a merge patch.
    Some(json!({"status": {
        "conditions": next.conditions,
        "expiresAt": next.expires_at,
        "replicas": next.replicas,
        "managementState": next.management_state,
        "observedConfiguration": next.observed_configuration.map(|observed| json!({
            "groupType": observed.group_type,
            "partition": observed.partition,
        })),
    }}))
}

/// The conditions with ours in place; those of others stay.
fn conditions(
    current: &[Condition],
    wanted: &Status,
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    let ours = [(READY, &wanted.ready), (DELETING, &wanted.deleting)];
    let mut next: Vec<Condition> = current
        .iter()
        .filter(|condition| ours.iter().all(|(type_, _)| condition.type_ != *type_))
        .cloned()
        .collect();
    for (type_, verdict) in ours {
        let Some(verdict) = verdict else { continue };
        let known = current.iter().find(|condition| condition.type_ == type_);
        let unchanged = known.filter(|known| known.status == verdict.truth.as_str());
        next.push(Condition {
            type_: type_.to_owned(),
            status: verdict.truth.as_str().to_owned(),
            reason: verdict.reason.clone(),
            message: verdict.message.clone(),
            observed_generation: generation,
            last_transition_time: unchanged.map_or_else(
                || Time(whole_seconds(now)),
                |known| known.last_transition_time.clone(),
            ),
        });
    }
    next.sort_by(|one, other| one.type_.cmp(&other.type_));
    next
}

fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use fleetwright_cloud::Strategy;

    use super::*;

    fn now() -> Timestamp {
        "2026-01-01T00:00:00.5Z".parse().unwrap()
    }

    fn apply(
        current: Option<&AWSPlacementGroupStatus>,
        wanted: &Status,
        at: Timestamp,
    ) -> Option<AWSPlacementGroupStatus> {
        let mut patch = patch(current, wanted, Some(3), at)?["status"].take();
        let fields = patch.as_object_mut().unwrap();
        fields.retain(|_, value| !value.is_null());
        Some(serde_json::from_value(patch).unwrap())
    }

    #[test]
    fn what_is_written_reads_back_and_is_not_written_again() {
        let wanted = Status {
            ready: Some(Verdict::yes("ConfigurationInSync", "fine")),
            expires_at: Some("2026-01-01T00:02:00Z".parse().unwrap()),
            replicas: Some(0),
            management: Some(Management::Managed),
            observed: Some(Configuration { strategy: Strategy::Spread, partitions: None }),
            deleting: None,
        };
        let written = apply(None, &wanted, now()).unwrap();
        assert_eq!(Status::of(Some(&written)), wanted);
        assert_eq!(written.conditions[0].observed_generation, Some(3));
        assert_eq!(patch(Some(&written), &wanted, Some(3), now()), None);
        assert!(patch(Some(&written), &wanted, Some(4), now()).is_some(), "a new generation");
    }

    #[test]
    fn a_condition_keeps_its_time_until_its_status_changes() {
        let wanted = |verdict: Verdict| Status { ready: Some(verdict), ..Status::default() };
        let first = apply(None, &wanted(Verdict::yes("A", "")), now()).unwrap();
        let later = now() + std::time::Duration::from_mins(1);
        let second = apply(Some(&first), &wanted(Verdict::yes("B", "")), later).unwrap();
        assert_eq!(
            second.conditions[0].last_transition_time,
            first.conditions[0].last_transition_time
        );
        let third = apply(Some(&second), &wanted(Verdict::no("B", "")), later).unwrap();
        assert!(
            third.conditions[0].last_transition_time > first.conditions[0].last_transition_time
        );
    }

    #[test]
    fn what_is_no_longer_known_is_taken_away() {
        let written = AWSPlacementGroupStatus {
            replicas: Some(3),
            observed_configuration: Some(ManagedAWSPlacementGroup::default()),
            ..AWSPlacementGroupStatus::default()
        };
        let patch = patch(Some(&written), &Status::default(), None, now()).unwrap();
        assert!(patch["status"]["observedConfiguration"].is_null());
        assert!(patch["status"].as_object().unwrap().contains_key("replicas"));
    }
}
