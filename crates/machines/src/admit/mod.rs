//! What users may write: defaults, validation and warnings for Machines, MachineSets and groups.
//!
//! The rules are plain functions over the object, what it was, and [`Facts`]; [`webhooks`] puts
//! them behind the names and paths that users' clusters know, and fetches the facts.
//!
//! An update is held to what it changes: an error that the object had before is passed over
//! ([`Ratchet`]). Defaults are filled in on creation only, so what a user takes away stays away.

pub mod defaults;
mod facts;
mod findings;
pub mod group;
mod host;
pub mod machine;
pub mod machine_set;
mod placement;
mod provider;
mod review;
#[cfg(test)]
mod served_tests;
#[cfg(test)]
mod tests;
mod unknown;

pub use facts::{Facts, InterruptibleControlPlane, Ratchet};
pub use review::{Settings, name, webhooks};
