//! Labels and selectors.

use serde_json::{Map, Value};

use super::dns::key_prefix;
use super::pattern_reason;
use crate::field::{FieldError, Path};

const NAME_MAX: usize = 63;
const NAME: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const NAME_REASON: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must \
     start and end with an alphanumeric character";
const VALUE_REASON: &str = "a valid label must be an empty string or consist of alphanumeric \
     characters, '-', '_' or '.', and must start and end with an alphanumeric character";

fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

fn name_reason() -> String {
    pattern_reason(NAME_REASON, NAME, &["MyName", "my.name", "123-abc"])
}

/// The key of a label or annotation, and other qualified names: a name with an optional DNS
/// subdomain and a slash before it.
pub fn qualified_name(text: &str) -> Vec<String> {
    let mut reasons = Vec::new();
    let (prefix, name) = match text.split_once('/') {
        None => (None, text),
        Some((_, rest)) if rest.contains('/') => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' \
                 (e.g. 'example.com/MyName')",
                name_reason()
            )];
        }
        Some((prefix, name)) => (Some(prefix), name),
    };
    match prefix {
        None => {}
        Some("") => reasons.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => {
            reasons.extend(key_prefix(prefix).into_iter().map(|r| format!("prefix part {r}")));
        }
    }
    if name.is_empty() {
        reasons.push("name part must be non-empty".to_owned());
    } else if name.len() > NAME_MAX {
        reasons.push(format!("name part must be no more than {NAME_MAX} bytes"));
    }
    if !is_name(name) {
        reasons.push(format!("name part {}", name_reason()));
    }
    reasons
}

/// A qualified name that must have a prefix.
pub fn prefixed_label_key(text: &str) -> Vec<String> {
    let reasons = qualified_name(text);
    if reasons.is_empty() && !text.contains('/') {
        return vec!["must include a prefix (e.g. 'example.com/key')".to_owned()];
    }
    reasons
}

/// The value of a label.
pub fn label_value(text: &str) -> Vec<String> {
    let mut reasons = Vec::new();
    if text.len() > NAME_MAX {
        reasons.push(format!("must be no more than {NAME_MAX} bytes"));
    }
    if !text.is_empty() && !is_name(text) {
        let pattern = format!("({NAME})?");
        reasons.push(pattern_reason(VALUE_REASON, &pattern, &["MyValue", "my_value", "12345"]));
    }
    reasons
}

/// The keys and values of a map of labels. Entries that are not texts are not looked at.
pub fn validate_labels(labels: &Map<String, Value>, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, value) in labels {
        errors.extend(invalid_each(path, key, qualified_name(key)));
        if let Some(value) = value.as_str() {
            errors.extend(invalid_each(path, value, label_value(value)));
        }
    }
    errors
}

/// One Invalid error about `value` for each reason.
pub(super) fn invalid_each(
    path: &Path,
    value: &str,
    reasons: Vec<String>,
) -> impl Iterator<Item = FieldError> {
    reasons.into_iter().map(move |reason| FieldError::invalid(path, value, reason))
}

/// A label selector: `matchLabels` and `matchExpressions`.
pub fn validate_label_selector(selector: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(labels) = selector.get("matchLabels").and_then(Value::as_object) {
        errors.extend(validate_labels(labels, &path.child("matchLabels")));
    }
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    for (i, expression) in expressions.into_iter().flatten().enumerate() {
        requirement(expression, &path.child("matchExpressions").index(i), &mut errors);
    }
    errors
}

fn requirement(expression: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let text = |field: &str| expression.get(field).and_then(Value::as_str).unwrap_or_default();
    let none = Vec::new();
    let values = expression.get("values").and_then(Value::as_array).unwrap_or(&none);
    match text("operator") {
        "In" | "NotIn" => {
            if values.is_empty() {
                errors.push(FieldError::required(
                    &path.child("values"),
                    "must be specified when `operator` is 'In' or 'NotIn'",
                ));
            }
        }
        "Exists" | "DoesNotExist" => {
            if !values.is_empty() {
                errors.push(FieldError::forbidden(
                    &path.child("values"),
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                ));
            }
        }
        other => errors.push(FieldError::invalid(
            &path.child("operator"),
            other,
            "not a valid selector operator",
        )),
    }
    let key = text("key");
    errors.extend(invalid_each(&path.child("key"), key, qualified_name(key)));
    for (i, value) in values.iter().filter_map(Value::as_str).enumerate() {
        errors.extend(invalid_each(&path.child("values").index(i), value, label_value(value)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys() {
        let pattern = "must consist of alphanumeric characters, '-', '_' or '.', and must start \
             and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or \
             '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
        for good in ["a", "A.b_c-1", "example.com/a"] {
            assert!(qualified_name(good).is_empty(), "{good}");
        }
        assert_eq!(
            qualified_name(""),
            ["name part must be non-empty".to_owned(), format!("name part {pattern}")]
        );
        assert_eq!(qualified_name("-a"), [format!("name part {pattern}")]);
        assert_eq!(qualified_name("/a"), ["prefix part must be non-empty"]);
        assert_eq!(
            qualified_name("a/b/c"),
            [format!(
                "a valid label key {pattern} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
            )]
        );
        assert_eq!(
            qualified_name(&format!("a/{}", "b".repeat(64))),
            ["name part must be no more than 63 bytes"]
        );
        assert!(qualified_name("A_b/c")[0].starts_with("prefix part a lowercase RFC 1123"));
        assert_eq!(prefixed_label_key("a"), ["must include a prefix (e.g. 'example.com/key')"]);
    }

    #[test]
    fn selectors() {
        let selector = json!({"matchLabels": {"a": "b c"}, "matchExpressions": [
            {"key": "x", "operator": "In"},
            {"key": "x", "operator": "Exists", "values": ["v"]},
            {"key": "x", "operator": "Near", "values": ["-"]},
        ]});
        let errors = validate_label_selector(&selector, &Path::new("spec"));
        let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let pattern = "a valid label must be an empty string or consist of alphanumeric \
             characters, '-', '_' or '.', and must start and end with an alphanumeric character \
             (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is \
             '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
        assert_eq!(
            shown,
            [
                format!("spec.matchLabels: Invalid value: \"b c\": {pattern}"),
                "spec.matchExpressions[0].values: Required value: must be specified when \
                 `operator` is 'In' or 'NotIn'"
                    .to_owned(),
                "spec.matchExpressions[1].values: Forbidden: may not be specified when \
                 `operator` is 'Exists' or 'DoesNotExist'"
                    .to_owned(),
                "spec.matchExpressions[2].operator: Invalid value: \"Near\": not a valid \
                 selector operator"
                    .to_owned(),
                format!("spec.matchExpressions[2].values[0]: Invalid value: \"-\": {pattern}"),
            ]
        );
    }
}
