//! Functions of the language itself; those of the libraries are elsewhere.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::eval::EvalError;
use super::library;
use super::value::{Key, Val};
use crate::gotext;
use crate::schema::Pattern;

type Result<T> = std::result::Result<T, EvalError>;

/// Names before a dot that are libraries and not variables.
pub(super) const NAMESPACES: [&str; 7] =
    ["sets", "optional", "jsonpatch", "format", "strings", "lists", "ip"];

/// The type that a name denotes.
pub(super) fn type_named(name: &str) -> Option<&'static str> {
    [
        "bool",
        "int",
        "uint",
        "double",
        "string",
        "bytes",
        "list",
        "map",
        "null_type",
        "type",
        "optional_type",
        "google.protobuf.Duration",
        "google.protobuf.Timestamp",
        "net.IP",
        "net.CIDR",
        "kubernetes.URL",
        "kubernetes.Quantity",
        "kubernetes.Semver",
    ]
    .into_iter()
    .find(|known| *known == name)
}

/// What it costs to go through a value once.
pub(super) fn cost(value: &Val<'_>) -> u64 {
    let size = match value {
        Val::Text(text) => text.len() / 10,
        Val::Bytes(bytes) => bytes.len() / 10,
        Val::List(items) => items.len() / 10,
        Val::Map(entries) => entries.len() / 10,
        Val::JsonList(items, _) => items.len() / 10,
        _ => 0,
    };
    u64::try_from(size).unwrap_or(u64::MAX)
}

/// A value as `string()` and errors write it.
pub(super) fn shown(value: &Val<'_>) -> String {
    match value {
        Val::Text(text) => text.to_string(),
        Val::Int(number) => number.to_string(),
        Val::Uint(number) => number.to_string(),
        Val::Bool(flag) => flag.to_string(),
        Val::Double(number) => gotext::float(*number),
        other => other.type_name().to_owned(),
    }
}

/// Calls a function of the language; `None` if it is not one.
pub(super) fn call<'a>(
    name: &str,
    target: Option<&Val<'a>>,
    arguments: &[Val<'a>],
) -> Option<Result<Val<'a>>> {
    match (name, target, arguments) {
        ("size", None, [value]) | ("size", Some(value), []) => Some(
            value
                .size()
                .and_then(|size| i64::try_from(size).ok())
                .map(Val::Int)
                .ok_or_else(|| EvalError::new("no such overload: size")),
        ),
        ("type", None, [value]) => Some(Ok(Val::Type(value.type_name()))),
        ("dyn", None, [value]) => Some(Ok(value.clone())),
        ("bool", None, [value]) => Some(to_bool(value)),
        ("int", None, [value]) => to_int(value),
        ("uint", None, [value]) => Some(to_uint(value)),
        ("double", None, [value]) => Some(to_double(value)),
        ("string", None, [value]) => to_string(value),
        ("startsWith", Some(Val::Text(text)), [Val::Text(part)]) => {
            Some(Ok(Val::Bool(text.starts_with(part.as_ref()))))
        }
        ("endsWith", Some(Val::Text(text)), [Val::Text(part)]) => {
            Some(Ok(Val::Bool(text.ends_with(part.as_ref()))))
        }
        ("contains", Some(Val::Text(text)), [Val::Text(part)]) => {
            Some(Ok(Val::Bool(text.contains(part.as_ref()))))
        }
        ("matches", Some(Val::Text(text)), [Val::Text(pattern)])
        | ("matches", None, [Val::Text(text), Val::Text(pattern)]) => Some(matches(text, pattern)),
        ("startsWith" | "endsWith" | "matches", Some(_), [_]) => {
            Some(Err(EvalError::no_overload()))
        }
        ("hasValue", Some(Val::Optional(inner)), []) => Some(Ok(Val::Bool(inner.is_some()))),
        ("value", Some(Val::Optional(inner)), []) => Some(match inner {
            Some(inner) => Ok(inner.as_ref().clone()),
            None => Err(EvalError::new("optional.none() dereference")),
        }),
        ("orValue", Some(Val::Optional(inner)), [other]) => Some(Ok(match inner {
            Some(inner) => inner.as_ref().clone(),
            None => other.clone(),
        })),
        ("or", Some(optional @ Val::Optional(inner)), [other]) => {
            Some(Ok(if inner.is_some() { optional.clone() } else { other.clone() }))
        }
        _ => super::url::call(name, target, arguments),
    }
}

thread_local! {
    /// Patterns used before: a rule evaluates the same one for each item of a list.
    static PATTERNS: RefCell<BTreeMap<Rc<str>, Pattern>> = const { RefCell::new(BTreeMap::new()) };
}

const PATTERNS_KEPT: usize = 64;

fn matches<'a>(text: &str, pattern: &Rc<str>) -> Result<Val<'a>> {
    PATTERNS.with_borrow_mut(|patterns| {
        if patterns.len() >= PATTERNS_KEPT && !patterns.contains_key(pattern) {
            patterns.clear();
        }
        let compiled = patterns.entry(pattern.clone()).or_insert_with(|| Pattern::new(pattern));
        match compiled.error() {
            None => Ok(Val::Bool(compiled.is_match(text))),
            Some(error) => Err(EvalError::new(error.to_owned())),
        }
    })
}

/// What a call costs beyond going through its arguments once.
pub(super) fn extra_cost(
    name: &str,
    namespace: Option<&str>,
    target: Option<&Val<'_>>,
    arguments: &[Val<'_>],
) -> u64 {
    let size = |value: &Val<'_>| {
        u64::try_from(value.size().unwrap_or_default()).unwrap_or(u64::MAX).max(1)
    };
    match (namespace, name, target) {
        (Some("sets"), _, _) => arguments.iter().map(size).fold(1, u64::saturating_mul),
        (_, "distinct", Some(list)) => size(list).saturating_mul(size(list)),
        (_, "find" | "findAll", _) => 100,
        _ => 0,
    }
}

/// Functions of the `optional` namespace.
pub(super) fn optional<'a>(name: &str, arguments: &[Val<'a>]) -> Option<Result<Val<'a>>> {
    match (name, arguments) {
        ("none", []) => Some(Ok(Val::Optional(None))),
        ("of", [value]) => Some(Ok(Val::Optional(Some(Rc::new(value.clone()))))),
        ("ofNonZeroValue", [value]) => {
            Some(Ok(Val::Optional((!value.is_zero()).then(|| Rc::new(value.clone())))))
        }
        _ => None,
    }
}

fn to_bool<'a>(value: &Val<'a>) -> Result<Val<'a>> {
    match value {
        Val::Bool(_) => Ok(value.clone()),
        Val::Text(text) => match text.as_ref() {
            "1" | "t" | "true" | "TRUE" | "True" => Ok(Val::Bool(true)),
            "0" | "f" | "false" | "FALSE" | "False" => Ok(Val::Bool(false)),
            _ => Err(conversion("bool")),
        },
        _ => Err(EvalError::no_overload()),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn to_int<'a>(value: &Val<'a>) -> Option<Result<Val<'a>>> {
    Some(match value {
        Val::Int(_) => Ok(value.clone()),
        Val::Uint(number) => {
            i64::try_from(*number).map(Val::Int).map_err(|_| EvalError::new("integer overflow"))
        }
        Val::Double(number) if number.abs() < 9.223_372_036_854_775e18 => {
            Ok(Val::Int(*number as i64))
        }
        Val::Double(_) => Err(EvalError::new("integer overflow")),
        Val::Text(text) => text.parse().map(Val::Int).map_err(|_| conversion("int")),
        Val::Library(_) => return None,
        _ => Err(EvalError::no_overload()),
    })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
fn to_uint<'a>(value: &Val<'a>) -> Result<Val<'a>> {
    let overflow = || EvalError::new("unsigned integer overflow");
    match value {
        Val::Uint(_) => Ok(value.clone()),
        Val::Int(number) => u64::try_from(*number).map(Val::Uint).map_err(|_| overflow()),
        Val::Double(number) if (0.0..1.844_674_407_370_955e19).contains(number) => {
            Ok(Val::Uint(*number as u64))
        }
        Val::Double(_) => Err(overflow()),
        Val::Text(text) => text.parse().map(Val::Uint).map_err(|_| conversion("uint")),
        _ => Err(EvalError::no_overload()),
    }
}

#[expect(clippy::cast_precision_loss, reason = "conversion to float is what was asked for")]
fn to_double<'a>(value: &Val<'a>) -> Result<Val<'a>> {
    match value {
        Val::Double(_) => Ok(value.clone()),
        Val::Int(number) => Ok(Val::Double(*number as f64)),
        Val::Uint(number) => Ok(Val::Double(*number as f64)),
        Val::Text(text) => text.parse().map(Val::Double).map_err(|_| conversion("double")),
        _ => Err(EvalError::no_overload()),
    }
}

fn conversion(to: &str) -> EvalError {
    EvalError::new(format!("type conversion error from 'string' to '{to}'"))
}

fn to_string<'a>(value: &Val<'a>) -> Option<Result<Val<'a>>> {
    Some(match value {
        Val::Text(_) => Ok(value.clone()),
        Val::Int(_) | Val::Uint(_) | Val::Bool(_) | Val::Double(_) => Ok(Val::text(&shown(value))),
        Val::Bytes(bytes) => std::str::from_utf8(bytes)
            .map(Val::text)
            .map_err(|_| EvalError::new("invalid UTF-8 in bytes, cannot convert to string")),
        Val::Library(inner) => return library::duration_text(inner).map(|t| Ok(Val::text(&t))),
        _ => Err(EvalError::no_overload()),
    })
}

/// The result of a macro that goes through keys and values.
pub(super) struct TwoVariables<'a> {
    kind: Kind<'a>,
    failed: Option<EvalError>,
}

enum Kind<'a> {
    All,
    Exists(bool),
    ExistsOne(u32),
    List(Vec<Val<'a>>),
    Map(BTreeMap<Key, Val<'a>>),
    Entries(BTreeMap<Key, Val<'a>>),
}

impl<'a> TwoVariables<'a> {
    pub(super) fn new(name: &str) -> Self {
        let kind = match name {
            "all" => Kind::All,
            "exists" => Kind::Exists(false),
            "transformList" => Kind::List(Vec::new()),
            "transformMap" => Kind::Map(BTreeMap::new()),
            "transformMapEntry" => Kind::Entries(BTreeMap::new()),
            _ => Kind::ExistsOne(0),
        };
        Self { kind, failed: None }
    }

    /// Takes the result for one pair; returns whether the outcome is clear.
    pub(super) fn take(&mut self, key: &Val<'a>, item: Result<Val<'a>>) -> Result<bool> {
        match (&mut self.kind, item) {
            (Kind::All, Ok(Val::Bool(false))) => {
                self.kind = Kind::Exists(false);
                self.failed = None;
                Ok(true)
            }
            (Kind::Exists(found), Ok(Val::Bool(true))) => {
                *found = true;
                self.failed = None;
                Ok(true)
            }
            (Kind::ExistsOne(count), Ok(Val::Bool(flag))) => {
                *count += u32::from(flag);
                Ok(false)
            }
            (Kind::All | Kind::Exists(_), Ok(Val::Bool(_))) => Ok(false),
            (Kind::All | Kind::Exists(_), Err(error)) => {
                self.failed.get_or_insert(error);
                Ok(false)
            }
            (Kind::List(items), Ok(item)) => {
                items.push(item);
                Ok(false)
            }
            (Kind::Map(entries), Ok(item)) => {
                let key = key.as_key().ok_or_else(EvalError::no_overload)?;
                entries.insert(key, item);
                Ok(false)
            }
            (Kind::Entries(entries), Ok(item)) => {
                for (key, value) in item.entries().ok_or_else(EvalError::no_overload)? {
                    if entries.insert(key, value).is_some() {
                        return Err(EvalError::new("insert failed: key already exists"));
                    }
                }
                Ok(false)
            }
            (_, Err(error)) => Err(error),
            _ => Err(EvalError::no_overload()),
        }
    }

    pub(super) fn finish(self) -> Result<Val<'a>> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        Ok(match self.kind {
            Kind::All => Val::Bool(true),
            Kind::Exists(found) => Val::Bool(found),
            Kind::ExistsOne(count) => Val::Bool(count == 1),
            Kind::List(items) => Val::list(items),
            Kind::Map(entries) | Kind::Entries(entries) => Val::Map(Rc::new(entries)),
        })
    }
}

/// Calls a function of a namespace.
pub(super) fn namespaced<'a>(
    namespace: &str,
    name: &str,
    arguments: &[Val<'a>],
) -> Result<Val<'a>> {
    if namespace == "optional"
        && let Some(result) = optional(name, arguments)
    {
        return result;
    }
    library::call(name, Some(namespace), None, arguments)
}
