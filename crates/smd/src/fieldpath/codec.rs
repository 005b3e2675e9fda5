//! FieldsV1: the JSON form of a set in `metadata.managedFields`.
//!
//! A level is a JSON object whose keys are `f:name`, `k:{keys}`, `v:value` or `i:index`. An
//! empty object below a key makes the key a member; `.` does so where there are also
//! members below.

use serde_json::{Map, Value};

use super::{Node, PathElement, Set};
use crate::MAX_DEPTH;

/// Why a FieldsV1 document cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldsError {
    /// A level is neither an object nor null.
    #[error("ReadMapCB: expect {{ or n, but found {0}")]
    NotAnObject(String),
    /// A key is too short to name its kind.
    #[error("parsing key as path element: key must be 2 characters long:")]
    ShortKey,
    /// A key does not have a colon after its kind.
    #[error("parsing key as path element: missing colon: {0}")]
    MissingColon(String),
    /// The content of a key cannot be read.
    #[error("parsing key as path element: {0}")]
    BadKey(String),
    /// The document is nested beyond [`MAX_DEPTH`].
    #[error("exceeded max depth")]
    TooDeep,
}

impl Set {
    /// Reads a FieldsV1 document. Kinds of keys that are not known are dropped.
    pub fn from_fields_v1(document: &Value) -> Result<Self, FieldsError> {
        Ok(read_level(document, 0)?.0)
    }

    /// Writes the set as a FieldsV1 document.
    pub fn to_fields_v1(&self) -> Value {
        let mut level = Map::new();
        for node in self.nodes() {
            let mut below = node.children.to_fields_v1();
            if node.member
                && !node.children.is_empty()
                && let Value::Object(below) = &mut below
            {
                below.insert(".".to_owned(), Value::Object(Map::new()));
            }
            level.insert(node.element.to_fields_v1_key(), below);
        }
        Value::Object(level)
    }
}

/// The set of one level, and whether the level's own path is a member.
fn read_level(document: &Value, depth: usize) -> Result<(Set, bool), FieldsError> {
    if depth > MAX_DEPTH {
        return Err(FieldsError::TooDeep);
    }
    let level = match document {
        Value::Object(level) => level,
        Value::Null => return Ok((Set::new(), true)),
        other => {
            let found = other.to_string().chars().take(1).collect();
            return Err(FieldsError::NotAnObject(found));
        }
    };
    let mut member = false;
    let mut nodes = Vec::with_capacity(level.len());
    for (key, below) in level {
        if key == "." {
            member = true;
            continue;
        }
        let Some(element) = PathElement::from_fields_v1_key(key)? else { continue };
        let (children, member) = read_level(below, depth + 1)?;
        nodes.push(Node { element, member, children });
    }
    let set = Set::from_nodes(nodes);
    let member = member || set.is_empty();
    Ok((set, member))
}

impl PathElement {
    /// Reads one key of a FieldsV1 document; `None` if its kind is not known.
    fn from_fields_v1_key(key: &str) -> Result<Option<Self>, FieldsError> {
        let bytes = key.as_bytes();
        let (Some(kind), Some(separator)) = (bytes.first(), bytes.get(1)) else {
            return Err(FieldsError::ShortKey);
        };
        let Some(content) = key.get(2..).filter(|_| *separator == b':') else {
            return Err(FieldsError::MissingColon(key.to_owned()));
        };
        let bad = |error: serde_json::Error| FieldsError::BadKey(error.to_string());
        let element = match kind {
            b'f' => Self::Field(content.to_owned()),
            b'v' => Self::Value(serde_json::from_str(content).map_err(bad)?),
            b'k' => {
                let keys: Map<String, Value> = serde_json::from_str(content).map_err(bad)?;
                Self::Key(keys.into_iter().collect())
            }
            b'i' => Self::Index(content.parse().map_err(|_| {
                let quoted = fleetwright_gotext::quote(content);
                FieldsError::BadKey(format!("strconv.Atoi: parsing {quoted}: invalid syntax"))
            })?),
            _ => return Ok(None),
        };
        Ok(Some(element))
    }

    /// Writes the element as a key of a FieldsV1 document.
    pub fn to_fields_v1_key(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(keys) => {
                let fields: Vec<_> = keys
                    .iter()
                    .map(|(name, value)| {
                        format!("{}:{}", Value::String(name.clone()), escaped_json(value))
                    })
                    .collect();
                format!("k:{{{}}}", fields.join(","))
            }
            Self::Value(value) => format!("v:{}", escaped_json(value)),
            Self::Index(index) => format!("i:{index}"),
        }
    }
}

/// JSON with the characters escaped that Go escapes for the sake of HTML. They occur only
/// inside strings, so replacing them everywhere is right.
fn escaped_json(value: &Value) -> String {
    let text = value.to_string();
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return text;
    }
    text.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fieldpath::Path;
    use serde_json::json;

    #[test]
    fn round_trip() {
        let documents = [
            json!({}),
            json!({"f:a": {}}),
            json!({"f:a": {".": {}, "f:b": {}}}),
            json!({"f:spec": {"f:ports": {
                "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}},
                "v:\"x\\u003cy\"": {}, "v:3": {}, "i:7": {}}}}),
        ];
        for document in documents {
            let set = Set::from_fields_v1(&document).unwrap();
            assert_eq!(set.to_fields_v1(), document);
        }
    }

    #[test]
    fn order_of_keys_and_unknown_kinds_do_not_matter() {
        let set = Set::from_fields_v1(&json!({
            "f:l": {"k:{\"b\":1,\"a\":2}": null}, "x:future": {"f:a": {}}
        }))
        .unwrap();
        let expected: Set =
            [Path(vec!["l".into(), PathElement::key([("a", 2), ("b", 1)])])].iter().collect();
        assert_eq!(set, expected);
        assert_eq!(set.to_fields_v1(), json!({"f:l": {"k:{\"a\":2,\"b\":1}": {}}}));
    }

    #[test]
    fn bad_documents() {
        let cases = [
            (json!([]), "expect { or n, but found ["),
            (json!({"f:a": 1}), "expect { or n, but found 1"),
            (json!({"f": {}}), "key must be 2 characters long:"),
            (json!({"fa": {}}), "missing colon: fa"),
            (json!({"fé": {}}), "missing colon: fé"),
            (json!({"v:": {}}), "parsing key as path element"),
            (json!({"v:1 2": {}}), "trailing"),
            (json!({"k:[]": {}}), "parsing key as path element"),
            (json!({"i:x": {}}), r#"strconv.Atoi: parsing "x": invalid syntax"#),
        ];
        for (document, expected) in cases {
            let error = Set::from_fields_v1(&document).unwrap_err().to_string();
            assert!(error.contains(expected), "{error} for {document}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let mut document = json!({});
        for _ in 0..=MAX_DEPTH {
            document = json!({"f:a": document});
        }
        assert_eq!(Set::from_fields_v1(&document), Err(FieldsError::TooDeep));
    }
}
