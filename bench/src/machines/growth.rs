//! What a Machine costs in a small fleet and in one ten times as large.

use std::{env, fmt::Write, process::Command, process::Stdio, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use fleetwright_clock::{Clock, Random};
use fleetwright_runtime::Tasks;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::{
    Scale,
    embedded::World,
    ground::{WORKERS, immediate_cloud, in_phase, unlimited},
    load::Load,
    traffic::{Traffic, writes},
};
use crate::procfs;

/// Longer than it takes, on a busy machine.
const PATIENCE: Duration = Duration::from_mins(20);

/// What it took to bring up a fleet.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Cost {
    machines: usize,
    seconds: f64,
    processor_seconds: f64,
    requests: u64,
    writes: u64,
    calls: u64,
    memory: u64,
    load: String,
}

/// Measures both, each in a process of its own, and says what came out.
pub(crate) fn measure(scale: &Scale) -> Result<String> {
    let costs =
        scale.growth.iter().map(|machines| apart(*machines)).collect::<Result<Vec<Cost>>>()?;
    let (Some(small), Some(large)) = (costs.first(), costs.last()) else {
        bail!("nothing was measured");
    };
    let mut text = String::new();
    writeln!(
        text,
        "## From 0 to {} Machines on the embedded API

Everything in one process: the API in memory, simulated EC2 and nodes without delays or throttling,
all controllers with {WORKERS} workers. From the MachineSets to the last Machine that is Running with a
ready Node; each size in a process of its own. Small: {} Large: {}

| | {} Machines | {} Machines | ratio |
|---|---|---|---|",
        large.machines, small.load, large.load, small.machines, large.machines,
    )?;
    let per = |cost: &Cost, value: f64| value / cost.machines as f64;
    let mut row = |name: &str, digits: usize, of: &dyn Fn(&Cost) -> f64| {
        let (small, large) = (of(small), of(large));
        writeln!(text, "| {name} | {small:.digits$} | {large:.digits$} | {:.2} |", large / small)
    };
    row("seconds", 2, &|cost| cost.seconds)?;
    row("Machines per second", 0, &|cost| cost.machines as f64 / cost.seconds)?;
    row("time per Machine, ms", 2, &|cost| 1e3 * per(cost, cost.seconds))?;
    row("processor time per Machine, ms", 2, &|cost| 1e3 * per(cost, cost.processor_seconds))?;
    row("requests of the controllers per Machine", 2, &|cost| per(cost, cost.requests as f64))?;
    row("writes of the controllers per Machine", 2, &|cost| per(cost, cost.writes as f64))?;
    row("EC2 calls", 0, &|cost| cost.calls as f64)?;
    row("resident memory of the whole world, MB", 0, &|cost| cost.memory as f64 / 1e6)?;
    row("the same per Machine, KB", 1, &|cost| per(cost, cost.memory as f64) / 1e3)?;
    Ok(text)
}

fn apart(machines: usize) -> Result<Cost> {
    let own = env::current_exe().context("cannot find this program's own path")?;
    let output = Command::new(own)
        .args(["grow", &machines.to_string()])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run this program again")?;
    ensure!(output.status.success(), "bringing up {machines} Machines failed");
    serde_json::from_slice(&output.stdout).context("the figures cannot be read")
}

/// Brings up a fleet in this process.
pub(crate) async fn grow(machines: usize) -> Result<Cost> {
    let (clock, random) = (Clock::system(), Random::seeded(7));
    let simulation = immediate_cloud(&clock, &random);
    let world = World::start(simulation, clock.clone(), random.clone()).await?;
    let mut around = Tasks::new(CancellationToken::new());
    world.simulation.start(world.user.clone(), clock, &random, |_| true, &mut around);
    let traffic = Traffic::default();
    let controllers = world.controllers(&traffic, unlimited());
    sleep(Duration::from_secs(1)).await;

    traffic.clear();
    let load = Load::begin(&[])?;
    let (begin, cpu) = (Instant::now(), procfs::processor_time(std::process::id())?);
    world.ask_for(machines).await?;
    loop {
        let ready = world.ready().await?;
        if ready == machines {
            break;
        }
        ensure!(begin.elapsed() < PATIENCE, "only {ready} of {machines} Machines are ready");
        sleep(Duration::from_millis(50)).await;
    }
    let seconds = begin.elapsed().as_secs_f64();
    let cpu = procfs::processor_time(std::process::id())?.saturating_sub(cpu);
    let (counts, load) = (traffic.counts(), load.end()?);
    let memory = procfs::resident(std::process::id())?;
    let running = in_phase(&world.user, "Running").await?;
    ensure!(running == machines, "{running} of {machines} Machines are Running");
    let cost = Cost {
        machines,
        seconds,
        processor_seconds: cpu.as_secs_f64(),
        requests: counts.values().sum(),
        writes: writes(&counts),
        calls: world.simulation.aws.counts().values().sum(),
        memory,
        load,
    };
    eprintln!("bench: {cost:?} {counts:?}");
    controllers.stop().await?;
    Ok(cost)
}
