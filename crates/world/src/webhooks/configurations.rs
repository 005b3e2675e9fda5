//! The configurations that make the API server ask.

use std::{fmt, sync::Arc, time::Duration};

use fleetwright_admission::{Endpoint, Registry};
use fleetwright_clock::Random;
use fleetwright_machines::admit::name;
use fleetwright_runtime::{CutOff, Informer, Metrics, Selection};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use serde::{Serialize, de::DeserializeOwned};
use tokio::{
    sync::{Notify, watch},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

/// Who writes them.
const MANAGER: &str = "fleetwright/webhooks";
/// The pause between writes, and after a failure.
const PAUSE: Duration = Duration::from_secs(2);

/// The configurations are not as they must be.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationTrouble {
    /// One cannot be read.
    #[error("cannot read {what} {}", name::CONFIGURATION)]
    Read {
        /// The kind.
        what: String,
        /// What the API says.
        source: kube::Error,
    },
    /// One lacks some of our webhooks.
    #[error(
        "{what} {} lacks {}: have it made with --set webhooks.configurations=Install, or add it",
        name::CONFIGURATION,
        missing.join(", ")
    )]
    Lacks {
        /// The kind.
        what: String,
        /// The webhooks.
        missing: Vec<String>,
    },
}

/// Writes both configurations: the fields that are ours and no others. An error comes with the
/// kind.
pub(super) async fn apply(
    client: &Client,
    registry: &Registry,
    endpoint: &Endpoint,
    trusted: &str,
) -> Result<(), (String, kube::Error)> {
    let trusted = trusted.as_bytes();
    apply_one(client, &registry.mutating(name::CONFIGURATION, endpoint, trusted)).await?;
    apply_one(client, &registry.validating(name::CONFIGURATION, endpoint, trusted)).await
}

async fn apply_one<K: Configuration>(
    client: &Client,
    object: &K,
) -> Result<(), (String, kube::Error)> {
    Api::<K>::all(client.clone())
        .patch(&object.name_any(), &PatchParams::apply(MANAGER).force(), &Patch::Apply(object))
        .await
        .map(drop)
        .map_err(|source| (K::kind(&()).into_owned(), source))
}

/// Finds out whether somebody else's configurations have all our webhooks.
pub(super) async fn check(
    client: &Client,
    registry: &Registry,
) -> Result<(), ConfigurationTrouble> {
    let nowhere = Endpoint::Url(String::new());
    check_one(client, &registry.mutating(name::CONFIGURATION, &nowhere, b"")).await?;
    check_one(client, &registry.validating(name::CONFIGURATION, &nowhere, b"")).await
}

async fn check_one<K: Configuration>(
    client: &Client,
    ours: &K,
) -> Result<(), ConfigurationTrouble> {
    let what = K::kind(&()).into_owned();
    let found = Api::<K>::all(client.clone())
        .get_opt(name::CONFIGURATION)
        .await
        .map_err(|source| ConfigurationTrouble::Read { what: what.clone(), source })?;
    let there = found.as_ref().map(names).unwrap_or_default();
    let missing: Vec<String> =
        names(ours).into_iter().filter(|name| !there.contains(name)).collect();
    if missing.is_empty() { Ok(()) } else { Err(ConfigurationTrouble::Lacks { what, missing }) }
}

/// The names of the webhooks in a configuration.
fn names(configuration: &impl Serialize) -> Vec<String> {
    let value = serde_json::to_value(configuration).unwrap_or_default();
    let webhooks = value["webhooks"].as_array().map(Vec::as_slice).unwrap_or_default();
    webhooks.iter().filter_map(|webhook| webhook["name"].as_str().map(str::to_owned)).collect()
}

/// What both kinds are.
trait Configuration:
    Resource<DynamicType = (), Scope = kube::core::ClusterResourceScope>
    + Clone
    + Serialize
    + DeserializeOwned
    + fmt::Debug
    + Send
    + Sync
    + 'static
{
}

impl Configuration for MutatingWebhookConfiguration {}
impl Configuration for ValidatingWebhookConfiguration {}

/// Keeps the configurations as they must be.
pub(super) struct Writer {
    pub(super) client: Client,
    pub(super) registry: Registry,
    pub(super) endpoint: Endpoint,
    pub(super) trusted: watch::Receiver<String>,
    pub(super) random: Random,
    pub(super) metrics: Metrics,
}

impl Writer {
    /// Writes them now, when the authority changes, and when somebody else writes.
    pub(super) async fn run(self, stop: CancellationToken) -> Result<(), CutOff> {
        let changed = Arc::new(Notify::new());
        let mutating: Informer<MutatingWebhookConfiguration> = self.watch(&changed);
        let validating: Informer<ValidatingWebhookConfiguration> = self.watch(&changed);
        let (first, second) = (self.random.fork(), self.random.fork());
        tokio::join!(
            mutating.run(first, stop.clone()),
            validating.run(second, stop.clone()),
            async {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = self.write(&changed) => {}
                }
            },
        );
        Ok(())
    }

    fn watch<K: Configuration>(&self, changed: &Arc<Notify>) -> Informer<K> {
        let name = format!("webhooks-{}", K::plural(&()));
        let selection = Selection {
            fields: Some(format!("metadata.name={}", name::CONFIGURATION)),
            ..Selection::default()
        };
        let api = Api::all(self.client.clone());
        let informer = Informer::selecting(&name, api, selection, &self.metrics);
        let changed = Arc::clone(changed);
        informer.on_change(move |_| changed.notify_one());
        informer
    }

    async fn write(&self, changed: &Notify) {
        let mut trusted = self.trusted.clone();
        loop {
            let authority = trusted.borrow_and_update().clone();
            match apply(&self.client, &self.registry, &self.endpoint, &authority).await {
                Ok(()) => {
                    tokio::select! {
                        // Writing what is there changes nothing, so this ends.
                        () = changed.notified() => {}
                        Ok(()) = trusted.changed() => {}
                    }
                }
                Err((what, error)) => {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(error, "cannot write {what} {}", name::CONFIGURATION);
                }
            }
            sleep(PAUSE).await;
        }
    }
}
