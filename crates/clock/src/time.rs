//! Wall time.

use jiff::Timestamp;
use tokio::time::Instant;

/// Where wall time comes from. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    Simulated { start: Timestamp, origin: Instant },
}

impl Clock {
    /// The machine's clock.
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that says `start` now and advances with tokio's (usually paused) time. Call it
    /// inside the runtime that it is to follow.
    pub fn simulated(start: Timestamp) -> Self {
        Self(Source::Simulated { start, origin: Instant::now() })
    }

    /// The current time.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System => Timestamp::now(),
            Source::Simulated { start, origin } => *start + origin.elapsed(),
        }
    }
}
