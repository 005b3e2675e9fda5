//! What a cloud says about the future of an instance.

use jiff::Timestamp;

/// Values of the annotation that says who gave notice.
pub mod origin {
    /// The spot market of AWS.
    pub const AWS_SPOT: &str = "aws/spot-instance-action";
    /// The spot market of AWS, through its older item.
    pub const AWS_SPOT_TIME: &str = "aws/spot-termination-time";
    /// A scheduled event of AWS that stops or retires the instance.
    pub const AWS_SCHEDULED: &str = "aws/scheduled-event";
    /// A rebalance recommendation of AWS.
    pub const AWS_REBALANCE: &str = "aws/rebalance-recommendation";
    /// A preemption on Google Cloud.
    pub const GCP_PREEMPTED: &str = "gcp/preempted";
    /// An eviction on Azure.
    pub const AZURE_PREEMPT: &str = "azure/preempt";
    /// A rebalance recommendation of Azure.
    pub const AZURE_REBALANCE: &str = "azure/rebalance-recommendation";
}

/// What will happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The instance goes.
    Termination,
    /// The instance may go soon.
    Rebalance,
}

impl Kind {
    /// As metrics call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Termination => "termination",
            Self::Rebalance => "rebalance",
        }
    }
}

/// A notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What will happen.
    pub kind: Kind,
    /// When, as the cloud says it: the node's own clock may be wrong.
    pub deadline: Option<Timestamp>,
    /// The same notice has the same identifier.
    pub id: String,
    /// Who gave it: one of [`origin`].
    pub origin: &'static str,
    /// Whether the cloud may take it back.
    pub revocable: bool,
}
