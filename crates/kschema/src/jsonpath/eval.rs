//! Finding what a path leads to.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Value;

use super::{Node, Operator, Range};

type Values<'a> = Vec<Cow<'a, Value>>;

pub(super) fn walk<'a>(input: Values<'a>, nodes: &'a [Node]) -> Result<Values<'a>, String> {
    let mut values = input;
    for node in nodes {
        values = step(values, node)?;
    }
    Ok(values)
}

fn step<'a>(input: Values<'a>, node: &'a Node) -> Result<Values<'a>, String> {
    let mut found = Vec::new();
    match node {
        Node::Field(name) => {
            for value in input {
                found.extend(field(value, name));
            }
        }
        Node::Wildcard => {
            for value in input {
                found.extend(children(value));
            }
        }
        Node::Recursive => {
            for value in input {
                descend(value, &mut found);
            }
        }
        Node::Literal(value) => {
            found.extend(input.iter().map(|_| Cow::Borrowed(value)));
        }
        Node::Word(word) => return Err(format!("unrecognized identifier {word}")),
        Node::Union(parts) => {
            for part in parts {
                found.extend(walk(input.clone(), part)?);
            }
        }
        Node::Range(range) => {
            for value in input {
                if !value.is_null() {
                    found.extend(slice(value, *range)?);
                }
            }
        }
        Node::Filter { left, comparison } => {
            for value in input {
                if !value.is_array() {
                    return Err("value is not array or slice and cannot be filtered".to_owned());
                }
                for item in children(value) {
                    if passes(&item, left, comparison.as_ref())? {
                        found.push(item);
                    }
                }
            }
        }
    }
    Ok(found)
}

fn field<'a>(value: Cow<'a, Value>, name: &str) -> Option<Cow<'a, Value>> {
    match value {
        Cow::Borrowed(value) => value.as_object()?.get(name).map(Cow::Borrowed),
        Cow::Owned(Value::Object(mut fields)) => fields.remove(name).map(Cow::Owned),
        Cow::Owned(_) => None,
    }
}

fn children(value: Cow<'_, Value>) -> Vec<Cow<'_, Value>> {
    match value {
        Cow::Borrowed(Value::Object(fields)) => fields.values().map(Cow::Borrowed).collect(),
        Cow::Borrowed(Value::Array(items)) => items.iter().map(Cow::Borrowed).collect(),
        Cow::Owned(Value::Object(fields)) => fields.into_values().map(Cow::Owned).collect(),
        Cow::Owned(Value::Array(items)) => items.into_iter().map(Cow::Owned).collect(),
        _ => Vec::new(),
    }
}

fn descend<'a>(value: Cow<'a, Value>, found: &mut Values<'a>) {
    let below = children(value.clone());
    if below.is_empty() {
        return;
    }
    found.push(value);
    for child in below {
        descend(child, found);
    }
}

fn slice(value: Cow<'_, Value>, range: Range) -> Result<Vec<Cow<'_, Value>>, String> {
    if !value.is_array() {
        return Err(format!("{} is not array or slice", go_type(&value)));
    }
    let items = children(value);
    let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let mut start = range.start.unwrap_or(0);
    if start < 0 {
        start += length;
    }
    let mut end = range.end.unwrap_or(length);
    if end < 0 || (end == 0 && range.single) {
        end += length;
    }
    if start == end {
        return Ok(Vec::new());
    }
    let bounds = |index: i64| format!("array index out of bounds: index {index}, length {length}");
    if start >= length || start < 0 {
        return Err(bounds(start));
    }
    if end > length || end < 0 {
        return Err(bounds(end - 1));
    }
    if start > end {
        return Err(format!("starting index {start} is greater than ending index {end}"));
    }
    let step = range.step.unwrap_or(1);
    if step <= 0 {
        return Err("step must be > 0".to_owned());
    }
    let at = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
    Ok(items.into_iter().take(at(end)).skip(at(start)).step_by(at(step)).collect())
}

fn passes(
    item: &Value,
    left: &[Node],
    comparison: Option<&(Operator, Vec<Node>)>,
) -> Result<bool, String> {
    let lefts = walk(vec![Cow::Borrowed(item)], left);
    let Some((operator, right)) = comparison else {
        return Ok(lefts.is_ok_and(|lefts| !lefts.is_empty()));
    };
    let several = || "can only compare one element at a time".to_owned();
    let lefts = lefts?;
    let left = match lefts.as_slice() {
        [] => return Ok(false),
        [left] => left,
        _ => return Err(several()),
    };
    let rights = walk(vec![Cow::Borrowed(item)], right)?;
    let right = match rights.as_slice() {
        [] => return Ok(false),
        [right] => right,
        _ => return Err(several()),
    };
    compare(left, right, *operator)
}

fn compare(left: &Value, right: &Value, operator: Operator) -> Result<bool, String> {
    let incompatible = || "incompatible types for comparison".to_owned();
    let order = match (left, right) {
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => match operator {
            Operator::Equal => return Ok(a == b),
            Operator::NotEqual => return Ok(a != b),
            _ => return Err("invalid type for comparison".to_owned()),
        },
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a.cmp(&b),
            (None, None) => a
                .as_f64()
                .zip(b.as_f64())
                .and_then(|(a, b)| a.partial_cmp(&b))
                .ok_or_else(incompatible)?,
            _ => return Err(incompatible()),
        },
        _ => return Err(incompatible()),
    };
    Ok(match operator {
        Operator::Less => order == Ordering::Less,
        Operator::LessOrEqual => order != Ordering::Greater,
        Operator::Equal => order == Ordering::Equal,
        Operator::NotEqual => order != Ordering::Equal,
        Operator::GreaterOrEqual => order != Ordering::Less,
        Operator::Greater => order == Ordering::Greater,
    })
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Object(_) => "map[string]interface {}",
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.as_i64().is_some() => "int64",
        Value::Number(_) => "float64",
        Value::Array(_) | Value::Null => "[]interface {}",
    }
}
