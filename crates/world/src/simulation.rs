//! Simulated clouds and simulated nodes, for a cluster that has neither.

use std::{
    convert::Infallible,
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Write as _},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use fleetwright_clock::{Clock, Random};
use fleetwright_cloud::transport::{Transport, TransportError};
use fleetwright_runtime::{Metrics, Stage, Tasks};
use fleetwright_simcloud::{
    NoAnswer,
    aws::{Aws, Entry, model::settings::Settings as AwsSettings, seed::Installer},
};
use fleetwright_simnode::{KubeletSettings, Settings as NodeSettings, SimNodes};
use kube::Client;
use tokio::net::TcpListener;
use tower::ServiceExt;

use crate::{
    handlers::{self, NodeClients},
    hosts::Bridge,
    seed::Installation,
};

/// The parts of simulated nodes, by the names that `--controllers` knows.
pub const NODE_NAMES: &[&str] = fleetwright_simnode::NAMES;
/// The cluster that a simulated installer made.
pub const CLUSTER: &str = "fleetwright";
/// A kubelet joins this long after its instance runs.
const JOIN_DELAY: Duration = Duration::from_secs(2);
/// What an installer made is the same every time, so that manifests can refer to it.
const INSTALLER_SEED: u64 = 1;

/// How fast simulated things happen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// So many times as fast as by default. Only simulated delays: product timeouts stay.
    Times(f64),
    /// Without any delay.
    Immediate,
}

impl Pace {
    fn of(self, delay: Duration) -> Duration {
        match self {
            Self::Times(times) if times > 0.0 => delay.div_f64(times),
            Self::Times(_) | Self::Immediate => Duration::ZERO,
        }
    }
}

/// The journal of a simulated account cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the simulated cloud's journal {}", path.display())]
pub struct JournalError {
    path: PathBuf,
    source: io::Error,
}

/// A simulated account, as an installer left it.
pub struct Simulation {
    /// The cloud.
    pub aws: Aws,
    /// What the installer wrote down.
    pub installation: Installation,
    pace: Pace,
    handlers: Option<NodeClients>,
}

impl Simulation {
    /// A new account.
    pub fn new(clock: Clock, pace: Pace) -> Self {
        let mut settings = AwsSettings::default();
        settings.delays = match pace {
            Pace::Times(times) => settings.delays.faster(times),
            Pace::Immediate => fleetwright_simcloud::aws::model::settings::Delays::none(),
        };
        Self::with(settings, Random::seeded(INSTALLER_SEED), clock, pace)
    }

    /// A new account with settings of one's own.
    pub fn with(settings: AwsSettings, random: Random, clock: Clock, pace: Pace) -> Self {
        let region = settings.region.clone();
        let (aws, installed) = Installer::new(CLUSTER, random).settings(settings).install(clock);
        let installation = Installation {
            cluster: installed.infra,
            region,
            access_key: installed.access_key,
            secret_key: installed.secret_key,
        };
        Self { aws, installation, pace, handlers: None }
    }

    /// Runs the termination handler on nodes that the cloud may take back.
    #[must_use]
    pub fn with_handlers(self, clients: NodeClients) -> Self {
        Self { handlers: Some(clients), ..self }
    }

    /// Brings the account back from its journal, and goes on keeping it. A journal that does not
    /// exist yet is that of a new account.
    pub fn keep_in(&self, path: &Path) -> Result<(), JournalError> {
        let failed = |source| JournalError { path: path.to_owned(), source };
        if path.exists() {
            let lines = BufReader::new(File::open(path).map_err(failed)?).lines();
            for line in lines {
                let line = line.map_err(failed)?;
                match serde_json::from_str::<Entry>(&line) {
                    Ok(entry) => self.aws.replay(&entry),
                    // The last line of a process that was killed may be torn: its call was never
                    // answered.
                    Err(error) => tracing::warn!(%error, "a line of the journal is left out"),
                }
            }
        }
        let file = OpenOptions::new().create(true).append(true).open(path).map_err(failed)?;
        let file = Mutex::new(file);
        self.aws.keep_journal(move |entry| {
            let line = serde_json::to_string(entry).unwrap_or_default();
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(error) = file.write_all(format!("{line}\n").as_bytes()) {
                tracing::error!(%error, "the simulated cloud's journal cannot be written");
            }
        });
        Ok(())
    }

    /// The way to the cloud without a socket.
    pub fn transport(&self) -> Transport {
        let lost = |error: NoAnswer| match error {
            NoAnswer::NotSent => TransportError::NotSent(error.to_string()),
            NoAnswer::Lost => TransportError::AnswerLost(error.to_string()),
        };
        Transport::new(self.aws.clone().map_err(lost))
    }

    /// Starts the cloud, and the nodes that its instances become.
    pub fn start(
        &self,
        client: Client,
        clock: Clock,
        random: &Random,
        wanted: impl Fn(&str) -> bool + Send + Sync + 'static,
        tasks: &mut Tasks,
    ) {
        let usual = KubeletSettings::default();
        let agent = self.handlers.clone().map(|clients| {
            handlers::agent(self.aws.clone(), clients, clock.clone(), random.fork())
        });
        let settings = NodeSettings {
            wanted: std::sync::Arc::new(wanted),
            kubelet: KubeletSettings {
                ready_delay: self.pace.of(usual.ready_delay),
                pod_start: self.pace.of(usual.pod_start),
                pod_stop: self.pace.of(usual.pod_stop),
                ..usual
            },
            metrics: Metrics::new(),
            agent,
            ..NodeSettings::default()
        };
        let nodes = SimNodes::new(client, clock, random.fork(), settings);
        let bridge = Bridge::new(&self.aws, nodes.hosts(), self.pace.of(JOIN_DELAY));
        let aws = self.aws.clone();
        // Controllers stop before what they act on.
        tasks.start(Stage::Observation, "simulated cloud", |stop| async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = aws.run() => {}
                () = bridge.run() => {}
            }
            Ok::<(), Infallible>(())
        });
        tasks.start(Stage::Observation, "simulated nodes", |stop| async move {
            nodes.run(stop).await;
            Ok::<(), Infallible>(())
        });
    }

    /// Serves the cloud's protocols, and `fleetwright sim`, on a socket.
    pub fn serve(&self, listener: TcpListener, tasks: &mut Tasks) {
        let aws = self.aws.clone();
        tasks.start(Stage::Observation, "simulated cloud's listener", |stop| async move {
            tokio::select! {
                () = stop.cancelled() => Ok(()),
                ended = fleetwright_simcloud::serve(listener, aws) => ended.map(|never| match never {}),
            }
        });
    }
}
