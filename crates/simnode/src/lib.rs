//! Simulated nodes: kubelets that run pods in name only, a small scheduler, and the controllers
//! of nodes and workloads that users count on. Enough that a pod that is evicted comes back
//! elsewhere, a node that goes silent is given up, and a rollout rolls.
//!
//! Where machines come from is not known here: the world tells [`Hosts`] in plain facts which
//! machines start, stop and vanish. Everything goes through a `kube::Client`, so it does not
//! matter whether the server is in this process or is the real one. Each part has the name that
//! it has in Kubernetes ([`NAMES`]) and can be switched off, so that the real one can take its
//! place. All of it runs on virtual time, without an I/O driver.
//!
//! Costs follow changes: at rest there are only Lease renewals, and a status report of every node
//! now and then, as with real kubelets.

mod cluster;
mod error;
mod facts;
mod kubelet;
mod lifecycle;
mod scheduler;
mod settings;
mod workloads;

use std::sync::Arc;

use fleetwright_clock::{Clock, Random};
use fleetwright_runtime::EventWriter;
use kube::Client;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::cluster::{Cluster, SharedCluster};

pub use kubelet::{Agent, EXIT_CODE, Host, Hosts, Program, READY_AFTER, RUNS_FOR, TERMINATES_IN};
pub use settings::{KubeletSettings, LifecycleSettings, NAMES, Settings};

/// The whole simulation, not started yet.
pub struct SimNodes {
    cluster: SharedCluster,
    writer: EventWriter,
    kubelets: kubelet::Prepared,
    settings: Settings,
}

impl SimNodes {
    /// A simulation on the cluster that `client` reaches.
    pub fn new(client: Client, clock: Clock, random: Random, settings: Settings) -> Self {
        let metrics = settings.metrics.clone();
        let (cluster, writer) = Cluster::new(client, clock, random, metrics, settings.workers);
        let cluster = Arc::new(cluster);
        let removes_gone = (settings.wanted)(settings::CLOUD_NODE_LIFECYCLE);
        let kubelets = kubelet::Prepared::new(
            Arc::clone(&cluster),
            settings.kubelet,
            removes_gone,
            settings.agent.clone(),
        );
        Self { cluster, writer, kubelets, settings }
    }

    /// Tells the simulation about machines, before and while it runs.
    pub fn hosts(&self) -> Hosts {
        self.kubelets.hosts()
    }

    /// Runs all wanted parts until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let Self { cluster, writer, kubelets, settings } = self;
        let mut tasks = JoinSet::new();
        // What acts stops first, then what it looks at, then what tells of it.
        let (watching, telling) = (CancellationToken::new(), CancellationToken::new());
        let mut watches = JoinSet::new();
        watches.spawn(cluster.pods.clone().run(cluster.random.fork(), watching.clone()));
        watches.spawn(cluster.nodes.clone().run(cluster.random.fork(), watching.clone()));
        let mut events = JoinSet::new();
        events.spawn(writer.run(telling.clone()));
        if (settings.wanted)(settings::KUBELET) {
            tasks.spawn(kubelets.run(stop.clone()));
        }
        if (settings.wanted)(settings::SCHEDULER) {
            scheduler::spawn(&cluster, &mut tasks, &stop);
        }
        lifecycle::spawn(&cluster, &settings, &mut tasks, &stop);
        workloads::spawn(&cluster, &settings, &mut tasks, &stop);
        // Also when nothing is wanted.
        stop.cancelled().await;
        for (set, token) in [(tasks, &stop), (watches, &watching), (events, &telling)] {
            token.cancel();
            finish(set).await;
        }
    }
}

async fn finish(mut tasks: JoinSet<()>) {
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            tracing::error!(%error, "a part of the simulation ended badly");
        }
    }
}
