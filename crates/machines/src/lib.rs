//! `machine.openshift.io`: a Machine becomes an instance and a Node, a MachineSet keeps a number of
//! Machines, an AWSPlacementGroup says where they stand to each other.
//!
//! - [`machine`] is the Machine controller: phases, conditions, drain, deletion.
//! - [`launch`] decides which Machines are launched, when, together with which, and survives a
//!   crash at any point with one instance per Machine.
//! - [`clouds`] is where Machines are made, and what is there.
//! - [`set`] is the MachineSet controller.
//! - [`group`] is the AWSPlacementGroup controller, and what its groups mean for a launch.
//! - [`health`] is the MachineHealthCheck controller.
//! - [`authority`] says whether a Machine or MachineSet is ours while a cluster moves to another API.
//! - [`admit`] holds the rules for what users may write.
//!
//! Each folder has pure decisions (`decide.rs`) apart from the code that carries them out.

pub mod admit;
pub mod authority;
pub mod clouds;
mod conditions;
pub mod group;
pub mod health;
pub mod launch;
pub mod machine;
mod requests;
mod selecting;
pub mod set;
