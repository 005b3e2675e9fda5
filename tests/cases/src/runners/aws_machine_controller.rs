//! `aws-machine-controller.json`: one pass of the Machine controller.

use std::{fmt, time::Duration};

use fleetwright_lifecycle::{
    conditions::{self, Condition, Style},
    hooks::{self, Hook},
    machine_status::{INSTANCE_STATE_ANNOTATION, MachineStatus, Settled, settle},
    phase::{CREATE_ERROR, Facts, Failure, INVALID_CONFIGURATION, Phase, Then},
};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{
    Outcome, Runner, Use,
    machine_pass::{Cloud, Pass, run},
};
use crate::row::Row;

pub(super) const RUNNER: Runner = Runner {
    file: "aws-machine-controller.json",
    tables: &[
        ("reconcile_cases", Use::Rows(reconcile)),
        ("is_provisioned_cases", Use::Rows(is_provisioned)),
        ("invalid_configuration_detection_cases", Use::Rows(invalid_configuration)),
        ("requeue_after_cases", Use::Rows(requeue_after)),
        ("lifecycle_hook_condition_cases", Use::Rows(hook_conditions)),
        ("update_status_cases", Use::Rows(update_status)),
    ],
};

fn filled(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(yes) => *yes,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}

fn hook_list(value: &Value) -> Vec<Hook> {
    let hook = |hook: &Value| Hook {
        name: hook["name"].as_str().unwrap_or("hook").to_owned(),
        owner: hook["owner"].as_str().unwrap_or("owner").to_owned(),
    };
    match value {
        Value::Array(items) => items.iter().map(hook).collect(),
        other if filled(other) => vec![hook(other)],
        _ => Vec::new(),
    }
}

fn condition(value: &Value) -> Condition {
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    Condition {
        kind: text("type"),
        status: conditions::Status::parse(&text("status")),
        severity: text("severity"),
        reason: text("reason"),
        message: text("message"),
        since: None,
    }
}

fn condition_list(value: &Value) -> Vec<Condition> {
    value.as_array().into_iter().flatten().map(condition).collect()
}

fn facts(machine: &Value) -> Facts {
    Facts {
        phase: machine["phase"].as_str().unwrap_or_default().to_owned(),
        deleting: filled(&machine["deleting"]),
        finalizer: true,
        drained: conditions::is_true(&condition_list(&machine["conditions"]), "Drained"),
        pre_terminate: hook_list(&machine["preTerminate"]),
        provider_id: filled(&machine["providerID"]),
        addresses: filled(&machine["addresses"]),
        node_ref: filled(&machine["nodeRef"]),
    }
}

fn reconcile(row: &Row<'_>) -> Outcome {
    let Some(wanted) = row.expectation() else {
        return Outcome::Failed("the row wants nothing".to_owned());
    };
    let actuator = row.get("actuator");
    let fails = actuator["mutates_phase_to"] == "Failed";
    let error = |key: &str| {
        let message = actuator[key].as_str()?;
        Some(match key {
            _ if fails => Failure::fatal("", message),
            _ => Failure::retry(CREATE_ERROR, message),
        })
    };
    let cloud = Cloud {
        exists: match error("exists_error") {
            Some(failure) => Err(failure),
            None => Ok(filled(&actuator["exists"])),
        },
        create: error("create_error").map_or(Ok(()), Err),
        update: error("update_error").map_or(Ok(()), Err),
        delete: error("delete_error").map_or(Ok(()), Err),
    };
    let machine = facts(row.get("machine"));
    let before = machine.phase.clone();
    let Pass { calls, end } = run(&machine, &cloud);
    let mut found = Map::new();
    let mut keep = |key: &str, value: Value| {
        if wanted.value.get(key).is_some() {
            found.insert(key.to_owned(), value);
        }
    };
    keep("calls", calls.every());
    keep("phase", end.phase.map_or(before.as_str(), |phase| phase.as_str()).into());
    keep(
        "requeue_after_s",
        match &end.then {
            Then::Again(after) => after.as_secs().into(),
            Then::Done | Then::Error(_) => 0.into(),
        },
    );
    keep("error", matches!(end.then, Then::Error(_)).into());
    keep("errorMessage", end.error.map(|error| error.message).into());
    Outcome::equal(wanted.value, &Value::Object(found))
}

fn is_provisioned(row: &Row<'_>) -> Outcome {
    Outcome::equal(row.get("expect"), &facts(row.value()).provisioned().into())
}

/// An error around another.
#[derive(Debug)]
struct Wrapped(Box<dyn std::error::Error>);

impl fmt::Display for Wrapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "wrapped: {}", self.0)
    }
}

impl std::error::Error for Wrapped {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self.0.as_ref())
    }
}

fn wrapped(failure: Failure, depth: &Value) -> Box<dyn std::error::Error> {
    (0..depth.as_u64().unwrap_or(0))
        .fold(Box::new(failure) as Box<dyn std::error::Error>, |inner, _| Box::new(Wrapped(inner)))
}

fn failure_of(reason: &str) -> Failure {
    let reason = [INVALID_CONFIGURATION, CREATE_ERROR].into_iter().find(|known| *known == reason);
    Failure::retry(reason.unwrap_or_default(), "failed")
}

fn invalid_configuration(row: &Row<'_>) -> Outcome {
    let failure = failure_of(row.get("reason").as_str().unwrap_or_default());
    let error = wrapped(failure, row.get("wrap_depth"));
    let found = Failure::find(error.as_ref()).is_some_and(Failure::is_invalid_configuration);
    Outcome::equal(row.get("is_invalid_configuration"), &found.into())
}

fn requeue_after(row: &Row<'_>) -> Outcome {
    let failure = match row.get("error").as_str().unwrap_or_default() {
        "RequeueAfter" => {
            let seconds = row.get("seconds").as_u64().unwrap_or_default();
            Failure::later("", Duration::from_secs(seconds), "not yet")
        }
        reason => failure_of(reason),
    };
    let error = wrapped(failure, row.get("wrap_depth"));
    let found = match Failure::then(error.as_ref()) {
        Then::Again(after) => json!({"requeue_after_s": after.as_secs(), "error": false}),
        Then::Done => json!({"requeue_after_s": 0, "error": false}),
        Then::Error(_) => json!({"requeue_after_s": 0, "error": true}),
    };
    Outcome::equal(row.get("expect"), &found)
}

fn hook_conditions(row: &Row<'_>) -> Outcome {
    let given = row.get("hooks");
    let found =
        hooks::conditions(&hook_list(&given["preDrain"]), &hook_list(&given["preTerminate"]));
    let wanted = condition_list(row.get("expect"));
    Outcome::equal(&wanted, &found.to_vec())
}

fn update_status(row: &Row<'_>) -> Outcome {
    let Some(wanted) = row.expectation() else {
        return Outcome::Failed("the row wants nothing".to_owned());
    };
    let to = match row.get("to_phase").as_str() {
        Some("Running") => Phase::Running,
        Some("Failed") => Phase::Failed,
        Some("Deleting") => Phase::Deleting,
        Some("Provisioned") => Phase::Provisioned,
        _ => Phase::Provisioning,
    };
    // The table leaves the phase out where it is not what changes.
    let from = match row.get("from_phase").as_str() {
        Some(phase) => phase,
        None if to == Phase::Failed => "",
        None => to.as_str(),
    };
    let before = MachineStatus {
        phase: from.to_owned(),
        provider_status: Some(row.get("provider_status").clone()).filter(Value::is_object),
        conditions: condition_list(row.get("existing")),
        last_updated: Some(Timestamp::UNIX_EPOCH),
        ..MachineStatus::default()
    };
    let now = Timestamp::UNIX_EPOCH + Duration::from_hours(1);
    let mut after = before.clone();
    for wanted in condition_list(row.get("set_conditions")) {
        conditions::set(&mut after.conditions, wanted, now, Style::Sorted);
    }
    let error = row.get("error").as_str().map(|message| Failure::fatal("", message));
    let Settled { status, changed, instance_state } =
        settle(&before, after, Some(to), error.as_ref(), now);
    if changed != (status.last_updated == Some(now)) {
        return Outcome::Failed("the time moves exactly when something changed".to_owned());
    }
    let mut found = Map::new();
    for key in wanted.value.as_object().into_iter().flat_map(Map::keys) {
        let value = match key.as_str() {
            "lastUpdated_changes" => changed.into(),
            "errorMessage" => status.error_message.clone().into(),
            "annotation" => instance_state
                .map_or(Value::Null, |state| json!({ INSTANCE_STATE_ANNOTATION: state })),
            "provider_status" => status.provider_status.clone().unwrap_or_default(),
            _ => continue,
        };
        found.insert(key.clone(), value);
    }
    Outcome::equal(wanted.value, &Value::Object(found))
}
