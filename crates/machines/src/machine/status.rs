//! Between the types of the API and those of the shared rules.

use fleetwright_api::machine::{self, MachineStatus, Phase, Severity};
use fleetwright_lifecycle::{
    conditions::{Condition, Status},
    hooks::Hook,
    machine_status,
    phase::{self, Failure},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// A condition of the API.
pub(crate) fn read_condition(condition: &machine::Condition) -> Condition {
    Condition {
        kind: condition.type_.clone(),
        status: Status::parse(&condition.status),
        severity: condition.severity.as_ref().map(ToString::to_string).unwrap_or_default(),
        reason: condition.reason.clone().unwrap_or_default(),
        message: condition.message.clone().unwrap_or_default(),
        since: Some(condition.last_transition_time.0),
    }
}

/// A condition for the API.
pub(crate) fn write_condition(condition: &Condition, now: Timestamp) -> machine::Condition {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    machine::Condition {
        type_: condition.kind.clone(),
        status: condition.status.as_str().to_owned(),
        severity: text(&condition.severity).map(|severity| Severity::from(severity.as_str())),
        last_transition_time: Time(condition.since.unwrap_or(now)),
        reason: text(&condition.reason),
        message: text(&condition.message),
    }
}

/// The conditions of a Machine.
pub(crate) fn conditions(status: &MachineStatus) -> Vec<Condition> {
    status.conditions.iter().map(read_condition).collect()
}

fn read(status: &MachineStatus) -> machine_status::MachineStatus {
    machine_status::MachineStatus {
        phase: status.phase.as_ref().map(ToString::to_string).unwrap_or_default(),
        error_reason: status.error_reason.clone(),
        error_message: status.error_message.clone(),
        provider_status: status.provider_status.clone(),
        conditions: conditions(status),
        last_updated: status.last_updated.as_ref().map(|time| time.0),
    }
}

/// A status with what a pass decided in it, and the value that the annotation of the instance's
/// state takes, if any.
pub(crate) fn settle(
    before: &MachineStatus,
    mut after: MachineStatus,
    conditions: Vec<Condition>,
    phase: Option<phase::Phase>,
    error: Option<&Failure>,
    now: Timestamp,
) -> (MachineStatus, Option<&'static str>) {
    let known = read(before);
    let drafted = machine_status::MachineStatus { conditions, ..read(&after) };
    let settled = machine_status::settle(&known, drafted, phase, error, now);
    let status = settled.status;
    after.phase = Some(status.phase.as_str()).filter(|p| !p.is_empty()).map(Phase::from);
    after.error_reason = status.error_reason;
    after.error_message = status.error_message;
    after.provider_status = status.provider_status;
    after.conditions = status.conditions.iter().map(|c| write_condition(c, now)).collect();
    let other_news = after.addresses != before.addresses || after.node_ref != before.node_ref;
    after.last_updated = if settled.changed || other_news {
        Some(Time(fleetwright_lifecycle::conditions::whole_second(now)))
    } else {
        before.last_updated.clone()
    };
    (after, settled.instance_state)
}

/// Hooks of the API.
pub(crate) fn hooks(hooks: &[machine::LifecycleHook]) -> Vec<Hook> {
    hooks.iter().map(|hook| Hook { name: hook.name.clone(), owner: hook.owner.clone() }).collect()
}
