//! How many unhealthy Machines may be repaired: many at once are a fault of something else.

use crate::int_or_percent::{IntOrPercent, NotANumber, Round};

/// Condition of a health check: repairs are made.
pub const REMEDIATION_ALLOWED: &str = "RemediationAllowed";
/// Its reason when they are not.
pub const TOO_MANY_UNHEALTHY: &str = "TooManyUnhealthy";

/// When repairs are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Limit {
    /// While no more than so many are not healthy.
    AtMost(IntOrPercent),
    /// While so many are not healthy, no less and no more.
    Between {
        /// The fewest.
        least: usize,
        /// The most.
        most: usize,
    },
}

/// A limit that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// Neither a number nor a share.
    #[error(transparent)]
    NotANumber(#[from] NotANumber),
    /// Not `[3-5]`, or the wrong way round.
    #[error("invalid range {0:?}: it is written [least-most]")]
    Range(String),
}

impl Default for Limit {
    fn default() -> Self {
        Self::AtMost(IntOrPercent::Percent(100))
    }
}

impl Limit {
    /// Reads a range, `[3-5]`.
    pub fn range(text: &str) -> Result<Self, LimitError> {
        let parts = || {
            let (least, most) = text.strip_prefix('[')?.strip_suffix(']')?.split_once('-')?;
            Some((least.parse().ok()?, most.parse().ok()?))
        };
        match parts() {
            Some((least, most)) if least <= most => Ok(Self::Between { least, most }),
            _ => Err(LimitError::Range(text.to_owned())),
        }
    }

    /// The most that may be not healthy, of so many.
    pub fn most(&self, total: usize) -> usize {
        match self {
            Self::AtMost(value) => value.of(total, Round::Down),
            Self::Between { most, .. } => *most,
        }
    }

    /// Whether repairs are made.
    pub fn allows(&self, total: usize, healthy: usize) -> bool {
        let unhealthy = total.saturating_sub(healthy);
        let enough = match self {
            Self::AtMost(_) => true,
            Self::Between { least, .. } => unhealthy >= *least,
        };
        enough && unhealthy <= self.most(total)
    }

    /// How many more may turn unhealthy before repairs stop.
    pub fn left(&self, total: usize, healthy: usize) -> usize {
        if !self.allows(total, healthy) {
            return 0;
        }
        self.most(total).saturating_sub(total.saturating_sub(healthy))
    }
}

/// What [`TOO_MANY_UNHEALTHY`] says; the limit as the user wrote it.
pub fn refusal(total: usize, healthy: usize, written: &str) -> String {
    let unhealthy = total.saturating_sub(healthy);
    format!(
        "Remediation is not allowed, the number of not started or unhealthy machines exceeds \
         maxUnhealthy (total: {total}, unhealthy: {unhealthy}, maxUnhealthy: {written})"
    )
}
