//! `fleetwright run`: the controllers on a real cluster.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, bail};
use fleetwright_api::{config::Infrastructure, names};
use fleetwright_clock::{Clock, Random};
use fleetwright_runtime::{
    LeaderElection, Leadership, Metrics, Stage, Tasks,
    config::{self, Config, Sources},
    metrics::{Health, answer_health, answer_metrics, serve},
};
use fleetwright_world::{
    fleet::Fleet,
    seed::{self, Installation},
};
use kube::{Api, Client};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{aws, connection::Connection, print_line, signals::stop_signal};

/// How long controllers may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(30);

#[derive(clap::Args)]
#[command(after_help = "Examples:
  fleetwright run --kubeconfig ./kubeconfig
  fleetwright run --infrastructure-name demo-x7k2p --region us-east-1
  AWS_ENDPOINT_URL=http://127.0.0.1:5000 fleetwright run      # a simulated cloud")]
pub(crate) struct RunArguments {
    #[command(flatten)]
    connection: Connection,
    /// The configuration file.
    #[arg(long, value_name = "FILE", env = "FLEETWRIGHT_CONFIG")]
    config: Option<PathBuf>,
    /// Set a field of the configuration, such as launch.capacityDeadline=5m; may be repeated.
    #[arg(long, value_name = "FIELD=VALUE")]
    set: Vec<String>,
    /// What to do about the definitions of our kinds.
    #[arg(long, value_enum, default_value_t = Definitions::Install)]
    crds: Definitions,
    /// The cluster's name in the cloud, where the cluster has no Infrastructure object.
    #[arg(long, value_name = "NAME", requires = "region")]
    infrastructure_name: Option<String>,
    /// Its region.
    #[arg(long, value_name = "REGION", requires = "infrastructure_name")]
    region: Option<String>,
}

/// What to do about the definitions of our kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Definitions {
    /// Install them, or bring them up to date.
    Install,
    /// Leave them as they are; the cluster must have them.
    Check,
}

pub(crate) fn run(arguments: RunArguments) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?
        .block_on(serve_until_stopped(arguments))
}

async fn serve_until_stopped(arguments: RunArguments) -> anyhow::Result<()> {
    let RunArguments { connection, config, set, crds, infrastructure_name, region } = arguments;
    let mut config = load(config, set)?;
    config.machine_namespace.clone_from(&connection.namespace);
    let client = connection.client().await?;
    let installer = client.clone();
    match crds {
        Definitions::Install => seed::definitions(&installer).await?,
        Definitions::Check => seed::check_definitions(&installer).await?,
    }
    seed::namespace(&installer, &config.leader_election.namespace).await?;
    if let (Some(cluster), Some(region)) = (infrastructure_name, region) {
        let installed = Installation::described(&cluster, &region);
        seed::infrastructure(&installer, &installed).await?;
    }
    check_infrastructure(&installer).await?;

    let (clock, random) = (Clock::system(), Random::from_os());
    let metrics = Metrics::new();
    let stop = CancellationToken::new();
    let mut tasks = Tasks::new(stop.clone());
    let health = Health::new();
    let leadership = compete(&config, &client, &clock, &random, &metrics, &mut tasks)?;
    serve_reports(&config, &metrics, &health, &mut tasks).await?;
    let fleet = Fleet {
        client: Box::new(move |_| client.clone()),
        namespace: config.machine_namespace.clone(),
        controllers: config.controllers.clone(),
        connector: Arc::new(aws::connector(&clock, &random)?),
        launch: config.launch.clone(),
        drain: config.drain.clone(),
        repair: config.repair.clone(),
        workers: usize::try_from(config.workers).unwrap_or(1),
        host: hostname(),
        clock,
        random,
        metrics,
        leadership,
    };
    fleet.start(&mut tasks);
    print_line(&format!(
        "Fleetwright runs the machines of namespace {}",
        config.machine_namespace
    ))?;

    let work = tasks.run(STOP_LIMIT);
    tokio::pin!(work);
    let ended = tokio::select! {
        ended = &mut work => ended,
        signal = stop_signal() => {
            signal?;
            stop.cancel();
            work.await
        }
    };
    if let Err(failures) = ended {
        let failures: Vec<String> = failures.iter().map(ToString::to_string).collect();
        bail!("{}", failures.join("; "));
    }
    Ok(())
}

/// File, environment and flags put together.
fn load(file: Option<PathBuf>, set: Vec<String>) -> anyhow::Result<Config> {
    let file = match file {
        None => None,
        Some(path) => {
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("cannot read the configuration {}", path.display()))?;
            Some((path.display().to_string(), text))
        }
    };
    let fields = config::fields();
    let flags = set
        .into_iter()
        .map(|text| {
            let (key, value) = text
                .split_once('=')
                .with_context(|| format!("--set {text}: say FIELD=VALUE, such as workers=8"))?;
            let field = fields.iter().find(|field| field.key() == key);
            let name = field.map_or_else(|| key.to_owned(), config::Field::flag);
            anyhow::Ok((name, value.to_owned()))
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let loaded = config::load(&Sources { file, environment: std::env::vars().collect(), flags })?;
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    Ok(loaded.config)
}

async fn check_infrastructure(client: &Client) -> anyhow::Result<()> {
    let api: Api<Infrastructure> = Api::all(client.clone());
    let found = api
        .get_opt(names::INFRASTRUCTURE)
        .await
        .context("cannot read the Infrastructure object")?;
    if found.as_ref().and_then(Infrastructure::cluster).is_none() {
        bail!(
            "the cluster has no Infrastructure \"{}\" with a status: say what it would with \
             --infrastructure-name NAME --region REGION",
            names::INFRASTRUCTURE
        );
    }
    Ok(())
}

fn compete(
    config: &Config,
    client: &Client,
    clock: &Clock,
    random: &Random,
    metrics: &Metrics,
    tasks: &mut Tasks,
) -> anyhow::Result<Option<Leadership>> {
    if !config.leader_election.enabled {
        return Ok(None);
    }
    let identity = format!("{}_{}", hostname(), random.uuid());
    let election = LeaderElection::new(
        client.clone(),
        config.leader_election.settings(&identity),
        clock.clone(),
        random.fork(),
        metrics,
    )?;
    let leadership = election.leadership();
    tasks.start(Stage::Leadership, "leader election", |stop| async move {
        election.run(stop).await.into_result()
    });
    Ok(Some(leadership))
}

async fn serve_reports(
    config: &Config,
    metrics: &Metrics,
    health: &Health,
    tasks: &mut Tasks,
) -> anyhow::Result<()> {
    if let Some(address) = config.metrics.address.0 {
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot serve metrics at {address}: choose another with --set metrics.address=ADDRESS:PORT, or 0 for none"))?;
        let metrics = metrics.clone();
        tasks.start(Stage::Reporting, "metrics", |stop| {
            serve(listener, move |request| answer_metrics(&metrics, request), stop)
        });
    }
    if let Some(address) = config.health.address.0 {
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot serve health checks at {address}: choose another with --set health.address=ADDRESS:PORT, or 0 for none"))?;
        let health = health.clone();
        tasks.start(Stage::Reporting, "health", |stop| {
            serve(listener, move |request| answer_health(&health, request), stop)
        });
    }
    Ok(())
}

/// The name of this host, for events and the lease.
fn hostname() -> String {
    std::env::var("HOSTNAME")
        .ok()
        .or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok())
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "fleetwright".to_owned())
}
