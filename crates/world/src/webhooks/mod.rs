//! The rules for what users may write, and the API servers that ask them.
//!
//! In the same process as the server they are called directly. Served, they are behind TLS: every
//! replica answers, the leader writes the configurations that make the API server ask, and the
//! certificate is shared and renewed while they run.

mod certificates;
#[cfg(test)]
mod certificates_tests;
mod configurations;
mod in_process;
mod reach;
mod served;

use std::convert::Infallible;

use fleetwright_admission::Registry;
use fleetwright_api::config::Infrastructure;
use fleetwright_clock::{Clock, Random};
use fleetwright_machines::admit::{Settings, webhooks};
use fleetwright_runtime::{Informer, Metrics, Stage, Tasks};
use kube::{Api, Client};

pub use certificates::CertificateTrouble;
pub use configurations::ConfigurationTrouble;
pub use in_process::register;
pub use reach::{Reach, ReachError};
pub use served::{Served, ServedAt, WebhookError};

/// As whom the rules look up what they must know.
pub const IDENTITY: &str = "webhooks";

/// The rules, with a cache of what they must know of the cluster.
fn rules(
    facts: Client,
    settings: Settings,
    clock: Clock,
    random: &Random,
    metrics: &Metrics,
    tasks: &mut Tasks,
) -> (Registry, Informer<Infrastructure>) {
    let name = "webhook-infrastructures";
    let cluster = Informer::<Infrastructure>::new(name, Api::all(facts.clone()), metrics);
    let (informer, random) = (cluster.clone(), random.fork());
    tasks.start(Stage::Observation, name, |stop| async move {
        informer.run(random, stop).await;
        Ok::<(), Infallible>(())
    });
    (webhooks(facts, cluster.clone(), clock, settings), cluster)
}
