//! `spot-mhc-crd.json`: what the schema of a MachineHealthCheck takes, and what the controller makes
//! of what it should not.

use fleetwright_api::machine::MachineHealthCheck;
use fleetwright_kschema::CompiledSchema;
use fleetwright_machines::health::rules::rules;
use serde_json::{Value, json};

use super::{Outcome, Runner, Use};
use crate::row::Row;

pub(super) const RUNNER: Runner = Runner {
    file: "spot-mhc-crd.json",
    tables: &[
        ("defaulting", Use::Rows(defaulting)),
        ("patterns", Use::Rows(patterns)),
        ("accept", Use::Rows(accept)),
        ("reject", Use::Rows(reject)),
        ("schemaAcceptsButNotADuration", Use::Rows(survives)),
        ("schemaAcceptsNegative", Use::Rows(survives)),
        ("unhealthyConditions", Use::Rows(conditions)),
    ],
};

fn schema() -> Result<(Value, CompiledSchema), Outcome> {
    let problem = |error: &dyn std::fmt::Display| Outcome::Failed(error.to_string());
    let crd = fleetwright_api::crds()
        .into_iter()
        .find(|crd| crd.spec.names.kind == MachineHealthCheck::KIND);
    let crd = serde_json::to_value(crd).map_err(|error| problem(&error))?;
    let schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
    let compiled = CompiledSchema::new(&schema).map_err(|error| problem(&error))?;
    Ok((schema, compiled))
}

fn ended(result: Result<Outcome, Outcome>) -> Outcome {
    result.unwrap_or_else(|outcome| outcome)
}

/// A check with one field as given.
fn with(field: &str, value: &Value) -> Value {
    let mut spec = json!({"selector": {}, "unhealthyConditions": [
        {"type": "Ready", "status": "False", "timeout": "5m"},
    ]});
    match field {
        "timeout" => spec["unhealthyConditions"][0]["timeout"] = value.clone(),
        field => spec[field] = value.clone(),
    }
    json!({
        "apiVersion": MachineHealthCheck::API_VERSION, "kind": MachineHealthCheck::KIND,
        "metadata": {"name": "c"}, "spec": spec,
    })
}

fn is_taken(compiled: &CompiledSchema, object: &Value) -> bool {
    compiled.validate_create_all(object, None, Vec::new()).errors.is_empty()
}

fn defaulting(row: &Row<'_>) -> Outcome {
    ended(schema().map(|(_, compiled)| {
        let mut object = json!({"spec": row.get("spec")});
        compiled.default(&mut object);
        Outcome::equal(row.get("expect"), &object["spec"])
    }))
}

fn patterns(row: &Row<'_>) -> Outcome {
    ended(schema().map(|(schema, _)| {
        let spec = &schema["properties"]["spec"]["properties"];
        let found = json!({
            "maxUnhealthy": spec["maxUnhealthy"]["pattern"],
            "nodeStartupTimeout": spec["nodeStartupTimeout"]["pattern"],
            "timeout": spec["unhealthyConditions"]["items"]["properties"]["timeout"]["pattern"],
        });
        Outcome::equal(row.value(), &found)
    }))
}

/// Fields with the values that are tried.
fn values<'a>(row: &Row<'a>) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let fields = row.value().as_object().into_iter().flatten();
    let lists = fields.filter_map(|(field, values)| Some((field, values.as_array()?)));
    lists.flat_map(|(field, values)| values.iter().map(move |value| (field, value)))
}

fn accept(row: &Row<'_>) -> Outcome {
    ended(schema().map(|(_, compiled)| {
        for (field, value) in values(row) {
            let object = with(field, value);
            if !is_taken(&compiled, &object) {
                return Outcome::Failed(format!("{field}: {value} is refused"));
            }
            if let Err(error) = understood(&object) {
                return Outcome::Failed(format!("{field}: {value}: {error}"));
            }
        }
        Outcome::Passed
    }))
}

fn reject(row: &Row<'_>) -> Outcome {
    ended(schema().map(|(_, compiled)| {
        let taken = values(row).find(|(field, value)| is_taken(&compiled, &with(field, value)));
        taken.map_or(Outcome::Passed, |(field, value)| {
            Outcome::Failed(format!("{field}: {value} is taken"))
        })
    }))
}

fn understood(object: &Value) -> Result<(), String> {
    let check: MachineHealthCheck =
        serde_json::from_value(object.clone()).map_err(|error| error.to_string())?;
    rules(&check).map(drop).map_err(|error| error.to_string())
}

/// The schema takes it; it can be read, and is told to be wrong.
fn survives(row: &Row<'_>) -> Outcome {
    ended(schema().map(|(_, compiled)| {
        for (field, value) in values(row) {
            let object = with(field, value);
            if !is_taken(&compiled, &object) {
                return Outcome::Failed(format!("{field}: {value} is refused by the schema"));
            }
            match understood(&object) {
                Err(error) if error.starts_with(&format!("spec.{field}: ")) => {}
                other => return Outcome::Failed(format!("{field}: {value}: {other:?}")),
            }
        }
        Outcome::Passed
    }))
}

fn conditions(row: &Row<'_>) -> Outcome {
    ended(schema().map(|(schema, compiled)| {
        let field = &schema["properties"]["spec"]["properties"]["unhealthyConditions"];
        let mut without = with("maxUnhealthy", &json!(1));
        if let Some(spec) = without["spec"].as_object_mut() {
            spec.remove("unhealthyConditions");
        }
        let found = json!([
            field["minItems"],
            is_taken(&compiled, &without),
            is_taken(&compiled, &with("unhealthyConditions", &json!([]))),
        ]);
        Outcome::equal(&json!([row.get("minItems"), true, false]), &found)
    }))
}
