//! Columns of the built-in kinds' tables.
//!
//! Headings and descriptions are part of what the API answers, so they are kept as data.

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::Value;

use super::Column;
use crate::object;

static COLUMNS: LazyLock<BTreeMap<&'static str, Vec<Column>>> =
    LazyLock::new(|| parse(include_str!("data/columns.txt")));

/// The columns of a resource, named as `apps/v1/deployments`.
pub(crate) fn columns(resource: &str) -> Option<Vec<Column>> {
    COLUMNS.get(resource).cloned()
}

fn parse(text: &'static str) -> BTreeMap<&'static str, Vec<Column>> {
    let mut tables = BTreeMap::new();
    let mut current = "";
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix(' ') {
            None => current = line,
            Some(row) => tables.entry(current).or_insert_with(Vec::new).extend(column(row)),
        }
    }
    tables
}

fn column(row: &'static str) -> Option<Column> {
    let mut cells = row.split('\t');
    let name = cells.next()?.to_owned();
    let kind = cells.next()?;
    let format = cells.next()?.to_owned();
    let priority = cells.next()?.parse().ok()?;
    let description = serde_json::from_str(cells.next()?).ok()?;
    Some(Column { name, kind, format, description, priority })
}

/// The name of an object, as a cell.
pub(crate) fn name(object: &Value) -> Value {
    object::name(object).into()
}

/// The text at `path`, as a cell.
pub(crate) fn text(object: &Value, path: &[&str]) -> Value {
    object::text(object, path).into()
}

/// The text at `path`, or `otherwise` when there is none.
pub(crate) fn text_or(object: &Value, path: &[&str], otherwise: &str) -> Value {
    match object::text(object, path) {
        "" => otherwise.into(),
        text => text.into(),
    }
}

/// The number at `path`, or 0.
pub(crate) fn number(object: &Value, path: &[&str]) -> Value {
    object::integer(object, path).unwrap_or_default().into()
}

/// How many entries the list or map at `path` has.
pub(crate) fn count(object: &Value, path: &[&str]) -> usize {
    match object::get(object, path) {
        Some(Value::Array(items)) => items.len(),
        Some(Value::Object(entries)) => entries.len(),
        _ => 0,
    }
}

/// The names and the images of containers, each joined by commas.
pub(crate) fn containers(object: &Value, path: &[&str]) -> [Value; 2] {
    ["name", "image"].map(|key| {
        let texts: Vec<&str> =
            object::list(object, path).iter().map(|c| object::text(c, &[key])).collect();
        texts.join(",").into()
    })
}

/// Labels as `a=1,b=2`, or `<none>`.
pub(crate) fn labels(labels: Option<&Value>) -> Value {
    let pairs: Vec<String> = labels
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if pairs.is_empty() { "<none>".into() } else { pairs.join(",").into() }
}

/// A label selector as one line: requirements sorted by key.
pub(crate) fn selector_line(selector: Option<&Value>) -> String {
    let Some(selector) = selector else { return String::new() };
    let mut parts: Vec<(String, String)> = Vec::new();
    if let Some(labels) = selector.get("matchLabels").and_then(Value::as_object) {
        for (key, value) in labels {
            parts.push((key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())));
        }
    }
    for requirement in object::list(selector, &["matchExpressions"]) {
        let key = object::text(requirement, &["key"]);
        let mut values: Vec<&str> =
            object::list(requirement, &["values"]).iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let line = match object::text(requirement, &["operator"]) {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        parts.push((key.to_owned(), line));
    }
    parts.sort_by(|a, b| a.0.cmp(&b.0));
    let lines: Vec<String> = parts.into_iter().map(|(_, line)| line).collect();
    lines.join(",")
}

/// A label selector as a cell: `<none>` when it says nothing.
pub(crate) fn selector(selector: Option<&Value>) -> Value {
    match selector_line(selector).as_str() {
        "" => "<none>".into(),
        line => line.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_table_is_read() {
        let pods = columns("v1/pods").unwrap();
        assert_eq!(pods[0].name, "Name");
        assert_eq!(pods[0].format, "name");
        assert_eq!(pods[8].priority, 1);
        assert!(COLUMNS.len() > 25);
        assert!(COLUMNS.values().all(|columns| columns.len() > 1));
    }

    #[test]
    fn selectors_are_one_line() {
        let both = json!({
            "matchLabels": {"b": "1"},
            "matchExpressions": [
                {"key": "a", "operator": "In", "values": ["y", "x"]},
                {"key": "c", "operator": "DoesNotExist"},
            ],
        });
        assert_eq!(selector_line(Some(&both)), "a in (x,y),b=1,!c");
        assert_eq!(selector(None), json!("<none>"));
    }
}
