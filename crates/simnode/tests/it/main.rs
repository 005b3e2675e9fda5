//! Whole simulated clusters against the embedded API server, in this process, on virtual time and
//! without a socket.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which fail by panicking")]
#![expect(clippy::needless_pass_by_value, reason = "tables of JSON read better by value")]

mod nodes;
mod scheduling;
mod workloads;
mod world;
