use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lenient;

/// What was observed of a Machine on AWS: the object in `status.providerStatus`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AWSMachineProviderStatus {
    /// Group and version of this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind of this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The instance. Written before anything else that can fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<String>,
    /// Its state, as EC2 names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_state: Option<String>,
    /// See [`crate::names::condition::MACHINE_CREATION`].
    #[serde(
        default,
        deserialize_with = "lenient::null_is_empty",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<Condition>,
    /// The host that was allocated for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedicated_host: Option<DedicatedHostStatus>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// The host that was allocated for a Machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DedicatedHostStatus {
    /// Its identifier.
    #[serde(default, deserialize_with = "lenient::null_is_empty")]
    pub id: String,
}

impl AWSMachineProviderStatus {
    /// The group and version under which this object is written.
    pub const API_VERSION: &'static str = "machine.openshift.io/v1beta1";
    /// The kind of this object.
    pub const KIND: &'static str = "AWSMachineProviderStatus";

    /// Reads the provider status of a Machine. Whatever else is wrong with it, the instance is
    /// found if it is named: to forget it could launch a second one.
    pub fn read(status: Option<&Value>) -> Self {
        let Some(value) = status else {
            return Self::default();
        };
        let text = |key: &str| Some(value.get(key)?.as_str()?.to_owned());
        Self::deserialize(value).unwrap_or_else(|_| Self {
            instance_id: text("instanceId"),
            instance_state: text("instanceState"),
            ..Self::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_instance_survives_whatever_else_is_wrong() {
        let odd = json!({"instanceId": "i-1", "instanceState": "running", "conditions": "none"});
        let status = AWSMachineProviderStatus::read(Some(&odd));
        assert_eq!(status.instance_id.as_deref(), Some("i-1"));
        assert_eq!(status.instance_state.as_deref(), Some("running"));
        assert_eq!(AWSMachineProviderStatus::read(None), AWSMachineProviderStatus::default());
    }
}
