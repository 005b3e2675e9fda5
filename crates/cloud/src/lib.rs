//! What Fleetwright asks of a cloud, whichever it is.
//!
//! Controllers see these ports and nothing of a provider: [`Cloud`] makes, finds and retires
//! instances, [`PlacementGroups`] looks after groups of them. Adapters (`cloud-aws` and its
//! siblings) speak the real protocols over one [`transport`], so that what answers may be a cloud
//! or a simulation of it, and faults can be put between.

mod coalesced;
mod error;
mod http_client;
mod instance;
mod inventory;
mod launch;
pub mod limiter;
mod ports;
mod proxy;
pub mod retry;
pub mod tags;
pub mod transport;

pub use coalesced::Coalesced;
pub use error::{CloudError, ErrorClass};
pub use http_client::{HttpClientError, HttpOptions, http_client};
pub use instance::{Address, AddressKind, Instance, InstanceState};
pub use inventory::{Change, Inventory, InventoryOptions};
pub use launch::{Count, Launch, LaunchOrder, ResolveRequest, Shape, Tag};
pub use ports::{
    Account, Cloud, Connector, Credentials, GroupOrder, GroupState, InstanceType, Leftover,
    LeftoverKind, Other, PlacementGroup, PlacementGroups, Platform, PortFuture, Strategy,
};
pub use proxy::{Proxies, ProxyError};

/// Tag on an instance: the UID of the Machine that it belongs to.
pub const MACHINE_UID_TAG: &str = "fleetwright-machine-uid";
/// Tag on an instance: the token of the launch that made it together with others.
pub const GANG_TAG: &str = "fleetwright-gang";
/// Tag: UID of the Infrastructure object of the Kubernetes cluster whose Machine it was launched for.
/// Two clusters may have the same name; they never have the same UID.
pub const CLUSTER_UID_TAG: &str = "fleetwright-cluster-uid";
