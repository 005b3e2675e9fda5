//! Where Machines are made: one [`Site`] for each region and set of credentials, with an inventory
//! of what is there.
//!
//! An inventory is read once a minute while nothing happens, and every few seconds while somebody
//! waits for an instance to change. What a read shows to be different is told to whoever listens;
//! nobody asks the cloud about a single instance on the steady path.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use fleetwright_api::{
    config::{AWSPlatformStatus, Infrastructure},
    names,
};
use fleetwright_cloud::{
    Account, Change, Cloud, CloudError, Connector, Credentials, Inventory, InventoryOptions,
    Platform, Tag,
};
use fleetwright_runtime::{Informer, ObjectKey};
use futures::{
    FutureExt as _,
    future::{BoxFuture, Shared as SharedFuture},
};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use parking_lot::Mutex;
use tokio::{
    sync::{Notify, mpsc},
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;

/// How often a site is read while nothing happens.
const AT_REST: Duration = Duration::from_mins(1);
/// How often it is read while somebody waits.
const IN_A_HURRY: Duration = Duration::from_secs(5);
/// How long somebody who waits is believed to wait.
const HURRY: Duration = Duration::from_mins(1);

/// Machines go in crowds: those that go within this time go in one request.
const GATHER: Duration = Duration::from_millis(50);
/// And no more than these.
const AT_ONCE: usize = 500;

/// Why there is no site to work on.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NoSite {
    /// The Infrastructure object says too little.
    #[error("Infrastructure \"{}\" {lacks}", names::INFRASTRUCTURE)]
    Infrastructure {
        /// What is wrong with it.
        lacks: &'static str,
    },
    /// The Secret with credentials is not there.
    #[error("aws credentials secret {0} not found")]
    Secret(ObjectKey),
    /// It is of no use.
    #[error("aws credentials secret {0}: {1}")]
    Credentials(ObjectKey, Box<CloudError>),
    /// The account cannot be opened.
    #[error("{0}")]
    Account(Box<CloudError>),
}

/// A region of an account, as one set of credentials sees it.
pub struct Site {
    /// What tells it from others: launches of different sites never mix.
    pub name: String,
    /// The cloud.
    pub cloud: Arc<dyn Cloud>,
    /// What is there.
    pub inventory: Inventory,
    /// The name of the cluster in the cloud.
    pub cluster: String,
    /// What tells the cluster from others of its name.
    pub cluster_uid: String,
    /// Tags of everything that is made for the cluster.
    pub cluster_tags: Vec<Tag>,
    hurry: Mutex<Option<Instant>>,
    hurried: Notify,
    retiring: Mutex<Option<Retirement>>,
}

/// Instances that are terminated in one request.
struct Retirement {
    /// Which; none when the request is under way and takes no more.
    ids: Arc<Mutex<Option<BTreeSet<String>>>>,
    done: SharedFuture<BoxFuture<'static, Result<(), CloudError>>>,
}

impl Retirement {
    fn begin(cloud: Arc<dyn Cloud>, ids: BTreeSet<String>) -> Self {
        let ids = Arc::new(Mutex::new(Some(ids)));
        let open = ids.clone();
        let done = async move {
            sleep(GATHER).await;
            let ids: Vec<String> = open.lock().take().unwrap_or_default().into_iter().collect();
            cloud.retire(&ids).await
        };
        Self { ids, done: done.boxed().shared() }
    }

    /// Takes more, if it still can.
    fn join(&self, more: &BTreeSet<String>) -> bool {
        let mut ids = self.ids.lock();
        match ids.as_mut().filter(|ids| ids.len() < AT_ONCE) {
            Some(ids) => {
                ids.extend(more.iter().cloned());
                true
            }
            None => false,
        }
    }
}

impl Site {
    /// Terminates instances. Those that go at about the same time go in one request.
    pub async fn retire(&self, ids: BTreeSet<String>) -> Result<(), CloudError> {
        let done = {
            let mut retiring = self.retiring.lock();
            if let Some(open) = retiring.as_ref().filter(|open| open.join(&ids)) {
                open.done.clone()
            } else {
                let retirement = Retirement::begin(self.cloud.clone(), ids.clone());
                retiring.insert(retirement).done.clone()
            }
        };
        done.await?;
        let ids: Vec<String> = ids.into_iter().collect();
        self.inventory.retired(&ids);
        self.hurry();
        Ok(())
    }

    /// Somebody waits for an instance to change.
    pub fn hurry(&self) {
        let now = Instant::now();
        let first = {
            let mut hurry = self.hurry.lock();
            let first = hurry.is_none_or(|until| until <= now);
            *hurry = Some(now + HURRY);
            first
        };
        if first {
            self.hurried.notify_one();
        }
    }

    /// Reads again and again.
    async fn keep_fresh(&self) {
        loop {
            let hurried = self.hurry.lock().is_some_and(|until| until > Instant::now());
            let period = if hurried { IN_A_HURRY } else { AT_REST };
            let due = self.inventory.read_at().map_or_else(Instant::now, |read| read + period);
            tokio::select! {
                () = sleep_until(due) => {
                    if let Err(error) = self.inventory.since(Instant::now()).await {
                        tracing::warn!(site = self.name, %error, "cannot read what is there");
                        sleep(period).await;
                    }
                }
                () = self.hurried.notified() => {}
            }
        }
    }
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Site").field(&self.name).finish()
    }
}

/// A region of an account, without an inventory.
pub struct Opened {
    /// The region.
    pub region: String,
    /// The name of the cluster in the cloud.
    pub cluster: String,
    /// Tags of everything that is made for the cluster.
    pub cluster_tags: Vec<Tag>,
    /// The cloud.
    pub cloud: Arc<dyn Cloud>,
}

/// Where and as whom, before anything is opened.
struct Whereabouts {
    region: String,
    cluster: String,
    cluster_uid: String,
    cluster_tags: Vec<Tag>,
    platform: Platform,
    secret: Option<(ObjectKey, Arc<Secret>)>,
}

impl Whereabouts {
    fn key(&self) -> Option<&ObjectKey> {
        self.secret.as_ref().map(|(key, _)| key)
    }

    fn version(&self) -> Version {
        let secret = self.secret.as_ref().and_then(|(_, secret)| secret.resource_version());
        let (cluster, tags) = (self.cluster.clone(), self.cluster_tags.clone());
        Version {
            cluster,
            cluster_uid: self.cluster_uid.clone(),
            tags,
            platform: self.platform.clone(),
            secret,
        }
    }
}

/// What a site is known by, and which version of what it was made from.
type SiteKey = (String, Option<ObjectKey>);

/// What a site was made from.
#[derive(Clone, Debug, PartialEq)]
struct Version {
    cluster: String,
    cluster_uid: String,
    tags: Vec<Tag>,
    platform: Platform,
    /// The version of the Secret.
    secret: Option<String>,
}

struct Entry {
    version: Version,
    site: Arc<Site>,
    watch: CancellationToken,
}

/// A site that was opened, and what ends its watch.
type ToWatch = (Arc<Site>, CancellationToken);

/// Opens sites and keeps them fresh. Clones share them.
#[derive(Clone)]
pub struct Clouds(Arc<Shared>);

struct Shared {
    connector: Arc<dyn Connector>,
    infrastructures: Informer<Infrastructure>,
    secrets: Informer<Secret>,
    sites: Mutex<BTreeMap<SiteKey, Entry>>,
    opened: mpsc::UnboundedSender<ToWatch>,
    to_watch: Mutex<Option<mpsc::UnboundedReceiver<ToWatch>>>,
}

impl Clouds {
    /// Opens sites through `connector`.
    pub fn new(
        connector: Arc<dyn Connector>,
        infrastructures: Informer<Infrastructure>,
        secrets: Informer<Secret>,
    ) -> Self {
        let (opened, to_watch) = mpsc::unbounded_channel();
        Self(Arc::new(Shared {
            connector,
            infrastructures,
            secrets,
            sites: Mutex::default(),
            opened,
            to_watch: Mutex::new(Some(to_watch)),
        }))
    }

    /// The Secrets that Machines name.
    pub fn secrets(&self) -> &Informer<Secret> {
        &self.0.secrets
    }

    /// The Infrastructure object, for those who hear of its changes.
    pub fn infrastructures(&self) -> &Informer<Infrastructure> {
        &self.0.infrastructures
    }

    /// A region of an account without an inventory, for those who ask for other things than
    /// instances. Arguments as for [`Clouds::site`].
    pub fn open(&self, region: &str, secret: Option<ObjectKey>) -> Result<Opened, NoSite> {
        let whereabouts = self.whereabouts(region, secret)?;
        let cloud = self.connect(&whereabouts)?;
        let Whereabouts { region, cluster, cluster_tags, .. } = whereabouts;
        Ok(Opened { region, cluster, cluster_tags, cloud })
    }

    /// The site of a region, as seen with the Secret of that name; without one, with what the
    /// process has. An empty region is that of the cluster.
    pub fn site(&self, region: &str, secret: Option<ObjectKey>) -> Result<Arc<Site>, NoSite> {
        let whereabouts = self.whereabouts(region, secret)?;
        let version = whereabouts.version();
        let key = (whereabouts.region.clone(), whereabouts.key().cloned());
        if let Some(entry) = self.0.sites.lock().get(&key)
            && entry.version == version
        {
            return Ok(entry.site.clone());
        }
        let cloud = self.connect(&whereabouts)?;
        let name = match whereabouts.key() {
            Some(secret) => format!("{} as {secret}", whereabouts.region),
            None => whereabouts.region.clone(),
        };
        let Whereabouts { cluster, cluster_uid, cluster_tags, .. } = whereabouts;
        let inventory = Inventory::new(cloud.clone(), cluster.clone(), InventoryOptions::default());
        let site = Arc::new(Site {
            name,
            cloud,
            inventory,
            cluster,
            cluster_uid,
            cluster_tags,
            hurry: Mutex::default(),
            hurried: Notify::new(),
            retiring: Mutex::default(),
        });
        let watch = CancellationToken::new();
        let entry = Entry { version, site: site.clone(), watch: watch.clone() };
        if let Some(old) = self.0.sites.lock().insert(key, entry) {
            old.watch.cancel();
        }
        // Nobody listens any more when the process ends.
        let _ = self.0.opened.send((site.clone(), watch));
        Ok(site)
    }

    fn whereabouts(&self, region: &str, secret: Option<ObjectKey>) -> Result<Whereabouts, NoSite> {
        let infrastructure = self.0.infrastructures.get(&ObjectKey::cluster(names::INFRASTRUCTURE));
        let infrastructure = infrastructure.ok_or(NoSite::Infrastructure { lacks: "not found" })?;
        let cluster = infrastructure
            .cluster()
            .ok_or(NoSite::Infrastructure { lacks: "has no status.infrastructureName" })?
            .to_owned();
        let cluster_uid = infrastructure.uid().unwrap_or_default();
        let aws = infrastructure.aws();
        let region = Some(region)
            .filter(|region| !region.is_empty())
            .or(aws.map(|aws| aws.region.as_str()).filter(|region| !region.is_empty()))
            .ok_or(NoSite::Infrastructure { lacks: "has no status.platformStatus.aws.region" })?
            .to_owned();
        let cluster_tags: Vec<Tag> = aws
            .map(|aws| aws.resource_tags.iter())
            .into_iter()
            .flatten()
            .map(|tag| Tag { key: tag.key.clone(), value: tag.value.clone() })
            .collect();
        let secret = match secret {
            None => None,
            Some(key) => match self.0.secrets.get(&key) {
                Some(secret) => Some((key, secret)),
                None => return Err(NoSite::Secret(key)),
            },
        };
        let platform = aws.map(platform).unwrap_or_default();
        Ok(Whereabouts { region, cluster, cluster_uid, cluster_tags, platform, secret })
    }

    fn connect(&self, whereabouts: &Whereabouts) -> Result<Arc<dyn Cloud>, NoSite> {
        let credentials = match &whereabouts.secret {
            None => Credentials::Ambient,
            Some((_, secret)) => {
                let data = secret.data.clone().unwrap_or_default();
                Credentials::Secret(data.into_iter().map(|(k, v)| (k, v.0.into())).collect())
            }
        };
        let account = Account {
            region: whereabouts.region.clone(),
            credentials,
            platform: whereabouts.platform.clone(),
        };
        self.0.connector.connect(account).map_err(|error| match whereabouts.key() {
            Some(key) => NoSite::Credentials(key.clone(), Box::new(error)),
            None => NoSite::Account(Box::new(error)),
        })
    }

    /// Every site that was opened.
    pub fn sites(&self) -> Vec<Arc<Site>> {
        self.0.sites.lock().values().map(|entry| entry.site.clone()).collect()
    }

    /// Keeps sites fresh until `stop` and tells what changes. To be called once.
    pub async fn run(
        self,
        tell: impl Fn(&Change) + Send + Sync + 'static,
        stop: CancellationToken,
    ) {
        let Some(mut opened) = self.0.to_watch.lock().take() else { return };
        let tell = Arc::new(tell);
        let mut watches = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(_) = watches.join_next() => {}
                Some((site, end)) = opened.recv() => {
                    let (tell, stop) = (tell.clone(), stop.clone());
                    watches.spawn(async move {
                        let mut changes = site.inventory.changes();
                        let listen = async {
                            while let Some(change) = changes.recv().await {
                                tell(&change);
                            }
                        };
                        tokio::select! {
                            biased;
                            () = stop.cancelled() => {}
                            () = end.cancelled() => {}
                            () = site.keep_fresh() => {}
                            () = listen => {}
                        }
                    });
                }
            }
        }
        watches.shutdown().await;
    }
}

/// What the Infrastructure says about AWS.
fn platform(aws: &AWSPlatformStatus) -> Platform {
    let endpoints = aws.service_endpoints.iter();
    Platform {
        endpoints: endpoints.map(|it| (it.name.clone(), it.url.clone())).collect(),
        ip_family: aws.ip_family().map(str::to_owned),
    }
}

impl fmt::Debug for Clouds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clouds")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_infrastructure_says_about_aws() {
        let status = json!({
            "region": "us-gov-west-1",
            "serviceEndpoints": [{"name": "ec2", "url": "https://ec2.example.com"}],
            "ipFamily": "DualStackIPv4Primary",
        });
        let platform = platform(&serde_json::from_value(status).unwrap());
        assert_eq!(platform.endpoints["ec2"], "https://ec2.example.com");
        assert_eq!(platform.ip_family.as_deref(), Some("DualStackIPv4Primary"));
        assert_eq!(super::platform(&AWSPlatformStatus::default()), Platform::default());
    }
}
