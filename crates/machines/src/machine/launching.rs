//! What a Machine says while it has no instance, and when it gives up.

use std::time::Duration;

use fleetwright_api::names::{condition, reason};
use fleetwright_cloud::{CloudError, ErrorClass, Shape};
use fleetwright_lifecycle::{
    conditions::{Condition, SEVERITY_WARNING},
    phase::{
        CANNOT_FIND_INSTANCE, CREATE_ERROR, Failure, INSUFFICIENT_RESOURCES, INVALID_CONFIGURATION,
    },
};
use jiff::Timestamp;

use super::wish::Obstacle;
use crate::launch::{
    Refused, Standing,
    plan::Held,
    verdict::{LAUNCH_ERROR, Patience, Verdict, judge, shortage_message},
};

/// How soon a Machine looks again whether its placement group is ready.
pub const GROUP_AGAIN: Duration = Duration::from_secs(20);
/// How soon it looks again at anything else; what it waits for wakes it earlier.
pub const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// The longest it sleeps while a deadline runs.
const DEADLINE_AGAIN: Duration = Duration::from_mins(1);

/// What becomes of the condition `MachineCreated`.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// It stays.
    None,
    /// It is not true any more.
    Clear,
    /// It says this.
    Says(Condition),
}

/// What a Machine without an instance says and does.
#[derive(Clone, Debug, PartialEq)]
pub struct Outlook {
    /// The condition `MachineCreated`.
    pub news: News,
    /// The outcome of this pass.
    pub outcome: Result<(), Failure>,
}

/// What it depends on.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances<'a> {
    /// The condition `MachineCreated` as it is.
    pub said: Option<&'a Condition>,
    /// How long the Machine waits for capacity.
    pub patience: Patience,
    /// How long something that it names may be missing.
    pub missing_deadline: Duration,
    /// The time.
    pub now: Timestamp,
}

impl Circumstances<'_> {
    /// Since when the condition has said exactly this.
    fn since(&self, reason: &str, message: &str) -> Timestamp {
        self.said
            .filter(|said| said.reason == reason && said.message == message)
            .and_then(|said| said.since)
            .unwrap_or(self.now)
    }
}

/// Since when a Machine has been short of capacity, as far as its condition tells.
pub fn short_since(said: Option<&Condition>) -> Option<Timestamp> {
    let short =
        [reason::INSUFFICIENT_CAPACITY, reason::QUOTA_EXCEEDED, reason::SPREAD_LIMIT_REACHED];
    said.filter(|said| short.contains(&said.reason.as_str()))?.since
}

fn says(reason: &str, message: &str) -> News {
    News::Says(Condition::fails(condition::MACHINE_CREATED, reason, SEVERITY_WARNING, message))
}

fn wrong(message: String) -> Outlook {
    Outlook {
        news: says(reason::MACHINE_CREATION_FAILED, &message),
        outcome: Err(Failure::fatal(INVALID_CONFIGURATION, message)),
    }
}

fn later(reason: &str, after: Duration, message: String) -> Outlook {
    Outlook {
        news: says(reason, &message),
        outcome: Err(Failure::later(CREATE_ERROR, after, message)),
    }
}

/// There is not enough of something: a Machine waits for its deadline.
fn short(reason: &str, message: String, since: Timestamp, at: Circumstances<'_>) -> Outlook {
    let ends = at.patience.ends(since);
    let news = says(reason, &message);
    if ends <= at.now {
        return Outlook { news, outcome: Err(Failure::fatal(INSUFFICIENT_RESOURCES, message)) };
    }
    let left = Duration::try_from(ends.duration_since(at.now)).unwrap_or_default();
    let after = left.min(DEADLINE_AGAIN);
    Outlook { news, outcome: Err(Failure::later(CREATE_ERROR, after, message)) }
}

/// A Machine that cannot be launched.
pub fn obstructed(obstacle: &Obstacle, since: Option<Timestamp>, at: Circumstances<'_>) -> Outlook {
    match obstacle {
        Obstacle::Wrong(message) => wrong(message.clone()),
        Obstacle::Missing(message) => missing(message, at),
        Obstacle::GroupNotReady(message) => {
            later(reason::PLACEMENT_GROUP_NOT_READY, GROUP_AGAIN, message.clone())
        }
        Obstacle::GroupFull { spread_limit, message } => {
            let reason = if *spread_limit {
                reason::SPREAD_LIMIT_REACHED
            } else {
                reason::INSUFFICIENT_CAPACITY
            };
            short(reason, message.clone(), since.unwrap_or(at.now), at)
        }
        Obstacle::Cloud(error) => unresolved(error),
        Obstacle::NotNow(message) => {
            later(reason::MACHINE_CREATION_FAILED, LOOK_AGAIN, message.clone())
        }
    }
}

/// Manifests are applied in any order: what is missing may come.
fn missing(message: &str, at: Circumstances<'_>) -> Outlook {
    let since = at.since(reason::MACHINE_CREATION_FAILED, message);
    let ends = since.saturating_add(at.missing_deadline).unwrap_or(Timestamp::MAX);
    if ends <= at.now {
        return wrong(message.to_owned());
    }
    let left = Duration::try_from(ends.duration_since(at.now)).unwrap_or_default();
    later(reason::MACHINE_CREATION_FAILED, left.min(LOOK_AGAIN), message.to_owned())
}

/// What a spec names could not be looked up.
fn unresolved(error: &CloudError) -> Outlook {
    let message = format!("failed to launch instance: {error}");
    if error.class == ErrorClass::NotFound {
        // It was named by the user.
        return wrong(message);
    }
    match judge(error) {
        Verdict::Failed => wrong(message),
        Verdict::Retry(reason) | Verdict::Short(reason) => {
            let after = error.retry_after.unwrap_or(LOOK_AGAIN);
            later(reason, after, message)
        }
        Verdict::Split | Verdict::Recover | Verdict::Gone => {
            later(reason::MACHINE_CREATION_FAILED, LOOK_AGAIN, message)
        }
    }
}

/// A Machine that was handed to the launcher.
pub fn waiting(standing: &Standing, shape: &Shape, at: Circumstances<'_>) -> Outlook {
    match standing {
        Standing::Waiting | Standing::UnderWay => {
            // What kept it from being launched is over; a shortage is not, until it is launched.
            let over = at.said.is_some() && short_since(at.said).is_none();
            Outlook { news: if over { News::Clear } else { News::None }, outcome: Ok(()) }
        }
        Standing::Placed(_) => Outlook { news: News::None, outcome: Ok(()) },
        Standing::Held(Held::NoCapacity(error, _), since) => {
            let reason = match judge(error) {
                Verdict::Short(reason) => reason,
                _ => reason::INSUFFICIENT_CAPACITY,
            };
            short(reason, shortage(error, shape, *since, at), *since, at)
        }
        Standing::Held(Held::GroupFull, since) => {
            let error = CloudError::new(
                ErrorClass::SpreadLimit,
                "",
                "",
                "the spread placement group has no room for more instances in this zone",
            );
            short(reason::SPREAD_LIMIT_REACHED, shortage(&error, shape, *since, at), *since, at)
        }
        Standing::Refused(Refused { verdict, error, since }) => match verdict {
            Verdict::Short(reason) => short(reason, shortage(error, shape, *since, at), *since, at),
            Verdict::Retry(reason) => later(reason, LOOK_AGAIN, format!("{LAUNCH_ERROR}: {error}")),
            _ => later(
                reason::MACHINE_CREATION_FAILED,
                LOOK_AGAIN,
                format!("{LAUNCH_ERROR}: {error}"),
            ),
        },
        Standing::Failed(error) => wrong(format!("{LAUNCH_ERROR}: {error}")),
        Standing::Gone => Outlook {
            news: says(reason::MACHINE_CREATION_FAILED, CANNOT_FIND_INSTANCE),
            outcome: Err(Failure::fatal(CREATE_ERROR, CANNOT_FIND_INSTANCE)),
        },
    }
}

fn shortage(error: &CloudError, shape: &Shape, since: Timestamp, at: Circumstances<'_>) -> String {
    let text = shortage_message(error, shape, since, at.patience.ends(since));
    format!("{LAUNCH_ERROR}: {text}")
}

#[cfg(test)]
mod tests {
    use fleetwright_lifecycle::phase::FailureKind;

    use super::*;
    use crate::launch::settings::SpotCapacity;

    fn time(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn at(now: i64, said: Option<&Condition>) -> Circumstances<'_> {
        let deadline = Duration::from_mins(15);
        Circumstances {
            said,
            patience: Patience { deadline, interruptible: false, spot: SpotCapacity::Fail },
            missing_deadline: Duration::from_mins(2),
            now: time(now),
        }
    }

    /// The reason of the condition, and that of the failure when it is for good.
    fn outcome(outlook: &Outlook) -> (String, Option<&'static str>) {
        let News::Says(condition) = &outlook.news else { return (String::new(), None) };
        let failure = outlook.outcome.as_ref().unwrap_err();
        let fatal = failure.kind == FailureKind::Final;
        (condition.reason.clone(), fatal.then_some(failure.reason))
    }

    fn cloud(class: ErrorClass) -> CloudError {
        CloudError::new(class, "RunInstances", "Code", "words")
    }

    fn refused(class: ErrorClass, since: i64, now: i64) -> (String, Option<&'static str>) {
        let error = cloud(class);
        let standing = match judge(&error) {
            Verdict::Failed => Standing::Failed(error),
            verdict => Standing::Refused(Refused { verdict, error, since: time(since) }),
        };
        outcome(&waiting(&standing, &Shape::default(), at(now, None)))
    }

    #[test]
    fn only_configuration_and_long_shortage_end_a_machine() {
        let says = |reason: &str, fatal| (reason.to_owned(), fatal);
        for (class, now, wanted) in [
            (
                ErrorClass::Configuration,
                0,
                says("MachineCreationFailed", Some("InvalidConfiguration")),
            ),
            (ErrorClass::Capacity, 899, says("InsufficientCapacity", None)),
            (
                ErrorClass::Capacity,
                900,
                says("InsufficientCapacity", Some("InsufficientResources")),
            ),
            (
                ErrorClass::SpreadLimit,
                900,
                says("SpreadLimitReached", Some("InsufficientResources")),
            ),
            (ErrorClass::Quota, 900, says("QuotaExceeded", Some("InsufficientResources"))),
            (ErrorClass::Throttled, 900_000, says("Throttled", None)),
            (ErrorClass::Credentials, 900_000, says("CredentialsRejected", None)),
            (ErrorClass::Transient, 900_000, says("MachineCreationFailed", None)),
            (ErrorClass::AnswerLost, 900_000, says("MachineCreationFailed", None)),
        ] {
            assert_eq!(refused(class, 0, now), wanted, "{class:?} after {now} s");
        }
    }

    #[test]
    fn what_is_missing_may_come_within_two_minutes_of_being_missed() {
        let obstacle = Obstacle::Missing("no such Secret".to_owned());
        let first = obstructed(&obstacle, None, at(0, None));
        let News::Says(mut said) = first.news.clone() else { panic!("{first:?}") };
        said.since = Some(time(0));
        assert_eq!(outcome(&first).1, None);
        assert_eq!(outcome(&obstructed(&obstacle, None, at(119, Some(&said)))).1, None);
        let last = obstructed(&obstacle, None, at(120, Some(&said)));
        assert_eq!(outcome(&last).1, Some("InvalidConfiguration"));
        let other = Obstacle::Missing("no such group".to_owned());
        let anew = obstructed(&other, None, at(120, Some(&said)));
        assert_eq!(outcome(&anew).1, None, "something else is missed from now on");
    }

    #[test]
    fn a_group_that_is_not_ready_never_ends_a_machine_and_a_full_one_does() {
        let obstacle = Obstacle::GroupNotReady("deleting".to_owned());
        let waits = obstructed(&obstacle, None, at(1_000_000, None));
        assert_eq!(outcome(&waits), ("PlacementGroupNotReady".to_owned(), None));
        assert_eq!(waits.outcome.unwrap_err().kind, FailureKind::Later(GROUP_AGAIN));
        let full = Obstacle::GroupFull { spread_limit: true, message: "seven".to_owned() };
        let given_up = obstructed(&full, Some(time(0)), at(900, None));
        assert_eq!(
            outcome(&given_up),
            ("SpreadLimitReached".to_owned(), Some("InsufficientResources"))
        );
    }

    #[test]
    fn what_does_not_hold_any_more_is_not_said_any_more() {
        let said = |reason: &str| Condition {
            since: Some(time(0)),
            ..Condition::fails(condition::MACHINE_CREATED, reason, SEVERITY_WARNING, "")
        };
        let now = |said: &Condition| {
            waiting(&Standing::Waiting, &Shape::default(), at(0, Some(said))).news
        };
        assert_eq!(now(&said("PlacementGroupNotReady")), News::Clear);
        assert_eq!(now(&said("InsufficientCapacity")), News::None, "until it is launched");
    }

    #[test]
    fn what_the_user_named_and_is_not_there_is_wrong() {
        for (class, fatal) in [
            (ErrorClass::NotFound, true),
            (ErrorClass::Configuration, true),
            (ErrorClass::Throttled, false),
        ] {
            let obstacle = Obstacle::Cloud(Box::new(cloud(class)));
            let outlook = obstructed(&obstacle, None, at(0, None));
            assert_eq!(outcome(&outlook).1.is_some(), fatal, "{class:?}");
        }
    }
}
