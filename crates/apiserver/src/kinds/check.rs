//! What the validation of several kinds shares.

use std::collections::BTreeSet;

use fleetwright_kschema::{
    field::{BadValue, FieldError, Path},
    names,
};
use serde_json::{Map, Value};

use super::quantity::Quantity;
use crate::object;

/// What is wrong.
pub(crate) type Errors = Vec<FieldError>;

pub(crate) const IMMUTABLE: &str = "field is immutable";
const CONDITION_MESSAGE_MAX: usize = 32 * 1024;
const CONDITION_REASON_MAX: usize = 1024;
const CONDITION_REASON: &str = "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";
pub(crate) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

/// One error for each reason why a text is not valid.
pub(crate) fn each(path: &Path, text: &str, reasons: Vec<String>) -> Errors {
    reasons.into_iter().map(|reason| FieldError::invalid(path, text, reason)).collect()
}

/// The integer at `path` must not be negative.
pub(crate) fn not_negative(object: &Value, keys: &[&str], path: &Path) -> Errors {
    match object::integer(object, keys) {
        Some(number) if number < 0 => vec![FieldError::invalid(path, number, NOT_NEGATIVE)],
        _ => Errors::new(),
    }
}

/// Several integers of one object must not be negative.
pub(crate) fn none_negative(object: &Value, keys: &[&str], path: &Path) -> Errors {
    keys.iter().flat_map(|key| not_negative(object, &[key], &path.child(key))).collect()
}

/// Whether two values mean the same: null, missing and empty are alike.
pub(crate) fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    let empty = |value: Option<&Value>| match value {
        None | Some(Value::Null) => true,
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(entries)) => entries.is_empty(),
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => false,
    };
    a == b || (empty(a) && empty(b))
}

/// The value must stay as it is.
pub(crate) fn immutable(new: Option<&Value>, old: Option<&Value>, path: &Path) -> Errors {
    if same(new, old) {
        return Errors::new();
    }
    let value = new.cloned().unwrap_or_default();
    vec![FieldError::invalid(path, value, IMMUTABLE)]
}

/// A value that occurs twice, with a word about it.
pub(crate) fn duplicate(path: &Path, value: impl Into<BadValue>, detail: &str) -> FieldError {
    let mut error = FieldError::duplicate(path, value);
    detail.clone_into(&mut error.detail);
    error
}

/// A value outside of an enumeration. Must be called with a text.
pub(crate) fn one_of(text: &str, supported: &[&str], path: &Path) -> Errors {
    if supported.contains(&text) {
        Errors::new()
    } else {
        vec![FieldError::not_supported(path, text, supported)]
    }
}

/// The object at `key`, or an empty one.
pub(crate) fn map<'a>(object: &'a Value, keys: &[&str]) -> Option<&'a Map<String, Value>> {
    object::get(object, keys).and_then(Value::as_object)
}

/// Whether a list or map at `keys` has entries.
pub(crate) fn has(object: &Value, keys: &[&str]) -> bool {
    match object::get(object, keys) {
        None | Some(Value::Null) => false,
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(entries)) => !entries.is_empty(),
        Some(Value::String(text)) => !text.is_empty(),
        Some(_) => true,
    }
}

/// Whether a value is set, be it empty.
pub(crate) fn is_set(object: &Value, keys: &[&str]) -> bool {
    object::get(object, keys).is_some_and(|value| !value.is_null())
}

/// Whether the flag at `keys` is up.
pub(crate) fn flag(object: &Value, keys: &[&str]) -> bool {
    object::get(object, keys).and_then(Value::as_bool).unwrap_or_default()
}

/// A whole number that is not negative, or a percentage.
pub(crate) fn int_or_percent(value: &Value, path: &Path) -> Errors {
    match value {
        Value::String(text) => names::percent(text)
            .into_iter()
            .map(|reason| FieldError::invalid(path, text.as_str(), reason))
            .collect(),
        Value::Number(number) => match number.as_i64() {
            Some(number) if number < 0 => vec![FieldError::invalid(path, number, NOT_NEGATIVE)],
            _ => Errors::new(),
        },
        _ => Errors::new(),
    }
}

/// The number in an int-or-percent.
pub(crate) fn percent_value(value: &Value) -> i64 {
    match value {
        Value::Number(number) => number.as_i64().unwrap_or_default(),
        Value::String(text) => {
            text.strip_suffix('%').and_then(|digits| digits.parse().ok()).unwrap_or_default()
        }
        _ => 0,
    }
}

/// A percentage must not be above 100%.
pub(crate) fn at_most_all(value: &Value, path: &Path) -> Errors {
    match value {
        Value::String(text) if names::percent(text).is_empty() && percent_value(value) > 100 => {
            vec![FieldError::invalid(path, text.as_str(), "must not be greater than 100%")]
        }
        _ => Errors::new(),
    }
}

/// The quantity in a value.
pub(crate) fn quantity(value: &Value) -> Option<Quantity> {
    Quantity::parse(value.as_str()?).ok()
}

/// Whether labels match a label selector. A missing selector matches nothing.
pub(crate) fn selector_matches(selector: Option<&Value>, labels: Option<&Value>) -> bool {
    let Some(selector) = selector.filter(|s| !s.is_null()) else { return false };
    let value = |key: &str| labels.and_then(|labels| labels.get(key)?.as_str());
    let wanted = selector.get("matchLabels").and_then(Value::as_object);
    wanted.into_iter().flatten().all(|(key, wanted)| value(key) == wanted.as_str())
        && object::list(selector, &["matchExpressions"]).iter().all(|requirement| {
            let actual = value(object::text(requirement, &["key"]));
            let listed =
                || object::list(requirement, &["values"]).iter().any(|v| v.as_str() == actual);
            match object::text(requirement, &["operator"]) {
                "In" => actual.is_some() && listed(),
                "NotIn" => actual.is_none() || !listed(),
                "Exists" => actual.is_some(),
                "DoesNotExist" => actual.is_none(),
                _ => false,
            }
        })
}

/// Whether a selector says nothing, and so matches everything.
pub(crate) fn selector_is_empty(selector: &Value) -> bool {
    !has(selector, &["matchLabels"]) && !has(selector, &["matchExpressions"])
}

/// The conditions in a status: type, status, reason and time as they must be.
pub(crate) fn conditions(conditions: &[Value], path: &Path) -> Errors {
    let mut errors = Errors::new();
    let mut seen = BTreeSet::new();
    for (i, condition) in conditions.iter().enumerate() {
        let path = path.index(i);
        let kind = object::text(condition, &["type"]);
        if !seen.insert(kind) {
            errors.push(FieldError::duplicate(&path, kind));
        }
        if kind.is_empty() {
            errors.push(FieldError::required(&path.child("type"), "is required"));
        } else {
            errors.extend(each(&path.child("type"), kind, names::qualified_name(kind)));
        }
        let status = object::text(condition, &["status"]);
        if status.is_empty() {
            errors.push(FieldError::required(&path.child("status"), ""));
        } else {
            errors.extend(one_of(status, &["False", "True", "Unknown"], &path.child("status")));
        }
        if let Some(generation) = object::integer(condition, &["observedGeneration"])
            && generation < 0
        {
            let path = path.child("observedGeneration");
            let detail = "must be greater than or equal to zero";
            errors.push(FieldError::invalid(&path, generation, detail));
        }
        if object::text(condition, &["lastTransitionTime"]).is_empty() {
            errors.push(FieldError::required(&path.child("lastTransitionTime"), ""));
        }
        errors
            .extend(condition_reason(object::text(condition, &["reason"]), &path.child("reason")));
        if object::text(condition, &["message"]).len() > CONDITION_MESSAGE_MAX {
            errors.push(FieldError::too_long(&path.child("message"), CONDITION_MESSAGE_MAX));
        }
    }
    errors
}

fn condition_reason(reason: &str, path: &Path) -> Errors {
    if reason.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = Errors::new();
    let bytes = reason.as_bytes();
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let well_formed = bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().copied().is_some_and(word)
        && bytes.iter().all(|&b| word(b) || b == b',' || b == b':');
    if !well_formed {
        errors.push(FieldError::invalid(path, reason, CONDITION_REASON));
    }
    if reason.len() > CONDITION_REASON_MAX {
        errors.push(FieldError::too_long(path, CONDITION_REASON_MAX));
    }
    errors
}

/// The errors as texts, for tests.
#[cfg(test)]
pub(crate) fn texts(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}
