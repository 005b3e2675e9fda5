//! The benchmarks of machines: what controllers cost, and how fast they are.
//!
//! Each is a module that measures and returns its section of the report. `ground` is a real server
//! with a simulated account, `embedded` the same around the embedded API.

mod audit;
mod calls;
mod embedded;
mod ground;
mod growth;
mod links;
mod load;
mod objects;
mod replicas;
mod settled;
mod traffic;

use std::{path::Path, time::Duration};

use anyhow::{Context, Result};
use clap::ValueEnum;
use tokio::runtime::{Builder, Runtime};

pub(crate) use growth::grow;

/// A benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Bench {
    /// A MachineSet from nothing to many Machines and back.
    Replicas,
    /// Machines that find their Nodes.
    Links,
    /// A start with nothing to do, and the rest after it.
    Restart,
    /// What a Machine costs in a small and in a large fleet.
    Growth,
    /// EC2 calls in an hour.
    Calls,
}

impl Bench {
    /// All of them.
    pub(crate) const ALL: [Self; 5] =
        [Self::Replicas, Self::Links, Self::Restart, Self::Growth, Self::Calls];

    /// The name on a command line.
    pub(crate) fn argument(self) -> &'static str {
        match self {
            Self::Replicas => "replicas",
            Self::Links => "links",
            Self::Restart => "restart",
            Self::Growth => "growth",
            Self::Calls => "calls",
        }
    }

    /// The name by which it is chosen.
    pub(crate) fn name(self) -> String {
        format!("machines/{}", self.argument())
    }

    /// Measures, and returns the section of the report.
    pub(crate) fn measure(self, scale: &Scale, fleetwright: &Path) -> Result<String> {
        match self {
            Self::Replicas => threads()?.block_on(replicas::measure(scale)),
            Self::Links => threads()?.block_on(links::measure(scale)),
            Self::Restart => threads()?.block_on(settled::measure(scale, fleetwright)),
            Self::Growth => growth::measure(scale),
            Self::Calls => paused()?.block_on(calls::measure(scale)),
        }
    }
}

/// How much is measured.
#[derive(Debug, Clone)]
pub(crate) struct Scale {
    /// Machines of one set.
    pub(crate) set: usize,
    /// How often they come and go.
    pub(crate) rounds: usize,
    /// Machines of a fleet that rests.
    pub(crate) fleet: usize,
    /// How long it rests before anything is measured.
    pub(crate) rest: Duration,
    /// How long it is watched.
    pub(crate) watched: Duration,
    /// Machines of fleets that grow.
    pub(crate) growth: [usize; 2],
}

impl Scale {
    /// For figures, or (quick) to see that everything works.
    pub(crate) fn new(quick: bool) -> Self {
        if quick {
            return Self {
                set: 40,
                rounds: 1,
                fleet: 40,
                rest: Duration::from_secs(1),
                watched: Duration::from_secs(5),
                growth: [20, 200],
            };
        }
        Self {
            set: 1000,
            rounds: 3,
            fleet: 5000,
            rest: Duration::from_mins(1),
            watched: Duration::from_mins(3),
            growth: [1000, 10_000],
        }
    }
}

/// A runtime as `fleetwright run` has it.
pub(crate) fn threads() -> Result<Runtime> {
    Builder::new_multi_thread().enable_all().build().context("cannot start the runtime")
}

/// One thread on virtual time.
fn paused() -> Result<Runtime> {
    let mut builder = Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().context("cannot start the runtime")
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "**not met**" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fleet_is_brought_up_and_kept_with_few_calls() {
        let scale = Scale { set: 5, ..Scale::new(true) };
        let section = paused().unwrap().block_on(calls::measure(&scale)).unwrap();
        assert!(
            section.contains("for 5 Machines") && section.contains("RunInstances"),
            "{section}"
        );
    }
}
