//! Measures the embedded API against kube-apiserver and etcd, and the controllers of machines
//! against plain clients.
//!
//! `cargo xtask bench` builds everything and calls this program. It runs itself once for each
//! subject and each benchmark of machines, so that every one meets a fresh client and the memory of
//! what runs in process is its own, and writes the report from what those runs print.

#![expect(clippy::cast_precision_loss, reason = "figures are read with three digits")]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

mod fan_out;
mod load;
mod machines;
mod measure;
mod network;
mod objects;
mod operations;
mod procfs;
mod report;
mod results;
mod section;
mod servers;
mod suite;
mod target;

use servers::Subject;

/// Measures the embedded API and the controllers of machines.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure all, or what is named, and write the report.
    Run(suite::SuiteArguments),
    /// Measure one subject of the API and print the figures as JSON.
    Measure(MeasureArguments),
    /// Run one benchmark of machines and print its section of the report.
    Machines(MachinesArguments),
    /// Bring up a fleet in this process and print what it took as JSON.
    Grow {
        /// How many Machines.
        machines: usize,
    },
}

#[derive(clap::Args)]
struct MachinesArguments {
    /// What to measure.
    bench: machines::Bench,
    /// The fleetwright program.
    #[arg(long)]
    fleetwright: PathBuf,
    /// Take small sizes: to see that everything works, not for figures.
    #[arg(long)]
    quick: bool,
    /// This many Machines instead of the usual sizes.
    #[arg(long, value_name = "COUNT")]
    machines: Option<usize>,
}

#[derive(clap::Args)]
struct MeasureArguments {
    /// What to measure.
    subject: Subject,
    /// The fleetwright program.
    #[arg(long)]
    fleetwright: PathBuf,
    /// Take short runs: to see that everything works, not for figures.
    #[arg(long)]
    quick: bool,
    /// Take only the operations whose name contains this, and nothing else (for a profiler).
    #[arg(long)]
    only: Option<String>,
    /// How long each operation is measured, in seconds.
    #[arg(long)]
    seconds: Option<f64>,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Run(arguments) => suite::run(&arguments),
        Command::Measure(arguments) => print_figures(&arguments),
        Command::Machines(arguments) => print_section(&arguments),
        Command::Grow { machines } => print_cost(machines),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn print_figures(arguments: &MeasureArguments) -> Result<()> {
    let mut scale = measure::Scale::new(arguments.quick);
    if let Some(seconds) = arguments.seconds {
        scale.window = std::time::Duration::from_secs_f64(seconds);
    }
    // A client on one thread spends the least on itself, and leaves the other core to the
    // server. In process there is no client to speak of, and the server gets all cores.
    let mut builder = match arguments.subject {
        Subject::InProcess => tokio::runtime::Builder::new_multi_thread(),
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    let runtime = builder.enable_all().build().context("cannot start the runtime")?;
    let figures = runtime.block_on(measure::subject(
        arguments.subject,
        &arguments.fleetwright,
        &scale,
        arguments.only.as_deref(),
    ))?;
    print(&serde_json::to_string(&figures)?);
    Ok(())
}

fn print_section(arguments: &MachinesArguments) -> Result<()> {
    let mut scale = machines::Scale::new(arguments.quick);
    if let Some(machines) = arguments.machines {
        scale.set = machines;
        scale.fleet = machines;
        scale.growth = [machines.div_ceil(10), machines];
    }
    print(&arguments.bench.measure(&scale, &arguments.fleetwright)?);
    Ok(())
}

fn print_cost(machines: usize) -> Result<()> {
    let cost = machines::threads()?.block_on(machines::grow(machines))?;
    print(&serde_json::to_string(&cost)?);
    Ok(())
}

#[expect(clippy::print_stdout, reason = "figures are the answer of these commands")]
fn print(text: &str) {
    println!("{text}");
}
