//! What a refused launch means for a Machine.

use std::{fmt, time::Duration};

use fleetwright_api::names::reason;
use fleetwright_cloud::{CloudError, ErrorClass, Shape};
use jiff::Timestamp;

use super::settings::SpotCapacity;

/// Before the cloud's words in the message of a Machine whose launch was refused for good.
pub const LAUNCH_ERROR: &str = "error launching instance";

/// What is done about a launch that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is asked for again; until then the condition has this reason.
    Retry(&'static str),
    /// It is asked for again as long as the deadline for capacity allows.
    Short(&'static str),
    /// It can never work.
    Failed,
    /// It was more than the cloud takes at once.
    Split,
    /// The token was used before: what it made is looked for.
    Recover,
    /// What the token made is gone.
    Gone,
}

/// What an error of a launch means.
pub fn judge(error: &CloudError) -> Verdict {
    match error.class {
        ErrorClass::Configuration => Verdict::Failed,
        ErrorClass::Capacity => Verdict::Short(reason::INSUFFICIENT_CAPACITY),
        ErrorClass::SpreadLimit => Verdict::Short(reason::SPREAD_LIMIT_REACHED),
        ErrorClass::Quota => Verdict::Short(reason::QUOTA_EXCEEDED),
        ErrorClass::Throttled => Verdict::Retry(reason::THROTTLED),
        ErrorClass::Credentials => Verdict::Retry(reason::CREDENTIALS_REJECTED),
        // What a launch names and may be missing for a while is its placement group.
        ErrorClass::NotFound => Verdict::Retry(reason::PLACEMENT_GROUP_NOT_READY),
        ErrorClass::Transient
        | ErrorClass::AnswerLost
        | ErrorClass::AlreadyExists
        | ErrorClass::InUse => Verdict::Retry(reason::MACHINE_CREATION_FAILED),
        ErrorClass::BatchTooBig => Verdict::Split,
        ErrorClass::TokenMismatch => Verdict::Recover,
        ErrorClass::TokenSpent => Verdict::Gone,
    }
}

/// How long a Machine may go on waiting for capacity.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Deadline for Machines.
    pub deadline: Duration,
    /// Whether the Machine is interruptible.
    pub interruptible: bool,
    /// What becomes of those.
    pub spot: SpotCapacity,
}

impl Patience {
    /// When the Machine gives up, if it has been short of capacity since then.
    pub fn ends(&self, since: Timestamp) -> Timestamp {
        let at_once = self.interruptible && self.spot == SpotCapacity::Fail;
        let wait = if at_once { Duration::ZERO } else { self.deadline };
        since.saturating_add(wait).unwrap_or(Timestamp::MAX)
    }
}

/// What there is too little of, in the user's words: code, zone, group, since and until when.
pub fn shortage_message(
    error: &CloudError,
    shape: &Shape,
    since: Timestamp,
    until: Timestamp,
) -> String {
    use fmt::Write as _;
    let mut text = format!("{error} (");
    // Writing to a String does not fail.
    if let Some(group) = &shape.group {
        let _ = write!(text, "placement group {group}, ");
    }
    let _ =
        write!(text, "type {}, zone {}, since {}", shape.instance_type, shape.zone, seconds(since));
    if until > since {
        let _ = write!(text, ", tried until {}", seconds(until));
    }
    text.push(')');
    text
}

/// Without fractions, as Kubernetes writes times.
fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(class: ErrorClass) -> CloudError {
        CloudError::new(class, "RunInstances", "Code", "words")
    }

    #[test]
    fn only_configuration_is_terminal_by_itself() {
        for (class, verdict) in [
            (ErrorClass::Configuration, Verdict::Failed),
            (ErrorClass::Capacity, Verdict::Short("InsufficientCapacity")),
            (ErrorClass::SpreadLimit, Verdict::Short("SpreadLimitReached")),
            (ErrorClass::Quota, Verdict::Short("QuotaExceeded")),
            (ErrorClass::Throttled, Verdict::Retry("Throttled")),
            (ErrorClass::Credentials, Verdict::Retry("CredentialsRejected")),
            (ErrorClass::Transient, Verdict::Retry("MachineCreationFailed")),
            (ErrorClass::AnswerLost, Verdict::Retry("MachineCreationFailed")),
            (ErrorClass::NotFound, Verdict::Retry("PlacementGroupNotReady")),
            (ErrorClass::BatchTooBig, Verdict::Split),
            (ErrorClass::TokenMismatch, Verdict::Recover),
            (ErrorClass::TokenSpent, Verdict::Gone),
        ] {
            assert_eq!(judge(&error(class)), verdict, "{class:?}");
        }
    }

    #[test]
    fn patience_ends_at_the_deadline_and_at_once_for_spot() {
        let since: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let deadline = Duration::from_mins(15);
        for (interruptible, spot, ends) in [
            (false, SpotCapacity::Fail, "2026-01-01T00:15:00Z"),
            (true, SpotCapacity::Fail, "2026-01-01T00:00:00Z"),
            (true, SpotCapacity::Wait, "2026-01-01T00:15:00Z"),
        ] {
            let patience = Patience { deadline, interruptible, spot };
            assert_eq!(patience.ends(since), ends.parse().unwrap());
        }
    }

    #[test]
    fn a_shortage_names_code_zone_group_and_times() {
        let shape = Shape {
            zone: "us-east-1a".to_owned(),
            instance_type: "m5.large".to_owned(),
            group: Some("spread".to_owned()),
            ..Shape::default()
        };
        let since = "2026-01-01T00:00:00.5Z".parse().unwrap();
        let until = "2026-01-01T00:15:00Z".parse().unwrap();
        assert_eq!(
            shortage_message(&error(ErrorClass::Capacity), &shape, since, until),
            "Code: words (placement group spread, type m5.large, zone us-east-1a, \
             since 2026-01-01T00:00:00Z, tried until 2026-01-01T00:15:00Z)"
        );
    }
}
