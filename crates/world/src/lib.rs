//! Puts Fleetwright together: the controllers on any cluster, and a whole world to try them in.
//!
//! - [`embedded`] is everything in one process, for `fleetwright up`.
//! - [`fleet`] is the controllers, on a real cluster or the embedded one.
//! - [`simulation`] is simulated clouds and nodes, behind the protocols that the real ones speak.
//! - [`handlers`] is the termination handler on simulated nodes.
//! - [`seed`] is what an installer leaves in the Kubernetes API.
//! - [`webhooks`] is the rules for what users may write, in the process or over TLS.
//! - [`access`] is who of us may do what.
//! - [`client`] is how parts of one process talk to the embedded API.

pub mod access;
pub mod client;
pub mod embedded;
pub mod fleet;
pub mod handlers;
mod hosts;
pub mod seed;
pub mod simulation;
pub mod webhooks;
