//! The controller, wired to what it watches.

use std::{collections::BTreeMap, fmt, sync::Arc};

use fleetwright_api::{
    machine::{Machine, MachineSet},
    placement::AWSPlacementGroup,
};
use fleetwright_clock::Clock;
use fleetwright_cloud::Change as InstanceChange;
use fleetwright_nodes::link::words_of_node;
use fleetwright_runtime::{
    Change, Controller, ControllerOptions, CutOff, EventRecorder, Informer, Metrics, ObjectKey,
    WorkQueue,
};
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::{Client, ResourceExt as _};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::{
    CONTROLLER, INDEX_INSTANCE, INDEX_NAMES, INDEX_UID, add_indices,
    echo::Replaced,
    metrics::MachineMetrics,
    nodes::{Nodes, differs},
    reconcile::Reconciler,
    wish,
};
use crate::{
    clouds::Clouds,
    group::Groups,
    launch::{Launcher, LauncherParts, orphans::Sweep, settings::LaunchConfig},
};

/// What the controller is made of.
pub struct Parts {
    /// The Kubernetes API.
    pub client: Client,
    /// Machines of the namespace.
    pub machines: Informer<Machine>,
    /// MachineSets of the namespace.
    pub sets: Informer<MachineSet>,
    /// Placement groups of the namespace.
    pub groups: Informer<AWSPlacementGroup>,
    /// Secrets of the namespace.
    pub secrets: Informer<Secret>,
    /// Nodes that Machines become.
    pub nodes: Nodes,
    /// Where Machines are made.
    pub clouds: Clouds,
    /// What else is known of placement groups, where there is a controller for them.
    pub placement: Option<Groups>,
    /// Settings of launches.
    pub config: LaunchConfig,
    /// How many Machines are worked on at the same time.
    pub workers: usize,
    /// Wall time.
    pub clock: Clock,
    /// Tells users.
    pub events: EventRecorder,
    /// Tells operators.
    pub metrics: Metrics,
}

/// The Machine controller, not yet running.
pub struct MachineController {
    controller: Controller<ObjectKey>,
    reconciler: Arc<Reconciler>,
    launcher: Launcher,
    clouds: Clouds,
}

impl MachineController {
    /// Wires the controller to its sources.
    pub fn new(parts: Parts) -> Self {
        let Parts {
            client,
            machines,
            sets,
            groups,
            secrets,
            nodes,
            clouds,
            placement,
            config,
            workers,
            clock,
            events,
            metrics,
        } = parts;
        add_indices(&machines);
        let options = ControllerOptions { workers, ..ControllerOptions::default() };
        let controller = Controller::new(CONTROLLER, options, &metrics)
            .watches(&machines, |machine| [ObjectKey::of(machine)])
            .waits_for(&sets)
            .waits_for(&groups)
            .waits_for(&secrets)
            .waits_for(nodes.informer());
        let queue = controller.queue();
        follow_names(&machines, &secrets, &queue, wish::secret_index);
        follow_names(&machines, &groups, &queue, wish::group_index);
        follow_nodes(&machines, nodes.informer(), &queue);
        let launcher = Launcher::new(LauncherParts {
            client: client.clone(),
            machines: machines.clone(),
            sets: sets.clone(),
            queue,
            clock: clock.clone(),
            config: config.clone(),
        });
        let reconciler = Arc::new(Reconciler {
            client,
            metrics: MachineMetrics::new(&metrics, &machines),
            machines,
            sets,
            groups,
            clouds: clouds.clone(),
            launcher: launcher.clone(),
            nodes,
            placement,
            config,
            clock,
            events: events.of_component(CONTROLLER),
            registered: Mutex::default(),
            known: Mutex::new(BTreeMap::new()),
            replaced: Replaced::default(),
        });
        Self { controller, reconciler, launcher, clouds }
    }

    /// Reconciles until `stop`.
    pub async fn run(self, stop: CancellationToken) -> Result<(), CutOff> {
        let Self { controller, reconciler, launcher, clouds } = self;
        let (queue, machines) = (controller.queue(), reconciler.machines.clone());
        let tell = move |change: &InstanceChange| {
            for key in machines_of(&machines, change) {
                queue.add(key);
            }
        };
        let sweep = Sweep {
            client: reconciler.client.clone(),
            machines: reconciler.machines.clone(),
            clouds: clouds.clone(),
            events: reconciler.events.clone(),
            left: reconciler.metrics.without_machine.clone(),
        };
        let sweep = sweep.run();
        let sweep = stop.clone().run_until_cancelled_owned(sweep);
        let reconcile = move |key| reconciler.clone().reconcile(key);
        let (ended, (), (), _) = tokio::join!(
            controller.run(reconcile, stop.clone()),
            launcher.run(stop.clone()),
            clouds.run(tell, stop),
            sweep,
        );
        ended
    }
}

impl fmt::Debug for MachineController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MachineController")
    }
}

/// The Machines that a change of an instance is about.
fn machines_of(machines: &Informer<Machine>, change: &InstanceChange) -> Vec<ObjectKey> {
    let mut found = machines.by_index(INDEX_INSTANCE, &change.id);
    let uid = change.instance().and_then(|instance| instance.machine_uid().map(str::to_owned));
    if let Some(uid) = uid {
        found.extend(machines.by_index(INDEX_UID, &uid));
    }
    found.iter().map(|machine| ObjectKey::of(machine.as_ref())).collect()
}

/// Machines hear of what they name.
fn follow_names<K>(
    machines: &Informer<Machine>,
    named: &Informer<K>,
    queue: &WorkQueue<ObjectKey>,
    index: fn(&str) -> String,
) where
    K: kube::Resource + Clone + serde::de::DeserializeOwned + fmt::Debug + Send + Sync + 'static,
{
    let (machines, queue) = (machines.clone(), queue.clone());
    named.on_change(move |change| {
        let object = change.object();
        let namespace = object.namespace().unwrap_or_default();
        for machine in machines.by_index(INDEX_NAMES, &index(&object.name_any())) {
            // A Machine that has what it needs does not care.
            let waits = super::instance_id(&machine).is_none();
            if waits && machine.namespace().unwrap_or_default() == namespace {
                queue.add(ObjectKey::of(machine.as_ref()));
            }
        }
    });
}

/// Machines hear of their Nodes.
fn follow_nodes(
    machines: &Informer<Machine>,
    nodes: &Informer<Node>,
    queue: &WorkQueue<ObjectKey>,
) {
    let (machines, queue) = (machines.clone(), queue.clone());
    nodes.on_change(move |change| {
        if let Change::Modified { old, new } = change
            && !differs(old, new)
        {
            return;
        }
        for word in change.objects().flat_map(|node| words_of_node(node)) {
            for machine in machines.by_index(fleetwright_nodes::link::INDEX, &word) {
                queue.add(ObjectKey::of(machine.as_ref()));
            }
        }
    });
}
