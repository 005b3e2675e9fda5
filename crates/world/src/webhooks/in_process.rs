//! Webhooks in the same process as the API server.

use fleetwright_admission::{Endpoint, Service};
use fleetwright_apiserver::embedded::Running;
use fleetwright_clock::{Clock, Random};
use fleetwright_machines::admit::{Settings, name};
use fleetwright_runtime::{Metrics, Tasks};
use kube::Client;

use super::{configurations, rules};
use crate::seed::SeedError;

/// Has the server ask us before it takes Machines, MachineSets and placement groups.
pub async fn register(
    running: &Running,
    installer: &Client,
    facts: Client,
    settings: Settings,
    (clock, random): (Clock, &Random),
    tasks: &mut Tasks,
) -> Result<(), SeedError> {
    let namespace = settings.machine_namespace.clone();
    let (registry, _) = rules(facts, settings, clock, random, &Metrics::new(), tasks);
    let endpoint = Endpoint::Service {
        namespace: namespace.clone(),
        name: name::SERVICE.to_owned(),
        port: name::SERVICE_PORT,
    };
    let service = Service::new(registry.clone());
    running.webhooks().register_service(&namespace, name::SERVICE, name::SERVICE_PORT, service);
    configurations::apply(installer, &registry, &endpoint, "")
        .await
        .map_err(|(what, source)| SeedError::new(&format!("the {what}"), source))
}
