//! The server: what all requests share.

use std::sync::Arc;

use fleetwright_clock::{Clock, Random};
use jiff::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::{
    access::Access,
    admission::Admission,
    handlers::Reservations,
    managed::FieldSchemas,
    registry::Registry,
    status::{ApiError, Result},
    storage::Storage,
};

/// What a server will not exceed.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a request's body.
    pub body: usize,
    /// Bytes of an object that is stored; etcd takes no more.
    pub object: usize,
    /// Characters of a URL.
    pub url: usize,
    /// Watches at one time.
    pub watches: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { body: 3 * 1024 * 1024, object: 3 * 1024 * 1024 / 2, url: 16 * 1024, watches: 10_000 }
    }
}

/// An embedded Kubernetes API. Cheap to clone.
#[derive(Clone)]
pub struct Server(Arc<Inner>);

struct Inner {
    storage: Arc<Storage>,
    registry: Registry,
    clock: Clock,
    random: Random,
    limits: Limits,
    field_schemas: FieldSchemas,
    access: Access,
    admission: Admission,
    reservations: Reservations,
    watches: Arc<Semaphore>,
    stop: CancellationToken,
}

/// A place among the watches that a server keeps at one time.
pub(crate) struct WatchPermit {
    _place: OwnedSemaphorePermit,
}

/// What a server is made of.
pub struct Parts {
    /// Where objects are kept.
    pub storage: Arc<Storage>,
    /// Wall time.
    pub clock: Clock,
    /// Chance.
    pub random: Random,
    /// What it will not exceed.
    pub limits: Limits,
    /// Who may come in, and do what.
    pub access: Access,
    /// Webhooks.
    pub admission: Admission,
}

impl Server {
    /// A server with the built-in resources. Call [`Server::start`] before the first request.
    pub fn new(parts: Parts) -> Self {
        let Parts { storage, clock, random, limits, access, admission } = parts;
        let server = Self(Arc::new(Inner {
            storage,
            registry: Registry::default(),
            clock,
            random,
            limits,
            field_schemas: FieldSchemas::default(),
            access,
            admission,
            reservations: Reservations::default(),
            watches: Arc::new(Semaphore::new(limits.watches)),
            stop: CancellationToken::new(),
        }));
        server.registry().add(crate::builtin_resources::all());
        server
    }

    /// The store.
    pub fn storage(&self) -> &Storage {
        &self.0.storage
    }

    /// The resources that are served.
    pub fn registry(&self) -> &Registry {
        &self.0.registry
    }

    /// What objects hold that are about to be written.
    pub(crate) fn reservations(&self) -> &Reservations {
        &self.0.reservations
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// The clock.
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// Chance.
    pub fn random(&self) -> &Random {
        &self.0.random
    }

    /// What it will not exceed.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Who may come in, and do what.
    pub fn access(&self) -> &Access {
        &self.0.access
    }

    /// Webhooks.
    pub fn admission(&self) -> &Admission {
        &self.0.admission
    }

    pub(crate) fn field_schemas(&self) -> &FieldSchemas {
        &self.0.field_schemas
    }

    pub(crate) fn watch_permit(&self) -> Result<WatchPermit> {
        match Arc::clone(&self.0.watches).try_acquire_owned() {
            Ok(place) => Ok(WatchPermit { _place: place }),
            Err(_) => Err(ApiError::too_many_requests(
                format!(
                    "Too many requests: {} watches are open, which is the limit, please try again later.",
                    self.0.limits.watches
                ),
                1,
            )),
        }
    }

    /// Ends all watches and background work.
    pub fn stop(&self) {
        self.0.stop.cancel();
    }

    /// Completes when the server is told to stop.
    pub async fn stopping(&self) {
        self.0.stop.cancelled().await;
    }
}
