//! How the rules for what users may write are served.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ListenAddress;

/// How the rules for what users may write are served.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct WebhooksConfig {
    /// Whether webhooks are served.
    pub serve: ServeWebhooks,
    /// Where they listen.
    pub address: ListenAddress,
    /// The Service by which the API server reaches them, in namespace fleetwright-system.
    pub service: String,
    /// Where the API server reaches them instead, such as https://10.0.0.5:9443, when it is not by
    /// a Service; port 0 stands for the port that they listen on.
    pub url: String,
    /// The Secret that holds the certificate, in namespace fleetwright-system; it is made, shared
    /// by all replicas, and renewed in time.
    pub certificate_secret: String,
    /// A folder that holds the certificate instead (tls.crt, tls.key, ca.crt). One that somebody
    /// else fills, and that has no ca.key, is read again when it changes; else it is made and
    /// renewed.
    pub certificate_dir: String,
    /// What to do about the configurations that make the API server ask.
    pub configurations: Configurations,
    /// What an update of an object is held to.
    pub updates: Updates,
    /// What becomes of Machines of the control plane on interruptible (spot) instances.
    pub interruptible_control_plane: InterruptibleControlPlane,
}

impl Default for WebhooksConfig {
    fn default() -> Self {
        Self {
            serve: ServeWebhooks::default(),
            address: ListenAddress(Some(([0, 0, 0, 0], 9443).into())),
            service: "fleetwright-webhooks".to_owned(),
            url: String::new(),
            certificate_secret: "fleetwright-webhooks".to_owned(),
            certificate_dir: String::new(),
            configurations: Configurations::default(),
            updates: Updates::default(),
            interruptible_control_plane: InterruptibleControlPlane::default(),
        }
    }
}

/// Whether webhooks are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum ServeWebhooks {
    /// Where the API server can reach them: at a URL, or by the Service if it is there.
    #[default]
    Auto,
    /// Always: without a URL and without the Service it is an error.
    Always,
    /// Never: what is written is checked before a launch, and not before.
    Never,
}

/// What to do about the configurations that make the API server ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum Configurations {
    /// The leader writes them, and writes them again when somebody changes them.
    #[default]
    Install,
    /// They are somebody else's: it is an error when they lack one of our webhooks.
    Check,
}

/// What an update of an object is held to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum Updates {
    /// What it changes: errors that were there before are passed over. A rule that came later must
    /// not stop a controller that adds a finalizer, or a user who changes something else.
    #[default]
    CheckChanges,
    /// All rules, whatever it changes.
    CheckAll,
}

/// What becomes of Machines of the control plane that the cloud may take back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum InterruptibleControlPlane {
    /// They are refused: etcd may lose its quorum with two minutes' notice.
    #[default]
    Refuse,
    /// They are warned of.
    Warn,
}
