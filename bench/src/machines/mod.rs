//! The benchmarks of machines: what controllers cost, and how fast they are.
//!
//! Each is a module that measures and returns its section of the report. `ground` is a real server
//! with a simulated account, `embedded` the same around the embedded API, `program` is
//! `fleetwright run` on the former.

mod audit;
mod calls;
mod embedded;
mod exposition;
mod ground;
mod growth;
mod health;
mod links;
mod load;
mod objects;
mod program;
mod replicas;
mod settled;
mod spot;
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
    /// From EC2's notice to the end of the pods.
    Notice,
    /// The memory of the termination handler.
    Handler,
    /// A hundred Nodes that turn bad at once.
    Hundred,
    /// The same on the embedded API, and a check that may not repair.
    Embedded,
}

impl Bench {
    /// All of them.
    pub(crate) const ALL: [Self; 9] = [
        Self::Replicas,
        Self::Links,
        Self::Restart,
        Self::Growth,
        Self::Calls,
        Self::Notice,
        Self::Handler,
        Self::Hundred,
        Self::Embedded,
    ];

    /// The name on a command line.
    pub(crate) fn argument(self) -> &'static str {
        match self {
            Self::Replicas => "replicas",
            Self::Links => "links",
            Self::Restart => "restart",
            Self::Growth => "growth",
            Self::Calls => "calls",
            Self::Notice => "notice",
            Self::Handler => "handler",
            Self::Hundred => "hundred",
            Self::Embedded => "embedded",
        }
    }

    /// The name by which it is chosen.
    pub(crate) fn name(self) -> String {
        let about = match self {
            Self::Notice | Self::Handler => "spot",
            Self::Hundred | Self::Embedded => "health",
            _ => "machines",
        };
        format!("{about}/{}", self.argument())
    }

    /// Measures, and returns the section of the report.
    pub(crate) fn measure(self, scale: &Scale, fleetwright: &Path) -> Result<String> {
        match self {
            Self::Replicas => threads()?.block_on(replicas::measure(scale)),
            Self::Links => threads()?.block_on(links::measure(scale)),
            Self::Restart => threads()?.block_on(settled::measure(scale, fleetwright)),
            Self::Growth => growth::measure(scale),
            Self::Calls => paused()?.block_on(calls::measure(scale)),
            Self::Notice => threads()?.block_on(spot::notice::measure(scale, fleetwright)),
            Self::Handler => threads()?.block_on(spot::handler::measure(scale, fleetwright)),
            Self::Hundred => threads()?.block_on(health::hundred::measure(scale, fleetwright)),
            Self::Embedded => threads()?.block_on(health::embedded::measure(scale)),
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
    /// How long Nodes may be bad before their Machines are repaired.
    pub(crate) bad_for: Duration,
    /// How long a check that has nothing to do is watched.
    pub(crate) at_rest: Duration,
    /// Spot instances that are taken back.
    pub(crate) notices: usize,
    /// Pods on each, and their grace.
    pub(crate) pods: usize,
    pub(crate) grace: Duration,
    /// How long a handler runs before it is looked at, and then while it is.
    pub(crate) handled: Duration,
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
                bad_for: Duration::from_secs(5),
                at_rest: Duration::from_secs(5),
                notices: 1,
                pods: 5,
                grace: Duration::from_secs(2),
                handled: Duration::from_secs(3),
            };
        }
        Self {
            set: 1000,
            rounds: 3,
            fleet: 5000,
            rest: Duration::from_mins(1),
            watched: Duration::from_mins(3),
            growth: [1000, 10_000],
            bad_for: Duration::from_secs(20),
            at_rest: Duration::from_mins(1),
            notices: 5,
            pods: 30,
            grace: Duration::from_secs(10),
            handled: Duration::from_secs(20),
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

/// The one in the middle.
fn median(mut all: Vec<Duration>) -> Duration {
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or_default()
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "**not met**" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_they_are_about() {
        let names: Vec<String> = Bench::ALL.iter().map(|bench| bench.name()).collect();
        for name in ["machines/links", "spot/notice", "spot/handler", "health/hundred"] {
            assert!(names.contains(&name.to_owned()), "{names:?}");
        }
    }

    #[test]
    fn the_median_is_in_the_middle() {
        let seconds = |all: &[u64]| all.iter().copied().map(Duration::from_secs).collect();
        assert_eq!(median(seconds(&[9, 1, 5])), Duration::from_secs(5));
        assert_eq!(median(seconds(&[])), Duration::ZERO);
    }

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
