//! `spot-machine-phases.json`: phases that matter for Machines that may be taken back.

use fleetwright_lifecycle::{
    machine_status::{INSTANCE_STATE_ANNOTATION, MachineStatus, settle},
    phase::{Facts, Failure, Phase, Then},
};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{
    Outcome, Runner, Use,
    machine_pass::{Cloud, Pass, run},
};
use crate::row::Row;

pub(super) const RUNNER: Runner = Runner {
    file: "spot-machine-phases.json",
    tables: &[("cases", Use::Rows(phase)), ("onFailed", Use::Rows(on_failed))],
};

fn phase(row: &Row<'_>) -> Outcome {
    let yes = |key: &str| row.get(key).as_bool().unwrap_or_default();
    // The rows with an error say that the provider gave up on the Machine.
    let failure = |key: &str| row.get(key).as_str().map(|message| Failure::fatal("", message));
    let machine = Facts {
        phase: row.get("phase").as_str().unwrap_or_default().to_owned(),
        deleting: yes("deleting"),
        finalizer: true,
        drained: yes("drained"),
        pre_terminate: Vec::new(),
        provider_id: yes("providerID"),
        addresses: yes("addresses"),
        node_ref: yes("nodeRef"),
    };
    let before = machine.phase.clone();
    let cloud = Cloud {
        exists: failure("existsError").map_or(Ok(yes("exists")), Err),
        create: failure("createError").map_or(Ok(()), Err),
        update: failure("updateError").map_or(Ok(()), Err),
        delete: Ok(()),
    };
    let Pass { calls, end } = run(&machine, &cloud);
    let result = match &end.then {
        Then::Done => "done".to_owned(),
        Then::Again(after) => format!("requeue {}s", after.as_secs()),
        Then::Error(_) => "error".to_owned(),
    };
    let said = row.get("result").as_str().unwrap_or_default();
    let mut found = Map::from_iter([
        ("calls".to_owned(), calls.made()),
        ("newPhase".to_owned(), end.phase.map_or(before.as_str(), |phase| phase.as_str()).into()),
        // A row may add a word of explanation.
        ("result".to_owned(), if said.starts_with(&result) { said.into() } else { result.into() }),
    ]);
    if said.contains("finalizer removed") != end.finish {
        return Outcome::Failed(format!("wanted {said}, found finish: {}", end.finish));
    }
    if let Some(error) = end.error {
        found.insert("errorMessage".to_owned(), error.message.into());
    }
    let wanted: Map<String, Value> = ["calls", "newPhase", "result", "errorMessage"]
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), row.value().get(key)?.clone())))
        .collect();
    Outcome::equal(&wanted, &found)
}

fn on_failed(row: &Row<'_>) -> Outcome {
    let states: Map<String, Value> = row
        .get("providerStatus")
        .as_object()
        .into_iter()
        .flat_map(Map::keys)
        .map(|key| (key.clone(), "running".into()))
        .collect();
    for (key, state) in &states {
        let before = MachineStatus {
            provider_status: Some(json!({ key.as_str(): state })),
            ..MachineStatus::default()
        };
        let now = Timestamp::UNIX_EPOCH;
        let settled = settle(&before, before.clone(), Some(Phase::Failed), None, now);
        let annotation = json!({ INSTANCE_STATE_ANNOTATION: settled.instance_state });
        if *row.get("annotation") != annotation {
            return Outcome::equal(row.get("annotation"), &annotation);
        }
        if settled.status.provider_status != Some(json!({ key.as_str(): "Unknown" })) {
            return Outcome::Failed(format!("{key} is still known: {settled:?}"));
        }
    }
    Outcome::Passed
}
