//! The provider adapters against the simulated clouds.
//!
//! Both sides were written from the protocol's documentation, neither from the other: where they
//! agree, a third reading (the vendor's own client, in the referees) agrees with one of them.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail like tests")]

mod aws;
mod destroy;
mod requests;
