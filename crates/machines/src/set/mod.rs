//! The MachineSet controller: keeps a number of Machines.
//!
//! - [`decide`] turns a MachineSet and its Machines into what the shared rules of
//!   `fleetwright_lifecycle::replicas` need, and their plan into a status and new Machines.
//! - `act` carries that out: many creates and deletes at once, each of them expected
//!   until the informer has shown it, the status written when it changed and not too often.
//! - [`capacity`] tells the autoscaler what a Machine of an empty set would be.
//! - `metrics` shows sets as dashboards know them.
//!
//! A MachineSet that is being deleted is left alone: garbage collection removes its Machines, or
//! leaves them when it is told to.
//!
//! Work per event depends on the size of one set, never of the fleet: Machines are found by the
//! UID of their controller, those without one by their namespace.

mod act;
pub mod capacity;
pub mod decide;
mod metrics;
pub mod replacing;
#[cfg(test)]
mod tests;

use std::time::Duration;

use fleetwright_api::machine::{Machine, MachineSet};
use fleetwright_clock::{Clock, Random};
use fleetwright_runtime::{
    Change, Controller, ControllerOptions, CutOff, EventRecorder, Expectations, Informer, Metrics,
    ObjectKey, WorkQueue,
};
use k8s_openapi::api::core::v1::Node;
use kube::{Client, ResourceExt};
use tokio_util::sync::CancellationToken;

use act::Reconciler;
pub use act::{FIELD_MANAGER, ReconcileError};
use decide::{controller_of, node_ready, owner, selector, standing};

use crate::requests::pace::Paces;

/// The controller's name.
pub const CONTROLLER: &str = "machineset";
/// Sets that are worked on at the same time.
const WORKERS: usize = 4;
/// A set is counted once for all of its Machines and Nodes that change within this time, so that a
/// thousand that become ready are not counted a thousand times.
const COALESCE: Duration = Duration::from_millis(25);

/// Machines by the UID of their controller.
const BY_OWNER: &str = "machineset/owner";
/// Machines without a controller, by namespace.
const ORPHANS: &str = "machineset/orphans";
/// Machines by the name of their Node.
const BY_NODE: &str = "machineset/node";

/// What the controller is made of.
pub struct Parts {
    /// The Kubernetes API.
    pub client: Client,
    /// MachineSets.
    pub sets: Informer<MachineSet>,
    /// Machines.
    pub machines: Informer<Machine>,
    /// Nodes.
    pub nodes: Informer<Node>,
    /// Wall time.
    pub clock: Clock,
    /// Chance.
    pub random: Random,
    /// Tells users.
    pub events: EventRecorder,
    /// Tells operators.
    pub metrics: Metrics,
}

/// The controller, not yet running.
pub struct SetController {
    controller: Controller<ObjectKey>,
    reconciler: Reconciler,
}

impl SetController {
    /// Wires the controller to its sources.
    pub fn new(parts: Parts) -> Self {
        let Parts { client, sets, machines, nodes, clock, random, events, metrics } = parts;
        machines.index(BY_OWNER, |machine| {
            controller_of(machine).map(|controller| controller.uid.clone()).into_iter().collect()
        });
        machines.index(ORPHANS, |machine| match controller_of(machine) {
            None => vec![machine.namespace().unwrap_or_default()],
            Some(_) => Vec::new(),
        });
        machines.index(BY_NODE, |machine| decide::node_name(machine).into_iter().collect());
        metrics::register(&metrics, sets.clone());
        let options = ControllerOptions { workers: WORKERS, ..ControllerOptions::default() };
        let controller = Controller::new(CONTROLLER, options, &metrics)
            .watches(&sets, |set| [ObjectKey::of(set)])
            .waits_for(&machines)
            .waits_for(&nodes);
        let expectations = Expectations::new();
        listen_to_machines(&machines, &sets, &expectations, controller.queue());
        listen_to_nodes(&nodes, &machines, controller.queue());
        let reconciler = Reconciler {
            client,
            sets,
            machines,
            nodes,
            expectations,
            paces: Paces::default(),
            events: events.of_component(CONTROLLER),
            clock,
            random,
        };
        Self { controller, reconciler }
    }

    /// Reconciles until `stop`.
    pub async fn run(self, stop: CancellationToken) -> Result<(), CutOff> {
        let Self { controller, reconciler } = self;
        controller.run(move |key| reconciler.clone().reconcile(key), stop).await
    }
}

fn listen_to_machines(
    machines: &Informer<Machine>,
    sets: &Informer<MachineSet>,
    expectations: &Expectations<ObjectKey>,
    queue: WorkQueue<ObjectKey>,
) {
    let (expectations, sets) = (expectations.clone(), sets.clone());
    machines.on_change(move |change| {
        let machine = change.object();
        if let Some(set) = owner(machine) {
            match change {
                Change::Added(_) => expectations.create_settled(&set, &machine.name_any()),
                Change::Modified { .. } | Change::Deleted { .. } => {}
            }
            let going = machine.metadata.deletion_timestamp.is_some();
            if going || matches!(change, Change::Deleted { .. }) {
                expectations.delete_settled(&set, &machine.uid().unwrap_or_default());
            }
        }
        if let Change::Modified { old, new } = change
            && standing(old) == standing(new)
        {
            return;
        }
        for machine in change.objects() {
            if let Some(set) = owner(machine) {
                queue.add_after(set, COALESCE);
            } else if controller_of(machine).is_none() {
                for set in who_would_adopt(&sets, machine) {
                    queue.add_after(set, COALESCE);
                }
            }
        }
    });
}

/// The sets whose selector matches a Machine that belongs to nobody.
fn who_would_adopt(sets: &Informer<MachineSet>, machine: &Machine) -> Vec<ObjectKey> {
    let sets = sets.list_in(&machine.namespace().unwrap_or_default());
    let matching = sets.iter().filter(|set| {
        selector(set)
            .is_ok_and(|selector| !selector.is_empty() && selector.matches(machine.labels()))
    });
    matching.map(|set| ObjectKey::of(set.as_ref())).collect()
}

/// A Node that becomes ready, or stops to be, changes the counts of its set.
fn listen_to_nodes(
    nodes: &Informer<Node>,
    machines: &Informer<Machine>,
    queue: WorkQueue<ObjectKey>,
) {
    let machines = machines.clone();
    nodes.on_change(move |change| {
        if let Change::Modified { old, new } = change
            && node_ready(old) == node_ready(new)
        {
            return;
        }
        for machine in machines.by_index(BY_NODE, &change.object().name_any()) {
            if let Some(set) = owner(&machine) {
                queue.add_after(set, COALESCE);
            }
        }
    });
}
