//! Worlds around an embedded API in memory: the server, a simulated account, and controllers.

use std::sync::Arc;

use anyhow::{Context, Result};
use fleetwright_api::{machine::MachineSet, names::MACHINE_NAMESPACE};
use fleetwright_apiserver::{
    Limits, Server,
    auth::authn::signing::SigningKey,
    embedded::{Embedded, Running, Settings, StoreLocation},
    service::KnownUser,
    user::{AUTHENTICATED, MASTERS, UserInfo},
};
use fleetwright_clock::{Clock, Random};
use fleetwright_cloud::limiter::LimitPolicy;
use fleetwright_cloud_aws::AwsOptions;
use fleetwright_world::{seed, simulation::Simulation};
use http::Request;
use kube::{
    Api, Client,
    api::{ListParams, PostParams},
    client::Body,
};
use tower::{Layer, ServiceExt};

use super::{
    ground::{self, Controllers},
    objects,
    traffic::Traffic,
};

/// A server in this process, with our kinds and an installation.
pub(crate) struct World {
    running: Running,
    pub(crate) simulation: Simulation,
    pub(crate) user: Client,
    pub(crate) clock: Clock,
    pub(crate) random: Random,
}

impl World {
    /// Starts the server.
    pub(crate) async fn start(
        simulation: Simulation,
        clock: Clock,
        random: Random,
    ) -> Result<Self> {
        let signing = SigningKey::generate().context("cannot make the key of service accounts")?;
        let settings = Settings {
            clock: clock.clone(),
            random: random.fork(),
            limits: Limits::default(),
            tokens: String::new(),
            service_account_key: signing.pkcs8().to_vec(),
            authority: String::new(),
            controllers: Box::new(|_| true),
        };
        let running = Embedded::open(StoreLocation::Memory, &clock)?.start(settings).await?;
        let user = client(running.server(), &Traffic::default());
        seed::definitions(&user).await?;
        seed::installation(&user, &simulation.installation).await?;
        Ok(Self { running, simulation, user, clock, random })
    }

    /// Starts all controllers; their requests are counted.
    pub(crate) fn controllers(&self, traffic: &Traffic, limits: LimitPolicy) -> Controllers {
        let (server, traffic) = (self.running.server().clone(), traffic.clone());
        let clients = move |_: &str| client(&server, &traffic);
        let transport = self.simulation.transport();
        let cloud = AwsOptions {
            limits,
            ..AwsOptions::new(transport, self.clock.clone(), self.random.fork())
        };
        Controllers::start("*", clients, cloud)
    }

    /// Asks for so many Machines.
    pub(crate) async fn ask_for(&self, machines: usize) -> Result<()> {
        for set in objects::machine_sets(machines) {
            let set: MachineSet = serde_json::from_value(set)?;
            let created = self.sets().create(&PostParams::default(), &set).await;
            created.context("cannot create a MachineSet")?;
        }
        Ok(())
    }

    /// Lets the kubelets of all instances join that have not.
    pub(crate) async fn join(&self) -> Result<()> {
        ground::join(&self.user, &ground::running(&self.simulation)).await
    }

    /// How many Machines are ready, as their sets say.
    pub(crate) async fn ready(&self) -> Result<usize> {
        let sets = self.sets().list(&ListParams::default()).await.context("cannot list")?;
        let counts = sets.items.iter().filter_map(|set| set.status.as_ref()?.ready_replicas);
        Ok(counts.map(|count| usize::try_from(count).unwrap_or_default()).sum())
    }

    fn sets(&self) -> Api<MachineSet> {
        Api::namespaced(self.user.clone(), MACHINE_NAMESPACE)
    }
}

fn client(server: &Server, traffic: &Traffic) -> Client {
    let user = Arc::new(UserInfo::new("bench", &[MASTERS, AUTHENTICATED]));
    let service = server.clone().map_request(move |mut request: Request<Body>| {
        request.extensions_mut().insert(KnownUser(Arc::clone(&user)));
        request
    });
    Client::new(traffic.layer(service), "default")
}
