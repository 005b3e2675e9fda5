//! Spot: how fast a notice reaches the pods, and what the handler on a node weighs.

pub(crate) mod handler;
pub(crate) mod notice;
mod pods;
mod up;
mod watching;
