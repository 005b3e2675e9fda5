//! What is wrong with a value, field by field.

use std::fmt;

/// One problem with one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationError {
    /// The field, as [`crate::fieldpath::Path`] prints it; empty for the whole object.
    pub path: String,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for ValidationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

/// All problems that were found in a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValidationErrors(pub Vec<ValidationError>);

impl ValidationErrors {
    pub(super) fn one(message: impl Into<String>) -> Self {
        Self(vec![ValidationError { path: String::new(), message: message.into() }])
    }

    /// Puts the element in which the problems were found before their paths.
    pub(super) fn below(mut self, element: &impl fmt::Display) -> Self {
        if !self.0.is_empty() {
            let prefix = element.to_string();
            for error in &mut self.0 {
                error.path.insert_str(0, &prefix);
            }
        }
        self
    }

    pub(super) fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    pub(super) fn into_result(self) -> Result<(), Self> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl fmt::Display for ValidationErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.0.as_slice() {
            return only.fmt(f);
        }
        f.write_str("errors:")?;
        self.0.iter().try_for_each(|error| write!(f, "\n  {error}"))
    }
}

impl std::error::Error for ValidationErrors {}
