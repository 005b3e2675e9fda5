//! Scenarios: what a user does, as readable scripts with golden output.
//!
//! ```text
//! # A comment.
//! $ fleetwright version
//!     fleetwright 0.1.0
//! start up $ fleetwright up
//! show up 5 lines
//!     Fleetwright is up at https://<address>
//!     ...
//! == both
//! file widget.yaml
//!     kind: Widget
//! $ kubectl apply -f widget.yaml
//!     widget.example.com/a created
//! == embedded
//! kill up
//!     --- killed
//! ```
//!
//! | line | meaning |
//! |---|---|
//! | `$ COMMAND` | a shell command; the indented lines below are what it prints |
//! | `needs $ COMMAND` | where it fails, the scenario is left out |
//! | `until $ COMMAND` | again and again until it succeeds; what it prints is ignored |
//! | `start NAME $ COMMAND` | starts it in the background |
//! | `wait NAME 2 lines` | until it has printed so much |
//! | `show NAME 2 lines` | the same; below is what is new since the last `show` |
//! | `interrupt NAME`, `kill NAME` | Ctrl-C or kill -9; below is what is new, and how it ended |
//! | `finish NAME` | the same without a signal: it ends by itself |
//! | `file NAME` | a file with the indented text below |
//! | `with cluster-autoscaler` | that program is in the path too, built first if need be |
//! | `== both` | from here on, the real server must print the same |
//! | `== real` | from here on, for the real server alone |
//! | `== embedded` | from here on, for the embedded server alone; so begins every scenario |
//!
//! Commands run in an empty home folder beside links to `examples/` and `deploy/`, with `fleetwright` and the
//! `kubectl` of the referees in their path. `KUBECONFIG` is where `fleetwright up` puts it by
//! default, or that of the real server. `fleetwright up` takes a free port unless told otherwise.
//! Times, uids, revisions, ages, ports and wide columns are made comparable first.
//!
//! `UPDATE_GOLDEN=1 cargo test --workspace --test scenarios` writes what is printed into the scripts:
//! what the real server says where both take part.

mod background;
mod run;
mod scenario;

pub use run::{Run, Server, run};
pub use scenario::{Block, Part, Program, Scenario, Step, files};
