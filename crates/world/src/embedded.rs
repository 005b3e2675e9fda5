//! The whole world in one process, around an embedded Kubernetes API.

use std::{io, path::PathBuf, sync::Arc};

use fleetwright_apiserver::{
    auth::names::service_account_groups,
    embedded::Running,
    user::{AUTHENTICATED, MASTERS, UserInfo},
};
use fleetwright_clock::{Clock, Random};
use fleetwright_cloud::{HttpClientError, HttpOptions, http_client};
use fleetwright_cloud_aws::{AwsConnector, AwsOptions, Endpoints};
use fleetwright_machines::admit::Settings;
use fleetwright_runtime::{
    Tasks,
    config::{Config, ControllerNames},
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::json;
use tokio::net::TcpListener;

use crate::{
    access,
    client::in_process,
    fleet::Fleet,
    handlers::node_clients,
    seed::{self, DefinitionError, SYSTEM_NAMESPACE, SeedError},
    simulation::{JournalError, Pace, Simulation},
    webhooks,
};

/// Where `fleetwright sim` finds the simulated clouds: a ConfigMap in [`SYSTEM_NAMESPACE`].
pub const SIMULATION: &str = "fleetwright-simulation";
/// Its key for the address.
pub const SIMULATION_URL: &str = "url";

/// What a world is made with.
pub struct World {
    /// Wall time.
    pub clock: Clock,
    /// Chance.
    pub random: Random,
    /// How fast simulated things happen.
    pub pace: Pace,
    /// Which controllers run.
    pub controllers: ControllerNames,
    /// How they work.
    pub config: Config,
    /// Where the simulated clouds answer.
    pub clouds: TcpListener,
    /// Where the simulated cloud keeps its journal; none forgets it.
    pub journal: Option<PathBuf>,
}

/// The world cannot start.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// The kinds cannot be defined.
    #[error(transparent)]
    Definitions(#[from] DefinitionError),
    /// The installation cannot be written.
    #[error(transparent)]
    Seed(#[from] SeedError),
    /// The simulated cloud cannot be brought back.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The address of the simulated clouds cannot be told.
    #[error("cannot tell the address of the simulated clouds")]
    Address(#[source] io::Error),
    /// There is no way to the simulated clouds.
    #[error("cannot make a client for the simulated clouds")]
    Client(#[from] HttpClientError),
}

impl World {
    /// Starts everything around a server, and says where the clouds answer.
    pub async fn start(self, running: &Running, tasks: &mut Tasks) -> Result<String, WorldError> {
        let Self { clock, random, pace, controllers, config, clouds, journal } = self;
        let server = running.server().clone();
        let installer = {
            let user = UserInfo::new("fleetwright-installer", &[MASTERS, AUTHENTICATED]);
            in_process(&server, user, "default")
        };
        // What a cluster beside us would have of its own: kubelets, a scheduler, workloads.
        let cluster = {
            let user = UserInfo::new("fleetwright-simulated-nodes", &[MASTERS, AUTHENTICATED]);
            in_process(&server, user, "default")
        };
        let client_of = move |name: &str| in_process(&server, controller(name), "default");
        let url = format!("http://{}", clouds.local_addr().map_err(WorldError::Address)?);
        let simulation =
            Simulation::new(clock.clone(), pace).with_handlers(node_clients(running.server()));
        if let Some(path) = &journal {
            simulation.keep_in(path)?;
        }
        seed::definitions(&installer).await?;
        seed::installation(&installer, &simulation.installation).await?;
        access::install(&installer, &config.machine_namespace).await?;
        tell_where(&installer, &url).await?;
        webhooks::register(
            running,
            &installer,
            client_of(webhooks::IDENTITY),
            Settings::of(&config.webhooks, &config.machine_namespace),
            (clock.clone(), &random),
            tasks,
        )
        .await?;

        simulation.serve(clouds, tasks);
        let wanted = controllers.clone();
        simulation.start(
            cluster,
            clock.clone(),
            &random,
            move |name| wanted.enabled(name, true),
            tasks,
        );
        let uri = url.parse().expect("an address is a URI");
        let options = AwsOptions {
            endpoints: Endpoints::all(&uri),
            ..AwsOptions::new(http_client(&HttpOptions::default())?, clock.clone(), random.fork())
        };
        let connector = Arc::new(AwsConnector::new(options));
        let fleet =
            Fleet { controllers, ..Fleet::new(&config, client_of, connector, clock, random) };
        fleet.start(tasks);
        Ok(url)
    }
}

/// A controller as the API knows it: a ServiceAccount, which may do what its roles say.
pub(crate) fn controller(name: &str) -> UserInfo {
    let groups = service_account_groups(SYSTEM_NAMESPACE);
    let groups: Vec<&str> = groups.iter().map(String::as_str).chain([AUTHENTICATED]).collect();
    UserInfo::new(&access::user(name), &groups)
}

/// Writes down where the simulated clouds answer: the port may be another at each start.
pub async fn tell_where(client: &Client, url: &str) -> Result<(), SeedError> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), SYSTEM_NAMESPACE);
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": SIMULATION},
        "data": {SIMULATION_URL: url},
    });
    api.patch(SIMULATION, &PatchParams::apply(seed::MANAGER).force(), &Patch::Apply(object))
        .await
        .map(drop)
        .map_err(|source| SeedError::new("the ConfigMap of the simulated clouds", source))
}
