//! `spot-gcp.json`: how instances of Google Cloud are bought, and what is made of them.

use fleetwright_admission::aggregate;
use fleetwright_api::{config::PlatformType, gcp::GCPMachineProviderSpec, machine::Machine};
use fleetwright_cloud::ErrorClass;
use fleetwright_cloud_gcp::{Scheduling, automatic_restart, classify, gpu_metric, state};
use fleetwright_machines::admit::{Facts, machine};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Outcome, Runner, Use,
    aws_actuator_lifecycle::{exists_as, instance},
};
use crate::row::Row;

pub(super) const RUNNER: Runner = Runner {
    file: "spot-gcp.json",
    tables: &[
        ("restartPolicy.cases", Use::Rows(restart)),
        ("create.cases", Use::Rows(create)),
        ("webhook.cases", Use::Rows(webhook)),
        ("quotaMetric.cases", Use::Rows(quota)),
        ("exists.cases", Use::Rows(exists)),
    ],
};

fn spec(value: &Value) -> Result<GCPMachineProviderSpec, Outcome> {
    serde_json::from_value(value.clone()).map_err(|error| Outcome::Failed(error.to_string()))
}

fn restart(row: &Row<'_>) -> Outcome {
    let spec = spec(&json!({
        "restartPolicy": row.get("policy"),
        "preemptible": row.get("preemptible"),
        "provisioningModel": row.get("provisioningModel"),
    }));
    let spec = match spec {
        Ok(spec) => spec,
        Err(failed) => return failed,
    };
    let (found, error) = match automatic_restart(&spec) {
        Ok(found) => (found, None),
        Err(error) => (None, Some(error.to_string())),
    };
    Outcome::equal(&json!([row.get("automaticRestart"), row.get("error")]), &json!([found, error]))
}

fn create(row: &Row<'_>) -> Outcome {
    let spec = match spec(row.get("in")) {
        Ok(spec) => spec,
        Err(failed) => return failed,
    };
    match Scheduling::of(&spec) {
        Err(error) => Outcome::equal(row.get("error"), &error.to_string().into()),
        Ok(_) if !row.get("error").is_null() => Outcome::Failed("it is not refused".to_owned()),
        Ok(found) => {
            // The rows say "" for what is not sent, and speak of what upstream sends alone.
            let found = json!({
                "preemptible": found.preemptible,
                "provisioningModel": found.provisioning_model.unwrap_or_default(),
                "onHostMaintenance": found.on_host_maintenance.unwrap_or_default(),
                "automaticRestart": found.automatic_restart,
            });
            Outcome::equal(row.get("scheduling"), &found)
        }
    }
}

fn webhook(row: &Row<'_>) -> Outcome {
    let mut value = row.get("in").clone();
    value["apiVersion"] = GCPMachineProviderSpec::API_VERSIONS[0].into();
    value["kind"] = GCPMachineProviderSpec::KIND.into();
    let object = json!({"metadata": {"name": "m"}, "spec": {"providerSpec": {"value": value}}});
    let machine: Machine = match serde_json::from_value(object) {
        Ok(machine) => machine,
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    let mut facts = Facts::of(None, "openshift-machine-api", Timestamp::UNIX_EPOCH);
    facts.platform = Some(PlatformType::Gcp);
    let verdict = machine::validate(&machine, None, &facts);
    let told = (!verdict.errors.is_empty()).then(|| aggregate(&verdict.errors));
    Outcome::equal(row.get("error"), &json!(told))
}

fn quota(row: &Row<'_>) -> Outcome {
    let gpu = row.get("gpu").as_str().unwrap_or_default();
    let found = gpu_metric(gpu, row.get("interruptible") == true);
    Outcome::equal(row.get("metric"), &json!(found))
}

/// An answer without an instance is none, or an error.
fn exists(row: &Row<'_>) -> Outcome {
    let shown = row.get("instanceStatus").as_str().map(|word| instance("i-1", "m", state(word)));
    let status = row.get("http").as_u64().and_then(|status| u16::try_from(status).ok());
    if shown.is_none() && classify("", status) != ErrorClass::NotFound {
        return Outcome::equal(row.get("error"), &true.into());
    }
    Outcome::equal(row.get("exists"), &exists_as(shown.as_ref()).into())
}
