//! `machine.openshift.io/v1beta1`: Machine, MachineSet, MachineHealthCheck.

mod condition;
mod healthcheck;
#[expect(clippy::module_inception, reason = "the kind of this name is in it")]
mod machine;
mod machineset;
mod metadata;

pub use condition::{Condition, Severity};
pub use healthcheck::{
    MachineHealthCheck, MachineHealthCheckSpec, MachineHealthCheckStatus, UnhealthyCondition,
};
pub use machine::{
    Authority, LastOperation, LifecycleHook, LifecycleHooks, Machine, MachineSpec, MachineStatus,
    Phase, ProviderSpec, ProviderSpecError,
};
pub use machineset::{
    DeletePolicy, MachineSet, MachineSetSpec, MachineSetStatus, MachineTemplateSpec,
};
pub use metadata::EmbeddedMetadata;
