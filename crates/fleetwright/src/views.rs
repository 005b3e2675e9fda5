//! `fleetwright tree` and `fleetwright explain`.

use fleetwright_clock::Clock;
use fleetwright_views::{Snapshot, explain::explain, tree::tree};

use crate::{
    connection::{Connection, block_on},
    print_line,
};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  fleetwright tree
  fleetwright tree --kubeconfig ./kubeconfig")]
pub(crate) struct TreeArguments {
    #[command(flatten)]
    connection: Connection,
}

#[derive(clap::Args)]
#[command(after_help = "Examples:
  fleetwright explain machine/worker-abc12
  fleetwright explain machineset/worker
  fleetwright explain awsplacementgroup/low-latency")]
pub(crate) struct ExplainArguments {
    /// What to explain: machine/NAME, machineset/NAME or awsplacementgroup/NAME.
    #[arg(value_name = "KIND/NAME")]
    subject: String,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) fn run_tree(arguments: &TreeArguments) -> anyhow::Result<()> {
    let text = block_on(async {
        let client = arguments.connection.client().await?;
        let snapshot = Snapshot::read(&client, &arguments.connection.namespace).await?;
        Ok(tree(&snapshot, Clock::system().now()))
    })?;
    print_line(text.trim_end())
}

pub(crate) fn run_explain(arguments: &ExplainArguments) -> anyhow::Result<()> {
    let text = block_on(async {
        let client = arguments.connection.client().await?;
        let snapshot = Snapshot::read(&client, &arguments.connection.namespace).await?;
        Ok(explain(&arguments.subject, &snapshot, Clock::system().now())?)
    })?;
    print_line(text.trim_end())
}
