//! What users may write: defaults, validation and warnings for Machines, MachineSets and groups.
//!
//! The rules are plain functions over the object, what it was, and [`Facts`]; [`webhooks`] puts
//! them behind the names and paths that users' clusters know, and fetches the facts.
//!
//! An update is held to what it changes: an error that the object had before is passed over, unless
//! [`Updates`] says otherwise. Defaults are filled in on creation only, so what a user takes away stays away.

mod autoscaler;
mod aws;
mod azure;
pub mod defaults;
mod facts;
mod findings;
mod gcp;
pub mod group;
mod host;
pub mod machine;
pub mod machine_set;
mod placement;
mod platform;
mod review;
#[cfg(test)]
mod served_tests;
#[cfg(test)]
mod tests;
mod unknown;

pub use facts::Facts;
pub use fleetwright_runtime::config::{InterruptibleControlPlane, Updates};
pub use review::{Settings, name, webhooks};
