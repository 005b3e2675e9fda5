//! The store from outside: the same expectations of every backend, random histories, faults.
#![expect(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod conformance;
mod crash;
mod damage;
mod faults;
mod histories;
mod restart;
mod support;
