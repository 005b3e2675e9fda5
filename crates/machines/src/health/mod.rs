//! The MachineHealthCheck controller: replaces Machines that do not work.
//!
//! - [`rules`] reads what a check asks for, [`target`] what counts of Machines and Nodes.
//! - `watched` keeps the Machines of each check as they were last judged, so that an event costs
//!   one Machine and not all of them; the rules themselves are `fleetwright_lifecycle::health`.
//! - [`decide`] says what to do about the sick, [`status`] what to say; repairs that do not help
//!   wait (`fleetwright_lifecycle::backoff`).
//! - `act` carries it out, [`external`] asks others to repair.
//! - [`termination`] keeps the check that replaces what the cloud takes back.
//!
//! While too many are unhealthy, nothing is asked and nothing is written: what changes wakes us.

mod act;
pub mod decide;
pub mod external;
mod metrics;
pub mod rules;
pub mod status;
pub mod target;
pub mod termination;
#[cfg(test)]
mod tests;
mod watched;

use std::time::Duration;

use fleetwright_api::machine::{Machine, MachineHealthCheck, MachineSet};
use fleetwright_clock::{Clock, Random};
use fleetwright_lifecycle::backoff::Settings;
use fleetwright_runtime::{
    Change, Controller, ControllerOptions, CutOff, EventRecorder, Informer, Metrics, ObjectKey,
    WorkQueue, config::RepairConfig,
};
use k8s_openapi::api::core::v1::Node;
use kube::{Client, ResourceExt};
use tokio_util::sync::CancellationToken;

pub use act::ReconcileError;
use act::Reconciler;
use external::External;
use metrics::HealthMetrics;
use target::is_failed;
use watched::{Changed, Checks};

use crate::{
    requests::pace::Paces,
    set::decide::{controller_of, node_name},
};

/// The controller's name.
pub const CONTROLLER: &str = "machinehealthcheck";
/// In whose name the API is written to.
pub const FIELD_MANAGER: &str = "fleetwright/machinehealthcheck";
/// Checks that are worked on at the same time.
const WORKERS: usize = 4;
/// A check looks once at all of its Machines that change within this time.
const COALESCE: Duration = Duration::from_millis(10);

/// Machines by the UID of their controller.
const BY_OWNER: &str = "machinehealthcheck/owner";
/// Machines by the name of their Node.
const BY_NODE: &str = "machinehealthcheck/node";

/// What the controller is made of.
pub struct Parts {
    /// The Kubernetes API.
    pub client: Client,
    /// MachineHealthChecks.
    pub checks: Informer<MachineHealthCheck>,
    /// Machines.
    pub machines: Informer<Machine>,
    /// MachineSets.
    pub sets: Informer<MachineSet>,
    /// Nodes.
    pub nodes: Informer<Node>,
    /// How repairs wait.
    pub config: RepairConfig,
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
pub struct HealthController {
    controller: Controller<ObjectKey>,
    reconciler: Reconciler,
}

impl HealthController {
    /// Wires the controller to its sources.
    pub fn new(parts: Parts) -> Self {
        let Parts {
            client,
            checks: informer,
            machines,
            sets,
            nodes,
            config,
            clock,
            random,
            events,
            metrics,
        } = parts;
        machines.index(BY_OWNER, |machine| {
            controller_of(machine).map(|controller| controller.uid.clone()).into_iter().collect()
        });
        machines.index(BY_NODE, |machine| node_name(machine).into_iter().collect());
        let options = ControllerOptions { workers: WORKERS, ..ControllerOptions::default() };
        let controller = Controller::new(CONTROLLER, options, &metrics)
            .watches(&informer, |check| [ObjectKey::of(check)])
            .waits_for(&machines)
            .waits_for(&sets)
            .waits_for(&nodes);
        let checks = Checks::default();
        let watching = Watching {
            informer: informer.clone(),
            changed: checks.changed.clone(),
            queue: controller.queue(),
        };
        listen_to_nodes(&nodes, &machines, watching.clone());
        listen_to_machines(&machines, watching);
        let reconciler = Reconciler {
            external: External::new(client.clone()),
            client,
            informer,
            machines,
            sets,
            nodes,
            checks,
            paces: Paces::default(),
            backoff: settings(&config),
            events: events.of_component(CONTROLLER),
            metrics: HealthMetrics::new(&metrics),
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

fn settings(config: &RepairConfig) -> Settings {
    Settings {
        first: config.backoff.0,
        longest: config.longest_backoff.0,
        healthy_for: config.healthy_for.0,
        ..Settings::default()
    }
}

/// Who looks at a Machine.
#[derive(Clone)]
struct Watching {
    informer: Informer<MachineHealthCheck>,
    changed: Changed,
    queue: WorkQueue<ObjectKey>,
}

impl Watching {
    /// Notes a Machine for the checks that select it.
    fn note(&self, machine: &Machine) {
        let namespace = machine.namespace().unwrap_or_default();
        for check in self.informer.list_in(&namespace) {
            let selects = crate::selecting::selector(&check.spec.selector)
                .is_ok_and(|selector| selector.matches(machine.labels()));
            if selects {
                let key = ObjectKey::of(check.as_ref());
                self.changed.note(&key, ObjectKey::of(machine));
                self.queue.add_after(key, COALESCE);
            }
        }
    }
}

fn listen_to_machines(machines: &Informer<Machine>, watching: Watching) {
    machines.on_change(move |change| {
        if let Change::Modified { old, new } = change
            && standing(old) == standing(new)
        {
            return;
        }
        for machine in change.objects() {
            watching.note(machine);
        }
    });
}

/// All that a check reads of a Machine: changes of anything else are none of its business.
fn standing(machine: &Machine) -> impl PartialEq {
    let status = machine.status.as_ref();
    (
        (machine.labels().clone(), machine.annotations().clone()),
        machine.owner_references().to_vec(),
        machine.metadata.deletion_timestamp.is_some(),
        is_failed(machine),
        node_name(machine),
        machine.spec.provider_id.clone(),
        status.and_then(|status| status.last_updated.clone()),
    )
}

/// A Node that says something else than before, comes or goes. That it still says the same, as
/// every kubelet does all the time, costs nothing.
fn listen_to_nodes(nodes: &Informer<Node>, machines: &Informer<Machine>, watching: Watching) {
    let machines = machines.clone();
    nodes.on_change(move |change| {
        if let Change::Modified { old, new } = change
            && target::conditions(old) == target::conditions(new)
        {
            return;
        }
        for machine in machines.by_index(BY_NODE, &change.object().name_any()) {
            watching.note(&machine);
        }
    });
}
