//! Measures the embedded API against kube-apiserver and etcd.
//!
//! `cargo xtask bench` builds everything and calls this program. It runs itself once for each
//! subject, so that every subject meets a fresh client and the memory of the one that runs in
//! process is its own, and writes the report from what those runs print.

#![expect(clippy::cast_precision_loss, reason = "figures are read with three digits")]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

mod fan_out;
mod load;
mod measure;
mod network;
mod objects;
mod operations;
mod procfs;
mod report;
mod results;
mod servers;
mod suite;
mod target;

use servers::Subject;

/// Measures the embedded API against kube-apiserver and etcd.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure all subjects and write the report.
    Run(suite::SuiteArguments),
    /// Measure one subject and print the figures as JSON.
    Measure(MeasureArguments),
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
    #[expect(clippy::print_stdout, reason = "the figures are the answer of this command")]
    {
        println!("{}", serde_json::to_string(&figures)?);
    }
    Ok(())
}
