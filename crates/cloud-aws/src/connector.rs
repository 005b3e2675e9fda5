//! Opens accounts.

use std::{collections::BTreeMap, sync::Arc};

use fleetwright_clock::{Clock, Random};
use fleetwright_cloud::{
    Account, Cloud, CloudError, Connector,
    limiter::{LimitPolicy, Limits},
    retry::{Caller, RetryPolicy},
    transport::Transport,
};
use parking_lot::Mutex;

use crate::{
    client::Client,
    cloud::AwsCloud,
    credentials::{Environment, KeyRing, Source},
    endpoints::Endpoints,
    rules::IpFamily,
    wire::Wire,
};

/// What a connector works with.
#[derive(Clone)]
pub struct AwsOptions {
    /// What answers.
    pub transport: Transport,
    /// What dates the signatures.
    pub clock: Clock,
    /// What spreads retries.
    pub random: Random,
    /// Where the services answer.
    pub endpoints: Endpoints,
    /// What ambient credentials are found by.
    pub environment: Environment,
    /// The families of addresses that the cluster uses.
    pub ip_family: IpFamily,
    /// How fast an account is asked.
    pub limits: LimitPolicy,
    /// How often a call is tried.
    pub retries: RetryPolicy,
}

impl AwsOptions {
    /// The vendor's own services, an empty environment.
    pub fn new(transport: Transport, clock: Clock, random: Random) -> Self {
        Self {
            transport,
            clock,
            random,
            endpoints: Endpoints::default(),
            environment: Environment::default(),
            ip_family: IpFamily::default(),
            limits: LimitPolicy::default(),
            retries: RetryPolicy::default(),
        }
    }
}

/// Accounts that nobody uses any more (a Secret was rotated) are swept above this many.
const SWEEP_ABOVE: usize = 32;

/// Opens accounts on AWS.
pub struct AwsConnector {
    wire: Wire,
    random: Random,
    environment: Environment,
    ip_family: IpFamily,
    limits: Limits,
    retries: RetryPolicy,
    open: Mutex<BTreeMap<Account, Arc<AwsCloud>>>,
}

impl AwsConnector {
    /// A connector.
    pub fn new(options: AwsOptions) -> Self {
        let AwsOptions {
            transport,
            clock,
            random,
            endpoints,
            environment,
            ip_family,
            limits,
            retries,
        } = options;
        Self {
            wire: Wire { transport, endpoints, clock },
            random,
            environment,
            ip_family,
            limits: Limits::new(limits),
            retries,
            open: Mutex::default(),
        }
    }

    fn open(&self, account: &Account) -> Result<AwsCloud, CloudError> {
        if account.region.is_empty() {
            let why = "no region: set placement.region, or the region of the Infrastructure";
            return Err(CloudError::configuration("Connect", why));
        }
        let source = Source::of(&account.credentials)?;
        let limiter = self.limits.of(&source.account(), &account.region);
        let mut wire = self.wire.clone();
        wire.endpoints = wire.endpoints.or_named(&account.platform.endpoints)?;
        let ip_family = match &account.platform.ip_family {
            Some(word) => IpFamily::from_word(Some(word)),
            None => self.ip_family,
        };
        let client = Client {
            wire,
            region: account.region.clone(),
            keys: Arc::new(KeyRing::new(source, self.environment.clone())),
            caller: Caller::new(limiter, self.retries, self.random.fork()),
        };
        Ok(AwsCloud::new(client, ip_family))
    }
}

impl Connector for AwsConnector {
    fn connect(&self, account: Account) -> Result<Arc<dyn Cloud>, CloudError> {
        let mut open = self.open.lock();
        if let Some(cloud) = open.get(&account) {
            return Ok(Arc::clone(cloud) as Arc<dyn Cloud>);
        }
        if open.len() >= SWEEP_ABOVE {
            open.retain(|_, cloud| Arc::strong_count(cloud) > 1);
        }
        let cloud = Arc::new(self.open(&account)?);
        open.insert(account, Arc::clone(&cloud));
        Ok(cloud)
    }
}
