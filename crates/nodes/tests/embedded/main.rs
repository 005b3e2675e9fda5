//! Nodes in a whole cluster: the embedded API in this process, on virtual time, without a socket.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which fail by panicking")]

mod cluster;
mod drain;
mod linking;
