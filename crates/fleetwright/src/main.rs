//! Fleetwright: machines for Kubernetes, made, placed, watched and retired.

mod crds;
mod data_dir;
mod kubeconfig;
mod up;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Makes, places, watches and retires machines for Kubernetes.
#[derive(Parser)]
#[command(name = "fleetwright", version, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  fleetwright up                          start a Kubernetes API on this machine, no cluster needed
  fleetwright up --in-memory              the same, forgotten when it stops
  export KUBECONFIG=~/.local/share/fleetwright/kubeconfig
  kubectl get crds";

#[derive(Subcommand)]
enum Command {
    /// Start a Kubernetes API on this machine: one process, no cluster, no root.
    Up(up::UpArguments),
    /// Print the CustomResourceDefinitions that Fleetwright needs, as YAML for kubectl apply -f -.
    Crds,
    /// Print the version.
    Version,
}

/// Exit code for a failure; 2, for wrong usage, is clap's own.
const FAILURE: u8 = 1;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_env("FLEETWRIGHT_LOG")
                .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn")),
        )
        .with_writer(std::io::stderr)
        .init();
    let outcome = match arguments.command {
        Command::Up(arguments) => up::run(arguments),
        Command::Crds => {
            crds::run();
            Ok(())
        }
        Command::Version => version(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fleetwright: {error:#}");
            ExitCode::from(FAILURE)
        }
    }
}

fn version() -> anyhow::Result<()> {
    print_line(&format!("fleetwright {}", env!("CARGO_PKG_VERSION")))
}

/// Prints to standard output; a closed pipe is an error like any other.
fn print_line(text: &str) -> anyhow::Result<()> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()?;
    Ok(())
}
