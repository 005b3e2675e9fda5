//! Everything put together: a store, a server, and the controllers that a cluster cannot do
//! without.

use std::{path::PathBuf, sync::Arc};

use fleetwright_clock::{Clock, Random};
use fleetwright_kstore::{OpenError, Options, Store};
use tokio::task::JoinSet;

use crate::{
    access::Access,
    admission::{Admission, InProcess, transport::Https},
    auth::authn::signing::SigningKey,
    bootstrap, controllers, crd,
    server::{Limits, Parts, Server},
    status::ApiError,
    storage::{ObjectIndex, Storage},
};

/// Where objects are kept.
#[derive(Clone, Debug)]
pub enum StoreLocation {
    /// In memory alone.
    Memory,
    /// In a folder, durably.
    Folder(PathBuf),
}

/// What a server is told.
pub struct Settings {
    /// Wall time.
    pub clock: Clock,
    /// Chance.
    pub random: Random,
    /// What it will not exceed.
    pub limits: Limits,
    /// Bearer tokens, one `token,user,uid,"group1,group2"` a line.
    pub tokens: String,
    /// Signs the tokens of service accounts (PKCS#8).
    pub service_account_key: Vec<u8>,
    /// The certificate authority (PEM), published in every namespace.
    pub authority: String,
    /// Which of [`controllers::NAMES`] run.
    pub controllers: Box<dyn Fn(&str) -> bool + Send>,
}

/// Why the API cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The tokens or keys cannot be used.
    #[error("{0}")]
    Credentials(String),
    /// The first objects cannot be made.
    #[error("cannot make what every cluster has: {}", .0.message())]
    Bootstrap(ApiError),
}

/// A store that is open and not served yet.
pub struct Embedded {
    storage: Storage,
}

/// A server with its controllers.
pub struct Running {
    server: Server,
    webhooks: Arc<InProcess>,
    tasks: JoinSet<()>,
}

impl Embedded {
    /// Opens the store.
    pub fn open(location: StoreLocation, clock: &Clock) -> Result<Self, StartError> {
        let storage = match location {
            StoreLocation::Memory => {
                Store::in_memory(ObjectIndex, clock.clone(), Options::default())
            }
            StoreLocation::Folder(folder) => {
                Store::open(&folder, ObjectIndex, clock.clone(), Options::default())?
            }
        };
        Ok(Self { storage })
    }

    /// Starts a server that keeps everything in memory and that nobody outside this process knows: it
    /// has no tokens, signs with a key of its own, and publishes no authority.
    pub async fn in_memory(
        clock: &Clock,
        random: Random,
        controllers: impl Fn(&str) -> bool + Send + 'static,
    ) -> Result<Running, StartError> {
        let key = SigningKey::generate();
        let key = key.map_err(|error| StartError::Credentials(error.to_string()))?;
        let settings = Settings {
            clock: clock.clone(),
            random,
            limits: Limits::default(),
            tokens: String::new(),
            service_account_key: key.pkcs8().to_vec(),
            authority: String::new(),
            controllers: Box::new(controllers),
        };
        Self::open(StoreLocation::Memory, clock)?.start(settings).await
    }

    /// Starts the server and its controllers.
    pub async fn start(self, settings: Settings) -> Result<Running, StartError> {
        let Settings {
            clock,
            random,
            limits,
            tokens,
            service_account_key,
            authority,
            controllers: wanted,
        } = settings;
        let storage = Arc::new(self.storage);
        let access =
            Access::new(Arc::clone(&storage), &clock, &random, &tokens, &service_account_key)
                .map_err(StartError::Credentials)?;
        let webhooks = Arc::new(InProcess::with_fallback(Arc::new(Https)));
        let admission = Admission::new(access.objects(), Arc::clone(&webhooks) as _, random.fork());
        let server = Server::new(Parts { storage, clock, random, limits, access, admission });
        crd::load(&server);
        bootstrap::run(&server).await.map_err(StartError::Bootstrap)?;
        let mut tasks = JoinSet::new();
        tasks.spawn(crd::run(server.clone()));
        controllers::spawn(&server, &authority, &*wanted, &mut tasks);
        Ok(Running { server, webhooks, tasks })
    }
}

impl Running {
    /// The server.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Webhooks of this process, which answer for services and URLs.
    pub fn webhooks(&self) -> &InProcess {
        &self.webhooks
    }

    /// Stops the controllers and waits for them.
    pub async fn stop(mut self) {
        self.server.stop();
        while self.tasks.join_next().await.is_some() {}
    }
}
