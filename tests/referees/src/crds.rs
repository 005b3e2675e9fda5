//! Our CustomResourceDefinitions beside those of upstream.
//!
//! Both are taken apart into facts, such as `spec.replicas default: 1` or `column Phase type:
//! string`, and the facts are compared. Words for people are left out. Every difference needs a
//! line in `crds/accepted-differences.txt`, and every line there a difference.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};
use regex::Regex;
use serde_json::Value;

use crate::cluster::binaries;
use crate::compare::wildcard;

/// A kind and where upstream defines it.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// The name of the definition.
    pub name: &'static str,
    /// The file in the Go module. None for a kind that upstream took out: its facts are written
    /// down in `crds/<name>.txt`, from the last state it had.
    file: Option<&'static str>,
}

/// Every kind that Fleetwright defines.
pub const KINDS: &[Kind] = &[
    Kind {
        name: "machines.machine.openshift.io",
        file: Some(
            "machine/v1beta1/zz_generated.crd-manifests/0000_10_machine-api_01_machines-Default.crd.yaml",
        ),
    },
    Kind {
        name: "machinesets.machine.openshift.io",
        file: Some(
            "machine/v1beta1/zz_generated.crd-manifests/0000_10_machine-api_01_machinesets-Default.crd.yaml",
        ),
    },
    Kind {
        name: "machinehealthchecks.machine.openshift.io",
        file: Some(
            "machine/v1beta1/zz_generated.crd-manifests/0000_10_machine-api_01_machinehealthchecks.crd.yaml",
        ),
    },
    Kind {
        name: "infrastructures.config.openshift.io",
        file: Some(
            "config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_infrastructures-Default.crd.yaml",
        ),
    },
    Kind { name: "awsplacementgroups.machine.openshift.io", file: None },
];

/// What a definition says, apart from words for people.
type Facts = BTreeMap<String, String>;

impl Kind {
    /// Compares ours with theirs; the text says what differs.
    pub fn compare(&self) -> Result<Option<String>> {
        let ours = fleetwright_api::crds()
            .into_iter()
            .find(|crd| crd.metadata.name.as_deref() == Some(self.name))
            .with_context(|| format!("we do not define {}", self.name))?;
        let ours = facts(&serde_json::to_value(ours)?);
        let accepted = accepted(self.name)?;
        Ok(difference(&ours, &self.theirs()?, &accepted))
    }

    fn theirs(&self) -> Result<Facts> {
        let read = |path: &Path| {
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
        };
        let Some(file) = self.file else {
            return written(&read(&folder().join(format!("{}.txt", self.name)))?);
        };
        let text = read(&module()?.join(file))?;
        let definition: Value = serde_saphyr::from_str(&text).context("not YAML")?;
        Ok(facts(&definition))
    }
}

/// The folder of the Go module that holds them all; to ask for it takes a while.
fn module() -> Result<PathBuf> {
    static MODULE: OnceLock<PathBuf> = OnceLock::new();
    if let Some(module) = MODULE.get() {
        return Ok(module.clone());
    }
    let module = binaries::crd_module()?;
    Ok(MODULE.get_or_init(|| module).clone())
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("crds")
}

/// Reads lines of `fact: value`.
fn written(text: &str) -> Result<Facts> {
    lines(text)
        .map(|line| {
            let (fact, value) =
                line.split_once(": ").with_context(|| format!("not `fact: value`: {line}"))?;
            Ok((fact.to_owned(), value.to_owned()))
        })
        .collect()
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
}

/// Reads the lines of `kind | fact | reason` that speak of one kind.
fn accepted(name: &str) -> Result<Vec<(Regex, String)>> {
    let path = folder().join("accepted-differences.txt");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut accepted = Vec::new();
    for line in lines(&text) {
        let fields: Vec<&str> = line.split(" | ").map(str::trim).collect();
        let [kind, fact, reason] = fields[..] else {
            return None.with_context(|| format!("not `kind | fact | reason`: {line}"));
        };
        ensure!(reason.len() > 10, "an accepted difference needs a reason: {line}");
        ensure!(KINDS.iter().any(|known| known.name == kind), "no such kind: {line}");
        if kind == name {
            accepted.push((wildcard(fact)?, line.to_owned()));
        }
    }
    Ok(accepted)
}

/// Takes a definition apart.
fn facts(definition: &Value) -> Facts {
    let mut facts = Facts::new();
    if let Some(annotations) = definition["metadata"]["annotations"].as_object() {
        for (key, value) in annotations {
            facts.insert(format!("annotation {key}"), value.to_string());
        }
    }
    let spec = &definition["spec"];
    for key in ["group", "scope", "names"] {
        facts.insert(key.to_owned(), spec[key].to_string());
    }
    for version in spec["versions"].as_array().into_iter().flatten() {
        let name = version["name"].as_str().unwrap_or_default();
        for key in ["served", "storage", "subresources"] {
            facts.insert(format!("version {name} {key}"), version[key].to_string());
        }
        let columns = version["additionalPrinterColumns"].as_array();
        for (place, column) in columns.into_iter().flatten().enumerate() {
            let mut column = column.clone();
            if let Some(column) = column.as_object_mut() {
                column.remove("description");
            }
            facts.insert(format!("column {place}"), column.to_string());
        }
        schema_facts("", &version["schema"]["openAPIV3Schema"], &mut facts);
    }
    facts
}

/// Takes a schema apart; each keyword of each field is one fact.
fn schema_facts(path: &str, schema: &Value, facts: &mut Facts) {
    let Some(keywords) = schema.as_object() else { return };
    for (keyword, value) in keywords {
        match (keyword.as_str(), value) {
            ("description", _) => {}
            ("properties", Value::Object(fields)) => {
                for (name, field) in fields {
                    let dot = if path.is_empty() { "" } else { "." };
                    schema_facts(&format!("{path}{dot}{name}"), field, facts);
                }
            }
            ("items", item) => schema_facts(&format!("{path}[]"), item, facts),
            ("additionalProperties", item @ Value::Object(_)) => {
                schema_facts(&format!("{path}{{}}"), item, facts);
            }
            ("required", Value::Array(fields)) => {
                // The order says nothing.
                let fields: BTreeSet<&str> = fields.iter().filter_map(Value::as_str).collect();
                facts.insert(fact(path, "required"), format!("{fields:?}"));
            }
            // The type of the API has floating-point limits: 7 and 7.0 are one.
            (keyword, Value::Number(number)) if number.as_f64().is_some() => {
                facts.insert(fact(path, keyword), number.as_f64().unwrap_or_default().to_string());
            }
            (keyword, value) => {
                facts.insert(fact(path, keyword), value.to_string());
            }
        }
    }
}

fn fact(path: &str, keyword: &str) -> String {
    if path.is_empty() { keyword.to_owned() } else { format!("{path} {keyword}") }
}

/// The differences that nobody accepted, and the acceptances that nothing needs.
fn difference(ours: &Facts, theirs: &Facts, accepted: &[(Regex, String)]) -> Option<String> {
    let mut text = String::new();
    let mut used = BTreeSet::new();
    let every: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    for fact in every {
        let (our, their) = (ours.get(fact), theirs.get(fact));
        if our == their {
            continue;
        }
        if let Some(place) = accepted.iter().position(|(pattern, _)| pattern.is_match(fact)) {
            used.insert(place);
            continue;
        }
        let none = "none".to_owned();
        let (our, their) = (our.unwrap_or(&none), their.unwrap_or(&none));
        let _ = writeln!(text, "{fact}: ours {our}, theirs {their}");
    }
    for (place, (_, line)) in accepted.iter().enumerate() {
        if !used.contains(&place) {
            let _ = writeln!(text, "accepted, but there is no such difference; remove: {line}");
        }
    }
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(schema: &Value) -> Facts {
        facts(&json!({"spec": {"versions": [{
            "name": "v1", "schema": {"openAPIV3Schema": schema},
        }]}}))
    }

    #[test]
    fn a_change_of_any_keyword_is_seen_and_words_are_not() {
        let ours = definition(&json!({"description": "a", "properties": {
            "items": {"type": "array", "items": {"type": "string", "maxLength": 3}},
            "description": {"type": "string"},
        }}));
        let theirs = definition(&json!({"description": "b", "properties": {
            "items": {"type": "array", "items": {"type": "string", "maxLength": 4}},
            "other": {"type": "string"},
        }}));
        let text = difference(&ours, &theirs, &[]).expect("they differ");
        let found: Vec<&str> = text.lines().collect();
        assert_eq!(
            found,
            [
                "description type: ours \"string\", theirs none",
                "items[] maxLength: ours 3, theirs 4",
                "other type: ours none, theirs \"string\"",
            ]
        );
    }

    #[test]
    fn an_acceptance_must_be_needed() {
        let facts = definition(&json!({"type": "object"}));
        let accepted = [(wildcard("spec.*").expect("a pattern"), "the line".to_owned())];
        let text = difference(&facts, &facts, &accepted).expect("says so");
        assert!(text.contains("the line"), "{text}");
    }
}
