//! How busy the machine was with other things while figures were taken.

use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;

use crate::procfs;

/// A stretch of time, and the processes that belong to the benchmark.
pub(crate) struct Load {
    begin: Instant,
    machine: Duration,
    ours: Duration,
    processes: Vec<u32>,
}

impl Load {
    /// Begins. This process counts as ours, too.
    pub(crate) fn begin(processes: &[u32]) -> Result<Self> {
        let mut processes = processes.to_vec();
        processes.push(std::process::id());
        Ok(Self {
            begin: Instant::now(),
            machine: procfs::machine_time()?,
            ours: used(&processes)?,
            processes,
        })
    }

    /// Cores that everything else took, on average, as a sentence.
    pub(crate) fn end(&self) -> Result<String> {
        let machine = procfs::machine_time()?.saturating_sub(self.machine);
        let ours = used(&self.processes)?.saturating_sub(self.ours);
        let others = machine.saturating_sub(ours).as_secs_f64();
        let others = others / self.begin.elapsed().as_secs_f64();
        Ok(format!("Other processes took {others:.2} cores meanwhile."))
    }
}

fn used(processes: &[u32]) -> Result<Duration> {
    processes.iter().map(|process| procfs::processor_time(*process)).sum()
}
