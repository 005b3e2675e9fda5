//! `aws-webhook-admission.json`: a Machine or MachineSet as it passes the API server: defaults,
//! schema, rules.

use fleetwright_admission::{Verdict, aggregate};
use fleetwright_api::config::PlatformType;
use fleetwright_api::machine::{Machine, MachineSet};
use fleetwright_api::names::label;
use fleetwright_kschema::CompiledSchema;
use fleetwright_machines::admit::{Facts, defaults, machine, machine_set, name};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Outcome, Runner, Use};
use crate::row::Row;

pub(super) const RUNNER: Runner = Runner {
    file: "aws-webhook-admission.json",
    tables: &[
        ("machine_create_cases", Use::Rows(create)),
        ("machine_update_cases", Use::Rows(update)),
        ("machineset_update_cases", Use::Rows(update_set)),
        ("default_cases", Use::Rows(default)),
    ],
};

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// What the tables assume of the cluster.
fn facts(row: &Row<'_>) -> Facts {
    let context = &row.context()["context"];
    Facts {
        cluster: Some(text(&context["infrastructureName"]).to_owned()),
        platform: Some(PlatformType::Aws),
        region: Some(text(&context["platform_region"]).to_owned()),
        ..Facts::of(None, "openshift-machine-api", Timestamp::UNIX_EPOCH)
    }
}

/// What the user is told, as the API server writes it; nothing when all is well.
fn refusal(webhook: &str, verdict: &Verdict) -> Option<String> {
    let denied =
        |errors: &str| format!("admission webhook {webhook:?} denied the request: {errors}");
    (!verdict.errors.is_empty()).then(|| denied(&aggregate(&verdict.errors)))
}

fn compare(wanted: &str, found: Option<&str>) -> Outcome {
    match (wanted, found) {
        ("", None) => Outcome::Passed,
        (wanted, Some(found)) if !wanted.is_empty() && found.contains(wanted) => Outcome::Passed,
        (wanted, found) => Outcome::Failed(format!("wanted {wanted:?}, found {found:?}")),
    }
}

fn read<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T, Outcome> {
    serde_json::from_value(value.clone()).map_err(|error| Outcome::Failed(error.to_string()))
}

/// A row is checked by a function that may end early, with what it found.
fn ended(result: Result<Outcome, Outcome>) -> Outcome {
    result.unwrap_or_else(|outcome| outcome)
}

fn create(row: &Row<'_>) -> Outcome {
    let mut labels = Map::new();
    if row.get("master_role_labels") == true {
        labels.insert(label::MACHINE_ROLE.to_owned(), json!(label::MASTER));
        labels.insert(label::MACHINE_TYPE.to_owned(), json!(label::MASTER));
    }
    let mut object = json!({
        "metadata": {"name": "m", "labels": labels},
        "spec": {"providerSpec": {}},
    });
    if !row.get("provider_spec").is_null() {
        object["spec"]["providerSpec"]["value"] = row.get("provider_spec").clone();
    }
    let facts = facts(row);
    let found = || {
        let verdict = defaults::machine(object, &facts);
        if let Some(refusal) = refusal(name::DEFAULT_MACHINE, &verdict) {
            return Ok(Some(refusal));
        }
        let defaulted = verdict.edit.map(|edit| edit.object().clone()).unwrap_or_default();
        let verdict = machine::validate(&read(&defaulted)?, None, &facts);
        Ok(refusal(name::VALIDATE_MACHINE, &verdict))
    };
    ended(found().map(|found| compare(text(row.get("expect_error")), found.as_deref())))
}

/// What the schema of a kind has against an update.
fn schema_refusal(kind: &str, new: &Value, old: &Value) -> Result<Option<String>, Outcome> {
    let problem = |error: &dyn std::fmt::Display| Outcome::Failed(error.to_string());
    let crd = fleetwright_api::crds().into_iter().find(|crd| crd.spec.names.kind == kind);
    let crd = serde_json::to_value(crd).map_err(|error| problem(&error))?;
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let compiled = CompiledSchema::new(schema).map_err(|error| problem(&error))?;
    let verdict = compiled.validate_update_all(new, old, None, Vec::new());
    Ok(verdict.errors.first().map(ToString::to_string))
}

/// A Machine that nothing is wrong with.
fn good(row: &Row<'_>) -> Value {
    let object = json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": {"name": "m"},
        "spec": {"providerSpec": {"value": {
            "apiVersion": "machine.openshift.io/v1beta1", "kind": "AWSMachineProviderConfig",
            "ami": {"id": "ami"},
        }}},
    });
    let verdict = defaults::machine(object, &facts(row));
    verdict.edit.map(|edit| edit.object().clone()).unwrap_or_default()
}

fn update(row: &Row<'_>) -> Outcome {
    let (mut old, mut new) = (good(row), good(row));
    for (object, key) in [(&mut old, "hooks_before"), (&mut new, "hooks_after")] {
        if row.get("deleting") == true {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            object["metadata"]["finalizers"] = json!(["machine.machine.openshift.io"]);
        }
        if !row.get(key).is_null() {
            object["spec"]["lifecycleHooks"] = row.get(key).clone();
        }
    }
    let spec = &mut new["spec"]["providerSpec"]["value"];
    super::aws_webhook_providerspec_validate::merge_patch(spec, row.get("patch"));
    let found = || {
        if let Some(refusal) = schema_refusal(Machine::KIND, &new, &old)? {
            return Ok(Some(refusal));
        }
        let verdict = machine::validate(&read(&new)?, Some(&read(&old)?), &facts(row));
        Ok(refusal(name::VALIDATE_MACHINE, &verdict))
    };
    ended(found().map(|found| compare(text(row.get("expect_error")), found.as_deref())))
}

fn update_set(row: &Row<'_>) -> Outcome {
    let set = |selector: &Value, labels: &Value| {
        let machine = good(row);
        json!({
            "metadata": {"name": "s"},
            "spec": {
                "selector": {"matchLabels": selector},
                "template": {"metadata": {"labels": labels}, "spec": machine["spec"]},
            },
        })
    };
    let before = row.get("selector_before");
    let old = set(before, before);
    let new = set(row.get("selector_after"), row.get("template_labels"));
    let found = || {
        let (new, old): (MachineSet, MachineSet) = (read(&new)?, read(&old)?);
        let verdict = machine_set::validate(&new, Some(&old), &facts(row));
        Ok(refusal(name::VALIDATE_MACHINE_SET, &verdict))
    };
    ended(found().map(|found| compare(text(row.get("expect_error")), found.as_deref())))
}

fn default(row: &Row<'_>) -> Outcome {
    let mut facts = facts(row);
    let platform = row.get("platform");
    if let Some(region) = platform["region"].as_str() {
        facts.region = Some(region.to_owned());
    }
    facts.architecture = match text(&platform["control_plane_arch"]) {
        "arm64" => "arm64",
        _ => "amd64",
    };
    let input = row.get("input");
    let input = if input.is_null() { json!({"ami": {}}) } else { input.clone() };
    let labels = row.get("input_labels");
    let object = json!({
        "metadata": {"name": "m", "labels": labels},
        "spec": {"providerSpec": {"value": input}},
    });
    let Verdict { errors, warnings, edit } = defaults::machine(object, &facts);
    let Some(edit) = edit.filter(|_| errors.is_empty()) else {
        return Outcome::Failed(aggregate(&errors));
    };
    let found = &edit.object()["spec"]["providerSpec"]["value"];
    if let Some((name, wanted)) = row
        .get("expect")
        .as_object()
        .into_iter()
        .flatten()
        .find(|(name, wanted)| found[name.as_str()] != **wanted)
    {
        return Outcome::Failed(format!("wanted {name} {wanted}, found {}", found[name.as_str()]));
    }
    let wanted = row.get("expect_labels");
    if !wanted.is_null() && *wanted != edit.object()["metadata"]["labels"] {
        return Outcome::equal(wanted, &edit.object()["metadata"]["labels"]);
    }
    match row.get("expect_warning").as_str() {
        Some(wanted) => Outcome::equal(&vec![wanted.to_owned()], &warnings),
        None => Outcome::Passed,
    }
}
