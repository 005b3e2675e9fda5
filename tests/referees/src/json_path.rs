//! Paths into JSON, as short as kubectl's: `.spec.containers[0].name`, `.items[*].metadata`,
//! `.status.conditions[?type=Ready].status`, `.metadata.labels['a.b/c']`.

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// A parsed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPath {
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Key(String),
    Index(usize),
    All,
    Where { key: String, value: String },
}

impl JsonPath {
    /// Reads a path; `.` alone is the whole document.
    pub fn parse(text: &str) -> Result<Self> {
        let mut segments = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('.') {
                let end = after.find(['.', '[']).unwrap_or(after.len());
                if end > 0 {
                    segments.push(Segment::Key(after[..end].to_owned()));
                }
                rest = &after[end..];
            } else if let Some(after) = rest.strip_prefix('[') {
                let end = after.find(']').with_context(|| format!("no ] in {text}"))?;
                segments.push(bracket(&after[..end])?);
                rest = &after[end + 1..];
            } else {
                bail!("a path starts with a dot or a bracket: {text}");
            }
        }
        Ok(Self { segments })
    }

    /// All values at the path.
    pub fn find<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![value];
        for segment in &self.segments {
            found = found.into_iter().flat_map(|value| segment.select(value)).collect();
        }
        found
    }

    /// The first value at the path as plain text: strings without their quotes.
    pub fn text(&self, value: &Value) -> Option<String> {
        self.find(value).first().map(|found| plain(found))
    }

    /// Removes all values at the path; whether there were any.
    pub fn remove(&self, value: &mut Value) -> bool {
        let Some((last, parents)) = self.segments.split_last() else {
            return !std::mem::take(value).is_null();
        };
        remove(value, parents, last)
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

fn bracket(text: &str) -> Result<Segment> {
    if text == "*" {
        return Ok(Segment::All);
    }
    if let Some(condition) = text.strip_prefix('?') {
        let (key, value) = condition
            .split_once('=')
            .with_context(|| format!("a condition needs an equals sign: {text}"))?;
        return Ok(Segment::Where { key: key.to_owned(), value: value.to_owned() });
    }
    if let Some(key) = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) {
        return Ok(Segment::Key(key.to_owned()));
    }
    Ok(Segment::Index(text.parse().with_context(|| format!("not an index: {text}"))?))
}

impl Segment {
    fn select<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match self {
            Self::Key(key) => value.get(key).into_iter().collect(),
            Self::Index(index) => value.get(*index).into_iter().collect(),
            Self::All => match value {
                Value::Array(items) => items.iter().collect(),
                Value::Object(map) => map.values().collect(),
                _ => Vec::new(),
            },
            Self::Where { .. } => value
                .as_array()
                .map(|items| items.iter().filter(|item| self.admits(item)).collect())
                .unwrap_or_default(),
        }
    }

    fn select_mut<'a>(&self, value: &'a mut Value) -> Vec<&'a mut Value> {
        match self {
            Self::Key(key) => value.get_mut(key).into_iter().collect(),
            Self::Index(index) => value.get_mut(*index).into_iter().collect(),
            Self::All => match value {
                Value::Array(items) => items.iter_mut().collect(),
                Value::Object(map) => map.values_mut().collect(),
                _ => Vec::new(),
            },
            Self::Where { .. } => value
                .as_array_mut()
                .map(|items| items.iter_mut().filter(|item| self.admits(item)).collect())
                .unwrap_or_default(),
        }
    }

    fn admits(&self, item: &Value) -> bool {
        match self {
            Self::Where { key, value } => {
                item.get(key).map(plain).is_some_and(|text| text == *value)
            }
            _ => true,
        }
    }
}

fn remove(value: &mut Value, parents: &[Segment], last: &Segment) -> bool {
    if let Some((first, rest)) = parents.split_first() {
        return first
            .select_mut(value)
            .into_iter()
            .fold(false, |removed, child| remove(child, rest, last) | removed);
    }
    match (last, value) {
        (Segment::Key(key), Value::Object(map)) => map.remove(key).is_some(),
        (Segment::Index(index), Value::Array(items)) if *index < items.len() => {
            items.remove(*index);
            true
        }
        (Segment::All, Value::Array(items)) => !std::mem::take(items).is_empty(),
        (Segment::Where { .. }, Value::Array(items)) => {
            let before = items.len();
            items.retain(|item| !last.admits(item));
            items.len() < before
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_find_and_remove() {
        let mut value = json!({"a": [{"n": "x", "v": 1}, {"n": "y", "v": 2}], "b.c/d": "text"});
        let text = |path: &str, value: &Value| JsonPath::parse(path).unwrap().text(value);
        assert_eq!(text(".a[1].v", &value).as_deref(), Some("2"));
        assert_eq!(text(".a[?n=x].v", &value).as_deref(), Some("1"));
        assert_eq!(text("['b.c/d']", &value).as_deref(), Some("text"));
        assert_eq!(text(".absent.deeper", &value), None);
        assert_eq!(JsonPath::parse(".a[*].n").unwrap().find(&value).len(), 2);
        assert!(JsonPath::parse(".a[*].v").unwrap().remove(&mut value));
        assert!(JsonPath::parse(".a[?n=y]").unwrap().remove(&mut value));
        assert!(!JsonPath::parse(".a[7]").unwrap().remove(&mut value));
        assert_eq!(value, json!({"a": [{"n": "x"}], "b.c/d": "text"}));
    }

    #[test]
    fn bad_paths_are_refused() {
        for path in ["a", ".a[", ".a[x]", ".a[?b]"] {
            assert!(JsonPath::parse(path).is_err(), "{path}");
        }
    }
}
