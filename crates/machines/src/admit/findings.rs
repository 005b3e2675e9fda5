//! What a rule found: errors and warnings, in the order they were found.

use fleetwright_admission::{FieldError, Verdict};
use fleetwright_runtime::config::Updates;

/// What a rule found.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Findings {
    pub(super) errors: Vec<FieldError>,
    pub(super) warnings: Vec<String>,
}

impl Findings {
    /// Something is wrong.
    pub(super) fn error(&mut self, error: FieldError) {
        self.errors.push(error);
    }

    /// The user should know something.
    pub(super) fn warn(&mut self, warning: impl Into<String>) {
        self.warnings.push(warning.into());
    }

    /// Takes over what others found.
    pub(super) fn append(&mut self, mut others: Self) {
        self.errors.append(&mut others.errors);
        self.warnings.append(&mut others.warnings);
    }

    /// Passes over what was wrong before: an error with the same words came from the same input.
    pub(super) fn hold_to(&mut self, updates: Updates, before: &Self) {
        if updates == Updates::CheckChanges {
            self.errors.retain(|error| !before.errors.contains(error));
        }
    }
}

impl From<Findings> for Verdict {
    fn from(findings: Findings) -> Self {
        Self { errors: findings.errors, warnings: findings.warnings, edit: None }
    }
}
