//! The AWSPlacementGroup controller, and what its groups mean for a launch.
//!
//! A managed group is made with the cluster's tags, watched, and removed when its object is
//! deleted and nobody is in it. An unmanaged group is watched. Ready is true exactly when the
//! cloud has a group as asked for, available, and no older than `expiresAt` says.
//!
//! - [`decide`] is the whole of the rules, over plain data; `act` carries them out.
//! - [`wanted`] reads and compares configurations, [`status`] reads and writes the status.
//! - `observe` asks the cloud about all groups that are due at once; `memory` keeps the answers.
//! - [`preflight`] says whether a Machine may be launched into a group, [`publish`] where it ended
//!   up.
//!
//! Rejected: holding every managed object by a finalizer from the start, as upstream. An object
//! whose group belongs to somebody else could then never be deleted; here it is held only once
//! there is, or is about to be, a group of ours.

mod act;
pub mod decide;
mod memory;
pub mod names;
mod observe;
pub mod preflight;
pub mod publish;
pub mod status;
#[cfg(test)]
pub(crate) mod testbed;
#[cfg(test)]
pub(crate) mod tests;
pub mod wanted;

use std::time::Duration;

use fleetwright_api::{
    machine::Machine, names::annotation::INSTANCE_STATE, placement::AWSPlacementGroup,
};
use fleetwright_clock::{Clock, Random};
use fleetwright_runtime::{
    Change, Controller, ControllerOptions, CutOff, EventRecorder, Informer, Metrics, ObjectKey,
    WorkQueue,
};
use kube::{Api, Client, ResourceExt};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::clouds::Clouds;

pub use act::{FIELD_MANAGER, FINALIZER, INTENT, ReconcileError, object};
use act::{Reconciler, secret_of};
use decide::Member;
use memory::Memory;
use observe::Observer;

/// The controller's name.
pub const CONTROLLER: &str = "placementgroup";
/// Machines come and go in crowds: the group is looked at once for all of them.
const DEBOUNCE: Duration = Duration::from_secs(5);
/// Groups that are worked on at the same time; they share their calls to the cloud.
const WORKERS: usize = 8;

/// What the controller is made of.
pub struct Parts {
    /// The Kubernetes API.
    pub client: Client,
    /// The namespace of Machines; groups elsewhere are not looked at.
    pub namespace: String,
    /// Groups of that namespace.
    pub groups: Informer<AWSPlacementGroup>,
    /// Machines of that namespace.
    pub machines: Informer<Machine>,
    /// Where they live.
    pub clouds: Clouds,
    /// Wall time.
    pub clock: Clock,
    /// Chance.
    pub random: Random,
    /// Tells users.
    pub events: EventRecorder,
    /// Tells operators.
    pub metrics: Metrics,
}

/// What others may ask of the controller. Clones ask the same.
#[derive(Clone, Debug)]
pub struct Groups {
    namespace: String,
    memory: Memory,
    queue: WorkQueue<ObjectKey>,
}

impl Groups {
    /// Has a group looked at now, for somebody who found that its status has expired. However
    /// many ask, the cloud is asked once.
    pub fn refresh(&self, name: &str) {
        self.memory.outdate(name);
        self.queue.add(ObjectKey::new(&self.namespace, name));
    }

    /// The instances that were last seen in a group.
    pub fn members(&self, name: &str) -> Vec<Member> {
        self.memory.seen(name).map(|seen| seen.members.clone()).unwrap_or_default()
    }
}

/// The controller, not yet running.
pub struct GroupController {
    controller: Controller<ObjectKey>,
    reconciler: Reconciler,
    groups: Groups,
}

impl GroupController {
    /// Wires the controller to its sources.
    pub fn new(parts: Parts) -> Self {
        let Parts { client, namespace, groups, machines, clouds, clock, random, events, metrics } =
            parts;
        let memory = Memory::default();
        let options = ControllerOptions { workers: WORKERS, ..ControllerOptions::default() };
        let controller = Controller::new(CONTROLLER, options, &metrics)
            .watches(&groups, |group| [ObjectKey::of(group)])
            .waits_for(&machines)
            .waits_for(clouds.infrastructures())
            .waits_for(clouds.secrets());
        let handle = Groups {
            namespace: namespace.clone(),
            memory: memory.clone(),
            queue: controller.queue(),
        };
        listen_to_machines(&machines, handle.clone());
        listen_to_clouds(&clouds, &groups, &handle);
        let reconciler = Reconciler {
            api: Api::namespaced(client, &namespace),
            groups,
            namespace,
            clouds,
            observer: Observer::new(memory.clone(), clock.clone(), random),
            memory,
            queue: controller.queue(),
            events: events.of_component(CONTROLLER),
            clock,
        };
        Self { controller, reconciler, groups: handle }
    }

    /// What others may ask of it.
    pub fn groups(&self) -> Groups {
        self.groups.clone()
    }

    /// Reconciles until `stop`.
    pub async fn run(self, stop: CancellationToken) -> Result<(), CutOff> {
        let Self { controller, reconciler, .. } = self;
        controller.run(move |key| reconciler.clone().reconcile(key), stop).await
    }
}

/// The group that a provider spec names, without reading the rest of it: Machines change often.
pub fn named_group(provider_spec: &Value) -> Option<&str> {
    [&provider_spec["placement"]["group"]["name"], &provider_spec["placementGroupName"]]
        .into_iter()
        .find_map(|name| name.as_str().filter(|name| !name.is_empty()))
}

fn group_of(machine: &Machine) -> Option<&str> {
    named_group(machine.spec.provider_spec.value.as_ref()?)
}

/// Machines that come, go, get or lose an instance change what a group holds.
fn listen_to_machines(machines: &Informer<Machine>, groups: Groups) {
    let standing = |machine: &Machine| {
        let state = machine.annotations().get(INSTANCE_STATE).cloned();
        (machine.spec.provider_id.clone(), state, group_of(machine).map(str::to_owned))
    };
    machines.on_change(move |change| {
        if let Change::Modified { old, new } = change
            && standing(old) == standing(new)
        {
            return;
        }
        for name in change.objects().filter_map(|machine| group_of(machine)) {
            groups.memory.outdate(name);
            groups.queue.add_after(ObjectKey::new(&groups.namespace, name), DEBOUNCE);
        }
    });
}

/// Other credentials or another place show other things.
fn listen_to_clouds(clouds: &Clouds, all: &Informer<AWSPlacementGroup>, groups: &Groups) {
    let (handle, informer) = (groups.clone(), all.clone());
    clouds.infrastructures().on_change(move |_| {
        for group in informer.list_in(&handle.namespace) {
            handle.refresh(&group.name_any());
        }
    });
    let (handle, informer) = (groups.clone(), all.clone());
    clouds.secrets().on_change(move |change| {
        let secret = change.object().name_any();
        for group in informer.list_in(&handle.namespace) {
            if secret_of(&group) == Some(secret.as_str()) {
                handle.refresh(&group.name_any());
            }
        }
    });
}
