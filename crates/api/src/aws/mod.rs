//! What stands in a Machine on AWS: the provider spec and the provider status.
//!
//! Neither has a schema in the API server, so anything may stand there. Reading a provider spec
//! can fail; the error names the field. Fields unknown to this version are kept in `other`.

mod host;
mod instance;
mod placed;
mod provider;
mod status;

pub use host::{
    AllocationStrategy, DedicatedHost, DynamicHostAllocation, Host, HostAffinity, InstanceTenancy,
    LocalPlacementGroupReference, Placement,
};
pub use instance::{
    BlockDevice, ConfidentialCompute, CpuOptions, Ebs, Filter, LoadBalancer, LoadBalancerType,
    LocalObjectReference, MetadataAuthentication, MetadataServiceOptions, NetworkInterfaceType,
    ResourceReference, SpotMarketOptions, Tag,
};
pub use placed::{Placed, PlacementContradiction};
pub use provider::{AWSMachineProviderConfig, MarketType};
pub use status::{AWSMachineProviderStatus, DedicatedHostStatus};
