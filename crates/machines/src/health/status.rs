//! What a MachineHealthCheck says of itself.

use fleetwright_api::{
    machine::{Condition, MachineHealthCheckStatus, Severity},
    names::{condition, reason},
};
use fleetwright_lifecycle::health::limit::{Limit, refusal};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use crate::conditions::upsert;

/// What was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// All Machines.
    pub total: usize,
    /// Those that are healthy.
    pub healthy: usize,
}

impl Counted {
    /// Whether repairs are made.
    pub fn allowed(self, limit: &Limit) -> bool {
        limit.allows(self.total, self.healthy)
    }
}

/// The status with the numbers and whether repairs are made.
pub fn counted(
    known: &MachineHealthCheckStatus,
    counted: Counted,
    limit: &Limit,
    limit_text: &str,
    now: Timestamp,
) -> MachineHealthCheckStatus {
    let Counted { total, healthy } = counted;
    let number = |count: usize| Some(i64::try_from(count).unwrap_or(i64::MAX));
    let mut status = known.clone();
    status.expected_machines = number(total);
    status.current_healthy = number(healthy);
    status.remediations_allowed = i32::try_from(limit.left(total, healthy)).unwrap_or(i32::MAX);
    let wanted = if counted.allowed(limit) {
        holds(condition::REMEDIATION_ALLOWED, None, None)
    } else {
        fails(
            condition::REMEDIATION_ALLOWED,
            Severity::Warning,
            reason::TOO_MANY_UNHEALTHY,
            refusal(total, healthy, limit_text),
        )
    };
    upsert(&mut status.conditions, wanted, now);
    status
}

/// The status of a check that makes no sense.
pub fn invalid(
    known: &MachineHealthCheckStatus,
    message: String,
    now: Timestamp,
) -> MachineHealthCheckStatus {
    let mut status = known.clone();
    status.remediations_allowed = 0;
    let wanted = fails(
        condition::REMEDIATION_ALLOWED,
        Severity::Error,
        reason::INVALID_HEALTH_CHECK,
        message,
    );
    upsert(&mut status.conditions, wanted, now);
    status
}

/// Says that repairs wait, or that they do not any more.
pub fn set_backoff(status: &mut MachineHealthCheckStatus, waiting: Option<String>, now: Timestamp) {
    let known = status.conditions.iter().any(|known| known.type_ == condition::REMEDIATION_BACKOFF);
    let wanted = match waiting {
        Some(message) => {
            holds(condition::REMEDIATION_BACKOFF, Some(reason::REPLACEMENTS_FAIL), Some(message))
        }
        // What never waited has nothing to say.
        None if !known => return,
        None => fails(
            condition::REMEDIATION_BACKOFF,
            Severity::Info,
            reason::NOTHING_WAITS,
            String::new(),
        ),
    };
    upsert(&mut status.conditions, wanted, now);
}

/// Says how asking somebody else for repairs goes.
pub fn set_external(
    status: &mut MachineHealthCheckStatus,
    kind: &str,
    failed: Option<(&str, String)>,
    now: Timestamp,
) {
    let known = status.conditions.iter().any(|known| known.type_ == kind);
    let wanted = match failed {
        Some((reason, message)) => fails(kind, Severity::Error, reason, message),
        None if !known => return,
        None => holds(kind, None, None),
    };
    upsert(&mut status.conditions, wanted, now);
}

/// The condition of a type.
pub fn find<'a>(status: &'a MachineHealthCheckStatus, kind: &str) -> Option<&'a Condition> {
    status.conditions.iter().find(|condition| condition.type_ == kind)
}

/// The patch that makes a status from what it says now; none when it says so already.
pub fn patch(
    known: Option<&MachineHealthCheckStatus>,
    wanted: &MachineHealthCheckStatus,
) -> Option<Value> {
    if known == Some(wanted) {
        return None;
    }
    Some(json!({"status": {
        "expectedMachines": wanted.expected_machines,
        "currentHealthy": wanted.current_healthy,
        "remediationsAllowed": wanted.remediations_allowed,
        "conditions": wanted.conditions,
    }}))
}

fn holds(kind: &str, reason: Option<&str>, message: Option<String>) -> Condition {
    Condition {
        type_: kind.to_owned(),
        status: Condition::TRUE.to_owned(),
        severity: None,
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
        reason: reason.map(str::to_owned),
        message,
    }
}

fn fails(kind: &str, severity: Severity, reason: &str, message: String) -> Condition {
    Condition {
        status: Condition::FALSE.to_owned(),
        severity: Some(severity),
        ..holds(kind, Some(reason), Some(message).filter(|message| !message.is_empty()))
    }
}
