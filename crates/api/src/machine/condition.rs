use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};

open_enum! {
    /// How serious it is that a condition is False.
    Severity {
        /// Needs a hand.
        Error = "Error",
        /// May pass.
        Warning = "Warning",
        /// Expected.
        Info = "Info",
    }
}

/// A condition of Machine, MachineSet and MachineHealthCheck. Unlike the Kubernetes condition it
/// has a severity and no observedGeneration, and its reason may be absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What it is about; see [`crate::names::condition`].
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// How serious; only when the status is `False`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// When status, reason, severity or message last changed.
    pub last_transition_time: Time,
    /// Why, as one word; see [`crate::names::reason`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl Condition {
    /// The status `True`.
    pub const TRUE: &'static str = "True";
    /// The status `False`.
    pub const FALSE: &'static str = "False";
    /// The status `Unknown`.
    pub const UNKNOWN: &'static str = "Unknown";

    /// Whether the status is `True`.
    pub fn is_true(&self) -> bool {
        self.status == Self::TRUE
    }

    /// Whether both say the same, whenever they began to.
    pub fn says_the_same(&self, other: &Self) -> bool {
        self.type_ == other.type_
            && self.status == other.status
            && self.severity == other.severity
            && self.reason == other.reason
            && self.message == other.message
    }
}
