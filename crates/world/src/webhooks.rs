//! The rules for what users may write, in the same process as the API server.

use fleetwright_admission::{Endpoint, Registry, Service};
use fleetwright_apiserver::embedded::Running;
use fleetwright_clock::Clock;
use fleetwright_machines::admit::{Ratchet, Settings, name, webhooks};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::seed::{MANAGER, SeedError};

/// Has the server ask us before it takes Machines, MachineSets and placement groups.
pub async fn register(
    running: &Running,
    client: &Client,
    clock: Clock,
    namespace: &str,
) -> Result<(), SeedError> {
    let settings = Settings { machine_namespace: namespace.to_owned(), ratchet: Ratchet::On };
    let registry: Registry = webhooks(client.clone(), clock, settings);
    let endpoint = Endpoint::Service {
        namespace: namespace.to_owned(),
        name: name::SERVICE.to_owned(),
        port: name::SERVICE_PORT,
    };
    let mutating = registry.mutating(name::CONFIGURATION, &endpoint, b"");
    let validating = registry.validating(name::CONFIGURATION, &endpoint, b"");
    running.webhooks().register_service(
        namespace,
        name::SERVICE,
        name::SERVICE_PORT,
        Service::new(registry),
    );
    apply(client, &mutating).await?;
    apply(client, &validating).await
}

async fn apply<K>(client: &Client, object: &K) -> Result<(), SeedError>
where
    K: Resource<DynamicType = (), Scope = kube::core::ClusterResourceScope>
        + Clone
        + Serialize
        + DeserializeOwned
        + std::fmt::Debug,
{
    Api::<K>::all(client.clone())
        .patch(&object.name_any(), &PatchParams::apply(MANAGER).force(), &Patch::Apply(object))
        .await
        .map(drop)
        .map_err(|source| SeedError::new(&format!("the {}", K::kind(&())), source))
}
