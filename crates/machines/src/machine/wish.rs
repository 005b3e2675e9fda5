//! What a Machine asks for, ready to be launched, or what keeps it from that.

use std::sync::Arc;

use bytes::Bytes;
use fleetwright_api::{
    aws::AWSMachineProviderConfig,
    machine::{Machine, MachineSet},
    names::{annotation, secret},
};
use fleetwright_cloud::{CloudError, Launch, ResolveRequest};
use fleetwright_runtime::{ObjectKey, config::Span};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use serde_json::Value;

use crate::{
    clouds::{Clouds, NoSite, Site},
    launch::settings::{GangPolicy, UnknownGang},
};

/// Why a Machine cannot be launched now.
#[derive(Clone, Debug, PartialEq)]
pub enum Obstacle {
    /// What the user wrote can never work.
    Wrong(String),
    /// Something that it names is not there, perhaps not yet.
    Missing(String),
    /// Its placement group does not take it now.
    GroupNotReady(String),
    /// Its placement group is full.
    GroupFull {
        /// Whether that is the limit of a spread group.
        spread_limit: bool,
        /// In words.
        message: String,
    },
    /// The cloud would not say what it asked.
    Cloud(Box<CloudError>),
    /// The cluster is not ready for it.
    NotNow(String),
}

impl From<NoSite> for Obstacle {
    fn from(error: NoSite) -> Self {
        match &error {
            NoSite::Secret(_) => Self::Missing(error.to_string()),
            NoSite::Infrastructure { .. } | NoSite::Credentials(..) => {
                Self::NotNow(error.to_string())
            }
            NoSite::Account(cause) => Self::Cloud(cause.clone()),
        }
    }
}

/// The provider spec of a Machine.
pub fn config(machine: &Machine) -> Result<AWSMachineProviderConfig, Obstacle> {
    AWSMachineProviderConfig::read(&machine.spec.provider_spec)
        .map_err(|error| Obstacle::Wrong(format!("failed to read providerSpec.value: {error}")))
}

/// Where a Machine is made, as far as its spec can be read.
pub fn site(clouds: &Clouds, machine: &Machine) -> Result<Arc<Site>, NoSite> {
    let value = machine.spec.provider_spec.value.as_ref();
    let text = |path: &[&str]| {
        path.iter()
            .try_fold(value?, |value, key| value.get(key))?
            .as_str()
            .filter(|text| !text.is_empty())
    };
    let region = text(&["placement", "region"]).unwrap_or_default();
    let secret = text(&["credentialsSecret", "name"])
        .map(|name| ObjectKey::new(machine.namespace().unwrap_or_default(), name));
    clouds.site(region, secret)
}

/// What the instance runs at first boot.
fn user_data(
    clouds: &Clouds,
    machine: &Machine,
    config: &AWSMachineProviderConfig,
) -> Result<Option<Bytes>, Obstacle> {
    let name = config.user_data_secret.as_ref().map(|secret| secret.name.as_str());
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(None) };
    let key = ObjectKey::new(machine.namespace().unwrap_or_default(), name);
    user_data_in(&key, clouds.secrets().get(&key).as_deref()).map(Some)
}

/// The user data in a Secret.
pub fn user_data_in(key: &ObjectKey, found: Option<&Secret>) -> Result<Bytes, Obstacle> {
    let found = found.ok_or_else(|| {
        Obstacle::Missing(format!("failed to get user data: secrets {:?} not found", key.name))
    })?;
    let data = found.data.as_ref().and_then(|data| data.get(secret::USER_DATA));
    let data = data.ok_or_else(|| {
        Obstacle::Missing(format!(
            "failed to get user data: secret {key} missing {} key",
            secret::USER_DATA
        ))
    })?;
    Ok(data.0.clone().into())
}

/// The launch of a Machine.
pub async fn resolve(
    clouds: &Clouds,
    site: &Site,
    machine: &Machine,
    config: &AWSMachineProviderConfig,
) -> Result<Launch, Obstacle> {
    let user_data = user_data(clouds, machine, config)?;
    let request = ResolveRequest {
        provider_spec: machine.spec.provider_spec.value.clone().unwrap_or(Value::Null),
        cluster: site.cluster.clone(),
        cluster_tags: site.cluster_tags.clone(),
        user_data,
    };
    site.cloud.resolve(request).await.map_err(|error| Obstacle::Cloud(Box::new(error)))
}

/// The gang of a Machine's MachineSet, where the MachineSet says.
pub fn gang(set: Option<&MachineSet>) -> Result<Option<Option<GangPolicy>>, UnknownGang> {
    let value = set.and_then(|set| set.annotations().get(annotation::GANG));
    value.map(|value| GangPolicy::parse(value)).transpose()
}

/// How long a Machine waits for capacity, where its MachineSet says.
pub fn capacity_deadline(set: Option<&MachineSet>) -> Option<Span> {
    set?.annotations().get(annotation::CAPACITY_DEADLINE)?.parse().ok()
}

/// Before the name of a Secret in the index of what Machines name.
const SECRET: &str = "secret/";
/// Before the name of a placement group.
const GROUP: &str = "group/";

/// Under which a Machine that names a Secret is found.
pub fn secret_index(name: &str) -> String {
    format!("{SECRET}{name}")
}

/// Under which a Machine that names a placement group is found.
pub fn group_index(name: &str) -> String {
    format!("{GROUP}{name}")
}

/// What a Machine names, for the index.
pub fn named(machine: &Machine) -> Vec<String> {
    let Some(value) = &machine.spec.provider_spec.value else { return Vec::new() };
    let name = |value: &Value| value.as_str().filter(|name| !name.is_empty()).map(str::to_owned);
    let secrets = ["userDataSecret", "credentialsSecret"];
    let secrets = secrets.iter().filter_map(|key| name(&value[*key]["name"]));
    let groups = [&value["placement"]["group"]["name"], &value["placementGroupName"]];
    let groups = groups.into_iter().filter_map(name);
    secrets.map(|name| secret_index(&name)).chain(groups.map(|name| group_index(&name))).collect()
}
