//! What is wrong with a field, in the words users know.

use std::fmt;

use serde_json::Value;

/// What is wrong with a field.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// The field, such as `providerSpec.ami`.
    pub field: String,
    /// What is wrong.
    pub problem: Problem,
    /// The same for people.
    pub detail: String,
}

/// The kinds of problem.
#[derive(Debug, Clone, PartialEq)]
pub enum Problem {
    /// It must be there.
    Required,
    /// It must not be so.
    Forbidden,
    /// This value will not do.
    Invalid(Value),
    /// This value is not one of those there are.
    NotSupported(Value),
}

impl FieldError {
    /// A field that must be there.
    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { field: field.into(), problem: Problem::Required, detail: detail.into() }
    }

    /// Something that must not be.
    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { field: field.into(), problem: Problem::Forbidden, detail: detail.into() }
    }

    /// A value that will not do.
    pub fn invalid(
        field: impl Into<String>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self { field: field.into(), problem: Problem::Invalid(value.into()), detail: detail.into() }
    }

    /// A value that is not one of those there are.
    pub fn not_supported(
        field: impl Into<String>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        let problem = Problem::NotSupported(value.into());
        Self { field: field.into(), problem, detail: detail.into() }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, problem, detail } = self;
        match problem {
            Problem::Required => write!(f, "{field}: Required value: {detail}"),
            Problem::Forbidden => write!(f, "{field}: Forbidden: {detail}"),
            Problem::Invalid(value) => write!(f, "{field}: Invalid value: {value}: {detail}"),
            Problem::NotSupported(value) => {
                write!(f, "{field}: Unsupported value: {value}: {detail}")
            }
        }
    }
}

impl std::error::Error for FieldError {}

/// Several errors as one text: alone as it is, else in brackets; one that repeats is said once.
pub fn aggregate(errors: &[FieldError]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for error in errors {
        let text = error.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [one] => one.clone(),
        _ => format!("[{}]", texts.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_read_as_kubernetes_writes_them() {
        let rows = [
            (FieldError::required("a.b", "why"), "a.b: Required value: why"),
            (FieldError::forbidden("a", "why"), "a: Forbidden: why"),
            (FieldError::invalid("a", "x\"y", "why"), r#"a: Invalid value: "x\"y": why"#),
            (FieldError::invalid("a", 51, "why"), "a: Invalid value: 51: why"),
            (
                FieldError::invalid("a", json!({"k": "v"}), "why"),
                r#"a: Invalid value: {"k":"v"}: why"#,
            ),
            (FieldError::not_supported("a", "x", "why"), r#"a: Unsupported value: "x": why"#),
        ];
        for (error, wanted) in rows {
            assert_eq!(error.to_string(), wanted);
        }
    }

    #[test]
    fn several_errors_stand_in_brackets() {
        let (a, b) = (FieldError::required("a", "x"), FieldError::forbidden("b", "y"));
        assert_eq!(aggregate(std::slice::from_ref(&a)), "a: Required value: x");
        assert_eq!(aggregate(&[a.clone(), b, a]), "[a: Required value: x, b: Forbidden: y]");
    }
}
