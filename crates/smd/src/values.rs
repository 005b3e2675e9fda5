//! Equality and order of JSON values.
//!
//! Both differ from serde_json's in one point: whole numbers equal their floating twins.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// A number as Go reads it: integers that fit 64 signed bits, anything else a float.
pub(crate) enum Num {
    Int(i64),
    Float(f64),
}

pub(crate) fn num(number: &Number) -> Num {
    match number.as_i64() {
        Some(int) => Num::Int(int),
        None => Num::Float(number.as_f64().unwrap_or(f64::NAN)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "mixed comparison is done in floats on purpose")]
fn compare_numbers(left: &Number, right: &Number) -> Ordering {
    match (num(left), num(right)) {
        (Num::Int(l), Num::Int(r)) => l.cmp(&r),
        (Num::Int(l), Num::Float(r)) => compare_floats(l as f64, r),
        (Num::Float(l), Num::Int(r)) => compare_floats(l, r as f64),
        (Num::Float(l), Num::Float(r)) => compare_floats(l, r),
    }
}

fn compare_floats(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or(Ordering::Equal)
}

/// Whether two values are the same.
pub(crate) fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(l), Value::Number(r)) => l == r || compare_numbers(l, r).is_eq(),
        (Value::Array(l), Value::Array(r)) => {
            l.len() == r.len() && l.iter().zip(r).all(|(l, r)| equal(l, r))
        }
        (Value::Object(l), Value::Object(r)) => {
            l.len() == r.len()
                && l.iter().zip(r).all(|((lk, lv), (rk, rv))| lk == rk && equal(lv, rv))
        }
        _ => left == right,
    }
}

/// A total order over values: numbers, strings, booleans, lists, maps, null.
pub(crate) fn compare(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(l), Value::Number(r)) => compare_numbers(l, r),
        (Value::String(l), Value::String(r)) => l.cmp(r),
        (Value::Bool(l), Value::Bool(r)) => l.cmp(r),
        (Value::Array(l), Value::Array(r)) => l
            .iter()
            .zip(r)
            .map(|(l, r)| compare(l, r))
            .find(|order| order.is_ne())
            .unwrap_or_else(|| l.len().cmp(&r.len())),
        (Value::Object(l), Value::Object(r)) => l
            .iter()
            .zip(r)
            .map(|((lk, lv), (rk, rv))| lk.cmp(rk).then_with(|| compare(lv, rv)))
            .find(|order| order.is_ne())
            .unwrap_or_else(|| l.len().cmp(&r.len())),
        _ => rank(left).cmp(&rank(right)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whole_floats_equal_integers() {
        assert!(equal(&json!({"a": [1, 2.5]}), &json!({"a": [1.0, 2.5]})));
        assert!(!equal(&json!(1), &json!("1")));
        assert!(!equal(&json!({"a": 1}), &json!({"b": 1})));
        assert!(!equal(&json!([1]), &json!([1, 2])));
    }

    #[test]
    fn kinds_are_ordered() {
        let ordered = [
            json!(-1),
            json!(0.5),
            json!(1),
            json!("a"),
            json!("b"),
            json!(false),
            json!(true),
            json!([]),
            json!([1]),
            json!({}),
            json!({"a": 1}),
            json!({"a": 2}),
            json!(null),
        ];
        for (i, left) in ordered.iter().enumerate() {
            for (j, right) in ordered.iter().enumerate() {
                assert_eq!(compare(left, right), i.cmp(&j), "{left} against {right}");
            }
        }
    }
}
