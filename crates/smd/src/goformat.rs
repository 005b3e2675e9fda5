//! Values written as Go's fmt package writes them.
//!
//! Error messages of the API carry them, and clients' tests match on those messages.

use fleetwright_gotext::{number, plain, quote};
use serde_json::Value;

use crate::values::{Num, num};

/// `%q` of a list of strings.
pub(crate) fn quote_all(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| quote(text)).collect();
    format!("[{}]", quoted.join(" "))
}

/// `%#v` of a decoded JSON value.
pub(crate) fn source(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(found) => number(found),
        Value::String(text) => quote(text),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(source).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(map) => {
            let pairs: Vec<_> =
                map.iter().map(|(k, v)| format!("{}:{}", quote(k), source(v))).collect();
            format!("map[string]interface {{}}{{{}}}", pairs.join(", "))
        }
    }
}

/// `%T` of a decoded JSON value.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) => match num(number) {
            Num::Int(_) => "int64",
            Num::Float(_) => "float64",
        },
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value as it stands in a field path: `"a"`, `80`, `true`.
pub(crate) fn in_path(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::String(text) => quote(text),
        Value::Bool(_) | Value::Number(_) => plain(value),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(in_path).collect::<Vec<_>>().join(","))
        }
        Value::Object(map) => {
            map.iter().map(|(k, v)| format!("{k}={}", in_path(v))).collect::<Vec<_>>().concat()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn formats_match_go() {
        assert_eq!(source(&json!([1, "a"])), r#"[]interface {}{1, "a"}"#);
        assert_eq!(source(&json!({"a": true})), r#"map[string]interface {}{"a":true}"#);
        assert_eq!(type_name(&json!({})), "map[string]interface {}");
    }

    #[test]
    fn lists_of_strings_are_quoted() {
        assert_eq!(quote_all(&["a".into(), "b".into()]), r#"["a" "b"]"#);
    }

    #[test]
    fn values_in_paths() {
        assert_eq!(in_path(&json!([1, "a", {"k": false}])), r#"[1,"a",k=false]"#);
        assert_eq!(in_path(&json!(null)), "null");
    }
}
