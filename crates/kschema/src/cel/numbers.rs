//! Arithmetic and order.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::eval::EvalError;
use super::library;
use super::value::Val;

/// The order of two values of types that have one; `None` if they have none together.
pub(super) fn compare(a: &Val<'_>, b: &Val<'_>) -> Option<Ordering> {
    match (a, b) {
        (Val::Int(a), Val::Int(b)) => Some(a.cmp(b)),
        (Val::Uint(a), Val::Uint(b)) => Some(a.cmp(b)),
        (Val::Int(a), Val::Uint(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Val::Uint(a), Val::Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Val::Double(a), Val::Double(b)) => a.partial_cmp(b),
        (Val::Double(a), b) => a.partial_cmp(&as_float(b)?),
        (a, Val::Double(b)) => as_float(a)?.partial_cmp(b),
        (Val::Text(a), Val::Text(b)) => Some(a.cmp(b)),
        (Val::Bytes(a), Val::Bytes(b)) => Some(a.cmp(b)),
        (Val::Bool(a), Val::Bool(b)) => Some(a.cmp(b)),
        (Val::Library(a), Val::Library(b)) => a.partial_cmp(b),
        _ => None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers of different types compare as floats")]
fn as_float(value: &Val<'_>) -> Option<f64> {
    match value {
        Val::Int(number) => Some(*number as f64),
        Val::Uint(number) => Some(*number as f64),
        _ => None,
    }
}

fn overflow() -> EvalError {
    EvalError::new("integer overflow")
}

/// `a` operator `b`, where the operator is one of `_+_`, `_-_`, `_*_`, `_/_` and `_%_`.
pub(super) fn arithmetic<'a>(operator: &str, a: Val<'a>, b: Val<'a>) -> Result<Val<'a>, EvalError> {
    match (&a, &b) {
        (Val::Int(x), Val::Int(y)) => integer(operator, *x, *y).map(Val::Int),
        (Val::Uint(x), Val::Uint(y)) => unsigned(operator, *x, *y).map(Val::Uint),
        (Val::Double(x), Val::Double(y)) => match operator {
            "_+_" => Ok(Val::Double(x + y)),
            "_-_" => Ok(Val::Double(x - y)),
            "_*_" => Ok(Val::Double(x * y)),
            "_/_" => Ok(Val::Double(x / y)),
            _ => Err(EvalError::no_overload()),
        },
        (Val::Text(x), Val::Text(y)) if operator == "_+_" => Ok(Val::text(&format!("{x}{y}"))),
        (Val::Bytes(x), Val::Bytes(y)) if operator == "_+_" => {
            Ok(Val::Bytes([x.as_ref(), y.as_ref()].concat().into()))
        }
        (Val::List(_) | Val::JsonList(..), Val::List(_) | Val::JsonList(..))
            if operator == "_+_" =>
        {
            concatenate(&a, &b)
        }
        (Val::Library(_), Val::Library(_)) => library::operator(operator, a, b),
        _ => Err(EvalError::no_overload()),
    }
}

/// Lists are appended, except that sets take only what is new, and keyed lists replace items of
/// the same key.
fn concatenate<'a>(a: &Val<'a>, b: &Val<'a>) -> Result<Val<'a>, EvalError> {
    let (Some(mut items), Some(more)) = (a.items(), b.items()) else {
        return Err(EvalError::no_overload());
    };
    let (list_type, keys) = match a {
        Val::JsonList(_, schema) => (schema.list_type.as_deref(), schema.list_map_keys.as_slice()),
        _ => (None, &[][..]),
    };
    let identity = |item: &Val<'_>| match list_type {
        Some("map") => {
            let parts = keys.iter().map(|key| item.field(key).map(|part| part.canonical()));
            format!("{:?}", parts.collect::<Vec<_>>())
        }
        _ => item.canonical(),
    };
    if !matches!(list_type, Some("set" | "map")) {
        items.extend(more);
        return Ok(Val::list(items));
    }
    let mut places: BTreeMap<String, usize> =
        items.iter().enumerate().map(|(i, item)| (identity(item), i)).collect();
    for item in more {
        match places.entry(identity(&item)) {
            Entry::Vacant(place) => {
                place.insert(items.len());
                items.push(item);
            }
            Entry::Occupied(place) => {
                if list_type == Some("map")
                    && let Some(known) = items.get_mut(*place.get())
                {
                    *known = item;
                }
            }
        }
    }
    Ok(Val::list(items))
}

fn integer(operator: &str, x: i64, y: i64) -> Result<i64, EvalError> {
    let result = match operator {
        "_+_" => x.checked_add(y),
        "_-_" => x.checked_sub(y),
        "_*_" => x.checked_mul(y),
        "_/_" if y == 0 => return Err(EvalError::new("division by zero")),
        "_/_" => x.checked_div(y),
        "_%_" if y == 0 => return Err(EvalError::new("modulus by zero")),
        "_%_" => x.checked_rem(y),
        _ => return Err(EvalError::no_overload()),
    };
    result.ok_or_else(overflow)
}

fn unsigned(operator: &str, x: u64, y: u64) -> Result<u64, EvalError> {
    let result = match operator {
        "_+_" => x.checked_add(y),
        "_-_" => x.checked_sub(y),
        "_*_" => x.checked_mul(y),
        "_/_" if y == 0 => return Err(EvalError::new("division by zero")),
        "_/_" => x.checked_div(y),
        "_%_" if y == 0 => return Err(EvalError::new("modulus by zero")),
        "_%_" => x.checked_rem(y),
        _ => return Err(EvalError::no_overload()),
    };
    result.ok_or_else(overflow)
}
