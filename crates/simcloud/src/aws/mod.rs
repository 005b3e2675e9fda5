//! Simulated AWS: EC2, Elastic Load Balancing of both generations, and the parts of STS that a
//! client needs, in one account and one region.
//!
//! - [`seed::Installer`] makes a region as an installer leaves it.
//! - [`Aws`] serves it, and is the handle for everything else: faults, capacity, the audit log,
//!   and the events that observers are told.
//! - [`model`] holds the state and the rules, without time or wire of its own.
//! - [`control`] is the same handle over HTTP.
//! - [`metadata`] is what instances see of themselves.
//!
//! # Observing
//! [`Aws::subscribe`] gives a channel of every [`model::Event`] from then on, none left out.
//! A simulated node, for example, waits for [`model::Change::InstanceState`] with an instance
//! whose `state` is running: it carries the private name and address, the zone, the tags, the
//! user data and the spot options. [`Aws::observe`] calls back at once instead, for invariants.
//! [`Aws::with`] reads what there is already.

mod audit;
pub mod control;
mod faults;
mod journal;
pub mod metadata;
pub mod model;
pub mod seed;
mod service;
#[cfg(test)]
mod tests;
mod wire;

pub use audit::Recorded;
pub use faults::{Effect, Fault, METADATA};
pub use journal::{Entry, Step};
pub use service::Aws;
pub use wire::sign::{Key, Keys};
