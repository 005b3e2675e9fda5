//! Informers, work queues, controllers and what else a controller process needs.
//!
//! Everything runs on tokio's time with an injected clock and seeded chance, over whatever
//! service a `kube::Client` is made of: on sockets in production, in one thread on virtual time
//! without any I/O in tests.
//!
//! - [`Informer`] keeps a sorted copy of objects and knows what was deleted, even unseen.
//! - [`WorkQueue`] and [`Controller`] call a reconcile for every key that needs it.
//! - [`Expectations`] bridge the time between a write and its echo.
//! - [`EventRecorder`] tells users what happened, [`Metrics`] tells operators.
//! - [`LeaderElection`] lets one process of several act.
//! - [`Tasks`] starts all of these and stops them in order.
//! - [`config`] is the one configuration.

pub mod config;
mod controller;
pub mod events;
mod expectations;
#[cfg(test)]
mod fake_api;
mod informer;
mod key;
pub mod leader;
pub mod metrics;
mod queue;
mod request_rate;
pub mod tasks;
mod text;
#[cfg(test)]
mod whole_tests;

pub use controller::{Action, Controller, ControllerOptions, CutOff, Key};
pub use events::{EventRecorder, EventType, EventWriter};
pub use expectations::Expectations;
pub use informer::{Change, Informer, Selection};
pub use key::ObjectKey;
pub use leader::{LeaderElection, LeaderSettings, LeaderState, Leadership};
pub use metrics::Metrics;
pub use queue::{RateLimits, WorkQueue};
pub use request_rate::{RateLimited, RequestRate};
pub use tasks::{Stage, TaskFailure, Tasks};
pub(crate) use text::{error_chain, panic_message};
