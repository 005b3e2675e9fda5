//! Rules that both API families share, as plain functions over plain data.
//!
//! Nothing here waits, logs, fetches or reads a clock: what is known comes in, with the time, and
//! what to do comes out, with the reasons. Controllers carry it out.
//!
//! - [`phase`] is the life of a Machine: which call comes next and which phase it is in;
//!   [`machine_status`] is what its status then says, [`hooks`] what holds it back.
//! - [`replicas`] counts the Machines of a set, adopts, releases, and chooses who goes first.
//! - [`drain`] empties a Node as `kubectl drain` would, in time.
//! - [`health`] judges Machines and Nodes, [`backoff`] slows down repairs that do not help.
//! - [`autoscaler`] is what cluster-autoscaler reads on a set.
//! - [`conditions`], [`selector`], [`int_or_percent`], [`duration`], [`quantity`] and [`moment`] are
//!   the small parts that these need.

pub mod autoscaler;
pub mod backoff;
pub mod conditions;
pub mod drain;
pub mod duration;
pub mod health;
pub mod hooks;
pub mod int_or_percent;
pub mod machine_status;
pub mod moment;
pub mod phase;
pub mod quantity;
pub mod replicas;
pub mod selector;
