//! Makes the answers of two servers comparable.
//!
//! What differs from run to run becomes a placeholder that keeps what must agree: a uid or a
//! revision becomes the step that showed it first, a time its format. Two revisions that are new
//! in one step keep their order, and one that is older than what was seen before says so. Since
//! placeholders name steps, one differing answer does not spoil those after it.

use std::collections::{BTreeMap, BTreeSet};

use regex::{Captures, Regex};
use serde_json::Value;

use crate::script::transcript::{Body, Entry};

/// Normalises a whole transcript in place and leaves what the script wants to see of it.
pub fn normalise(entries: &mut [Entry]) {
    let mut revisions = Revisions::default();
    let mut text = Text::default();
    for (step, entry) in entries.iter_mut().enumerate() {
        revisions.note(step + 1, &entry.body);
        for value in documents_mut(&mut entry.body) {
            structure(value, &revisions);
            text.note_generated_names(value);
        }
        entry.select();
        text.next_step();
        if let Body::Text(body) = &mut entry.body {
            *body = text.normalise(body);
        }
        for value in documents_mut(&mut entry.body) {
            text.normalise_all(value);
        }
        for warning in &mut entry.warnings {
            *warning = text.normalise(warning);
        }
    }
}

/// The revisions seen so far and their placeholders.
#[derive(Debug, Default)]
struct Revisions {
    placeholders: BTreeMap<u64, String>,
}

impl Revisions {
    /// Takes in the revisions of one step.
    fn note(&mut self, step: usize, body: &Body) {
        let mut found = BTreeSet::new();
        for value in documents(body) {
            collect_revisions(value, &mut found);
        }
        found.retain(|revision| !self.placeholders.contains_key(revision));
        let newest = self.placeholders.last_key_value().map_or(0, |(revision, _)| *revision);
        for (revision, place) in found.into_iter().zip(1..) {
            let age = if revision < newest { "older revision" } else { "revision" };
            self.placeholders.insert(revision, format!("<{age} {step}.{place}>"));
        }
    }
}

fn documents(body: &Body) -> Vec<&Value> {
    match body {
        Body::Json(value) => vec![value],
        Body::Events { events, .. } => events.iter().collect(),
        Body::Text(_) | Body::Nothing => Vec::new(),
    }
}

fn documents_mut(body: &mut Body) -> Vec<&mut Value> {
    match body {
        Body::Json(value) => vec![value],
        Body::Events { events, .. } => events.iter_mut().collect(),
        Body::Text(_) | Body::Nothing => Vec::new(),
    }
}

/// Lists, tables and bookmarks carry the revision of the moment, which other writers move.
fn is_momentary(value: &Value) -> bool {
    value.get("items").is_some()
        || value.get("rows").is_some()
        || value["kind"].as_str().is_some_and(|kind| kind.ends_with("List") || kind == "Table")
}

fn revision(value: &Value) -> Option<u64> {
    value["metadata"]["resourceVersion"].as_str()?.parse().ok()
}

fn collect_revisions(value: &Value, found: &mut BTreeSet<u64>) {
    if value["type"] == "BOOKMARK" {
        return;
    }
    if !is_momentary(value)
        && let Some(revision) = revision(value)
    {
        found.insert(revision);
    }
    match value {
        Value::Object(map) => map.values().for_each(|child| collect_revisions(child, found)),
        Value::Array(items) => items.iter().for_each(|child| collect_revisions(child, found)),
        _ => {}
    }
}

fn highest_revision(value: &Value) -> u64 {
    let mut found = BTreeSet::new();
    collect_revisions(value, &mut found);
    found.last().copied().unwrap_or(0)
}

/// Replaces what is known by its place in an object.
fn structure(value: &mut Value, revisions: &Revisions) {
    if value["type"] == "BOOKMARK" {
        if let Some(revision) = value.pointer_mut("/object/metadata/resourceVersion") {
            *revision = "<revision of the moment>".into();
        }
    } else if is_momentary(value) {
        let highest = highest_revision(value);
        let replacement = match revision(value) {
            Some(0) | None => None,
            Some(own) if own >= highest => Some("<revision of the moment>"),
            Some(_) => Some("<a revision older than the list's own items>"),
        };
        if let Some(replacement) = replacement {
            value["metadata"]["resourceVersion"] = replacement.into();
        }
        if value["metadata"]["continue"].as_str().is_some_and(|token| !token.is_empty()) {
            value["metadata"]["continue"] = "<continue token>".into();
        }
    } else if let Some(placeholder) =
        revision(value).and_then(|revision| revisions.placeholders.get(&revision))
    {
        value["metadata"]["resourceVersion"] = placeholder.as_str().into();
    }
    if let Some(entries) =
        value.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut)
    {
        // Their order follows their times, to the second: not the same in each run.
        entries.sort_by_key(|entry| {
            ["operation", "manager", "apiVersion", "subresource"]
                .map(|key| entry[key].as_str().unwrap_or_default().to_owned())
        });
    }
    if let Some(cells) = value.get_mut("cells").and_then(Value::as_array_mut) {
        cells.iter_mut().for_each(age);
    }
    match value {
        Value::Object(map) => map.values_mut().for_each(|child| structure(child, revisions)),
        Value::Array(items) => items.iter_mut().for_each(|child| structure(child, revisions)),
        _ => {}
    }
}

/// The age of a row in a table.
fn age(cell: &mut Value) {
    let Some(text) = cell.as_str() else { return };
    let number = text.trim_end_matches(['s', 'm', 'h', 'd']);
    if text.len() == number.len() + 1 && number.parse::<u32>().is_ok() {
        *cell = "<age>".into();
    }
}

/// Replaces what can be anywhere in a text. Remembers uids and generated names, so that each
/// keeps its number.
#[derive(Debug)]
pub struct Text {
    uid: Regex,
    time: Regex,
    address: Regex,
    revision: Regex,
    record: Regex,
    certificate: Regex,
    object: Regex,
    step: usize,
    new_in_step: usize,
    uids: BTreeMap<String, String>,
    generated: BTreeMap<String, String>,
}

impl Default for Text {
    fn default() -> Self {
        #[expect(clippy::unwrap_used, reason = "the patterns are constants, tested below")]
        let pattern = |text: &str| Regex::new(text).unwrap();
        Self {
            certificate: pattern(
                r"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----",
            ),
            record: pattern(r"(ResourceVersion in (?:the precondition|record) )\(\d+\)"),
            uid: pattern(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"),
            // Times before this product existed are literals of a script and stay.
            time: pattern(r"\b20(?:2[6-9]|[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"),
            address: pattern(r"127\.0\.0\.1:\d+"),
            // Revisions in messages: "... resource version: 1 (234)", "ResourceVersion in
            // object meta: 12", "..., current: 34".
            revision: pattern(
                r"(?i)((?:too old|too large) resource ?version: |ResourceVersion in object meta: |ResourceVersion in precondition: |, current: )(\d+)(?: \((\d+)\))?",
            ),
            // A patch that leads to an impossible object is told with the whole object, revision
            // and times included, in the order of the real server's own structs.
            object: pattern(r#"Invalid value: "\{\\"(?:[^"\\]|\\.)*\}""#),
            step: 0,
            new_in_step: 0,
            uids: BTreeMap::new(),
            generated: BTreeMap::new(),
        }
    }
}

impl Text {
    /// Replaces uids, times, addresses, revisions and generated names.
    pub fn normalise(&mut self, text: &str) -> String {
        let mut result = self
            .time
            .replace_all(text, |found: &Captures<'_>| {
                found.get(1).map_or("<time>".to_owned(), |fraction| {
                    format!("<time with {} digits>", fraction.len() - 1)
                })
            })
            .into_owned();
        result = self.object.replace_all(&result, "Invalid value: <an object>").into_owned();
        result = self.certificate.replace_all(&result, "<certificate>").into_owned();
        result = self.address.replace_all(&result, "<address>").into_owned();
        result = self
            .revision
            .replace_all(&result, |found: &Captures<'_>| {
                let second = if found.get(3).is_some() { " (<revision>)" } else { "" };
                format!("{}<revision>{second}", &found[1])
            })
            .into_owned();
        result = self.record.replace_all(&result, "$1(<revision>)").into_owned();
        let (uids, step, new) = (&mut self.uids, self.step, &mut self.new_in_step);
        result = self
            .uid
            .replace_all(&result, |found: &Captures<'_>| {
                if let Some(placeholder) = uids.get(&found[0]) {
                    return placeholder.clone();
                }
                *new += 1;
                let placeholder = format!("<uid {step}.{new}>");
                uids.insert(found[0].to_owned(), placeholder.clone());
                placeholder
            })
            .into_owned();
        for (name, placeholder) in &self.generated {
            if result.contains(name.as_str()) {
                result = result.replace(name.as_str(), placeholder);
            }
        }
        result
    }

    /// Begins the next step; placeholders name the step that showed a thing first.
    pub fn next_step(&mut self) {
        self.step += 1;
        self.new_in_step = 0;
    }

    /// Numbers the names that a server made up.
    fn note_generated_names(&mut self, value: &Value) {
        let metadata = &value["metadata"];
        if let (Some(prefix), Some(name)) =
            (metadata["generateName"].as_str(), metadata["name"].as_str())
            && let Some(suffix) = name.strip_prefix(prefix)
            && !suffix.is_empty()
        {
            let next = self.generated.len() + 1;
            self.generated
                .entry(name.to_owned())
                .or_insert_with(|| format!("{prefix}<{} letters, {next}>", suffix.len()));
        }
        match value {
            Value::Object(map) => map.values().for_each(|child| self.note_generated_names(child)),
            Value::Array(items) => items.iter().for_each(|child| self.note_generated_names(child)),
            _ => {}
        }
    }

    fn normalise_all(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.normalise(text),
            Value::Array(items) => items.iter_mut().for_each(|child| self.normalise_all(child)),
            Value::Object(map) => {
                // Owner references put uids into the keys of managed fields.
                if map.keys().any(|key| self.uid.is_match(key)) {
                    *map = std::mem::take(map)
                        .into_iter()
                        .map(|(key, child)| (self.normalise(&key), child))
                        .collect();
                }
                map.values_mut().for_each(|child| self.normalise_all(child));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::script::transcript::Selection;

    fn entry(body: Value) -> Entry {
        Entry {
            title: "t".into(),
            request: "GET /x".into(),
            code: Some(200),
            content_type: None,
            warnings: Vec::new(),
            body: Body::Json(body),
            selection: Selection::default(),
        }
    }

    #[test]
    fn revisions_keep_their_order() {
        let object = |revision: &str| json!({"metadata": {"resourceVersion": revision}});
        let mut entries = [entry(object("1200")), entry(object("90")), entry(object("1200"))];
        normalise(&mut entries);
        let found: Vec<_> = entries
            .iter()
            .map(|entry| documents(&entry.body)[0]["metadata"]["resourceVersion"].clone())
            .collect();
        assert_eq!(found, ["<revision 1.1>", "<older revision 2.1>", "<revision 1.1>"]);
    }

    #[test]
    fn a_list_must_not_be_older_than_its_items() {
        let list = |revision: &str| {
            entry(json!({"kind": "PodList", "metadata": {"resourceVersion": revision},
                "items": [{"metadata": {"resourceVersion": "5"}}]}))
        };
        let mut entries = [list("9"), list("4")];
        normalise(&mut entries);
        assert!(entries[0].render().contains("of the moment"));
        assert!(entries[1].render().contains("older than"));
    }

    #[test]
    fn texts_lose_what_differs_from_run_to_run() {
        let mut text = Text::default();
        let uid = "0f0f0f0f-1111-2222-3333-444444444444";
        text.next_step();
        assert_eq!(text.normalise(uid), "<uid 1.1>");
        assert_eq!(
            text.normalise("f:x,uid=0a0f0f0f-1111-2222-3333-444444444444"),
            "f:x,uid=<uid 1.2>"
        );
        assert_eq!(text.normalise(&format!("again {uid}")), "again <uid 1.1>");
        assert_eq!(
            text.normalise("2026-11-15T08:00:00Z 2030-01-01T00:00:00.123456Z 2020-01-01T00:00:00Z"),
            "<time> <time with 6 digits> 2020-01-01T00:00:00Z"
        );
        assert_eq!(
            text.normalise("too old resource version: 1 (234)"),
            "too old resource version: <revision> (<revision>)"
        );
        assert_eq!(
            text.normalise("Too large resource version: 1000, current: 234"),
            "Too large resource version: <revision>, current: <revision>"
        );
    }

    #[test]
    fn objects_in_messages_are_left_out() {
        let mut text = Text::default();
        assert_eq!(
            text.normalise(r#"patch: Invalid value: "{\"a\":[\"x}\"],\"b\":{}}": bad"#),
            "patch: Invalid value: <an object>: bad"
        );
        let plain = r#"Invalid value: {"c":"d"}: `selector` does not match"#;
        assert_eq!(text.normalise(plain), plain);
    }

    #[test]
    fn generated_names_are_numbered() {
        let object = json!({"metadata": {"generateName": "a-", "name": "a-x7k2p"}});
        let mut entries = [entry(object), entry(json!({"message": "pods \"a-x7k2p\" not found"}))];
        normalise(&mut entries);
        assert!(entries[0].render().contains("a-<5 letters, 1>"));
        assert!(entries[1].render().contains("pods \\\"a-<5 letters, 1>\\\""));
    }

    #[test]
    fn ages_are_replaced_in_cells_only() {
        let mut entries = [entry(json!({"cells": ["a", "17s", 5, "12", "3m4s"], "x": "17s"}))];
        normalise(&mut entries);
        let Body::Json(value) = &entries[0].body else { panic!("not JSON") };
        assert_eq!(value["cells"][1], "<age>");
        assert_eq!(value["cells"][3], "12");
        assert_eq!(value["x"], "17s");
    }
}
