//! Values as Go's `%v` prints them: messages about strategic patches quote them.

use std::fmt::Write as _;

use serde_json::{Number, Value};

/// Prints a value: `map[spec:map[replicas:1]]`.
pub fn go_print(value: &Value) -> String {
    let mut text = String::new();
    print(value, &mut text);
    text
}

fn print(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("<nil>"),
        Value::Bool(value) => {
            let _ = write!(text, "{value}");
        }
        Value::Number(number) => print_number(number, text),
        Value::String(string) => text.push_str(string),
        Value::Array(list) => {
            text.push('[');
            for (index, item) in list.iter().enumerate() {
                if index > 0 {
                    text.push(' ');
                }
                print(item, text);
            }
            text.push(']');
        }
        Value::Object(map) => {
            text.push_str("map[");
            for (index, (name, item)) in map.iter().enumerate() {
                if index > 0 {
                    text.push(' ');
                }
                text.push_str(name);
                text.push(':');
                print(item, text);
            }
            text.push(']');
        }
    }
}

fn print_number(number: &Number, text: &mut String) {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else {
        let _ = write!(text, "{number}");
        return;
    };
    // Rust's shortest digits are Go's too; only the choice of notation differs.
    let scientific = format!("{float:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        let _ = write!(text, "{float}");
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(text, "{digits}e{sign}{:02}", exponent.abs());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_printed_as_go_prints_them() {
        for (value, expected) in [
            (json!({"b": [1, "x", null], "a": {"c": true}}), "map[a:map[c:true] b:[1 x <nil>]]"),
            (json!({}), "map[]"),
            (json!([]), "[]"),
            (json!(1.5), "1.5"),
            (json!(1_000_000.0), "1e+06"),
            (json!(123_456.5), "123456.5"),
            (json!(1e21), "1e+21"),
            (json!(1e-7), "1e-07"),
            (json!(0.0001), "0.0001"),
        ] {
            assert_eq!(go_print(&value), expected);
        }
    }
}
