//! The Machine controller: one Machine, one instance, one Node.
//!
//! [`fleetwright_lifecycle::phase`] is the life of a Machine; this module answers its questions
//! from an inventory of the cloud, and carries out what it asks for:
//!
//! - [`find`] says which instance is a Machine's, [`look`] whether it exists, [`observe`] what the
//!   Machine then says of it.
//! - [`wish`] turns a Machine into something that can be launched, or says what is missing.
//! - [`launching`] is what a Machine says while it has no instance, and when it gives up.
//! - `reconcile` is one pass, [`ending`] what it does to a Machine that goes, `write` its writes:
//!   status and metadata, each only when it changed.
//! - `echo` keeps passes off versions that we have replaced ourselves.
//! - [`nodes`] finds, labels, empties and removes its Node.
//!
//! One controller does all of this, drain and link to the Node included, so that a Machine has
//! one writer. Upstream has three, which patch one list of conditions.

mod echo;
pub mod ending;
pub mod find;
pub mod group_gate;
pub mod launching;
pub mod look;
pub mod market;
mod metrics;
pub mod nodes;
pub(crate) mod notice;
pub mod observe;
mod reconcile;
pub(crate) mod status;
#[cfg(test)]
mod tests;
mod wiring;
pub mod wish;
mod write;

use fleetwright_api::{aws::AWSMachineProviderStatus, machine::Machine};
use kube::{Resource as _, ResourceExt as _};

use crate::launch::intent::Intent;

pub use wiring::{MachineController, Parts};

/// The controller's name.
pub const CONTROLLER: &str = "machine";
/// As whom it writes.
pub const FIELD_MANAGER: &str = "fleetwright/machine";

/// Index of Machines: the token of their intent.
pub(crate) const INDEX_TOKEN: &str = "intent-token";
/// Index of Machines: the UID of their MachineSet.
pub(crate) const INDEX_SET: &str = "machine-set";
/// Index of Machines: their instance.
pub(crate) const INDEX_INSTANCE: &str = "instance";
/// Index of Machines: their UID.
pub(crate) const INDEX_UID: &str = "uid";
/// Index of Machines: Secrets and groups that they name.
pub(crate) const INDEX_NAMES: &str = "names";

/// The instance that a Machine is known to have, or to have had.
pub fn instance_id(machine: &Machine) -> Option<String> {
    let status = machine.status.as_ref().and_then(|status| status.provider_status.as_ref());
    let recorded = AWSMachineProviderStatus::read(status).instance_id;
    recorded.filter(|id| !id.is_empty()).or_else(|| {
        // A Machine that was restored from a backup has no status.
        let provider_id = machine.spec.provider_id.as_deref()?;
        let id = provider_id.rsplit('/').next()?;
        id.starts_with("i-").then(|| id.to_owned())
    })
}

/// The UID of the MachineSet that controls a Machine.
pub(crate) fn set_uid(machine: &Machine) -> Option<&str> {
    let owners = machine.meta().owner_references.as_deref().unwrap_or_default();
    owners
        .iter()
        .find(|owner| owner.controller == Some(true) && owner.kind == "MachineSet")
        .map(|owner| owner.uid.as_str())
}

/// Adds the indices by which Machines are found.
pub(crate) fn add_indices(machines: &fleetwright_runtime::Informer<Machine>) {
    machines.index(INDEX_TOKEN, |machine| {
        Intent::of(machine).ok().flatten().map(|intent| intent.token).into_iter().collect()
    });
    machines.index(INDEX_SET, |machine| set_uid(machine).map(str::to_owned).into_iter().collect());
    machines.index(INDEX_INSTANCE, |machine| instance_id(machine).into_iter().collect());
    machines.index(INDEX_UID, |machine| machine.uid().into_iter().collect());
    machines.index(INDEX_NAMES, wish::named);
    machines.index(fleetwright_nodes::link::INDEX, nodes::index);
}
