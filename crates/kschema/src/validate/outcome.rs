//! What a check found.

use crate::field::FieldError;

/// Errors, and how many checks passed: of several alternatives that fail, the one with most
/// passes is reported.
#[derive(Default)]
pub(super) struct Outcome {
    failures: Vec<Failure>,
    matches: u64,
}

/// An error with the text by which repeated errors are told.
struct Failure {
    message: String,
    error: FieldError,
}

impl Outcome {
    pub(super) fn is_valid(&self) -> bool {
        self.failures.is_empty()
    }

    pub(super) fn matches(&self) -> u64 {
        self.matches
    }

    /// Counts a check.
    pub(super) fn count(&mut self) {
        self.matches += 1;
    }

    /// Adds an error, unless one with the same text is there.
    pub(super) fn fail(&mut self, message: String, error: FieldError) {
        if !self.failures.iter().any(|failure| failure.message == message) {
            self.failures.push(Failure { message, error });
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        for failure in other.failures {
            self.fail(failure.message, failure.error);
        }
        self.matches += other.matches;
    }

    /// Drops the errors.
    pub(super) fn forgive(&mut self) {
        self.failures.clear();
    }

    pub(super) fn into_errors(self) -> Vec<FieldError> {
        self.failures.into_iter().map(|failure| failure.error).collect()
    }
}
