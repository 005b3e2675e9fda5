//! Who of us may do what: one table, from which the roles of a cluster are made.
//!
//! Each controller is a ServiceAccount of its own, so that an audit log tells them apart and a
//! fault in one cannot do what only another needs. The process itself competes for the lease, keeps
//! the certificate of the webhooks, and may act as its controllers; nothing else.
//!
//! A test runs a whole world, records who asked for what, and compares: a right that is missing
//! fails it, and so does one that nobody used.

mod install;
mod manifests;
#[cfg(test)]
mod recorded_tests;
mod table;
#[cfg(test)]
mod tests;

use crate::seed::SYSTEM_NAMESPACE;

pub use install::{AccessError, check, install};
pub use manifests::manifests;
pub use table::{IDENTITIES, PROCESS};

/// One that acts.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// The name, as in `--controllers`.
    pub name: &'static str,
    /// What it may do.
    pub rights: &'static [Right],
}

/// Something that one may do.
#[derive(Clone, Copy, Debug)]
pub struct Right {
    /// Where.
    pub place: Place,
    /// The API group.
    pub group: &'static str,
    /// The resource, with its subresource.
    pub resource: &'static str,
    /// The verbs.
    pub verbs: &'static [&'static str],
    /// The objects; empty for any.
    pub names: &'static [&'static str],
    /// When it is needed, where the recorded story may do without it.
    pub unseen: Option<&'static str>,
}

/// Where a right holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Everywhere.
    Cluster,
    /// In the namespace of Machines.
    Machines,
    /// In our own namespace.
    System,
}

/// The ServiceAccount of an identity.
pub fn account(name: &str) -> String {
    if name == PROCESS { name.to_owned() } else { format!("fleetwright-{name}") }
}

/// The user that an identity is to the API.
pub fn user(name: &str) -> String {
    format!("system:serviceaccount:{SYSTEM_NAMESPACE}:{}", account(name))
}
