//! Webhooks on a socket, for an API server elsewhere.

use std::{convert::Infallible, io, net::SocketAddr, path::PathBuf, sync::Arc};

use fleetwright_admission::{CertificateError, Service, https};
use fleetwright_clock::{Clock, Random};
use fleetwright_machines::admit::Settings;
use fleetwright_runtime::{
    Informer, Leadership, Metrics, Selection, Stage, Tasks,
    config::{Configurations, ServeWebhooks, WebhooksConfig},
    metrics::Health,
};
use k8s_openapi::api::core::v1::{Secret, Service as KubernetesService};
use kube::{Api, Client};
use tokio::net::TcpListener;

use super::{
    CertificateTrouble, ConfigurationTrouble, Reach, ReachError,
    certificates::{Keeper, Place},
    configurations::{self, Writer},
    rules,
};
use crate::{fleet::Lead, seed::SYSTEM_NAMESPACE};

/// What webhooks need to be served.
pub struct Served {
    /// How they are served.
    pub config: WebhooksConfig,
    /// The namespace of Machines.
    pub namespace: String,
    /// For the certificate and the configurations.
    pub own: Client,
    /// For what the rules must know.
    pub facts: Client,
    /// Wall time.
    pub clock: Clock,
    /// Chance.
    pub random: Random,
    /// What is counted.
    pub metrics: Metrics,
    /// Whether they answer.
    pub health: Health,
    /// Set when several processes compete: the leader alone writes the configurations.
    pub leadership: Option<Leadership>,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedAt {
    /// They listen here.
    Address(SocketAddr),
    /// They are switched off.
    Off,
    /// The API server has no way to them.
    OutOfReach,
}

/// Webhooks cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// The way to them is none.
    #[error(transparent)]
    Reach(#[from] ReachError),
    /// There is no way to them.
    #[error(
        "the API server cannot reach the webhooks: there is no Service {SYSTEM_NAMESPACE}/{0}; make it \
         (deploy/ has it), say where they are with --webhook-url https://HOST:9443, or do without them \
         with --set webhooks.serve=Never"
    )]
    NoService(String),
    /// It cannot be found out.
    #[error("cannot look for Service {SYSTEM_NAMESPACE}/{name}")]
    FindService {
        /// The Service.
        name: String,
        /// What the API says.
        source: kube::Error,
    },
    /// They have no address.
    #[error(
        "webhooks.address is 0: say where to listen, such as :9443, or webhooks.serve=Never for none"
    )]
    NoAddress,
    /// The address is taken, or not ours.
    #[error(
        "cannot serve webhooks at {address}: choose another with --set webhooks.address=ADDRESS:PORT"
    )]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// There is no certificate.
    #[error(transparent)]
    Certificate(#[from] CertificateTrouble),
    /// The certificate cannot be shown.
    #[error(transparent)]
    Tls(#[from] CertificateError),
    /// The configurations are not as they must be.
    #[error(transparent)]
    Configuration(#[from] ConfigurationTrouble),
}

impl Served {
    /// Starts to serve, and has the API server ask.
    pub async fn start(self, tasks: &mut Tasks) -> Result<ServedAt, WebhookError> {
        let Self { config, namespace, own, facts, clock, random, metrics, health, leadership } =
            self;
        if config.serve == ServeWebhooks::Never {
            return Ok(ServedAt::Off);
        }
        let reach = Reach::of(&config)?;
        if let Reach::Service(name) = &reach
            && !service_exists(&own, name).await?
        {
            return match config.serve {
                ServeWebhooks::Always => Err(WebhookError::NoService(name.clone())),
                ServeWebhooks::Auto | ServeWebhooks::Never => Ok(ServedAt::OutOfReach),
            };
        }
        let address = config.address.0.ok_or(WebhookError::NoAddress)?;
        let bound = |source| WebhookError::Bind { address, source };
        let listener = TcpListener::bind(address).await.map_err(bound)?;
        let listening = listener.local_addr().map_err(bound)?;

        let (place, secret) = place(&config, &own, &metrics);
        let keeper = Keeper::open(place, reach.holder(), clock.clone()).await?;
        let (shown, trusted) = (keeper.shown(), keeper.trusted());
        let settings = Settings::of(&config, &namespace);
        let (registry, cluster) = rules(facts, settings, clock, &random, &metrics, tasks);
        match config.configurations {
            Configurations::Check => configurations::check(&own, &registry).await?,
            Configurations::Install => {
                let writer = Writer {
                    client: own,
                    registry: registry.clone(),
                    endpoint: reach.endpoint(listening.port()),
                    trusted,
                    random: random.fork(),
                    metrics,
                };
                let name = "webhook configurations";
                Lead(leadership).start(tasks, name, |stop| writer.run(stop));
            }
        }
        if let Some(secret) = &secret {
            let (secret, random) = (secret.clone(), random.fork());
            tasks.start(Stage::Observation, "webhook certificate's Secret", |stop| async move {
                secret.run(random, stop).await;
                Ok::<(), Infallible>(())
            });
        }
        tasks.start(Stage::Observation, "webhook certificate", |stop| async move {
            keeper.run(secret, stop).await;
            Ok::<(), Infallible>(())
        });
        let tls = shown.tls()?;
        let service = Service::new(registry);
        // With what they look at: as long as controllers write, somebody should check.
        tasks.start(Stage::Observation, "webhooks", |stop| async move {
            https::serve(listener, tls, service, stop).await;
            Ok::<(), Infallible>(())
        });
        health.add_ready(
            "webhooks",
            Arc::new(move || {
                let known = cluster.has_synced();
                if known { Ok(()) } else { Err("the cluster is not known yet".to_owned()) }
            }),
        );
        Ok(ServedAt::Address(listening))
    }
}

async fn service_exists(client: &Client, name: &str) -> Result<bool, WebhookError> {
    let api: Api<KubernetesService> = Api::namespaced(client.clone(), SYSTEM_NAMESPACE);
    let found = api.get_opt(name).await;
    found
        .map(|found| found.is_some())
        .map_err(|source| WebhookError::FindService { name: name.to_owned(), source })
}

/// Where the certificate is, and what tells of its changes.
fn place(
    config: &WebhooksConfig,
    client: &Client,
    metrics: &Metrics,
) -> (Place, Option<Informer<Secret>>) {
    if !config.certificate_dir.is_empty() {
        return (Place::Folder(PathBuf::from(&config.certificate_dir)), None);
    }
    let name = config.certificate_secret.clone();
    let api: Api<Secret> = Api::namespaced(client.clone(), SYSTEM_NAMESPACE);
    let selection =
        Selection { fields: Some(format!("metadata.name={name}")), ..Selection::default() };
    let informer = Informer::selecting("webhook-certificate", api.clone(), selection, metrics);
    (Place::Secret { api: Box::new(api), name }, Some(informer))
}
