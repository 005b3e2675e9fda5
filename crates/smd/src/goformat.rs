//! Values written as Go's fmt package writes them.
//!
//! Error messages of the API carry them, and clients' tests match on those messages.

use std::fmt::Write as _;

use serde_json::Value;

use crate::values::{Num, num};

/// `%q` of a string.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            c if is_printable(c) => out.push(c),
            c if u32::from(c) < 0x80 => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c if u32::from(c) < 0x1_0000 => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => {
                let _ = write!(out, "\\U{:08x}", u32::from(c));
            }
        }
    }
    out.push('"');
    out
}

fn is_printable(c: char) -> bool {
    let invisible = matches!(u32::from(c),
        0xad | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff | 0xe000..=0xf8ff);
    !(c.is_control() || invisible || (c.is_whitespace() && c != ' '))
}

/// `%q` of a list of strings.
pub(crate) fn quote_all(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| quote(text)).collect();
    format!("[{}]", quoted.join(" "))
}

/// `%v` of a float: exponents outside 1e-4 to 1e21.
pub(crate) fn float(value: f64) -> String {
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if value == 0.0 || (-4..21).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

/// `%v` of a decoded JSON value.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number_text(number),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" "))
        }
        Value::Object(map) => {
            let pairs: Vec<_> = map.iter().map(|(k, v)| format!("{k}:{}", plain(v))).collect();
            format!("map[{}]", pairs.join(" "))
        }
    }
}

/// `%#v` of a decoded JSON value.
pub(crate) fn source(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number_text(number),
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

fn number_text(number: &serde_json::Number) -> String {
    match num(number) {
        Num::Int(int) => int.to_string(),
        Num::Float(value) => float(value),
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
        let cases = [
            (json!({"b": [1, null], "a": "x"}), "map[a:x b:[1 <nil>]]"),
            (json!(1e21), "1e+21"),
            (json!(0.000_01), "1e-05"),
            (json!(1.5), "1.5"),
            (json!(2.0), "2"),
            (json!(true), "true"),
        ];
        for (value, expected) in cases {
            assert_eq!(plain(&value), expected);
        }
        assert_eq!(source(&json!([1, "a"])), r#"[]interface {}{1, "a"}"#);
        assert_eq!(source(&json!({"a": true})), r#"map[string]interface {}{"a":true}"#);
        assert_eq!(type_name(&json!({})), "map[string]interface {}");
    }

    #[test]
    fn quoting_escapes_what_go_escapes() {
        assert_eq!(quote("a\"b\\\n\u{1}ü\u{a0}"), r#""a\"b\\\n\x01ü\u00a0""#);
        assert_eq!(quote_all(&["a".into(), "b".into()]), r#"["a" "b"]"#);
    }

    #[test]
    fn values_in_paths() {
        assert_eq!(in_path(&json!([1, "a", {"k": false}])), r#"[1,"a",k=false]"#);
        assert_eq!(in_path(&json!(null)), "null");
    }
}
