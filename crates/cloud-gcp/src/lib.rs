//! Google Cloud: how instances are bought, and what their states and errors mean.
//!
//! Rules alone, without a request: what a provider sends and how it reads the answers.

mod errors;
mod quota;
mod scheduling;
mod state;

pub use errors::classify;
pub use quota::gpu_metric;
pub use scheduling::{RestartError, Scheduling, SchedulingError, automatic_restart};
pub use state::state;
