//! Every kind against what the real server answered.
//!
//! `testdata/recorded.json` holds requests and what kube-apiserver 1.37.1 made of them: the
//! object that it stored, or the causes that it gave, the cells of its table, its warnings.

use std::collections::{BTreeMap, BTreeSet};

use fleetwright_clock::Random;
use fleetwright_kschema::field::FieldError;
use serde_json::{Value, json};

use super::{Builtin, Find, Kind, NotAllocated, Pool, builtins, tests::context};
use crate::{gvk::GroupVersionKind, object};

/// What the handler sets.
const HANDLED: &[&str] =
    &["uid", "resourceVersion", "creationTimestamp", "generation", "namespace", "managedFields"];

fn kinds() -> BTreeMap<String, Builtin> {
    builtins()
        .into_iter()
        .map(|builtin| (format!("{}/{}", builtin.gvk.group_version(), builtin.gvk.kind), builtin))
        .collect()
}

fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    for key in HANDLED {
        object::remove(&mut object, &["metadata", key]);
    }
    object
}

fn causes(errors: &[FieldError]) -> Vec<String> {
    let mut causes: Vec<String> =
        errors.iter().map(|e| without_uids(&format!("{}: {}", e.path, e.body()))).collect();
    causes.sort();
    causes
}

fn recorded_causes(entry: &Value) -> Vec<String> {
    let mut causes: Vec<String> = object::list(entry, &["causes"])
        .iter()
        .map(|cause| {
            let text = |i: usize| cause.get(i).and_then(Value::as_str).unwrap_or_default();
            without_uids(&format!("{}: {}", text(0), text(1)))
        })
        .collect();
    causes.sort();
    causes
}

/// The identifiers of refused objects are not known, only where they stood.
fn without_uids(text: &str) -> String {
    let uid = regex::Regex::new("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").unwrap();
    uid.replace_all(text, "UID").into_owned()
}

fn lines(found: &[String], recorded: &[String]) -> String {
    let missing =
        recorded.iter().filter(|cause| !found.contains(cause)).map(|c| format!("  - {c}"));
    let extra = found.iter().filter(|cause| !recorded.contains(cause)).map(|c| format!("  + {c}"));
    missing.chain(extra).collect::<Vec<_>>().join("\n")
}

/// What differs between an answer of ours and the recorded one; empty if nothing does.
fn compare(kind: &dyn Kind, entry: &Value, made: &Value, errors: &[FieldError]) -> String {
    let found = causes(errors);
    let recorded = recorded_causes(entry);
    if found != recorded {
        return lines(&found, &recorded);
    }
    let Some(stored) = entry.get("object") else { return String::new() };
    let (made, wanted) = (bare(made), bare(stored));
    if made != wanted {
        return format!("  made   {made}\n  wanted {wanted}");
    }
    let now = "2026-11-15T12:00:00Z".parse().unwrap();
    let columns = kind.columns().unwrap_or_default();
    let cells = kind.cells(stored, now);
    let recorded = object::list(entry, &["cells"]);
    for (i, column) in columns.iter().enumerate() {
        // Ages depend on when the answer was given.
        let timed = matches!(column.name.as_str(), "Age" | "Last Seen" | "First Seen" | "Duration");
        if !timed && cells.get(i) != recorded.get(i) && !recorded.is_empty() {
            return format!("  {}: {:?}, wanted {:?}", column.name, cells.get(i), recorded.get(i));
        }
    }
    String::new()
}

fn create(builtin: &Builtin, entry: &Value) -> String {
    let kind = builtin.kind.as_ref();
    let mut object = entry["create"].clone();
    for key in ["uid", "creationTimestamp"] {
        let value = object::get(entry, &["object", "metadata", key]).cloned();
        object::set(&mut object, &["metadata", key], value.unwrap_or(json!("UID")));
    }
    if builtin.namespaced {
        object::set(&mut object, &["metadata", "namespace"], "default");
    }
    kind.default(&mut object);
    let pool = Pool { taken: &BTreeSet::new(), random: &Random::seeded(1) };
    if let Err(NotAllocated::Invalid(errors)) = kind.allocate(&mut object, None, &pool) {
        return compare(kind, entry, &object, &errors);
    }
    // Which address it gets is left to chance.
    for key in ["clusterIP", "clusterIPs"] {
        let recorded = object::get(entry, &["object", "spec", key]).filter(|v| !v.is_null());
        if let Some(recorded) = recorded.filter(|_| kind.allocates()) {
            object::set(&mut object, &["spec", key], recorded.clone());
        }
    }
    kind.prepare_create(&context(), &mut object);
    let errors = kind.validate_create(&object);
    let warnings = json!(kind.warnings(&object, None));
    kind.canonicalize(&mut object);
    let difference = compare(kind, entry, &object, &errors);
    let recorded = entry.get("warnings").cloned().unwrap_or(json!([]));
    let Some(stored) = entry.get("object").filter(|_| difference.is_empty()) else {
        return difference;
    };
    if warnings != recorded {
        return format!("  warnings {warnings}\n  wanted   {recorded}");
    }
    if kind.has_generation() != (object::generation(stored) == 1) {
        return format!("  generation {}", object::generation(stored));
    }
    String::new()
}

fn step(kind: &dyn Kind, step: &Value) -> String {
    let (mut new, mut old) = (step["new"].clone(), step["old"].clone());
    kind.default(&mut old);
    kind.default(&mut new);
    let errors = if step["step"] == "status" {
        kind.prepare_status_update(&context(), &mut new, &old);
        kind.validate_status_update(&new, &old)
    } else {
        kind.prepare_update(&context(), &mut new, &old);
        kind.validate_update(&new, &old)
    };
    kind.canonicalize(&mut new);
    let difference = compare(kind, step, &new, &errors);
    let Some(stored) = step.get("object").filter(|_| difference.is_empty()) else {
        return difference;
    };
    if step["step"] == "update" {
        let counted = object::generation(stored) != object::generation(&old);
        if kind.has_generation() && kind.generation_changes(&new, &old) != counted {
            return format!("  the generation counts: {counted}");
        }
        let warnings = json!(kind.warnings(&new, Some(&old)));
        if warnings != step["warnings"] {
            return format!("  warnings {warnings}\n  wanted   {}", step["warnings"]);
        }
    }
    String::new()
}

/// There is nothing to be found.
struct Nothing;

impl Find for Nothing {
    fn named(&self, _: &GroupVersionKind, _: &str) -> Option<Value> {
        None
    }

    fn all(&self, _: &GroupVersionKind) -> Vec<Value> {
        Vec::new()
    }
}

#[test]
fn kinds_answer_as_the_real_server() {
    let entries: Value = serde_json::from_str(include_str!("testdata/recorded.json")).unwrap();
    let kinds = kinds();
    let mut failures = Vec::new();
    for entry in entries.as_array().unwrap() {
        let Some(builtin) = kinds.get(entry["kind"].as_str().unwrap()) else { continue };
        if let Some(refused) = entry.get("refused") {
            let mut object = entry["create"].clone();
            builtin.kind.default(&mut object);
            let reason = builtin.kind.admit_create(&mut object, &Nothing).unwrap_err();
            let message = refused[1].as_str().unwrap();
            assert!(message.ends_with(&format!(" is forbidden: {reason}")), "{message}: {reason}");
            continue;
        }
        let difference = create(builtin, entry);
        if !difference.is_empty() {
            failures.push(format!("{} {}\n{difference}", entry["kind"], entry["create"]));
        }
        for recorded in object::list(entry, &["steps"]) {
            let difference = step(builtin.kind.as_ref(), recorded);
            if !difference.is_empty() && recorded.get("refused").is_none() {
                let what = &recorded["step"];
                failures
                    .push(format!("{} {what} {}\n{difference}", entry["kind"], recorded["new"]));
            }
        }
    }
    assert!(failures.is_empty(), "{} differences:\n{}", failures.len(), failures.join("\n"));
}
