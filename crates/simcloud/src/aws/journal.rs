//! What was done to a simulated account, step by step, so that it can be brought back.
//!
//! The model is told the time and draws its chance from a seed: the same steps at the same times
//! make the same account again, identifiers included.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A step that may have changed something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When.
    pub at: Timestamp,
    /// What.
    pub step: Step,
}

/// What can be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Step {
    /// A call of the API that was let through.
    Call {
        /// The form, as it was sent.
        form: String,
        /// By whom.
        caller: Option<String>,
    },
    /// A request to the control surface.
    Control {
        /// Its method.
        method: String,
        /// Its path, below the prefix.
        path: String,
        /// Its body.
        body: String,
    },
}

/// Told of every entry, before its answer is given.
pub(super) type Journal = Box<dyn Fn(&Entry) + Send + Sync>;

/// Whether an action of the API only reads.
pub(super) fn only_reads(action: &str) -> bool {
    action.starts_with("Describe") || action.starts_with("Get")
}
