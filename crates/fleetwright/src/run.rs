//! `fleetwright run`: the controllers on a real cluster.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, bail};
use fleetwright_api::{config::Infrastructure, names};
use fleetwright_clock::{Clock, Random};
use fleetwright_runtime::{
    LeaderElection, Metrics, Stage, Tasks,
    config::{self, Config, Identities, Sources},
    metrics::{Health, answer_health, answer_metrics, serve},
};
use fleetwright_world::{
    access,
    fleet::Fleet,
    seed::{self, Installation, SYSTEM_NAMESPACE},
    webhooks::{self, Reach, Served, ServedAt},
};
use kube::{Api, Client};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    aws,
    connection::{Clients, Connection},
    print_line,
    signals::run_until_signal,
};

/// How long controllers may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(30);

#[derive(clap::Args)]
#[command(after_help = "Examples:
  fleetwright run --kubeconfig ./kubeconfig
  fleetwright run --infrastructure-name demo-x7k2p --region us-east-1
  fleetwright run --webhook-url https://10.0.0.5:9443         # where the API server reaches us
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
    #[arg(long, value_enum, default_value_t = Prepare::Install)]
    crds: Prepare,
    /// What to do about the ServiceAccounts and roles of our controllers.
    #[arg(long, value_enum, default_value_t = Prepare::Install)]
    rbac: Prepare,
    /// Where the API server reaches the webhooks, when it is not by a Service; port 0 stands for
    /// the port that they listen on. The same as --set webhooks.url=URL.
    #[arg(long, value_name = "URL")]
    webhook_url: Option<String>,
    /// The cluster's name in the cloud, where the cluster has no Infrastructure object.
    #[arg(long, value_name = "NAME", requires = "region")]
    infrastructure_name: Option<String>,
    /// Its region.
    #[arg(long, value_name = "REGION", requires = "infrastructure_name")]
    region: Option<String>,
}

/// What to do about what the cluster must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Prepare {
    /// Install it, or bring it up to date.
    Install,
    /// Leave it as it is; the cluster must have it.
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
    let RunArguments {
        connection,
        config,
        set,
        crds,
        rbac,
        webhook_url,
        infrastructure_name,
        region,
    } = arguments;
    let mut config = load(config, set)?;
    config.machine_namespace.clone_from(&connection.namespace);
    if let Some(url) = webhook_url {
        config.webhooks.url = url;
    }
    // Before anything is written: a bad flag leaves no traces.
    Reach::of(&config.webhooks)?;
    let clients = connection.clients(&config.client).await?;
    prepare(&clients, &config, crds, rbac).await?;
    let installer = clients.installer();
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
    let own = clients.of(access::PROCESS);
    let election = candidate(&config, own.clone(), &clock, &random, &metrics)?;
    let leadership = election.as_ref().map(LeaderElection::leadership);
    serve_reports(&config, &metrics, &health, &mut tasks).await?;
    let served = Served {
        config: config.webhooks.clone(),
        namespace: config.machine_namespace.clone(),
        own,
        facts: clients.of(webhooks::IDENTITY),
        clock: clock.clone(),
        random: random.fork(),
        metrics: metrics.clone(),
        health,
        leadership: leadership.clone(),
    };
    let served_at = served.start(&mut tasks).await?;
    let connector = Arc::new(aws::connector(&clock, &random)?);
    let fleet = Fleet {
        host: hostname(),
        metrics,
        leadership,
        ..Fleet::new(&config, move |name| clients.of(name), connector, clock, random)
    };
    fleet.start(&mut tasks);
    // Last: who cannot start must not hold the lease.
    if let Some(election) = election {
        tasks.start(Stage::Leadership, "leader election", |stop| async move {
            election.run(stop).await.into_result()
        });
    }
    announce(&config, served_at)?;

    run_until_signal(tasks, &stop, STOP_LIMIT).await
}

/// Makes or checks what the cluster must have.
async fn prepare(
    clients: &Clients,
    config: &Config,
    crds: Prepare,
    rbac: Prepare,
) -> anyhow::Result<()> {
    let installer = clients.installer();
    match crds {
        Prepare::Install => {
            seed::definitions(&installer).await?;
            for namespace in [&config.leader_election.namespace, SYSTEM_NAMESPACE] {
                seed::namespace(&installer, namespace).await?;
            }
        }
        Prepare::Check => seed::check_definitions(&installer).await?,
    }
    let namespace = &config.machine_namespace;
    match (config.client.identities, rbac) {
        (Identities::Own, _) => {}
        (Identities::Impersonate, Prepare::Install) => {
            seed::namespace(&installer, namespace).await?;
            access::install(&installer, namespace).await?;
        }
        (Identities::Impersonate, Prepare::Check) => {
            access::check(|name| clients.of(name), namespace).await?;
        }
    }
    Ok(())
}

fn announce(config: &Config, served: ServedAt) -> anyhow::Result<()> {
    if served == ServedAt::OutOfReach {
        tracing::warn!(
            "webhooks are off: what is wrong in a Machine shows when it is launched, not when it is \
             written. The API server has no way to this process: say one with --webhook-url \
             https://HOST:9443, or make Service {SYSTEM_NAMESPACE}/{}",
            config.webhooks.service
        );
    }
    let webhooks = match served {
        ServedAt::Address(address) => format!(", and serves webhooks on port {}", address.port()),
        ServedAt::Off | ServedAt::OutOfReach => String::new(),
    };
    let namespace = &config.machine_namespace;
    print_line(&format!("Fleetwright runs the machines of namespace {namespace}{webhooks}"))
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

fn candidate(
    config: &Config,
    client: Client,
    clock: &Clock,
    random: &Random,
    metrics: &Metrics,
) -> anyhow::Result<Option<LeaderElection>> {
    if !config.leader_election.enabled {
        return Ok(None);
    }
    let identity = format!("{}_{}", hostname(), random.uuid());
    let election = LeaderElection::new(
        client,
        config.leader_election.settings(&identity),
        clock.clone(),
        random.fork(),
        metrics,
    )?;
    Ok(Some(election))
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
