//! Time, chance and back-off, real or simulated.
//!
//! Nothing else in Fleetwright reads the wall clock or draws a random number: that is what lets
//! a whole fleet run in one thread on virtual time and replay exactly from a seed. Timers are
//! tokio's, which follow tokio's paused clock by themselves.

mod backoff;
mod bucket;
mod random;
mod time;

pub use backoff::{Backoff, BackoffPolicy};
pub use bucket::TokenBucket;
pub use random::Random;
pub use time::Clock;
