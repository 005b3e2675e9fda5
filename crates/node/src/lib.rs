//! The termination handler: it runs on every node that the cloud may take back, asks the cloud's
//! metadata service whether it does, and says so on the Node in time for pods to be moved.
//!
//! - [`notice`] is what clouds say, in words that are the same for all of them.
//! - [`source`] is where notices come from: [`aws`], [`gcp`], [`azure`].
//! - [`decide`] is what to write and when to look again, as plain functions.
//! - [`handler`] is the loop around them. No error ends it.
//! - [`metadata`] asks one question; [`access`] follows the kubelet's credentials; [`report`]
//!   tells how it goes.
//!
//! [`manifests`] is what a cluster needs to run it.
//!
//! It needs no rights of its own: it uses the kubelet's, which reach no further than its own
//! Node.

pub mod access;
pub mod aws;
pub mod azure;
pub mod decide;
pub mod gcp;
pub mod handler;
pub mod manifests;
pub mod metadata;
pub mod notice;
pub mod report;
pub mod source;
pub mod trouble;
