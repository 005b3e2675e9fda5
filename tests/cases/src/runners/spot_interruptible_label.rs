//! `spot-interruptible-label.json`: which Machines and Nodes are labelled as interruptible.

use fleetwright_api::{machine::Machine, names::label};
use fleetwright_cloud_aws::model::ec2::responses;
use fleetwright_machines::machine::observe::{Draft, observe};
use jiff::Timestamp;
use serde_json::json;

use super::{Outcome, Runner, Use};
use crate::row::Row;

pub(super) const RUNNER: Runner =
    Runner { file: "spot-interruptible-label.json", tables: &[("cases", Use::Rows(labelled))] };

fn labelled(row: &Row<'_>) -> Outcome {
    if row.get("cloud") != "aws" {
        return Outcome::NotApplicable("Google Cloud and Azure come with the next providers");
    }
    let machine: Machine = match serde_json::from_value(json!({"metadata": {"name": "m"},
        "spec": {"providerSpec": {"value": row.get("in")["spec"]}}}))
    {
        Ok(machine) => machine,
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    let mut draft = Draft::of(&machine);
    // A launch that fails has no instance that could be looked at.
    if row.get("call").as_str().is_some_and(|call| !call.contains("fails")) {
        let shown = responses::Instance {
            instance_id: Some("i-1".to_owned()),
            state: Some(responses::InstanceState { name: Some("running".to_owned()) }),
            instance_lifecycle: row.get("in")["instanceLifecycle"].as_str().map(str::to_owned),
            ..responses::Instance::default()
        };
        let Some(instance) = fleetwright_cloud_aws::instance(&shown, "us-east-1", &[]) else {
            return Outcome::Failed("the instance cannot be read".to_owned());
        };
        observe(&mut draft, &instance, Timestamp::UNIX_EPOCH);
    }
    let on_machine = draft.labels.contains_key(label::INTERRUPTIBLE);
    let on_node = draft.spec.metadata.labels.contains_key(label::INTERRUPTIBLE);
    Outcome::equal(&json!([row.get("label"), row.get("label")]), &json!([on_machine, on_node]))
}
