//! Machines on AWS: instances, placement groups and load balancers over the Query protocol.
//!
//! [`AwsConnector`] opens accounts. Behind it: [`model`] holds the calls we make, written from the
//! public service models; [`query`] and [`xml`] are the two halves of the protocol; [`errors`]
//! says what error codes mean; [`rules`] turns a provider spec into the parts of a launch;
//! [`credentials`] finds keys.

pub mod addresses;
mod balancers;
mod client;
mod cloud;
mod connector;
pub mod credentials;
mod endpoints;
pub mod errors;
mod groups;
mod hosts;
mod instance;
mod instance_types;
mod launch;
mod leftovers;
mod lookups;
pub mod model;
mod permissions;
pub mod query;
mod resolve;
pub mod rules;
mod wire;
pub mod xml;

#[cfg(test)]
mod tests;

pub use cloud::AwsCloud;
pub use connector::{AwsConnector, AwsOptions};
pub use endpoints::Endpoints;
pub use instance::instance;
pub use instance_types::instance_type;
pub use permissions::permissions;
