//! The figures of one subject, as a measuring run prints them and the report reads them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::servers::Subject;

/// Everything that was measured of one subject.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) subject: Subject,
    /// From the start of the process to the first successful answer, one for each start.
    pub(crate) ready: Vec<Duration>,
    pub(crate) operations: Vec<Operation>,
    pub(crate) fan_out: Option<FanOut>,
    pub(crate) memory: Option<Memory>,
    /// The size of a Machine as it is stored, and as it is sent.
    pub(crate) machine_bytes: (usize, usize),
}

/// One operation at one concurrency.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Operation {
    pub(crate) name: String,
    pub(crate) concurrency: usize,
    pub(crate) requests: usize,
    pub(crate) window: Duration,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    pub(crate) cpu: Cpu,
}

/// Processor time spent while something was measured.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Cpu {
    pub(crate) server: Duration,
    pub(crate) client: Duration,
    /// By everything on the machine, ourselves included.
    pub(crate) machine: Duration,
}

/// Many watchers of the same objects.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FanOut {
    pub(crate) watchers: usize,
    /// Written at full speed.
    pub(crate) writes: usize,
    /// Events that arrived, of all watchers.
    pub(crate) delivered: usize,
    /// From the first write to the last event.
    pub(crate) window: Duration,
    /// Watches that the server ended and that were resumed.
    pub(crate) resumed: usize,
    pub(crate) cpu: Cpu,
    /// Written at an even pace that all servers can keep.
    pub(crate) paced_writes_per_second: f64,
    /// From the start of a write to the arrival of its event, at that pace.
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
}

/// Resident memory.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Memory {
    pub(crate) objects: usize,
    /// Before the first object.
    pub(crate) empty: u64,
    /// With all objects, after a rest.
    pub(crate) full: u64,
}

impl Operation {
    /// Answers per second.
    pub(crate) fn rate(&self) -> f64 {
        self.requests as f64 / self.window.as_secs_f64()
    }
}

impl FanOut {
    /// Events per second, of all watchers.
    pub(crate) fn rate(&self) -> f64 {
        self.delivered as f64 / self.window.as_secs_f64()
    }
}

/// The value below which so many percent of the sorted samples lie.
pub(crate) fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let last = sorted.len().saturating_sub(1);
    sorted.get(last * percent / 100).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_few_and_many() {
        let samples: Vec<Duration> = (1..=101).map(Duration::from_millis).collect();
        assert_eq!(percentile(&samples, 50), Duration::from_millis(51));
        assert_eq!(percentile(&samples, 99), Duration::from_millis(100));
        assert_eq!(percentile(&samples[..1], 99), Duration::from_millis(1));
        assert_eq!(percentile(&[], 50), Duration::ZERO);
    }
}
