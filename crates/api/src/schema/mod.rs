//! The schemas of the kinds, built by hand.
//!
//! kube's derive cannot give these schemas exactly (defaults, list types, rules on parts, no
//! `required` where Go has a value type), so a small builder does. That the fields here and the
//! fields of the types are the same is a test ([`tests`]); that the schemas are those of upstream
//! is another, in `tests/referees`.

mod builder;
mod definition;
mod healthcheck;
mod infrastructure;
mod machine;
mod machineset;
mod placement;
mod shared;
#[cfg(test)]
mod tests;

use builder::Schema;
use definition::Definition;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// Every CustomResourceDefinition that Fleetwright needs.
pub fn crds() -> Vec<CustomResourceDefinition> {
    [
        placement::definition(),
        infrastructure::definition(),
        healthcheck::definition(),
        machine::definition(),
        machineset::definition(),
    ]
    .into_iter()
    .map(Definition::build)
    .collect()
}
