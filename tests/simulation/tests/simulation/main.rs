//! The controllers in a whole simulated world: the API, the cloud, its nodes, users, and every
//! fault that a schedule holds, on virtual time and in one thread.
//!
//! A run replays exactly from its seed: `SIM_SEED=n cargo test --workspace --test simulation`.
//! `SIM_SEEDS` or `SIM_SECONDS` make the run over random seeds longer, `SIM_ALL=1` harms every
//! write of the learning run and not only those that differ.

mod check;
mod door;
mod entropy;
mod host;
mod leader;
mod mirror;
mod random;
mod repairs;
mod run;
mod scenario;
mod schedule;
mod systematic;
mod traffic;
mod world;
