//! `aws-webhook-providerspec-validate.json`: the rules for a provider spec on AWS.

use fleetwright_admission::{Verdict, aggregate};
use fleetwright_api::config::PlatformType;
use fleetwright_api::machine::Machine;
use fleetwright_machines::admit::{Facts, Updates, machine};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Outcome, Runner, Use};
use crate::row::Row;

pub(super) const RUNNER: Runner = Runner {
    file: "aws-webhook-providerspec-validate.json",
    tables: &[
        ("validate_cases", Use::Rows(validate)),
        ("finalizer_update_cases", Use::Rows(finalizers)),
        ("base_provider_spec.securityGroups", Use::Context),
    ],
};

/// The one secret that the rows assume.
const SECRET: &str = "secret";

/// Applies an RFC 7386 patch; null removes.
pub(super) fn merge_patch(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        if !patch.is_null() {
            *target = patch.clone();
        }
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else { return };
    for (name, change) in changes {
        if change.is_null() {
            fields.remove(name);
        } else {
            merge_patch(fields.entry(name.as_str()).or_insert(Value::Null), change);
        }
    }
}

fn facts(spec: &Value, updates: Updates) -> Facts {
    let mut facts = Facts::of(None, "openshift-machine-api", Timestamp::UNIX_EPOCH);
    facts.platform = Some(PlatformType::Aws);
    facts.updates = updates;
    let secret = spec["credentialsSecret"]["name"].as_str();
    facts.missing_secrets.extend(secret.filter(|name| *name != SECRET).map(str::to_owned));
    facts
}

fn read(metadata: &Value, spec: &Value) -> Result<Machine, Outcome> {
    let object = json!({"metadata": metadata, "spec": {"providerSpec": {"value": spec}}});
    serde_json::from_value(object).map_err(|error| Outcome::Failed(error.to_string()))
}

/// Compares a verdict with `{ok, error, warnings}`.
fn compare(wanted: &Value, verdict: &Verdict, warnings: bool) -> Outcome {
    let ok = verdict.errors.is_empty();
    let mut found = json!({"ok": ok});
    if !ok {
        found["error"] = aggregate(&verdict.errors).into();
    }
    let mut wanted = wanted.clone();
    if warnings {
        found["warnings"] = json!(verdict.warnings);
        if wanted["warnings"].is_null() {
            wanted["warnings"] = json!([]);
        }
    }
    Outcome::equal(&wanted, &found)
}

fn validate(row: &Row<'_>) -> Outcome {
    let mut spec = row.context()["base_provider_spec"].clone();
    merge_patch(&mut spec, row.get("merge_patch"));
    if !row.get("raw_override").is_null() {
        spec = row.get("raw_override").clone();
    }
    match read(&json!({"name": "m"}), &spec) {
        Ok(new) => {
            let verdict = machine::validate(&new, None, &facts(&spec, Updates::CheckChanges));
            compare(row.get("expect"), &verdict, true)
        }
        Err(outcome) => outcome,
    }
}

/// These rows tell of upstream, which holds an update to everything that is wrong with the object;
/// we pass over what the update did not bring, unless that is switched off, as it is here.
fn finalizers(row: &Row<'_>) -> Outcome {
    let machine = |valid: bool, finalizers: &str| {
        let mut spec = row.context()["base_provider_spec"].clone();
        if !valid {
            merge_patch(&mut spec, &json!({"credentialsSecret": null}));
        }
        let mut metadata = json!({"name": "m", "finalizers": row.get(finalizers)});
        if row.get("deletion_timestamp") == true {
            metadata["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        read(&metadata, &spec)
    };
    let old = machine(row.get("old_valid") == true, "old_finalizers");
    let new = machine(row.get("new") == "valid", "new_finalizers");
    match (new, old) {
        (Ok(new), Ok(old)) => {
            let spec = new.spec.provider_spec.value.clone().unwrap_or_default();
            let verdict = machine::validate(&new, Some(&old), &facts(&spec, Updates::CheckAll));
            compare(row.get("expect"), &verdict, false)
        }
        (Err(outcome), _) | (_, Err(outcome)) => outcome,
    }
}
