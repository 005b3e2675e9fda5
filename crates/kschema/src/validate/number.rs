//! Checking numbers.

use serde_json::Number;

use super::outcome::Outcome;
use super::{Checker, Trail};
use crate::formats::Format;
use crate::gotext;
use crate::schema::{Schema, Types};

/// The largest integer that a JSON number holds exactly.
const MAX_JSON_INTEGER: f64 = 9_007_199_254_740_991.0;

/// Whether a float is a whole number, allowing for a tiny error.
pub(super) fn is_json_integer(value: f64) -> bool {
    const EPSILON: f64 = 1e-9;
    if !value.is_finite() || value.abs() > MAX_JSON_INTEGER {
        return false;
    }
    let whole = value.trunc();
    let difference = (value - whole).abs();
    difference == 0.0 || (whole != 0.0 && difference / (value.abs() + whole.abs()) < EPSILON)
}

/// A bound of the schema, or a value: an integer if it was written as one.
#[derive(Clone, Copy)]
enum Numeric {
    Integer(i64),
    Float(f64),
}

impl Numeric {
    fn as_float(self) -> f64 {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "bounds are floats upstream too")]
            Self::Integer(value) => value as f64,
            Self::Float(value) => value,
        }
    }

    /// Whether the number is one of the type and format of the schema.
    fn fits(self, schema: &Schema) -> bool {
        if schema.types == Types::INTEGER {
            let (low, high) = match schema.checked_format {
                Some(Format::Int32) => (f64::from(i32::MIN), f64::from(i32::MAX)),
                _ => (-9_223_372_036_854_775_808.0, 9_223_372_036_854_774_784.0),
            };
            return match self {
                Self::Integer(value) => {
                    schema.checked_format != Some(Format::Int32) || i32::try_from(value).is_ok()
                }
                Self::Float(value) => value.fract() == 0.0 && (low..=high).contains(&value),
            };
        }
        let single = schema.types == Types::NUMBER && schema.checked_format == Some(Format::Float);
        #[expect(clippy::cast_possible_truncation, reason = "finding out whether it overflows")]
        let overflows = (self.as_float() as f32).is_infinite();
        !single || !overflows
    }
}

#[expect(clippy::cast_possible_truncation, reason = "bounds of integers are truncated upstream")]
fn truncated(bound: f64) -> i64 {
    bound as i64
}

pub(super) fn check_number(
    checker: &Checker<'_>,
    number: &Number,
    schema: &Schema,
    trail: &Trail<'_>,
    outcome: &mut Outcome,
) {
    let value = match number.as_i64() {
        Some(value) => Numeric::Integer(value),
        None => Numeric::Float(number.as_f64().unwrap_or(f64::NAN)),
    };
    range_failure(checker, value, schema, "Checked", trail, outcome);
    if let Some(factor) = schema.multiple_of {
        let fits = bound_fits(checker, factor, schema, "MultipleOf", trail, outcome);
        check_multiple(checker, value, factor, fits, trail, outcome);
    }
    if let Some(min) = schema.minimum {
        let fits = bound_fits(checker, min, schema, "Minimum boundary", trail, outcome);
        let word =
            if schema.exclusive_minimum { "greater than" } else { "greater than or equal to" };
        let outside = |value: f64| value < min || (schema.exclusive_minimum && value <= min);
        let outside_integer = |value: i64| {
            let min = truncated(min);
            value < min || (schema.exclusive_minimum && value <= min)
        };
        check_bound(checker, value, min, fits, word, outside, outside_integer, trail, outcome);
    }
    if let Some(max) = schema.maximum {
        let fits = bound_fits(checker, max, schema, "Maximum boundary", trail, outcome);
        let word = if schema.exclusive_maximum { "less than" } else { "less than or equal to" };
        let outside = |value: f64| value > max || (schema.exclusive_maximum && value >= max);
        let outside_integer = |value: i64| {
            let max = truncated(max);
            value > max || (schema.exclusive_maximum && value >= max)
        };
        check_bound(checker, value, max, fits, word, outside, outside_integer, trail, outcome);
    }
    outcome.count();
}

/// Reports a number that its type and format cannot hold; returns whether it can.
fn range_failure(
    checker: &Checker<'_>,
    value: Numeric,
    schema: &Schema,
    what: &str,
    trail: &Trail<'_>,
    outcome: &mut Outcome,
) -> bool {
    if value.fits(schema) {
        return true;
    }
    let format = match schema.checked_format {
        Some(_) => format!("with format {}", schema.format),
        None => "(default format)".to_owned(),
    };
    let message = format!("{what} value must be of type {} {format} in {trail}", schema.type_name);
    checker.unplaced(message, outcome);
    false
}

fn bound_fits(
    checker: &Checker<'_>,
    bound: f64,
    schema: &Schema,
    what: &str,
    trail: &Trail<'_>,
    outcome: &mut Outcome,
) -> bool {
    range_failure(checker, Numeric::Float(bound), schema, what, trail, outcome)
}

#[expect(clippy::too_many_arguments, reason = "one check with its bound in two types")]
fn check_bound(
    checker: &Checker<'_>,
    value: Numeric,
    bound: f64,
    native: bool,
    word: &str,
    outside: impl Fn(f64) -> bool,
    outside_integer: impl Fn(i64) -> bool,
    trail: &Trail<'_>,
    outcome: &mut Outcome,
) {
    match value {
        Numeric::Integer(integer) if native => {
            if outside_integer(integer) {
                let what = format!("should be {word} {}", truncated(bound));
                checker.invalid(integer, &what, trail, outcome);
            }
        }
        _ => {
            let float = value.as_float();
            if outside(float) {
                let what = format!("should be {word} {}", gotext::float(bound));
                checker.invalid(float, &what, trail, outcome);
            }
        }
    }
}

fn check_multiple(
    checker: &Checker<'_>,
    value: Numeric,
    factor: f64,
    native: bool,
    trail: &Trail<'_>,
    outcome: &mut Outcome,
) {
    let not_positive = |factor: String, outcome: &mut Outcome| {
        let message = format!("factor MultipleOf declared for {trail} must be positive: {factor}");
        let place = trail.to_string();
        let error = crate::field::FieldError::invalid(
            &checker.path(&place),
            crate::field::BadValue::Rendered(factor),
            message.clone(),
        );
        outcome.fail(message, error);
    };
    match value {
        Numeric::Integer(integer) if native => {
            let factor = truncated(factor);
            if factor <= 0 {
                not_positive(factor.to_string(), outcome);
            } else if integer % factor != 0 {
                let what = format!("should be a multiple of {factor}");
                checker.invalid(integer, &what, trail, outcome);
            }
        }
        _ => {
            let float = value.as_float();
            if factor <= 0.0 {
                not_positive(gotext::float(factor), outcome);
                return;
            }
            let quotient = if factor < 1.0 { 1.0 / factor * float } else { float / factor };
            if !is_json_integer(quotient) {
                let what = format!("should be a multiple of {}", gotext::float(factor));
                checker.invalid(float, &what, trail, outcome);
            }
        }
    }
}
