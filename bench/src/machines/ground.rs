//! A real Kubernetes API with a simulated account beside it, and controllers that come and go.

use std::{collections::BTreeSet, path::Path, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use fleetwright_api::{
    machine::{Machine, MachineSet},
    names::MACHINE_NAMESPACE,
};
use fleetwright_clock::{Clock, Random};
use fleetwright_cloud::limiter::{LimitPolicy, Pace as CallPace};
use fleetwright_cloud_aws::{AwsConnector, AwsOptions};
use fleetwright_referees::{Cluster, RealCluster, RealOptions};
use fleetwright_runtime::{
    Metrics, Tasks,
    config::{Config, ControllerNames},
};
use fleetwright_simcloud::aws::model::{
    instance::{Instance, InstanceState},
    settings::{Delays, Settings, Throttling},
};
use fleetwright_world::{
    fleet::Fleet,
    seed,
    simulation::{Pace, Simulation},
};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, PostParams},
    client::ClientBuilder,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{objects, traffic::Traffic};

/// Requests that a plain client has under way, and those that a MachineSet has.
pub(crate) const IN_FLIGHT: usize = 32;
/// Machines that controllers work on at the same time, as in `fleetwright up`.
pub(crate) const WORKERS: usize = 16;
/// How long controllers may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// When nothing was written for so long, controllers are done.
pub(crate) const QUIET: Duration = Duration::from_secs(3);
/// Longer than anything takes, on a busy machine.
const PATIENCE: Duration = Duration::from_mins(20);

/// A real server and a simulated account.
pub(crate) struct Ground {
    pub(crate) cluster: RealCluster,
    pub(crate) simulation: Simulation,
    /// As whom the benchmark itself acts.
    pub(crate) user: Client,
    pub(crate) clock: Clock,
    pub(crate) random: Random,
    _cloud: JoinSet<()>,
}

impl Ground {
    /// Starts kube-apiserver and etcd, and defines our kinds.
    pub(crate) async fn start(flags: Vec<String>) -> Result<Self> {
        let options = RealOptions {
            controllers: false,
            durable: true,
            extra_flags: flags,
            ..RealOptions::default()
        };
        let cluster = RealCluster::start_with(&options).await?;
        let user = client(&cluster.access().kubeconfig, &Traffic::default()).await?;
        let (clock, random) = (Clock::system(), Random::seeded(7));
        let simulation = immediate_cloud(&clock, &random);
        seed::definitions(&user).await?;
        seed::installation(&user, &simulation.installation).await?;
        let mut cloud = JoinSet::new();
        let aws = simulation.aws.clone();
        cloud.spawn(async move { aws.run().await });
        Ok(Self { cluster, simulation, user, clock, random, _cloud: cloud })
    }

    /// A client whose requests are counted.
    pub(crate) async fn client(&self, traffic: &Traffic) -> Result<Client> {
        client(&self.cluster.access().kubeconfig, traffic).await
    }

    /// The processes of the server.
    pub(crate) fn processes(&self) -> Vec<u32> {
        self.cluster.process_ids()
    }

    /// Starts controllers in this process.
    pub(crate) async fn controllers(&self, names: &str, traffic: &Traffic) -> Result<Controllers> {
        let client = self.client(traffic).await?;
        let clients = move |_: &str| client.clone();
        let cloud = AwsOptions {
            limits: unlimited(),
            ..AwsOptions::new(self.simulation.transport(), self.clock.clone(), self.random.fork())
        };
        Ok(Controllers::start(names, clients, cloud))
    }

    /// Makes a fleet of so many Machines, each with an instance, and stops before their Nodes.
    pub(crate) async fn provision(&self, machines: usize, traffic: &Traffic) -> Result<()> {
        let api: Api<MachineSet> = Api::namespaced(self.user.clone(), MACHINE_NAMESPACE);
        for set in objects::machine_sets(machines) {
            let set: MachineSet = serde_json::from_value(set)?;
            api.create(&PostParams::default(), &set).await.context("cannot create a MachineSet")?;
        }
        self.wait_for("Provisioned", machines, traffic).await
    }

    /// Waits until controllers are done, and there are so many Machines, whatever their phase.
    pub(crate) async fn settled(&self, count: usize, traffic: &Traffic) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        loop {
            traffic.quiet(QUIET).await;
            let found = machines(&self.user).await?;
            if found == count {
                return Ok(());
            }
            if Instant::now() > end {
                bail!("there are {found} Machines of {count} after {PATIENCE:?}");
            }
            tokio::time::sleep(QUIET).await;
        }
    }

    /// Waits until controllers are done, and all Machines are in a phase.
    pub(crate) async fn wait_for(
        &self,
        phase: &str,
        machines: usize,
        traffic: &Traffic,
    ) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        loop {
            traffic.quiet(QUIET).await;
            let found = in_phase(&self.user, phase).await?;
            if found == machines {
                return Ok(());
            }
            ensure!(
                found < machines,
                "{found} Machines are {phase}, and {machines} were asked for"
            );
            if Instant::now() > end {
                bail!("only {found} of {machines} Machines are {phase} after {PATIENCE:?}");
            }
            tokio::time::sleep(QUIET).await;
        }
    }

    /// Lets the kubelets of all instances join that have not, and waits until all Machines run.
    pub(crate) async fn join(&self, machines: usize, traffic: &Traffic) -> Result<()> {
        join(&self.user, &self.instances()).await?;
        self.wait_for("Running", machines, traffic).await
    }

    /// Serves the account to other processes.
    pub(crate) async fn serve_cloud(&self) -> Result<ServedCloud> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("cannot serve the cloud")?;
        let url = format!("http://{}", listener.local_addr()?);
        let mut tasks = Tasks::new(CancellationToken::new());
        self.simulation.serve(listener, &mut tasks);
        Ok(ServedCloud { url, _tasks: tasks })
    }

    /// The instances that run.
    pub(crate) fn instances(&self) -> Vec<Instance> {
        running(&self.simulation)
    }
}

/// The instances of an account that run.
pub(crate) fn running(simulation: &Simulation) -> Vec<Instance> {
    simulation.aws.with(|region, _| {
        let all = region.instances();
        all.filter(|instance| instance.state == InstanceState::Running).cloned().collect()
    })
}

/// Registers the Nodes of those instances that have none.
pub(crate) async fn join(client: &Client, instances: &[Instance]) -> Result<()> {
    let api: Api<Node> = Api::all(client.clone());
    let there = api.list_metadata(&ListParams::default()).await.context("cannot list Nodes")?;
    let there: BTreeSet<String> = there.items.iter().map(ResourceExt::name_any).collect();
    let new = instances.iter().filter(|instance| !there.contains(instance.private_dns()));
    register(client, new.map(objects::node).collect()).await
}

/// An account behind a socket, as long as the value lives.
pub(crate) struct ServedCloud {
    pub(crate) url: String,
    _tasks: Tasks,
}

/// An account in which nothing takes time and any number of calls is fine.
pub(crate) fn immediate_cloud(clock: &Clock, random: &Random) -> Simulation {
    let settings =
        Settings { delays: Delays::none(), throttling: Throttling::off(), ..Settings::default() };
    Simulation::with(settings, random.fork(), clock.clone(), Pace::Immediate)
}

/// Calls as fast as they are answered.
pub(crate) fn unlimited() -> LimitPolicy {
    let pace = CallPace { rate: 1e6, burst: 1_000_000 };
    LimitPolicy { reads: pace, writes: pace, ..LimitPolicy::default() }
}

/// How many Machines there are.
pub(crate) async fn machines(client: &Client) -> Result<usize> {
    let api: Api<Machine> = Api::namespaced(client.clone(), MACHINE_NAMESPACE);
    Ok(api.list_metadata(&ListParams::default()).await.context("cannot list Machines")?.items.len())
}

/// How many Machines are in a phase.
pub(crate) async fn in_phase(client: &Client, phase: &str) -> Result<usize> {
    let api: Api<Machine> = Api::namespaced(client.clone(), MACHINE_NAMESPACE);
    let all = api.list(&ListParams::default()).await.context("cannot list Machines")?;
    let phases = all.items.iter().filter_map(|machine| machine.status.as_ref()?.phase.as_ref());
    Ok(phases.filter(|found| found.as_str() == phase).count())
}

/// Registers Nodes, so many at a time, as kubelets would.
pub(crate) async fn register(client: &Client, nodes: Vec<Value>) -> Result<()> {
    let api: Api<Node> = Api::all(client.clone());
    stream::iter(nodes)
        .map(|node| {
            let api = api.clone();
            async move {
                let node: Node = serde_json::from_value(node)?;
                api.create(&PostParams::default(), &node).await.context("cannot create a Node")?;
                anyhow::Ok(())
            }
        })
        .buffer_unordered(IN_FLIGHT)
        .try_collect()
        .await
}

/// A client whose requests are counted.
pub(crate) async fn client(kubeconfig: &Path, traffic: &Traffic) -> Result<Client> {
    let file = Kubeconfig::read_from(kubeconfig).context("cannot read the kubeconfig")?;
    let mut config =
        kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    config.default_retry = false;
    Ok(ClientBuilder::try_from(config)?.with_layer(traffic).build())
}

/// Controllers that run in this process.
pub(crate) struct Controllers {
    pub(crate) metrics: Metrics,
    stop: CancellationToken,
    tasks: Tasks,
}

impl Controllers {
    /// Starts the controllers of these names.
    pub(crate) fn start(
        names: &str,
        client: impl Fn(&str) -> Client + Send + 'static,
        cloud: AwsOptions,
    ) -> Self {
        let config = Config::default();
        let stop = CancellationToken::new();
        let mut tasks = Tasks::new(stop.clone());
        let metrics = Metrics::new();
        let (clock, random) = (cloud.clock.clone(), cloud.random.fork());
        let fleet = Fleet {
            client: Box::new(client),
            namespace: MACHINE_NAMESPACE.to_owned(),
            controllers: ControllerNames(names.split(',').map(str::to_owned).collect()),
            connector: Arc::new(AwsConnector::new(cloud)),
            launch: config.launch,
            drain: config.drain,
            repair: config.repair,
            workers: WORKERS,
            host: "bench".to_owned(),
            clock,
            random,
            metrics: metrics.clone(),
            leadership: None,
        };
        fleet.start(&mut tasks);
        Self { metrics, stop, tasks }
    }

    /// Stops them in good order.
    pub(crate) async fn stop(self) -> Result<()> {
        self.stop.cancel();
        match self.tasks.run(STOP_LIMIT).await {
            Ok(()) => Ok(()),
            Err(failures) => bail!("the controllers failed: {failures:?}"),
        }
    }
}
