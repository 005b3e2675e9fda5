//! `fleetwright destroy`: removes what Fleetwright made in the cloud.

use std::{
    io::{BufRead as _, IsTerminal as _, Write as _},
    path::PathBuf,
    sync::Arc,
};

use anyhow::{Context, bail};
use clap::Subcommand;
use fleetwright_clock::{Clock, Random};
use fleetwright_cloud::{Account, Cloud, Connector as _, Credentials};
use fleetwright_destroy::{DestroyError, Options, Survey, destroy, plan};
use fleetwright_runtime::config::{Config, Span};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;

use crate::{
    aws,
    connection::{Connection, block_on},
    print_line,
};

#[derive(clap::Args)]
pub(crate) struct DestroyArguments {
    #[command(subcommand)]
    command: DestroyCommand,
}

#[derive(Subcommand)]
enum DestroyCommand {
    /// Remove what Fleetwright made for a cluster: instances and their volumes, dedicated hosts,
    /// placement groups. Everything else is listed and left alone.
    Cluster(ClusterArguments),
}

#[derive(clap::Args)]
#[command(
    after_help = "Stop the Fleetwright of the cluster first: it would make again what is removed.
A run that is interrupted is resumed by running it again.

Examples:
  fleetwright destroy cluster demo-x7k2p --region us-east-1 --dry-run
  fleetwright destroy cluster demo-x7k2p --region us-east-1
  fleetwright destroy cluster demo-x7k2p --region us-east-1 --kubeconfig FILE --yes

Exit codes: 0 nothing is left, 1 something is in the way, 3 it took too long."
)]
struct ClusterArguments {
    /// The cluster's name in the cloud: status.infrastructureName of its Infrastructure.
    #[arg(value_name = "NAME")]
    cluster: String,
    /// Its region.
    #[arg(long, value_name = "REGION", env = "AWS_REGION")]
    region: String,
    /// Show what would be removed, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
    /// Give up when nothing has changed for this long.
    #[arg(long, value_name = "TIME", default_value = "15m")]
    timeout: Span,
    /// The kubeconfig of the cluster, if it still has an API: make sure that no Fleetwright runs.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

/// It is asked for on standard input, so that nobody destroys the wrong cluster by habit.
const QUESTION: &str = "Type the name of the cluster to go on: ";

pub(crate) fn run(arguments: DestroyArguments) -> anyhow::Result<()> {
    let DestroyCommand::Cluster(arguments) = arguments.command;
    block_on(run_cluster(arguments))
}

async fn run_cluster(arguments: ClusterArguments) -> anyhow::Result<()> {
    let ClusterArguments { cluster, region, dry_run, yes, timeout, kubeconfig } = arguments;
    if let Some(kubeconfig) = kubeconfig {
        make_sure_that_nobody_runs(kubeconfig).await?;
    }
    let connector = aws::connector(&Clock::system(), &Random::from_os())?;
    let account = Account::new(&region, Credentials::Ambient);
    let cloud: Arc<dyn Cloud> = connector.connect(account)?;
    let survey = Survey::take(cloud.as_ref(), &cluster)
        .await
        .with_context(|| format!("cannot read what cluster {cluster} has in {region}"))?;
    let planned = plan(&survey, &fleetwright_destroy::Refusals::new());
    print_line(&format!("Cluster {cluster} in {region}\n\n{}", planned.describe(&cluster)))?;
    if dry_run {
        return Ok(());
    }
    if planned.going().next().is_some() {
        print_line("A Fleetwright that runs for this cluster would make it again: stop it first.")?;
        if !yes {
            confirm(&cluster)?;
        }
    }
    let options = Options { patience: timeout.0, ..Options::default() };
    let mut failed = None;
    let outcome = destroy(cloud.as_ref(), survey, options, |line| {
        failed = failed.take().or(print_line(line).err());
    })
    .await?;
    // Work is not left half done because nobody reads about it.
    failed.map_or(Ok(()), Err)?;
    print_line(&format!("removed: {}", outcome.removed))?;
    let left = outcome.left.items.len();
    if left > 0 {
        print_line(outcome.left.in_the_way().trim_end())?;
        bail!("{left} of what Fleetwright made could not be removed");
    }
    Ok(())
}

/// Exit code for what did not end in time.
pub(crate) fn exit_code(error: &anyhow::Error) -> Option<u8> {
    let not_in_time = matches!(error.downcast_ref(), Some(DestroyError::NotInTime { .. }));
    not_in_time.then_some(3)
}

fn confirm(cluster: &str) -> anyhow::Result<()> {
    let input = std::io::stdin();
    if !input.is_terminal() {
        bail!("nothing was removed: there is nobody to ask; say --yes to go on without");
    }
    let mut out = std::io::stdout().lock();
    write!(out, "{QUESTION}")?;
    out.flush()?;
    let mut answer = String::new();
    input.lock().read_line(&mut answer)?;
    if answer.trim() != cluster {
        bail!("nothing was removed: that is not {cluster}");
    }
    Ok(())
}

/// Looks for somebody who holds the lease of the controllers.
async fn make_sure_that_nobody_runs(kubeconfig: PathBuf) -> anyhow::Result<()> {
    let client = Connection::with_kubeconfig(kubeconfig).client().await?;
    let election = Config::default().leader_election;
    let api: Api<Lease> = Api::namespaced(client, &election.namespace);
    let lease = api
        .get_opt(&election.name)
        .await
        .context("cannot read whether a Fleetwright runs: leave out --kubeconfig if it is gone")?;
    let held = lease.and_then(|lease| lease.spec).and_then(|spec| {
        let holder = spec.holder_identity.filter(|holder| !holder.is_empty())?;
        let lasts = i64::from(spec.lease_duration_seconds?);
        let until = spec.renew_time?.0.checked_add(jiff::SignedDuration::from_secs(lasts)).ok()?;
        (until > Clock::system().now()).then_some(holder)
    });
    if let Some(holder) = held {
        bail!("a Fleetwright runs for this cluster, {holder}: stop it first");
    }
    Ok(())
}
