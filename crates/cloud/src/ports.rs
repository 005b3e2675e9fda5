//! The ports.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use bytes::Bytes;
use futures::future::BoxFuture;
use serde_json::Value;

use crate::{CloudError, Instance, Launch, LaunchOrder, ResolveRequest, Tag};

/// What a port's call gives.
pub type PortFuture<'a, T> = BoxFuture<'a, Result<T, CloudError>>;

/// Opens accounts. One per provider.
pub trait Connector: Send + Sync + 'static {
    /// A client for an account. Cheap; calls are limited per account and region, however often it
    /// is opened.
    fn connect(&self, account: Account) -> Result<Arc<dyn Cloud>, CloudError>;
}

/// Whose resources, where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Account {
    /// Region.
    pub region: String,
    /// As whom.
    pub credentials: Credentials,
    /// What the cluster says about its cloud.
    pub platform: Platform,
}

impl Account {
    /// An account of a cluster that says nothing about its cloud.
    pub fn new(region: impl Into<String>, credentials: Credentials) -> Self {
        Self { region: region.into(), credentials, platform: Platform::default() }
    }
}

/// What a cluster says about its cloud (`Infrastructure`).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Platform {
    /// Where services answer, by the provider's names, if not where the provider says.
    pub endpoints: BTreeMap<String, String>,
    /// The families of addresses that the cluster uses, in the provider's words.
    pub ip_family: Option<String>,
}

/// As whom calls are made.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Credentials {
    /// What the process has: environment, web identity, instance profile.
    Ambient,
    /// The data of a Secret, in the provider's own keys.
    Secret(BTreeMap<String, Bytes>),
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ambient => "Ambient",
            Self::Secret(_) => "Secret(..)",
        })
    }
}

/// Makes, finds and retires instances.
pub trait Cloud: Send + Sync + 'static {
    /// Checks a provider spec and looks up what it names: images, subnets, security groups.
    /// Lookups are cached and shared.
    fn resolve(&self, request: ResolveRequest) -> PortFuture<'_, Launch>;

    /// Launches. Answers with the instances of this token: new ones, or the same as before.
    fn launch(&self, order: LaunchOrder) -> PortFuture<'_, Vec<Instance>>;

    /// Every instance that carries the cluster's owned tag, in all states, read in pages.
    fn inventory<'a>(&'a self, cluster: &'a str) -> PortFuture<'a, Vec<Instance>>;

    /// The instances with these identifiers; those that are not known are left out.
    fn instances(&self, ids: BTreeSet<String>) -> PortFuture<'_, Vec<Instance>>;

    /// Every instance with a tag, in all states.
    fn tagged<'a>(&'a self, key: &'a str, value: &'a str) -> PortFuture<'a, Vec<Instance>>;

    /// Puts tags on resources (instances, volumes), replacing those of the same name.
    fn tag<'a>(&'a self, ids: &'a [String], tags: &'a [Tag]) -> PortFuture<'a, ()>;

    /// Terminates. Instances that are unknown or terminated already are no error.
    fn retire<'a>(&'a self, ids: &'a [String]) -> PortFuture<'a, ()>;

    /// Puts an instance behind the load balancers that the provider spec names.
    fn register<'a>(
        &'a self,
        provider_spec: &'a Value,
        instance: &'a Instance,
    ) -> PortFuture<'a, ()>;

    /// Takes it from them.
    fn deregister<'a>(
        &'a self,
        provider_spec: &'a Value,
        instance: &'a Instance,
    ) -> PortFuture<'a, ()>;

    /// Gives back what was taken for the instance of a Machine alone (a dedicated host), once the
    /// instance is terminated, or if there never was one. Nothing to give back is no error;
    /// [`crate::ErrorClass::InUse`] while the instance is there.
    fn release<'a>(
        &'a self,
        _provider_spec: &'a Value,
        _machine_uid: &'a str,
    ) -> PortFuture<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    /// The tags that the instance and its disks of a Machine should have, but those that name the
    /// Machine itself; none where the cloud has no tags.
    fn wanted_tags(
        &self,
        _provider_spec: &Value,
        _cluster: &str,
        _cluster_tags: &[Tag],
    ) -> Vec<Tag> {
        Vec::new()
    }

    /// What carries the cluster's owned tag beside instances and placement groups, and would
    /// outlive them: disks, hosts.
    fn leftovers<'a>(&'a self, _cluster: &'a str) -> PortFuture<'a, Vec<Leftover>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Everything else that carries the cluster's owned tag: networks, addresses, images. Nothing
    /// of it is ours.
    fn others<'a>(&'a self, _cluster: &'a str) -> PortFuture<'a, Vec<Other>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Removes a leftover. One that is gone is no error.
    fn remove<'a>(&'a self, _leftover: &'a Leftover) -> PortFuture<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    /// What a type offers; none when there is no such type. Cached for a day.
    fn instance_type<'a>(&'a self, name: &'a str) -> PortFuture<'a, Option<InstanceType>>;

    /// Placement groups, where the cloud has them.
    fn placement_groups(&self) -> Option<&dyn PlacementGroups> {
        None
    }
}

/// A resource of a cluster that is neither an instance nor a placement group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leftover {
    /// What it is.
    pub kind: LeftoverKind,
    /// The cloud's name of it.
    pub id: String,
    /// Whether something still uses it: then it cannot be removed yet.
    pub in_use: bool,
    /// The instances that use it, where the cloud tells.
    pub users: Vec<String>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
}

/// A resource that carries the cluster's owned tag and is none of those we make.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Other {
    /// What it is, in the cloud's words (`subnet`).
    pub kind: String,
    /// The cloud's name of it.
    pub id: String,
    /// Tags.
    pub tags: BTreeMap<String, String>,
}

/// What a leftover is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftoverKind {
    /// A disk.
    Volume,
    /// A dedicated host.
    Host,
}

/// What a type offers.
#[derive(Clone, Debug, PartialEq)]
pub struct InstanceType {
    /// Its name.
    pub name: String,
    /// Virtual CPUs.
    pub vcpus: u32,
    /// Memory.
    pub memory_mib: u64,
    /// GPUs.
    pub gpus: u32,
    /// The resource that pods ask for to have one of the GPUs, such as `nvidia.com/gpu`.
    pub gpu_resource: Option<String>,
    /// As in the label `kubernetes.io/arch` (`amd64`, `arm64`).
    pub architecture: String,
    /// Strategies of placement groups that can hold it.
    pub strategies: BTreeSet<Strategy>,
}

/// How a placement group places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strategy {
    /// Close together.
    Cluster,
    /// Each on hardware of its own.
    Spread,
    /// In partitions that share no hardware.
    Partition,
}

impl Strategy {
    /// As EC2 writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::Spread => "spread",
            Self::Partition => "partition",
        }
    }
}

/// Where a group is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupState {
    /// Being made.
    Pending,
    /// Ready.
    Available,
    /// Being removed.
    Deleting,
    /// Removed, still shown.
    Deleted,
}

/// A placement group as the cloud shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacementGroup {
    /// Name.
    pub name: String,
    /// The cloud's identifier.
    pub id: String,
    /// Strategy.
    pub strategy: Strategy,
    /// Number of partitions.
    pub partitions: Option<u32>,
    /// State.
    pub state: GroupState,
    /// Tags.
    pub tags: BTreeMap<String, String>,
}

/// An order to make a group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupOrder {
    /// Name.
    pub name: String,
    /// Strategy.
    pub strategy: Strategy,
    /// Number of partitions; none lets the cloud choose.
    pub partitions: Option<u32>,
    /// Tags, in the order in which they are sent.
    pub tags: Vec<Tag>,
}

/// Looks after placement groups.
pub trait PlacementGroups: Send + Sync {
    /// The groups with these names; those that do not exist are left out.
    fn describe(&self, names: BTreeSet<String>) -> PortFuture<'_, Vec<PlacementGroup>>;

    /// Makes one. [`crate::ErrorClass::AlreadyExists`] when there is one of this name.
    fn create(&self, order: GroupOrder) -> PortFuture<'_, PlacementGroup>;

    /// Removes one. None of this name is no error; [`crate::ErrorClass::InUse`] when it has members.
    fn delete<'a>(&'a self, name: &'a str) -> PortFuture<'a, ()>;

    /// Every group that carries the cluster's owned tag; none where they cannot be listed.
    fn owned<'a>(&'a self, _cluster: &'a str) -> PortFuture<'a, Vec<PlacementGroup>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Every instance in the groups that is not terminated, whoever made it.
    fn members(&self, names: BTreeSet<String>) -> PortFuture<'_, Vec<Instance>>;
}
