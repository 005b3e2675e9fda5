//! How the real server's own types look in its messages.
//!
//! Some messages carry a whole struct, printed as JSON from the types that the server works
//! with: fields under their Go names, in declaration order, all of them present. One message
//! even carries the difference of two such structs.

mod unified;

use std::{collections::BTreeMap, sync::LazyLock};

use fleetwright_kschema::{field::BadValue, gotext};
use serde_json::Value;

/// A struct nests less deep than this.
const MAX_DEPTH: usize = 64;

type Fields = Vec<(&'static str, &'static str)>;

static TYPES: LazyLock<BTreeMap<&'static str, Fields>> =
    LazyLock::new(|| parse(include_str!("../data/internal.txt")));

fn parse(text: &'static str) -> BTreeMap<&'static str, Fields> {
    let mut types: BTreeMap<&'static str, Fields> = BTreeMap::new();
    let mut current = "";
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix("type ") {
            current = name;
            types.insert(name, Vec::new());
        } else if let Some(field) = line.trim().split_once(' ') {
            types.entry(current).or_default().push(field);
        }
    }
    types
}

/// A value of the type `name` as a message prints it.
pub(crate) fn printed(name: &str, value: &Value) -> BadValue {
    let mut text = String::new();
    write(name, Some(value), Layout::Compact, 0, &mut text);
    BadValue::Rendered(text)
}

/// The lines that differ between two values of the type `name`.
pub(crate) fn difference(name: &str, old: &Value, new: &Value) -> String {
    let pretty = |value| {
        let mut text = String::new();
        write(name, Some(value), Layout::Indented, 0, &mut text);
        text
    };
    unified::diff(&pretty(old), &pretty(new))
}

#[derive(Clone, Copy)]
enum Layout {
    Compact,
    Indented,
}

impl Layout {
    fn line(self, depth: usize, out: &mut String) {
        if matches!(self, Self::Indented) {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', depth));
        }
    }

    fn colon(self) -> &'static str {
        if matches!(self, Self::Indented) { ": " } else { ":" }
    }
}

fn write(kind: &str, value: Option<&Value>, layout: Layout, depth: usize, out: &mut String) {
    let value = value.filter(|value| !value.is_null());
    if depth > MAX_DEPTH {
        return;
    }
    if let Some(inner) = kind.strip_prefix('*') {
        match value {
            Some(value) => write(inner, Some(value), layout, depth, out),
            None => out.push_str("null"),
        }
    } else if let Some(inner) = kind.strip_prefix("[]") {
        match value.and_then(Value::as_array) {
            Some(items) if !items.is_empty() => {
                let items = items.iter().map(|item| (None, inner, Some(item)));
                write_all('[', items, ']', layout, depth, out);
            }
            _ => out.push_str("null"),
        }
    } else if let Some(inner) = kind.strip_prefix("{}") {
        match value.and_then(Value::as_object) {
            Some(entries) if !entries.is_empty() => {
                let entries =
                    entries.iter().map(|(key, value)| (Some(key.as_str()), inner, Some(value)));
                write_all('{', entries, '}', layout, depth, out);
            }
            _ => out.push_str("null"),
        }
    } else if let Some(fields) = TYPES.get(kind) {
        let fields = fields
            .iter()
            .map(|(name, kind)| (Some(*name), *kind, value.and_then(|value| find(value, name))));
        write_all('{', fields, '}', layout, depth, out);
    } else {
        out.push_str(&match (value, kind) {
            (Some(value @ (Value::Object(_) | Value::Array(_))), _)
                if matches!(layout, Layout::Indented) =>
            {
                indented(value, depth)
            }
            (Some(value), _) => gotext::json(value),
            (None, "string") => "\"\"".to_owned(),
            (None, "int") => "0".to_owned(),
            (None, "bool") => "false".to_owned(),
            (None, _) => "null".to_owned(),
        });
    }
}

fn indented(value: &Value, depth: usize) -> String {
    let mut out = String::new();
    match value {
        Value::Array(items) if !items.is_empty() => {
            let items = items.iter().map(|item| (None, "value", Some(item)));
            write_all('[', items, ']', Layout::Indented, depth, &mut out);
        }
        Value::Object(entries) if !entries.is_empty() => {
            let entries =
                entries.iter().map(|(key, value)| (Some(key.as_str()), "value", Some(value)));
            write_all('{', entries, '}', Layout::Indented, depth, &mut out);
        }
        _ => out.push_str(&gotext::json(value)),
    }
    out
}

fn write_all<'a>(
    open: char,
    parts: impl Iterator<Item = (Option<&'a str>, &'a str, Option<&'a Value>)>,
    close: char,
    layout: Layout,
    depth: usize,
    out: &mut String,
) {
    out.push(open);
    let mut first = true;
    for (key, kind, value) in parts {
        if !first {
            out.push(',');
        }
        first = false;
        layout.line(depth + 1, out);
        if let Some(key) = key {
            out.push_str(&gotext::json(&key.into()));
            out.push_str(layout.colon());
        }
        write(kind, value, layout, depth + 1, out);
    }
    if !first {
        layout.line(depth, out);
    }
    out.push(close);
}

/// The field of a JSON object that has a Go name; they differ in case.
fn find<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let name = if name == "DeprecatedServiceAccount" { "serviceAccount" } else { name };
    value
        .as_object()?
        .iter()
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn structs_print_whole_and_in_order() {
        let taint = json!({"key": "a", "effect": "NoSchedule"});
        assert_eq!(
            printed("core.Taint", &taint).to_string(),
            "{\"Key\":\"a\",\"Value\":\"\",\"Effect\":\"NoSchedule\",\"TimeAdded\":null}"
        );
    }

    #[test]
    fn differences_are_shown_in_context() {
        let old = json!({"key": "a", "effect": "NoSchedule"});
        let new = json!({"key": "a", "effect": "NoExecute"});
        assert_eq!(
            difference("core.Taint", &old, &new),
            "@@ -1,6 +1,6 @@\n {\n  \"Key\": \"a\",\n  \"Value\": \"\",\n- \"Effect\": \
             \"NoSchedule\",\n+ \"Effect\": \"NoExecute\",\n  \"TimeAdded\": null\n }\n"
        );
    }
}
