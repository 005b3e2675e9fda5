//! Where instances go.

use fleetwright_api::{aws::AWSMachineProviderConfig, placement::AWSPlacementGroup};
use fleetwright_cloud_aws::rules::instance_placement;
use fleetwright_machines::group::preflight::{Known, Verdict, Wish, check};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::row::Row;
use crate::runners::{Outcome, Runner, Use};

/// The runner.
pub(super) const RUNNER: Runner =
    Runner { file: "aws-instance-placement.json", tables: &[("cases", Use::Rows(placement))] };

/// What a Machine of a row comes to: where its instance goes, or why it cannot.
fn placement(row: &Row<'_>) -> Outcome {
    let config = match config(row) {
        Ok(config) => config,
        Err(error) => return Outcome::Failed(format!("the spec cannot be read: {error}")),
    };
    let found = match row.get("objects") {
        Value::Array(objects) => gate(&config, objects),
        _ => Ok(()),
    };
    let found = found.and_then(|()| instance_placement(&config).map_err(|mistake| mistake.0));
    let Some(wanted) = row.expectation() else {
        return Outcome::Failed("the row says nothing of what we should do".to_owned());
    };
    // A sentence asks for a refusal that upstream does not make.
    let refusal = wanted.value.as_str().is_some_and(|wish| wish.contains("reject"));
    match (found, wanted.value.get("message")) {
        (Err(_), None) if refusal || wanted.value.get("error_class").is_some() => Outcome::Passed,
        (Err(message), Some(wanted)) => Outcome::equal(wanted, &Value::from(message)),
        (Err(message), None) => Outcome::Failed(format!("found the error {message}")),
        (Ok(found), None) => match wanted.value.get("placement") {
            Some(wanted) => Outcome::equal(wanted, &json!(found)),
            None => Outcome::Failed(format!("wanted an error, found {}", json!(found))),
        },
        (Ok(found), Some(_)) => Outcome::Failed(format!("wanted an error, found {}", json!(found))),
    }
}

fn config(row: &Row<'_>) -> serde_json::Result<AWSMachineProviderConfig> {
    let mut spec = row.get("provider_spec").clone();
    if spec.is_null() {
        spec = json!({});
    }
    if let placement @ Value::Object(_) = row.get("placement") {
        spec["placement"] = placement.clone();
    }
    if row.get("subnet_id_set") == true {
        spec["subnet"] = json!({"id": "subnet-1"});
    }
    serde_json::from_value(spec)
}

/// Whether the AWSPlacementGroups of a row, all of them ready, let the launch go out.
fn gate(config: &AWSMachineProviderConfig, objects: &[Value]) -> Result<(), String> {
    let now = Timestamp::UNIX_EPOCH;
    let Some(wish) = Wish::of(config, "us-east-1a").map_err(|error| error.to_string())? else {
        return Ok(());
    };
    let object = objects.iter().find(|object| object["name"] == wish.group);
    let group: Option<AWSPlacementGroup> = match object {
        Some(object) => Some(serde_json::from_value(ready(object)).map_err(|e| e.to_string())?),
        None => None,
    };
    let known = Known { group: group.as_ref(), strategies: None, members: &[], now };
    match check(&wish, &known) {
        Verdict::Launch { .. } => Ok(()),
        Verdict::Missing { message }
        | Verdict::Wait { message, .. }
        | Verdict::Full { message, .. }
        | Verdict::Refuse { message } => Err(message),
    }
}

fn ready(object: &Value) -> Value {
    let managed = object["managed"].is_object();
    let state = if managed { "Managed" } else { "Unmanaged" };
    let mut spec = json!({"managementState": state});
    if managed {
        spec["managed"] = object["managed"].clone();
    }
    let observed = [&object["observedConfiguration"], &object["observed"], &object["managed"]];
    let observed = observed.into_iter().find(|it| it.is_object()).cloned().unwrap_or_default();
    json!({
        "apiVersion": "machine.openshift.io/v1",
        "kind": "AWSPlacementGroup",
        "metadata": {"name": object["name"], "namespace": "openshift-machine-api"},
        "spec": {"managementSpec": spec},
        "status": {
            "managementState": state,
            "observedConfiguration": observed,
            "expiresAt": "1970-01-01T01:00:00Z",
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "ConfigurationInSync", "message": "",
                "lastTransitionTime": "1970-01-01T00:00:00Z",
            }],
        },
    })
}
