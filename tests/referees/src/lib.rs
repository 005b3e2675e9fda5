//! Starts the real Kubernetes binaries and compares the embedded API with them.
//!
//! - [`RealCluster`] runs kube-apiserver, etcd and a controller manager on loopback;
//!   [`EmbeddedCluster`] runs `fleetwright up`. Both are a [`Cluster`]: an address, certificates
//!   and tokens for the same people.
//! - [`script`] reads the request scripts in `scripts/`, runs them and writes a transcript.
//! - [`session`] does the same for the kubectl sessions in `sessions/`.
//! - [`normalise`] makes transcripts of two servers comparable; [`compare`] compares them,
//!   minding the short list of accepted differences.
//! - [`crds`] compares our CustomResourceDefinitions with those of upstream, field by field.
//!
//! `cargo test -p fleetwright-referees` runs everything; a word after `--` filters by name.
//! `cargo run -p fleetwright-referees -- --real scripts/x.txt` shows what one server answers.

pub mod certificates;
pub mod cluster;
pub mod compare;
pub mod crds;
pub mod http_client;
pub mod json_path;
pub mod normalise;
pub mod process;
pub mod python;
pub mod script;
pub mod session;
pub mod webhook;

pub use cluster::embedded::EmbeddedCluster;
pub use cluster::real::{RealCluster, RealOptions};
pub use cluster::{Access, Cluster};
pub use http_client::{Client, Identity, Request, Response};
