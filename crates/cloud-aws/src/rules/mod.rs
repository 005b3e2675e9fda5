//! From a provider spec to the parts of a launch, without asking anybody.

mod block_devices;
mod market;
mod options;
mod placement;

pub use block_devices::block_devices;
pub use market::{capacity_reservation, market_options};
pub use options::{IpFamily, cpu_options, metadata_options, private_dns_options};
pub use placement::{HOST_IN_GROUP, instance_placement};

/// What the user wrote cannot work; the text names the field, the value and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Mistake(pub String);
