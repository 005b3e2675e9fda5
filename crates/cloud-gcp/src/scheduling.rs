//! How an instance is bought, and what becomes of it when the cloud wants it back.

use fleetwright_api::gcp::{GCPMachineProviderSpec, ProvisioningModel, RestartPolicy};
use serde::{Deserialize, Serialize};

/// The provisioning model of spot instances, in the words of Compute Engine.
const SPOT: &str = "SPOT";
/// An instance that is taken back goes away with its disks, in the words of Compute Engine.
const DELETE: &str = "DELETE";

/// `scheduling` of an instance, as it is asked for and as it is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Scheduling {
    /// Whether it is interruptible in the elder way.
    pub preemptible: bool,
    /// How it is bought; the list price where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning_model: Option<String>,
    /// What becomes of it when its host is looked after; the cloud chooses where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_host_maintenance: Option<String>,
    /// Whether it is started again; the cloud chooses where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub automatic_restart: Option<bool>,
    /// What becomes of it when it is taken back; it is stopped where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_termination_action: Option<String>,
}

/// A restart policy that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RestartError {
    /// What is taken back is not started again.
    #[error("preemptible/spot instances cannot be automatically restarted")]
    Interruptible,
    /// No such policy.
    #[error("unrecognized restart policy: {0}")]
    Unknown(String),
}

/// A wish that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchedulingError {
    /// Both kinds of interruptible instances at once.
    #[error(
        "failed validating machine provider spec: preemptible cannot be used together with 'Spot' \
         provisioning model"
    )]
    Both,
    /// No such way to buy one.
    #[error("failed to convert provisioning model: unsupported provisioning model value {0}")]
    Model(String),
    /// The restart policy cannot be.
    #[error("failed to determine restart policy: {0}")]
    Restart(#[from] RestartError),
}

/// Whether an instance is to be started again by the cloud; none leaves it to the cloud.
pub fn automatic_restart(spec: &GCPMachineProviderSpec) -> Result<Option<bool>, RestartError> {
    match &spec.restart_policy {
        policy if policy.is_empty() => Ok(None),
        RestartPolicy::Always if spec.is_interruptible() => Err(RestartError::Interruptible),
        RestartPolicy::Always => Ok(Some(true)),
        RestartPolicy::Never => Ok(Some(false)),
        RestartPolicy::Other(word) => Err(RestartError::Unknown(word.clone())),
    }
}

impl Scheduling {
    /// What to ask for.
    pub fn of(spec: &GCPMachineProviderSpec) -> Result<Self, SchedulingError> {
        let spot = match &spec.provisioning_model {
            Some(ProvisioningModel::Spot) if spec.preemptible => return Err(SchedulingError::Both),
            Some(ProvisioningModel::Spot) => true,
            Some(ProvisioningModel::Other(word)) if !word.is_empty() => {
                return Err(SchedulingError::Model(word.clone()));
            }
            None | Some(ProvisioningModel::Other(_)) => false,
        };
        let maintenance = &spec.on_host_maintenance;
        Ok(Self {
            preemptible: spec.preemptible,
            provisioning_model: spot.then(|| SPOT.to_owned()),
            on_host_maintenance: (!maintenance.is_empty())
                .then(|| maintenance.as_str().to_uppercase()),
            automatic_restart: automatic_restart(spec)?,
            // One Machine is one instance: what is only stopped is paid for, and never comes back
            // as the Machine that it was. The elder kind can only be stopped.
            instance_termination_action: spot.then(|| DELETE.to_owned()),
        })
    }

    /// Whether the cloud may take an instance back that it shows like this.
    pub fn is_interruptible(&self) -> bool {
        self.preemptible || self.provisioning_model.as_deref() == Some(SPOT)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn asked(spec: Value) -> Result<Value, String> {
        let spec: GCPMachineProviderSpec = serde_json::from_value(spec).unwrap();
        let found = Scheduling::of(&spec).map_err(|error| error.to_string())?;
        Ok(serde_json::to_value(found).unwrap())
    }

    #[test]
    fn what_is_asked_for() {
        assert_eq!(asked(json!({})), Ok(json!({"preemptible": false})));
        assert_eq!(
            asked(json!({"provisioningModel": "Spot", "onHostMaintenance": "Terminate",
                "restartPolicy": "Never"})),
            Ok(json!({"preemptible": false, "provisioningModel": "SPOT",
                "onHostMaintenance": "TERMINATE", "automaticRestart": false,
                "instanceTerminationAction": "DELETE"})),
        );
        // Stopped is all that it can be.
        assert_eq!(asked(json!({"preemptible": true})), Ok(json!({"preemptible": true})));
        assert_eq!(
            asked(json!({"provisioningModel": "Auction"})).unwrap_err(),
            "failed to convert provisioning model: unsupported provisioning model value Auction"
        );
        let again = json!({"provisioningModel": "Spot", "restartPolicy": "Always"});
        assert!(asked(again).unwrap_err().ends_with("cannot be automatically restarted"));
    }

    #[test]
    fn what_is_shown() {
        let shown = |value: Value| -> Scheduling { serde_json::from_value(value).unwrap() };
        assert!(shown(json!({"provisioningModel": "SPOT"})).is_interruptible());
        assert!(shown(json!({"preemptible": true})).is_interruptible());
        assert!(!shown(json!({"provisioningModel": "STANDARD"})).is_interruptible());
        assert!(!shown(json!({})).is_interruptible());
    }
}
