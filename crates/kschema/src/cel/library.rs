//! Functions that the library of Kubernetes expressions has, called through its context.
//!
//! The library knows functions by name and takes syntax trees, so that a call is made of a
//! small tree whose leaves are variables with the evaluated arguments.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use kube_cel::KubeCelExt as _;
use kube_cel::cel::common::ast::{CallExpr, Expr, IdedExpr};
use kube_cel::cel::objects::{self, OptionalValue};
use kube_cel::cel::{self, Context, ExecutionError};

use super::eval::EvalError;
use super::value::{Key, Val};
use crate::formats::{Format, TextFormat};
use crate::gotext;
use crate::schema::Schema;

thread_local! {
    /// The context with all functions; making one registers more than a hundred of them.
    static FUNCTIONS: OnceCell<Context<'static>> = const { OnceCell::new() };
}

fn ident(name: &str) -> IdedExpr {
    IdedExpr { id: 0, expr: Expr::Ident(name.to_owned()) }
}

/// Calls a function of the library. `target` is what the function is called on; a plain name
/// there (`sets` in `sets.contains`) is given by `namespace`.
pub(super) fn call<'a>(
    function: &str,
    namespace: Option<&str>,
    target: Option<&Val<'a>>,
    arguments: &[Val<'a>],
) -> Result<Val<'a>, EvalError> {
    let names: Vec<String> = (0..arguments.len()).map(|i| format!("@arg{i}")).collect();
    let tree = IdedExpr {
        id: 0,
        expr: Expr::Call(CallExpr {
            func_name: function.to_owned(),
            target: match (namespace, target) {
                (Some(namespace), _) => Some(Box::new(ident(namespace))),
                (None, Some(_)) => Some(Box::new(ident("@target"))),
                (None, None) => None,
            },
            args: names.iter().map(|name| ident(name)).collect(),
        }),
    };
    let evaluate = || {
        FUNCTIONS.with(|functions| {
            let root = functions.get_or_init(|| Context::default().with_all());
            let mut scope = root.new_inner_scope();
            if let Some(target) = target {
                scope.add_variable_from_value("@target", to_library(target));
            }
            for (name, argument) in names.iter().zip(arguments) {
                scope.add_variable_from_value(name.as_str(), to_library(argument));
            }
            cel::Value::resolve(&tree, &scope)
        })
    };
    // The library panics on some input; such a call fails like any other.
    match catch_unwind(AssertUnwindSafe(evaluate)) {
        Ok(Ok(value)) => Ok(from_library(value)),
        Ok(Err(error)) => {
            Err(as_upstream(function, target, arguments).unwrap_or_else(|| describe(&error)))
        }
        Err(_) => Err(EvalError::new(format!("function {function} failed"))),
    }
}

/// An operator on two values of the library.
pub(super) fn operator<'a>(name: &str, a: Val<'a>, b: Val<'a>) -> Result<Val<'a>, EvalError> {
    call(name, None, None, &[a, b])
}

/// The error that Kubernetes gives for a value that a function cannot take.
fn as_upstream(
    function: &str,
    target: Option<&Val<'_>>,
    arguments: &[Val<'_>],
) -> Option<EvalError> {
    let message = match (function, target, arguments) {
        ("ip", None, [Val::Text(text)]) => format!(
            "IP Address {0} parse error during conversion from string: ParseAddr({0}): unable to \
             parse IP",
            gotext::quote(text)
        ),
        ("quantity", None, [Val::Text(_)]) => "quantities must match the regular expression \
             '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            .to_owned(),
        ("substring" | "charAt", Some(Val::Text(text)), [Val::Int(first), rest @ ..]) => {
            let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
            match rest.first() {
                Some(Val::Int(end)) if (0..=length).contains(first) => {
                    if (0..=length).contains(end) {
                        format!("invalid substring range. start: {first}, end: {end}")
                    } else {
                        format!("index out of range: {end}")
                    }
                }
                _ => format!("index out of range: {first}"),
            }
        }
        ("min" | "max", Some(list), []) if list.size() == Some(0) => {
            format!("{function} called on empty list")
        }
        _ => return None,
    };
    Some(EvalError::new(message))
}

/// A duration as text: its seconds.
pub(super) fn duration_text(value: &cel::Value) -> Option<String> {
    let cel::Value::Duration(duration) = value else { return None };
    let nanoseconds = duration.num_nanoseconds()?;
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let nanoseconds = nanoseconds.unsigned_abs();
    let (seconds, rest) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    let fraction = if rest == 0 {
        String::new()
    } else {
        format!(".{}", format!("{rest:09}").trim_end_matches('0'))
    };
    Some(format!("{sign}{seconds}{fraction}s"))
}

fn describe(error: &ExecutionError) -> EvalError {
    match error {
        ExecutionError::NoSuchKey(key) => EvalError::new(format!("no such key: {key}")),
        ExecutionError::NoSuchOverload
        | ExecutionError::InvalidArgumentCount { .. }
        | ExecutionError::UnsupportedTargetType { .. }
        | ExecutionError::NotSupportedAsMethod { .. }
        | ExecutionError::UnexpectedType { .. }
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedUnaryOperator(..)
        | ExecutionError::MissingArgumentOrTarget => EvalError::no_overload(),
        ExecutionError::FunctionError { message, .. } => EvalError::new(message.clone()),
        ExecutionError::Overflow(..) => EvalError::new("integer overflow"),
        ExecutionError::UndeclaredReference(name) => {
            EvalError::new(format!("no such overload: {name}"))
        }
        other => EvalError::new(other.to_string()),
    }
}

/// The value of a text whose schema gives it a meaning: times, durations and bytes.
pub(super) fn formatted<'a>(text: &str, schema: &Schema) -> Option<Val<'a>> {
    if schema.int_or_string || schema.type_name != "string" {
        return None;
    }
    let Some(Format::Text(format)) = schema.checked_format else { return None };
    match format {
        TextFormat::Byte => call("decode", Some("base64"), None, &[Val::text(text)]).ok(),
        TextFormat::Duration => call("duration", None, None, &[Val::text(text)]).ok(),
        TextFormat::DateTime => call("timestamp", None, None, &[Val::text(text)]).ok(),
        TextFormat::Date => {
            call("timestamp", None, None, &[Val::text(&format!("{text}T00:00:00Z"))]).ok()
        }
        _ => None,
    }
}

/// The name of the type of a value that only the library knows.
pub(super) fn type_name(value: &cel::Value) -> &'static str {
    match value {
        cel::Value::Duration(_) => "google.protobuf.Duration",
        cel::Value::Timestamp(_) => "google.protobuf.Timestamp",
        cel::Value::Opaque(opaque) => match opaque.runtime_type_name() {
            "ip" | "net.IP" => "net.IP",
            "cidr" | "net.CIDR" => "net.CIDR",
            "quantity" | "kubernetes.Quantity" => "kubernetes.Quantity",
            "semver" | "kubernetes.Semver" => "kubernetes.Semver",
            _ => "opaque",
        },
        _ => "dyn",
    }
}

fn to_library(value: &Val<'_>) -> cel::Value {
    match value {
        Val::Null => cel::Value::Null,
        Val::Bool(flag) => cel::Value::Bool(*flag),
        Val::Int(number) => cel::Value::Int(*number),
        Val::Uint(number) => cel::Value::UInt(*number),
        Val::Double(number) => cel::Value::Float(*number),
        Val::Text(text) | Val::Url(text) => cel::Value::String(Arc::new(text.to_string())),
        Val::Bytes(bytes) => cel::Value::Bytes(Arc::new(bytes.to_vec())),
        Val::List(_) | Val::JsonList(..) => {
            let items = value.items().unwrap_or_default();
            cel::Value::List(Arc::new(items.iter().map(to_library).collect()))
        }
        Val::Map(_) | Val::JsonMap(..) => {
            let entries = value.entries().unwrap_or_default();
            let map = entries.iter().map(|(key, value)| {
                let key = match key {
                    Key::Bool(flag) => objects::Key::Bool(*flag),
                    Key::Int(number) => objects::Key::Int(*number),
                    Key::Uint(number) => objects::Key::Uint(*number),
                    Key::Text(text) => objects::Key::String(Arc::new(text.to_string())),
                };
                (key, to_library(value))
            });
            cel::Value::Map(objects::Map { map: Arc::new(map.collect()) })
        }
        Val::Optional(inner) => cel::Value::Opaque(Arc::new(match inner {
            Some(inner) => OptionalValue::of(to_library(inner)),
            None => OptionalValue::none(),
        })),
        Val::Type(name) => cel::Value::String(Arc::new((*name).to_owned())),
        Val::Library(value) => value.clone(),
    }
}

fn from_library<'a>(value: cel::Value) -> Val<'a> {
    match value {
        cel::Value::Null => Val::Null,
        cel::Value::Bool(flag) => Val::Bool(flag),
        cel::Value::Int(number) => Val::Int(number),
        cel::Value::UInt(number) => Val::Uint(number),
        cel::Value::Float(number) => Val::Double(number),
        cel::Value::String(text) => Val::text(&text),
        cel::Value::Bytes(bytes) => Val::Bytes(Rc::from(bytes.as_slice())),
        cel::Value::List(items) => Val::list(items.iter().cloned().map(from_library).collect()),
        cel::Value::Map(map) => {
            let entries: BTreeMap<Key, Val<'a>> = map
                .map
                .iter()
                .map(|(key, value)| {
                    let key = match key {
                        objects::Key::Bool(flag) => Key::Bool(*flag),
                        objects::Key::Int(number) => Key::Int(*number),
                        objects::Key::Uint(number) => Key::Uint(*number),
                        objects::Key::String(text) => Key::Text(Rc::from(text.as_str())),
                    };
                    (key, from_library(value.clone()))
                })
                .collect();
            Val::Map(Rc::new(entries))
        }
        cel::Value::Opaque(opaque) => match opaque.downcast_ref::<OptionalValue>() {
            Some(optional) => {
                Val::Optional(optional.value().map(|v| Rc::new(from_library(v.clone()))))
            }
            None => Val::Library(cel::Value::Opaque(opaque)),
        },
        other => Val::Library(other),
    }
}
