//! The kinds Fleetwright serves, as types, and the names users' tools match on.
//!
//! - [`machine`]: `machine.openshift.io/v1beta1`: Machine, MachineSet, MachineHealthCheck.
//! - [`placement`]: `machine.openshift.io/v1`: AWSPlacementGroup.
//! - [`aws`]: what stands in a Machine's `providerSpec.value` and `status.providerStatus` on AWS.
//! - [`gcp`], [`azure`]: the same on Google Cloud and Azure, as far as anything reads it yet.
//! - [`config`]: `config.openshift.io/v1`: Infrastructure.
//! - [`names`]: labels, annotations, finalizers, condition types, reasons, tags.
//!
//! [`crds`] gives their definitions for the API server. Nothing here behaves. Two rules hold everywhere:
//!
//! - **One odd object never stops the others.** A controller decodes lists, so every type decodes
//!   whatever the API server may have stored: absent parts are empty, unknown words are kept as
//!   they are ([open enums](open)), numbers out of range are clamped. What a field means is
//!   checked by admission and by the controllers, where the answer can name the field.
//! - **What we do not know we keep.** Provider specs carry unknown fields through a round trip.
//!
//! The root types are written here rather than by kube's derive because that one refuses an
//! object without `spec`, which the schemas allow.

// Macros first: the other modules use them.
#[macro_use]
pub mod open;
#[macro_use]
mod resource;

pub mod aws;
pub mod azure;
pub mod config;
pub mod gcp;
mod lenient;
pub mod machine;
pub mod names;
pub mod placement;
mod schema;

pub use schema::crds;

#[cfg(test)]
mod tests;
