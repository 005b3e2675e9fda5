//! The one configuration struct, and where its values come from.
//!
//! A value comes from the default, the file, the environment or a flag, and the later of these
//! wins. Environment variables and flags are not written down one by one: the field
//! `leaderElection.leaseDuration` is `FLEETWRIGHT_LEADER_ELECTION_LEASE_DURATION` in the
//! environment and `--leader-election-lease-duration` on the command line, and so is any field
//! that is added.
//!
//! Nothing here reads files or the environment: the binary hands both in.

mod fields;
mod load;
mod machines;
mod names;
mod nearest;
#[cfg(test)]
mod tests;
mod values;
mod webhooks;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use fields::{Field, fields, schema};
pub use load::{Loaded, Origin, Problem, Problems, Sources, load};
pub use machines::{
    ClusterGroups, DrainConfig, LaunchConfig, RepairConfig, SpotCapacity, WhenNodeDies,
};
pub use names::{ControllerNames, FeatureGates};
pub use values::{ListenAddress, Span};
pub use webhooks::{
    Configurations, InterruptibleControlPlane, ServeWebhooks, Updates, WebhooksConfig,
};

/// Everything that can be set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Config {
    /// What is logged.
    pub log: Log,
    /// Which controllers run: `*` for all that run by default, `foo` for more, `-foo` for less.
    pub controllers: ControllerNames,
    /// How many objects each controller works on at the same time.
    #[schemars(range(min = 1))]
    pub workers: u32,
    /// The namespace in which Machines are.
    pub machine_namespace: String,
    /// How Machines are launched.
    pub launch: LaunchConfig,
    /// How Nodes of Machines that go are emptied.
    pub drain: DrainConfig,
    /// How unhealthy Machines are replaced.
    pub repair: RepairConfig,
    /// Election of the one process that acts.
    pub leader_election: LeaderElectionConfig,
    /// The server of metrics.
    pub metrics: MetricsConfig,
    /// The server of health checks.
    pub health: HealthConfig,
    /// The rules for what users may write.
    pub webhooks: WebhooksConfig,
    /// Requests to the Kubernetes API.
    pub client: ClientConfig,
    /// Feature gates, by upstream's names.
    pub feature_gates: FeatureGates,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            log: Log::default(),
            controllers: ControllerNames::default(),
            workers: 1,
            machine_namespace: "openshift-machine-api".to_owned(),
            launch: LaunchConfig::default(),
            drain: DrainConfig::default(),
            repair: RepairConfig::default(),
            leader_election: LeaderElectionConfig::default(),
            metrics: MetricsConfig::default(),
            health: HealthConfig::default(),
            webhooks: WebhooksConfig::default(),
            client: ClientConfig::default(),
            feature_gates: FeatureGates::default(),
        }
    }
}

impl Config {
    /// The configuration as a file that would give it.
    pub fn to_yaml(&self) -> Result<String, serde_saphyr::SerializeError> {
        serde_saphyr::to_string(self)
    }
}

/// What is logged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Log {
    /// The least important messages that are shown; per target as in `info,kube=debug`.
    pub level: String,
    /// How messages are written.
    pub format: LogFormat,
}

impl Default for Log {
    fn default() -> Self {
        Self { level: "info".to_owned(), format: LogFormat::Text }
    }
}

/// How messages are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// An object in each line, for machines.
    Json,
}

/// Election of the one process that acts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct LeaderElectionConfig {
    /// Whether to compete before acting. Without it there must be one process only.
    pub enabled: bool,
    /// The namespace of the lease.
    pub namespace: String,
    /// The name of the lease.
    pub name: String,
    /// How long others wait for a leader that has gone silent.
    pub lease_duration: Span,
    /// How long the leader tries to renew before it gives up.
    pub renew_deadline: Span,
    /// Time between tries.
    pub retry_period: Span,
}

impl Default for LeaderElectionConfig {
    fn default() -> Self {
        let usual = crate::LeaderSettings::new("fleetwright-system", "fleetwright", "");
        Self {
            enabled: true,
            namespace: usual.namespace,
            name: usual.name,
            lease_duration: Span(usual.lease_duration),
            renew_deadline: Span(usual.renew_deadline),
            retry_period: Span(usual.retry_period),
        }
    }
}

impl LeaderElectionConfig {
    /// The settings of a candidate of this identity.
    pub fn settings(&self, identity: &str) -> crate::LeaderSettings {
        crate::LeaderSettings {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            identity: identity.to_owned(),
            lease_duration: self.lease_duration.0,
            renew_deadline: self.renew_deadline.0,
            retry_period: self.retry_period.0,
        }
    }
}

/// The server of metrics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct MetricsConfig {
    /// Where `/metrics` is served; 0 for nowhere.
    pub address: ListenAddress,
}

impl Default for MetricsConfig {
    fn default() -> Self {
        Self { address: ListenAddress(Some(([0, 0, 0, 0], 8081).into())) }
    }
}

/// The server of health checks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct HealthConfig {
    /// Where `/healthz` and `/readyz` are served; 0 for nowhere.
    pub address: ListenAddress,
}

impl Default for HealthConfig {
    fn default() -> Self {
        Self { address: ListenAddress(Some(([0, 0, 0, 0], 9440).into())) }
    }
}

/// Requests to the Kubernetes API.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ClientConfig {
    /// Requests a second of each controller, on average.
    #[schemars(range(min = 0.1))]
    pub qps: f64,
    /// Requests of each controller at once.
    #[schemars(range(min = 1))]
    pub burst: u32,
    /// As whom controllers act.
    pub identities: Identities,
}

/// As whom controllers act.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum Identities {
    /// Each as a ServiceAccount of its own, which may do what it needs and no more.
    #[default]
    Impersonate,
    /// All as the user of the kubeconfig, or the ServiceAccount of the pod.
    Own,
}

impl Default for ClientConfig {
    /// Servers keep their clients in check by themselves; this is for the day on which we are wrong.
    /// A hundred Machines that need a repair at once are within it.
    fn default() -> Self {
        Self { qps: 200.0, burst: 500, identities: Identities::default() }
    }
}
