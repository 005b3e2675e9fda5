//! `spot-aws-market-options.json`: how spot instances are bought, and what becomes of a Machine that
//! gets none.

use std::time::Duration;

use fleetwright_admission::aggregate;
use fleetwright_api::{config::PlatformType, machine::Machine};
use fleetwright_cloud::{CloudError, ErrorClass};
use fleetwright_cloud_aws::{
    errors::classify, instance, model::ec2::responses, rules::market_options,
};
use fleetwright_lifecycle::phase::{Failure, FailureKind};
use fleetwright_machines::{
    admit::{Facts, machine},
    launch::{
        settings::SpotCapacity,
        verdict::{Patience, Verdict, judge},
    },
    machine::look::{self, Youth},
};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Outcome, Runner, Use};
use crate::row::Row;

pub(super) const RUNNER: Runner = Runner {
    file: "spot-aws-market-options.json",
    tables: &[
        ("marketOptions.cases", Use::Rows(market)),
        ("marketOptions.derived", Use::Rows(market)),
        ("webhook.cases", Use::Rows(webhook)),
        ("exists.cases", Use::Rows(exists)),
        ("launchErrors.cases", Use::Rows(launch_error)),
        ("launchErrors.capacityCodesInPeers.codes", Use::Rows(capacity_code)),
    ],
};

fn market(row: &Row<'_>) -> Outcome {
    let spec = match serde_json::from_value(row.get("in").clone()) {
        Ok(spec) => spec,
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    match (market_options(&spec), row.get("error") == true) {
        (Ok(found), false) => Outcome::equal(row.get("out"), &lower(json!(found))),
        (Err(_), true) => Outcome::Passed,
        (found, _) => Outcome::Failed(format!("found {found:?}")),
    }
}

/// Names of fields as the table has them: `MarketType` is `marketType`.
fn lower(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| {
                let mut letters = name.chars();
                let first = letters.next().map(|first| first.to_ascii_lowercase());
                (first.into_iter().chain(letters).collect(), lower(value))
            });
            Value::Object(fields.collect())
        }
        other => other,
    }
}

fn webhook(row: &Row<'_>) -> Outcome {
    let mut spec = json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "AWSMachineProviderConfig",
        "ami": {"id": "ami"}, "instanceType": "m5.large",
        "placement": {"region": "us-east-1", "availabilityZone": "us-east-1a"},
        "iamInstanceProfile": {"id": "profile"}, "subnet": {"id": "subnet"},
        "securityGroups": [{"id": "group"}],
        "userDataSecret": {"name": "secret"}, "credentialsSecret": {"name": "secret"},
    });
    for (name, value) in row.get("in").as_object().into_iter().flatten() {
        spec[name] = match value.as_str() {
            Some(text) => text.replace("<17hex>", "0123456789abcdef0").into(),
            None => value.clone(),
        };
    }
    let object = json!({"metadata": {"name": "m"}, "spec": {"providerSpec": {"value": spec}}});
    let machine: Machine = match serde_json::from_value(object) {
        Ok(machine) => machine,
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    let mut facts = Facts::of(None, "openshift-machine-api", Timestamp::UNIX_EPOCH);
    facts.platform = Some(PlatformType::Aws);
    let verdict = machine::validate(&machine, None, &facts);
    let told = (!verdict.errors.is_empty()).then(|| aggregate(&verdict.errors));
    match (row.get("error").as_str(), told) {
        (None, None) => Outcome::Passed,
        (Some(wanted), Some(told)) if told.contains(wanted) => Outcome::Passed,
        (wanted, told) => Outcome::Failed(format!("wanted {wanted:?}, found {told:?}")),
    }
}

fn exists(row: &Row<'_>) -> Outcome {
    let shown = row.get("instanceState").as_str().map(|state| responses::Instance {
        instance_id: Some("i-1".to_owned()),
        state: Some(responses::InstanceState { name: Some(state.to_owned()) }),
        ..responses::Instance::default()
    });
    let found = shown.and_then(|shown| instance(&shown, "us-east-1", &[]));
    let now = Timestamp::UNIX_EPOCH + Duration::from_secs(1_000_000);
    // The rows say in words whether the Machine has just been made.
    let new = row.get("name").as_str().is_some_and(|name| name.contains("instanceId set"));
    let youth = Youth {
        has_addresses: !new,
        updated: new.then_some(now),
        launched: None,
        settle_time: Duration::from_mins(1),
        now,
    };
    let exists = look::exists(new.then_some("i-1"), found.as_ref(), &youth);
    let again = match &exists {
        Err(Failure { kind: FailureKind::Later(wait), .. }) => Some(wait.as_secs()),
        _ => None,
    };
    Outcome::equal(
        &json!([row.get("exists"), row.get("requeueSeconds")]),
        &json!([exists.unwrap_or(false), again]),
    )
}

/// The phase of a spot Machine whose launch was refused with a code.
fn phase(code: &str) -> &'static str {
    let error = CloudError::new(classify(code, ""), "RunInstances", code, "");
    let patience = Patience {
        deadline: Duration::from_mins(15),
        interruptible: true,
        spot: SpotCapacity::Fail,
    };
    let since = Timestamp::UNIX_EPOCH;
    match judge(&error) {
        Verdict::Failed => "Failed",
        Verdict::Short(_) if patience.ends(since) <= since => "Failed",
        _ => "Provisioning",
    }
}

fn launch_error(row: &Row<'_>) -> Outcome {
    let found = phase(row.get("code").as_str().unwrap_or_default());
    Outcome::equal(row.get("upstreamPhase"), &found.into())
}

/// What peers take for a lack of capacity is one, or a wish that nobody can fulfil: both are Failed
/// at once.
fn capacity_code(row: &Row<'_>) -> Outcome {
    let code = row.value().as_str().unwrap_or_default();
    match classify(code, "") {
        ErrorClass::Capacity | ErrorClass::Quota | ErrorClass::Configuration => {
            Outcome::equal(&"Failed", &phase(code))
        }
        other => Outcome::Failed(format!("{code} is {other:?}")),
    }
}
