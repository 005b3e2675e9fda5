//! JSONPath as kubectl and printer columns use it.

mod eval;
mod parse;

use std::borrow::Cow;

use serde_json::Value;
use thiserror::Error;

/// Why a path cannot be used.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum JsonPathError {
    /// The path is not well formed.
    #[error("{0}")]
    Malformed(String),
    /// The path does not fit the value.
    #[error("{0}")]
    Mismatch(String),
}

/// A parsed path.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    nodes: Vec<Node>,
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    Field(String),
    Wildcard,
    Recursive,
    /// An index or a range.
    Range(Range),
    Union(Vec<Vec<Node>>),
    Filter {
        left: Vec<Node>,
        /// `None` asks whether the left side exists.
        comparison: Option<(Operator, Vec<Node>)>,
    },
    /// A constant, in filters.
    Literal(Value),
    /// A word that means nothing here; looking for it fails.
    Word(String),
}

/// What is between brackets: start, end and step.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Range {
    start: Option<i64>,
    end: Option<i64>,
    /// The end follows from a single index.
    single: bool,
    step: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    GreaterOrEqual,
    Greater,
}

impl JsonPath {
    /// Parses a path such as `.spec.items[?(@.type=="Ready")].status`.
    pub fn parse(path: &str) -> Result<Self, JsonPathError> {
        parse::parse(path).map(|nodes| Self { nodes }).map_err(JsonPathError::Malformed)
    }

    /// All values at the path. Fields that are missing are not an error.
    pub fn find<'a>(&'a self, value: &'a Value) -> Result<Vec<Cow<'a, Value>>, JsonPathError> {
        eval::walk(vec![Cow::Borrowed(value)], &self.nodes).map_err(JsonPathError::Mismatch)
    }

    /// The first value at the path, if there is one.
    pub fn first<'a>(&'a self, value: &'a Value) -> Option<Cow<'a, Value>> {
        self.find(value).ok()?.into_iter().next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_find_values() {
        let value = json!({
            "a": {"b": [1, 2, 3], "c.d": "dotted", "e f": 5},
            "conditions": [{"type": "Ready", "status": "True", "n": 1},
                {"type": "Other", "status": "False", "n": 2}],
            "null": null,
        });
        let cases: Vec<(&str, Vec<Value>)> = vec![
            (".a.b", vec![json!([1, 2, 3])]),
            ("$.a.b[0]", vec![json!(1)]),
            (".a.b[-1]", vec![json!(3)]),
            (".a.b[-2]", vec![json!(2)]),
            (".a.b[0:2]", vec![json!(1), json!(2)]),
            (".a.b[1:]", vec![json!(2), json!(3)]),
            (".a.b[:-1]", vec![json!(1), json!(2)]),
            (".a.b[::2]", vec![json!(1), json!(3)]),
            (".a.b[0:0]", vec![]),
            (".a.b[*]", vec![json!(1), json!(2), json!(3)]),
            (".a.b[0,2]", vec![json!(1), json!(3)]),
            (".a['b'][1]", vec![json!(2)]),
            (".a['c\\.d']", vec![json!("dotted")]),
            (".a.c\\.d", vec![json!("dotted")]),
            (".missing.x", vec![]),
            (".null", vec![json!(null)]),
            (".null.x", vec![]),
            (".conditions[?(@.type==\"Ready\")].status", vec![json!("True")]),
            (".conditions[?(@.type=='Ready')].status", vec![json!("True")]),
            (".conditions[?(@.type!='Ready')].status", vec![json!("False")]),
            (".conditions[?(@.n>1)].type", vec![json!("Other")]),
            (".conditions[?(@.n<=1)].type", vec![json!("Ready")]),
            (".conditions[?(@.missing)].type", vec![]),
            (".conditions[?(@.type)].n", vec![json!(1), json!(2)]),
            (".conditions[*].type", vec![json!("Ready"), json!("Other")]),
            ("..status", vec![json!("True"), json!("False")]),
            (".conditions.*.n", vec![json!(1), json!(2)]),
            (".conditions[0]['type','n']", vec![json!("Ready"), json!(1)]),
        ];
        for (path, expected) in cases {
            let parsed = JsonPath::parse(path).unwrap_or_else(|e| panic!("{path}: {e}"));
            let found: Vec<Value> =
                parsed.find(&value).unwrap().into_iter().map(Cow::into_owned).collect();
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn paths_that_do_not_fit() {
        let value = json!({"a": {"b": [1]}, "s": [{"n": 1}]});
        let cases = [
            (".a.b[5]", "array index out of bounds: index 5, length 1"),
            (".a[0]", "map[string]interface {} is not array or slice"),
            (".a['e f']", "unrecognized identifier f"),
            (".s[?(@.n==\"1\")]", "incompatible types for comparison"),
        ];
        for (path, expected) in cases {
            let parsed = JsonPath::parse(path).unwrap();
            assert_eq!(parsed.find(&value).unwrap_err().to_string(), expected, "{path}");
        }
        for path in [".a[", ".a[x]", ".a[?(@.b", "'", ".a[?(@.b)", "....", ".a[?(@.b==\")]", "&"] {
            assert!(JsonPath::parse(path).is_err(), "{path}");
        }
    }
}
