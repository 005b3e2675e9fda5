//! Fleetwright: machines for Kubernetes, made, placed, watched and retired.

mod aws;
mod connection;
mod crds;
mod data_dir;
mod destroy;
mod generate;
mod kubeconfig;
mod run;
mod signals;
mod sim;
mod termination_handler;
mod up;
mod views;

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
  fleetwright up                          a Kubernetes API, clouds and controllers, no cluster needed
  fleetwright up --in-memory              the same, forgotten when it stops
  export KUBECONFIG=~/.local/share/fleetwright/kubeconfig
  kubectl apply -f examples/placement-groups/
  fleetwright tree                        what is where, and what it waits for";

#[derive(Subcommand)]
enum Command {
    /// Start a whole world on this machine: a Kubernetes API, simulated clouds and nodes, and
    /// every controller, in one process, without a cluster or root.
    Up(up::UpArguments),
    /// Run the controllers on a real cluster and a real cloud.
    Run(run::RunArguments),
    /// Show MachineSets, Machines, instances, placement groups and Nodes, and how they are.
    Tree(views::TreeArguments),
    /// Tell what was done about a Machine, a MachineSet or a placement group, what it waits for,
    /// and why.
    Explain(views::ExplainArguments),
    /// Remove what Fleetwright made in the cloud, and nothing else.
    Destroy(destroy::DestroyArguments),
    /// Meddle with the simulated clouds: capacity, faults, instances that fail.
    Sim(sim::SimArguments),
    /// Watch, on a node, for the cloud taking its instance back, and say so on the Node.
    TerminationHandler(termination_handler::HandlerArguments),
    /// Print what a cluster needs to run the termination handler on its nodes.
    Manifests(termination_handler::ManifestsArguments),
    /// Print the CustomResourceDefinitions that Fleetwright needs, as YAML for kubectl apply -f -.
    Crds,
    /// Print a generated file of the repository; for `cargo xtask generate`.
    #[command(hide = true)]
    Generate(generate::GenerateArguments),
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
        Command::Run(arguments) => run::run(arguments),
        Command::Sim(arguments) => sim::run(arguments),
        Command::Destroy(arguments) => destroy::run(arguments),
        Command::Tree(arguments) => views::run_tree(&arguments),
        Command::Explain(arguments) => views::run_explain(&arguments),
        Command::TerminationHandler(arguments) => termination_handler::run(&arguments),
        Command::Manifests(arguments) => termination_handler::run_manifests(arguments),
        Command::Crds => crds::run(),
        Command::Generate(arguments) => generate::run(&arguments),
        Command::Version => version(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fleetwright: {error:#}");
            ExitCode::from(destroy::exit_code(&error).unwrap_or(FAILURE))
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
