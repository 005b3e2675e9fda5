//! Azure: how virtual machines are bought, and what their states and errors mean.
//!
//! Rules alone, without a request: what a provider sends and how it reads the answers.

mod availability;
mod errors;
mod spot;
mod state;

pub use availability::{AvailabilitySet, availability_set, zone};
pub use errors::classify;
pub use spot::{BillingProfile, PriceError, SpotOptions};
pub use state::{instance_state, vm_state};
