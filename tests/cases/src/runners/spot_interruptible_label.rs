//! `spot-interruptible-label.json`: which Machines and Nodes are labelled as interruptible.

use fleetwright_api::{
    aws::AWSMachineProviderConfig, azure::AzureMachineProviderSpec, gcp::GCPMachineProviderSpec,
    machine::Machine, names::label,
};
use fleetwright_cloud::{Instance, InstanceState};
use fleetwright_cloud_aws::model::ec2::responses;
use fleetwright_cloud_gcp::Scheduling;
use fleetwright_machines::machine::observe::{Draft, observe};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Outcome, Runner, Use, aws_actuator_lifecycle::instance};
use crate::row::Row;

pub(super) const RUNNER: Runner =
    Runner { file: "spot-interruptible-label.json", tables: &[("cases", Use::Rows(labelled))] };

/// The instance as its cloud shows it.
fn shown(cloud: &str, row: &Value) -> Option<Instance> {
    match cloud {
        "gcp" => {
            let scheduling = &row["instance"]["scheduling"];
            let scheduling: Option<Scheduling> = serde_json::from_value(scheduling.clone()).ok()?;
            let status = row["instance"]["status"].as_str().unwrap_or_default();
            Some(Instance {
                interruptible: scheduling.is_some_and(|shown| shown.is_interruptible()),
                ..instance("i-1", "m", fleetwright_cloud_gcp::state(status))
            })
        }
        "azure" => Some(instance("vm", "m", InstanceState::Running)),
        _ => {
            let shown = responses::Instance {
                instance_id: Some("i-1".to_owned()),
                state: Some(responses::InstanceState { name: Some("running".to_owned()) }),
                instance_lifecycle: row["instanceLifecycle"].as_str().map(str::to_owned),
                ..responses::Instance::default()
            };
            fleetwright_cloud_aws::instance(&shown, "us-east-1", &[])
        }
    }
}

fn labelled(row: &Row<'_>) -> Outcome {
    let cloud = row.get("cloud").as_str().unwrap_or_default();
    let mut spec = json!({"kind": match cloud {
        "gcp" => GCPMachineProviderSpec::KIND,
        "azure" => AzureMachineProviderSpec::KIND,
        _ => AWSMachineProviderConfig::KIND,
    }});
    for (field, value) in row.get("in")["spec"].as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    let machine: Machine = match serde_json::from_value(json!({"metadata": {"name": "m"},
        "spec": {"providerSpec": {"value": spec}}}))
    {
        Ok(machine) => machine,
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    let mut draft = Draft::of(&machine);
    // A launch that fails has no instance that could be looked at.
    if row.get("call").as_str().is_some_and(|call| !call.contains("fails")) {
        let Some(instance) = shown(cloud, row.get("in")) else {
            return Outcome::Failed("the instance cannot be read".to_owned());
        };
        observe(&mut draft, &instance, Timestamp::UNIX_EPOCH);
    }
    let on_machine = draft.labels.contains_key(label::INTERRUPTIBLE);
    let on_node = draft.spec.metadata.labels.contains_key(label::INTERRUPTIBLE);
    Outcome::equal(&json!([row.get("label"), row.get("label")]), &json!([on_machine, on_node]))
}
