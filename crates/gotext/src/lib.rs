//! How Go prints values: quoted strings, floats and JSON.
//!
//! Messages of the Kubernetes API carry values as Go's `fmt` and `encoding/json` write them, and
//! clients compare those messages, so the same spelling is produced here.

use std::fmt::Write as _;

use serde_json::{Number, Value};

/// Quotes a string as Go's `%q` does.
pub fn quote(text: &str) -> String {
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
            ' '..='~' => out.push(c),
            '\0'..='\u{7f}' => push_hex(&mut out, 'x', u32::from(c), 2),
            _ if is_printable(c) => out.push(c),
            _ if u32::from(c) < 0x1_0000 => push_hex(&mut out, 'u', u32::from(c), 4),
            _ => push_hex(&mut out, 'U', u32::from(c), 8),
        }
    }
    out.push('"');
    out
}

/// Joins quoted strings with `, `, as lists of supported values are printed.
pub fn quote_list<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = items.into_iter().map(quote).collect();
    quoted.join(", ")
}

fn push_hex(out: &mut String, letter: char, code: u32, width: usize) {
    // Writing to a String cannot fail.
    let _ = write!(out, "\\{letter}{code:0width$x}");
}

/// The standard library escapes unprintable characters, but also a combining mark that starts
/// the text; the leading letter keeps marks from being first.
pub fn is_printable(c: char) -> bool {
    let pair = ['a', c];
    let text: String = pair.iter().collect();
    text.escape_debug().eq(pair)
}

/// Prints a float as Go's `%v` does.
pub fn float(value: f64) -> String {
    format_float(value, -4, 6, 2)
}

/// Prints a float as Go's `encoding/json` does.
pub fn json_float(value: f64) -> String {
    format_float(value, -6, 21, 1)
}

/// Shortest digits, with an exponent when it is below `low` or at least `high`. Only `%v` pads
/// the exponent to two digits.
fn format_float(value: f64, low: i32, high: i32, exponent_width: usize) -> String {
    if value == 0.0 {
        return if value.is_sign_negative() { "-0".to_owned() } else { "0".to_owned() };
    }
    if !value.is_finite() {
        return if value.is_nan() {
            "NaN".to_owned()
        } else if value > 0.0 {
            "+Inf".to_owned()
        } else {
            "-Inf".to_owned()
        };
    }
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < low || exponent >= high {
        let sign = if exponent < 0 { '-' } else { '+' };
        let width = if exponent < 0 { exponent_width } else { 2 };
        format!("{digits}e{sign}{:0width$}", exponent.unsigned_abs())
    } else {
        format!("{value}")
    }
}

/// Prints a number as Go's `%v` does after Kubernetes decoded it: an int64 or a float64.
pub fn number(value: &Number) -> String {
    match value.as_i64() {
        Some(int) => int.to_string(),
        None => float(value.as_f64().unwrap_or(f64::NAN)),
    }
}

/// Encodes a value as Go's `encoding/json` does: compact, sorted keys, HTML characters escaped.
pub fn json(value: &Value) -> String {
    let mut out = String::new();
    write_json(&mut out, value);
    out
}

fn write_json(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(n) => match n.as_i64() {
            Some(int) => {
                let _ = write!(out, "{int}");
            }
            None => out.push_str(&json_float(n.as_f64().unwrap_or(f64::NAN))),
        },
        Value::String(s) => write_json_string(out, s),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_json(out, item);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (i, (key, item)) in fields.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_json_string(out, key);
                out.push(':');
                write_json(out, item);
            }
            out.push('}');
        }
    }
}

fn write_json_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                push_hex(out, 'u', u32::from(c), 4);
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}

/// Prints a decoded JSON value as Go's `%v` prints it: `map[a:1 b:[x y]]`, `<nil>`.
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => number(n),
        Value::String(s) => s.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(key, item)| format!("{key}:{}", plain(item))).collect();
            format!("map[{}]", fields.join(" "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn strings_are_quoted_as_go_does() {
        let cases = [
            ("", "\"\""),
            ("a\"b\\", "\"a\\\"b\\\\\""),
            ("\n\t\u{7}\u{1}\u{7f}", "\"\\n\\t\\a\\x01\\x7f\""),
            ("é世\u{301}", "\"é世\u{301}\""),
            ("\u{a0}\u{200b}\u{e0001}", "\"\\u00a0\\u200b\\U000e0001\""),
        ];
        for (text, expected) in cases {
            assert_eq!(quote(text), expected);
        }
    }

    #[test]
    fn floats_switch_to_exponents_as_go_does() {
        let cases = [
            (1.0, "1", "1"),
            (1.5, "1.5", "1.5"),
            (-0.0, "-0", "-0"),
            (100_000.0, "100000", "100000"),
            (1_000_000.0, "1e+06", "1000000"),
            (123_456_789.5, "1.234567895e+08", "123456789.5"),
            (0.0001, "0.0001", "0.0001"),
            (0.00001, "1e-05", "0.00001"),
            (0.000_000_1, "1e-07", "1e-7"),
            (1e21, "1e+21", "1e+21"),
            (1e300, "1e+300", "1e+300"),
        ];
        for (value, plain, encoded) in cases {
            assert_eq!(float(value), plain, "%v of {value}");
            assert_eq!(json_float(value), encoded, "json of {value}");
        }
    }

    #[test]
    fn json_and_plain_forms() {
        let value = json!({"b": [1, 2.0, "<a>&\u{2028}"], "a": null});
        assert_eq!(json(&value), r#"{"a":null,"b":[1,2,"\u003ca\u003e\u0026\u2028"]}"#);
        assert_eq!(plain(&value), "map[a:<nil> b:[1 2 <a>&\u{2028}]]");
    }
}
