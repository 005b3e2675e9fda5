//! The handler against the simulated metadata service and the embedded API, on virtual time:
//! every fault of a metadata service, of the API and of the node itself.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which fail by panicking")]

mod faults;
mod marks;
mod rotation;
mod sockets;
mod yard;
