//! Conflicts as the API reports them.

use std::fmt::Write as _;

use super::entries::Managed;
use crate::fieldpath::Path;
use crate::merge::FieldConflict;

/// The `reason` of the causes in a conflict's Status.
pub const FIELD_MANAGER_CONFLICT: &str = "FieldManagerConflict";

/// A field that could not be applied because somebody else owns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The name of the owner.
    pub manager: String,
    /// How it came to own the field: `Apply` or `Update`.
    pub operation: String,
    /// The subresource through which it did.
    pub subresource: String,
    /// The version in which it did; empty for appliers.
    pub api_version: String,
    /// The field.
    pub path: Path,
    /// Orders the owners.
    key: String,
}

/// One cause in the Status of a conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConflictCause {
    /// [`FIELD_MANAGER_CONFLICT`].
    pub reason: &'static str,
    /// Who owns the field.
    pub message: String,
    /// The field.
    pub field: String,
}

impl Conflict {
    pub(super) fn new(conflict: FieldConflict, book: &Managed) -> Self {
        let identity = book.identity(&conflict.manager);
        Self {
            manager: identity.manager,
            operation: identity.operation,
            subresource: identity.subresource,
            api_version: identity.api_version,
            path: conflict.path,
            key: conflict.manager,
        }
    }

    /// The owner in words: `"kubectl" with subresource "scale" using apps/v1`.
    pub fn owner(&self) -> String {
        let mut out = fleetwright_gotext::quote(&self.manager);
        if !self.subresource.is_empty() {
            let _ =
                write!(out, " with subresource {}", fleetwright_gotext::quote(&self.subresource));
        }
        if self.operation == "Update" {
            let _ = write!(out, " using {}", self.api_version);
        }
        out
    }

    /// The cause in the Status.
    pub fn cause(&self) -> ConflictCause {
        ConflictCause {
            reason: FIELD_MANAGER_CONFLICT,
            message: format!("conflict with {}", self.owner()),
            field: self.path.to_string(),
        }
    }
}

/// The message of the Status that reports conflicts.
pub fn conflict_message(conflicts: &[Conflict]) -> String {
    if let [only] = conflicts {
        return format!(
            "Apply failed with 1 conflict: conflict with {}: {}",
            only.owner(),
            only.path
        );
    }
    let mut sorted: Vec<&Conflict> = conflicts.iter().collect();
    sorted.sort_by(|left, right| left.key.cmp(&right.key));
    let mut lines = Vec::new();
    for (i, conflict) in sorted.iter().enumerate() {
        let previous = i.checked_sub(1).and_then(|i| sorted.get(i));
        if previous.is_none_or(|previous| previous.key != conflict.key) {
            lines.push(format!("conflicts with {}:", conflict.owner()));
        }
        lines.push(format!("- {}", conflict.path));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}

/// The causes of the Status that reports conflicts.
pub fn conflict_causes(conflicts: &[Conflict]) -> Vec<ConflictCause> {
    conflicts.iter().map(Conflict::cause).collect()
}
