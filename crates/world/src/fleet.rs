//! The controllers of Machines, MachineSets, placement groups and health checks, on any cluster and
//! any cloud.

use std::{convert::Infallible, future::Future, sync::Arc};

use fleetwright_api::{
    config::Infrastructure,
    machine::{Machine, MachineHealthCheck, MachineSet},
    placement::AWSPlacementGroup,
};
use fleetwright_clock::{Clock, Random};
use fleetwright_cloud::Connector;
use fleetwright_machines::{
    clouds::Clouds,
    group, health,
    machine::{self, nodes::Nodes},
    set,
};
use fleetwright_runtime::{
    CutOff, EventRecorder, Informer, Leadership, Metrics, Stage, Tasks,
    config::{Config, ControllerNames, DrainConfig, LaunchConfig, RepairConfig},
};
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

/// What the controllers need.
pub struct Fleet {
    /// The Kubernetes API, by the name of the controller that will use it: each has an identity
    /// of its own.
    pub client: Box<dyn Fn(&str) -> Client + Send>,
    /// The namespace of Machines.
    pub namespace: String,
    /// Which controllers run.
    pub controllers: ControllerNames,
    /// The way to the cloud.
    pub connector: Arc<dyn Connector>,
    /// How Machines are launched.
    pub launch: LaunchConfig,
    /// How Nodes are drained.
    pub drain: DrainConfig,
    /// How unhealthy Machines are replaced.
    pub repair: RepairConfig,
    /// How many Machines are worked on at the same time.
    pub workers: usize,
    /// The name of this host, in events.
    pub host: String,
    /// Wall time.
    pub clock: Clock,
    /// Chance.
    pub random: Random,
    /// What is counted.
    pub metrics: Metrics,
    /// Set when several processes compete: controllers act only while this one leads.
    pub leadership: Option<Leadership>,
}

/// The controllers, by the names that `--controllers` knows.
pub const NAMES: &[&str] = &[
    machine::CONTROLLER,
    set::CONTROLLER,
    set::capacity::CONTROLLER,
    group::CONTROLLER,
    health::CONTROLLER,
    health::termination::CONTROLLER,
];

/// As whom informers read and events are written.
pub const SHARED: &str = "shared";

impl Fleet {
    /// As the configuration has it, for a process that competes with no other.
    pub fn new(
        config: &Config,
        client: impl Fn(&str) -> Client + Send + 'static,
        connector: Arc<dyn Connector>,
        clock: Clock,
        random: Random,
    ) -> Self {
        Self {
            client: Box::new(client),
            namespace: config.machine_namespace.clone(),
            controllers: config.controllers.clone(),
            connector,
            launch: config.launch.clone(),
            drain: config.drain.clone(),
            repair: config.repair.clone(),
            workers: usize::try_from(config.workers).unwrap_or(1),
            host: String::new(),
            clock,
            random,
            metrics: Metrics::new(),
            leadership: None,
        }
    }

    /// Starts the informers and the controllers.
    pub fn start(self, tasks: &mut Tasks) {
        let Self {
            client,
            namespace,
            controllers,
            connector,
            launch,
            drain,
            repair,
            workers,
            host,
            clock,
            random,
            metrics,
            leadership,
        } = self;
        let shared = client(SHARED);
        let wanted = |name: &str| controllers.enabled(name, true);
        let lead = Lead(leadership);

        let machines = namespaced::<Machine>("machines", &shared, &namespace, &metrics);
        let sets = namespaced::<MachineSet>("machinesets", &shared, &namespace, &metrics);
        let groups =
            namespaced::<AWSPlacementGroup>("awsplacementgroups", &shared, &namespace, &metrics);
        let secrets = namespaced::<Secret>("secrets", &shared, &namespace, &metrics);
        let checks =
            namespaced::<MachineHealthCheck>("machinehealthchecks", &shared, &namespace, &metrics);
        let nodes =
            Informer::<Node>::trimming("nodes", Api::all(shared.clone()), trim_node, &metrics);
        let infrastructures =
            Informer::<Infrastructure>::new("infrastructures", Api::all(shared.clone()), &metrics);
        let (events, writer) =
            EventRecorder::new(shared, "fleetwright", &host, clock.clone(), &random, &metrics);

        let clouds = Clouds::new(connector, infrastructures.clone(), secrets.clone());
        let placement = wanted(group::CONTROLLER).then(|| {
            let controller = group::GroupController::new(group::Parts {
                client: client(group::CONTROLLER),
                namespace: namespace.clone(),
                groups: groups.clone(),
                machines: machines.clone(),
                clouds: clouds.clone(),
                clock: clock.clone(),
                random: random.fork(),
                events: events.clone(),
                metrics: metrics.clone(),
            });
            let handle = controller.groups();
            lead.start(tasks, group::CONTROLLER, |stop| controller.run(stop));
            handle
        });
        if wanted(set::CONTROLLER) {
            let controller = set::SetController::new(set::Parts {
                client: client(set::CONTROLLER),
                sets: sets.clone(),
                machines: machines.clone(),
                nodes: nodes.clone(),
                clock: clock.clone(),
                random: random.fork(),
                events: events.clone(),
                metrics: metrics.clone(),
            });
            lead.start(tasks, set::CONTROLLER, |stop| controller.run(stop));
        }
        if wanted(set::capacity::CONTROLLER) {
            let controller = set::capacity::CapacityController::new(set::capacity::Parts {
                client: client(set::capacity::CONTROLLER),
                sets: sets.clone(),
                clouds: clouds.clone(),
                events: events.clone(),
                metrics: metrics.clone(),
            });
            lead.start(tasks, set::capacity::CONTROLLER, |stop| controller.run(stop));
        }
        if wanted(health::CONTROLLER) {
            let controller = health::HealthController::new(health::Parts {
                client: client(health::CONTROLLER),
                checks: checks.clone(),
                machines: machines.clone(),
                sets: sets.clone(),
                nodes: nodes.clone(),
                config: repair.clone(),
                clock: clock.clone(),
                random: random.fork(),
                events: events.clone(),
                metrics: metrics.clone(),
            });
            lead.start(tasks, health::CONTROLLER, |stop| controller.run(stop));
        }
        if repair.termination_check && wanted(health::termination::CONTROLLER) {
            let client = client(health::termination::CONTROLLER);
            let controller = health::termination::TerminationCheck::new(
                client,
                checks.clone(),
                &namespace,
                &metrics,
            );
            lead.start(tasks, health::termination::CONTROLLER, |stop| controller.run(stop));
        }
        if wanted(machine::CONTROLLER) {
            let client = client(machine::CONTROLLER);
            let controller = machine::MachineController::new(machine::Parts {
                nodes: Nodes::new(client.clone(), nodes.clone(), drain, clock.clone()),
                client,
                machines: machines.clone(),
                sets: sets.clone(),
                groups: groups.clone(),
                secrets: secrets.clone(),
                clouds,
                placement,
                config: launch,
                workers,
                clock,
                events,
                metrics,
            });
            lead.start(tasks, machine::CONTROLLER, |stop| controller.run(stop));
        }

        // Last, when every index is there.
        observe(tasks, machines, &random);
        observe(tasks, sets, &random);
        observe(tasks, groups, &random);
        observe(tasks, checks, &random);
        observe(tasks, secrets, &random);
        observe(tasks, nodes, &random);
        observe(tasks, infrastructures, &random);
        tasks.start(Stage::Reporting, "events", |stop| async move {
            writer.run(stop).await;
            Ok::<(), Infallible>(())
        });
    }
}

/// Of what kubelets report, controllers read labels, addresses and conditions. The images alone are
/// most of a Node.
fn trim_node(node: &mut Node) {
    if let Some(status) = &mut node.status {
        status.images = None;
        status.node_info = None;
        status.runtime_handlers = None;
        status.volumes_attached = None;
        status.volumes_in_use = None;
    }
}

fn namespaced<K>(name: &str, client: &Client, namespace: &str, metrics: &Metrics) -> Informer<K>
where
    K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug
        + Send
        + Sync
        + 'static,
{
    Informer::new(name, Api::namespaced(client.clone(), namespace), metrics)
}

fn observe<K>(tasks: &mut Tasks, informer: Informer<K>, random: &Random)
where
    K: Resource<DynamicType = ()>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug
        + Send
        + Sync
        + 'static,
{
    let random = random.fork();
    let name = informer.name().to_owned();
    tasks.start(Stage::Observation, &name, |stop| async move {
        informer.run(random, stop).await;
        Ok::<(), Infallible>(())
    });
}

/// Lets controllers act only while this process leads, where there is a choice.
pub(crate) struct Lead(pub(crate) Option<Leadership>);

impl Lead {
    pub(crate) fn start<F>(
        &self,
        tasks: &mut Tasks,
        name: &str,
        run: impl FnOnce(CancellationToken) -> F + Send + 'static,
    ) where
        F: Future<Output = Result<(), CutOff>> + Send + 'static,
    {
        let leadership = self.0.clone();
        tasks.start(Stage::Work, name, |stop| async move {
            match leadership {
                None => run(stop).await,
                Some(leadership) => leadership.lead(stop, run).await.unwrap_or(Ok(())),
            }
        });
    }
}
