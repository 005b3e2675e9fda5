//! The subjects: what is measured, and how it is started.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use fleetwright_apiserver::Limits;
use fleetwright_apiserver::auth::authn::signing::SigningKey;
use fleetwright_apiserver::embedded::{self, Embedded, Settings, StoreLocation};
use fleetwright_apiserver::tls::Authority;
use fleetwright_clock::{Clock, Random};
use fleetwright_referees::process::Supervised;
use fleetwright_referees::{Access, Client, Cluster, RealCluster, RealOptions, Request};
use http::Method;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::network::Network;
use crate::procfs;
use crate::target::Target;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Subject {
    /// kube-apiserver and etcd.
    Reference,
    /// `fleetwright up`, keeping its data on the disk.
    Durable,
    /// `fleetwright up --in-memory`.
    Memory,
    /// The server as a service in this process, in memory.
    InProcess,
}

impl Subject {
    /// All of them, the one that the others are compared with first.
    pub(crate) const ALL: [Self; 4] =
        [Self::Reference, Self::Durable, Self::Memory, Self::InProcess];

    /// The name on a command line.
    pub(crate) fn argument(self) -> &'static str {
        match self {
            Self::Reference => "reference",
            Self::Durable => "durable",
            Self::Memory => "memory",
            Self::InProcess => "in-process",
        }
    }

    /// The name in the report.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Reference => "kube-apiserver + etcd",
            Self::Durable => "durable, TLS",
            Self::Memory => "in memory, TLS",
            Self::InProcess => "in process",
        }
    }
}

/// A subject that runs. It ends with the value.
pub(crate) struct Running {
    pub(crate) target: Target,
    /// The processes that make up the server.
    pub(crate) processes: Vec<u32>,
    /// From the start of the process to the first successful answer.
    pub(crate) ready: Duration,
    _keep: Keep,
}

/// What ends a server when it is dropped.
enum Keep {
    Reference { _cluster: Box<RealCluster> },
    Program { _process: Supervised, _folder: TempDir },
    InProcess { _running: embedded::Running },
}

/// Longer than any start takes.
const START_LIMIT: Duration = Duration::from_secs(30);

/// Starts a subject and waits until it answers.
pub(crate) async fn start(subject: Subject, fleetwright: &Path) -> Result<Running> {
    match subject {
        Subject::Reference => start_reference().await,
        Subject::Durable => start_program(fleetwright, &["--data-dir", "data"]).await,
        Subject::Memory => start_program(fleetwright, &["--in-memory"]).await,
        Subject::InProcess => start_in_process().await,
    }
}

async fn start_reference() -> Result<Running> {
    let options = RealOptions { controllers: false, durable: true, ..RealOptions::default() };
    let cluster = RealCluster::start_with(&options).await?;
    let processes = cluster.process_ids();
    // The fixture has just had its first answer; the older of the processes is etcd.
    let ages: Vec<Duration> =
        processes.iter().map(|process| procfs::age(*process)).collect::<Result<_>>()?;
    let ready = ages.into_iter().max().context("the fixture has started nothing")?;
    let target = Target::Network(Network::connect(cluster.access()).await?);
    Ok(Running { target, processes, ready, _keep: Keep::Reference { _cluster: Box::new(cluster) } })
}

async fn start_program(fleetwright: &Path, flags: &[&str]) -> Result<Running> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let mut arguments = vec!["up", "--listen", "127.0.0.1:0", "--kubeconfig", "kubeconfig"];
    arguments.extend(flags);
    let begin = Instant::now();
    let mut process = Supervised::start("fleetwright", fleetwright, &arguments, folder.path())?;
    // The kubeconfig appears when the server is ready.
    let kubeconfig = folder.path().join("kubeconfig");
    while !kubeconfig.is_file() {
        process.check()?;
        if begin.elapsed() > START_LIMIT {
            bail!("fleetwright wrote no kubeconfig in time:\n{}", process.log_tail());
        }
        sleep(Duration::from_millis(1)).await;
    }
    let access = Access::from_kubeconfig(&kubeconfig)?;
    let answer = Client::new(&access)?.send(&Request::get("/readyz")).await?;
    ensure!(answer.status == 200, "fleetwright says it is not ready: {}", answer.text());
    let ready = begin.elapsed();
    Ok(Running {
        target: Target::Network(Network::connect(&access).await?),
        processes: vec![process.id()],
        ready,
        _keep: Keep::Program { _process: process, _folder: folder },
    })
}

async fn start_in_process() -> Result<Running> {
    let begin = Instant::now();
    let clock = Clock::system();
    let embedded = Embedded::open(StoreLocation::Memory, &clock)?;
    let signing = SigningKey::generate().context("cannot make the key of service accounts")?;
    let settings = Settings {
        clock: clock.clone(),
        random: Random::from_os(),
        limits: Limits::default(),
        tokens: String::new(),
        service_account_key: signing.pkcs8().to_vec(),
        authority: Authority::generate(&clock)?.identity.certificate,
        controllers: Box::new(|_| true),
    };
    let running = embedded.start(settings).await?;
    let target = Target::Local(running.server().clone());
    target.must(Method::GET, "/api/v1/namespaces/default", None).await?;
    Ok(Running {
        target,
        processes: vec![std::process::id()],
        ready: begin.elapsed(),
        _keep: Keep::InProcess { _running: running },
    })
}
