//! Nodes, as those who make machines need them. Both API families use this; it knows Nodes and
//! pods, and of machines only the few facts that it is given.
//!
//! - [`facts`] reads what matters off a Node.
//! - [`link`] finds the Node of a machine, by provider ID or else by address, and the other way
//!   round.
//! - [`propagate`] brings labels, annotations and taints of a machine to its Node.
//! - [`drain`] empties a Node, one step per call.

pub mod drain;
pub mod facts;
pub mod link;
pub mod propagate;
