//! CustomResourceDefinitions: from a definition to resources that are served.

mod controller;
mod custom;
mod definition;

pub(crate) use controller::set_condition;
pub use controller::{load, run};
pub use custom::CustomKind;
pub use definition::{DefinitionKind, resources_of};

/// Where definitions are stored.
pub const STORAGE: &str = "apiextensions.k8s.io/customresourcedefinitions";
/// Holds a definition until its objects are gone.
pub const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";
