//! What is wrong with a field.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Value, json};

use super::Path;
use crate::gotext;

/// The class of a field error; also the reason of a cause in a Status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldErrorKind {
    /// A referenced value does not exist.
    NotFound,
    /// A value is missing.
    Required,
    /// A value that must be unique occurs twice.
    Duplicate,
    /// A malformed value.
    Invalid,
    /// A value outside an enumeration.
    NotSupported,
    /// A value that is well formed but not permitted here.
    Forbidden,
    /// Text that is too long; the text itself is not repeated.
    TooLong,
    /// Text that is too short; the text itself is not repeated.
    TooShort,
    /// A list or map with too many items.
    TooMany,
    /// A list or map with too few items.
    TooFew,
    /// A value of another type than the schema has.
    TypeInvalid,
    /// Something that the user did not cause.
    InternalError,
}

impl FieldErrorKind {
    /// The reason written in `status.details.causes`.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooShort => "FieldValueTooShort",
            Self::TooMany => "FieldValueTooMany",
            Self::TooFew => "FieldValueTooFew",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::InternalError => "InternalError",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooShort => "Too short",
            Self::TooMany => "Too many",
            Self::TooFew => "Too few",
            Self::InternalError => "Internal error",
        }
    }

    const fn shows_value(self) -> bool {
        !matches!(
            self,
            Self::Required | Self::Forbidden | Self::TooLong | Self::TooShort | Self::InternalError
        )
    }
}

/// The value that an error is about.
#[derive(Clone, Debug, PartialEq)]
pub enum BadValue {
    /// The message does not repeat the value.
    Omitted,
    /// A JSON value: text is quoted, numbers are plain, the rest is JSON.
    Json(Value),
    /// A value already rendered, for what does not print as its JSON (structs whose fields have
    /// an order of their own).
    Rendered(String),
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Omitted => Ok(()),
            Self::Json(Value::String(text)) => f.write_str(&gotext::quote(text)),
            Self::Json(Value::Number(number)) => f.write_str(&gotext::number(number)),
            Self::Json(value) => f.write_str(&gotext::json(value)),
            Self::Rendered(text) => f.write_str(text),
        }
    }
}

impl<T: Into<Value>> From<T> for BadValue {
    fn from(value: T) -> Self {
        Self::Json(value.into())
    }
}

/// One thing that is wrong with one field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// The class of the error.
    pub kind: FieldErrorKind,
    /// The field.
    pub path: Path,
    /// The value found there.
    pub bad_value: BadValue,
    /// What would be right; may be empty.
    pub detail: String,
}

impl FieldError {
    fn new(
        kind: FieldErrorKind,
        path: &Path,
        value: impl Into<BadValue>,
        detail: impl Into<String>,
    ) -> Self {
        Self { kind, path: path.clone(), bad_value: value.into(), detail: detail.into() }
    }

    /// A value is missing. `detail` may be empty.
    pub fn required(path: &Path, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Required, path, "", detail)
    }

    /// A malformed value.
    pub fn invalid(path: &Path, value: impl Into<BadValue>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Invalid, path, value, detail)
    }

    /// A value of the wrong type.
    pub fn type_invalid(
        path: &Path,
        value: impl Into<BadValue>,
        detail: impl Into<String>,
    ) -> Self {
        Self::new(FieldErrorKind::TypeInvalid, path, value, detail)
    }

    /// A value outside the enumeration `supported`, which is listed in the order given.
    pub fn not_supported<S: AsRef<str>>(
        path: &Path,
        value: impl Into<BadValue>,
        supported: &[S],
    ) -> Self {
        let detail = if supported.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", gotext::quote_list(supported.iter().map(AsRef::as_ref)))
        };
        Self::new(FieldErrorKind::NotSupported, path, value, detail)
    }

    /// A value that is not permitted here.
    pub fn forbidden(path: &Path, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Forbidden, path, "", detail)
    }

    /// A value that occurs twice.
    pub fn duplicate(path: &Path, value: impl Into<BadValue>) -> Self {
        Self::new(FieldErrorKind::Duplicate, path, value, "")
    }

    /// A referenced value that does not exist.
    pub fn not_found(path: &Path, value: impl Into<BadValue>) -> Self {
        Self::new(FieldErrorKind::NotFound, path, value, "")
    }

    /// Text of more than `max` bytes.
    pub fn too_long(path: &Path, max: usize) -> Self {
        let detail = format!("may not be more than {}", counted(max, "byte"));
        Self::new(FieldErrorKind::TooLong, path, "<value omitted>", detail)
    }

    /// Text of more than `max` characters.
    pub fn too_long_characters(path: &Path, max: usize) -> Self {
        let detail = format!("may not be more than {}", counted(max, "character"));
        Self::new(FieldErrorKind::TooLong, path, "<value omitted>", detail)
    }

    /// Text of less than `min` characters.
    pub fn too_short(path: &Path, value: &str, min: usize) -> Self {
        let detail = format!("must be at least {}", counted(min, "character"));
        Self::new(FieldErrorKind::TooShort, path, value, detail)
    }

    /// A list of more than `max` items; without `actual` the message tells no quantity.
    pub fn too_many(path: &Path, actual: Option<usize>, max: usize) -> Self {
        let detail = format!("must have at most {}", counted(max, "item"));
        let value = actual.map_or(BadValue::Omitted, BadValue::from);
        Self::new(FieldErrorKind::TooMany, path, value, detail)
    }

    /// A list of less than `min` items.
    pub fn too_few(path: &Path, actual: usize, min: usize) -> Self {
        let detail = format!("must have at least {}", counted(min, "item"));
        Self::new(FieldErrorKind::TooFew, path, actual, detail)
    }

    /// Something went wrong that the user did not cause.
    pub fn internal(path: &Path, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::InternalError, path, BadValue::Omitted, detail)
    }

    /// The message without the field: the text of a cause in a Status.
    pub fn body(&self) -> String {
        let mut text = self.kind.title().to_owned();
        if self.kind.shows_value() && self.bad_value != BadValue::Omitted {
            text.push_str(": ");
            text.push_str(&self.bad_value.to_string());
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body())
    }
}

impl std::error::Error for FieldError {}

/// The errors as one message: a single one as it is, several as `[a, b]`, repeated ones once.
/// `None` if there are no errors.
pub fn aggregate_message(errors: &[FieldError]) -> Option<String> {
    let mut seen = BTreeSet::new();
    let mut messages = Vec::new();
    for error in errors {
        let message = error.to_string();
        if seen.insert(message.clone()) {
            messages.push(message);
        }
    }
    match messages.len() {
        0 => None,
        1 => messages.pop(),
        _ => Some(format!("[{}]", messages.join(", "))),
    }
}

/// The errors as the `details.causes` of a Status with reason Invalid.
pub fn invalid_causes(errors: &[FieldError]) -> Vec<Value> {
    errors
        .iter()
        .map(|error| {
            json!({
                "reason": error.kind.reason(),
                "message": error.body(),
                "field": error.path.to_string(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_print_as_upstream() {
        let path = Path::new("spec").child("x");
        let cases = [
            (FieldError::required(&path, ""), "spec.x: Required value"),
            (FieldError::required(&path, "say why"), "spec.x: Required value: say why"),
            (
                FieldError::invalid(&path, "a\"b", "must be c"),
                "spec.x: Invalid value: \"a\\\"b\": must be c",
            ),
            (FieldError::invalid(&path, 11, "m"), "spec.x: Invalid value: 11: m"),
            (FieldError::invalid(&path, 1e6, "m"), "spec.x: Invalid value: 1e+06: m"),
            (FieldError::invalid(&path, true, "m"), "spec.x: Invalid value: true: m"),
            (FieldError::invalid(&path, Value::Null, "m"), "spec.x: Invalid value: null: m"),
            (
                FieldError::invalid(&path, json!({"b": 1.0, "a": "<"}), "m"),
                "spec.x: Invalid value: {\"a\":\"\\u003c\",\"b\":1}: m",
            ),
            (
                FieldError::not_supported(&path, "z", &["a", "b"]),
                "spec.x: Unsupported value: \"z\": supported values: \"a\", \"b\"",
            ),
            (FieldError::forbidden(&path, "no"), "spec.x: Forbidden: no"),
            (FieldError::duplicate(&path, "d"), "spec.x: Duplicate value: \"d\""),
            (FieldError::not_found(&path, "n"), "spec.x: Not found: \"n\""),
            (FieldError::too_long(&path, 63), "spec.x: Too long: may not be more than 63 bytes"),
            (FieldError::too_long(&path, 1), "spec.x: Too long: may not be more than 1 byte"),
            (
                FieldError::too_long_characters(&path, 2),
                "spec.x: Too long: may not be more than 2 characters",
            ),
            (
                FieldError::too_short(&path, "a", 2),
                "spec.x: Too short: must be at least 2 characters",
            ),
            (
                FieldError::too_many(&path, Some(3), 1),
                "spec.x: Too many: 3: must have at most 1 item",
            ),
            (FieldError::too_many(&path, None, 2), "spec.x: Too many: must have at most 2 items"),
            (FieldError::too_few(&path, 0, 1), "spec.x: Too few: 0: must have at least 1 item"),
            (FieldError::internal(&path, "boom"), "spec.x: Internal error: boom"),
            (
                FieldError::type_invalid(&path, "s", "must be of type integer"),
                "spec.x: Invalid value: \"s\": must be of type integer",
            ),
        ];
        for (error, expected) in cases {
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn aggregates_drop_repeats_and_bracket_several() {
        let a = FieldError::required(&Path::new("a"), "");
        let b = FieldError::required(&Path::new("b"), "");
        assert_eq!(aggregate_message(&[]), None);
        assert_eq!(aggregate_message(&[a.clone(), a.clone()]).unwrap(), "a: Required value");
        assert_eq!(
            aggregate_message(&[a.clone(), b, a]).unwrap(),
            "[a: Required value, b: Required value]"
        );
    }

    #[test]
    fn causes_carry_reason_message_and_field() {
        let error = FieldError::invalid(&Path::new("a"), 1, "no");
        assert_eq!(
            invalid_causes(&[error]),
            [
                json!({"reason": "FieldValueInvalid", "message": "Invalid value: 1: no", "field": "a"})
            ]
        );
    }
}
