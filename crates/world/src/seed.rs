//! What an installer leaves behind in the Kubernetes API.

use std::time::Duration;

use fleetwright_api::{config::Infrastructure, names};
use k8s_openapi::{
    api::core::v1::{Namespace, Secret},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// Who writes these objects.
pub(crate) const MANAGER: &str = "fleetwright/seed";
/// The namespace of our own objects.
pub const SYSTEM_NAMESPACE: &str = "fleetwright-system";
/// How often a definition is looked at until it is served, and how often at most.
const POLL: Duration = Duration::from_millis(50);
const POLLS: u32 = 600;

/// An object of the installation cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot make {what}")]
pub struct SeedError {
    what: String,
    source: kube::Error,
}

impl SeedError {
    pub(crate) fn new(what: &str, source: kube::Error) -> Self {
        Self { what: what.to_owned(), source }
    }
}

/// A definition is not served although the API has it.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    /// It cannot be written or read.
    #[error(transparent)]
    Api(#[from] SeedError),
    /// The API does not serve it.
    #[error("the API has the definition {0} and does not serve it: look at its conditions")]
    NotEstablished(String),
}

/// The cluster as an installer would describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// The cluster's name in the cloud.
    pub cluster: String,
    /// Region.
    pub region: String,
    /// The access key in the credentials Secret.
    pub access_key: String,
    /// Its secret.
    pub secret_key: String,
}

impl Installation {
    /// A cluster that somebody else installed: nothing is known of its keys.
    pub fn described(cluster: &str, region: &str) -> Self {
        Self {
            cluster: cluster.to_owned(),
            region: region.to_owned(),
            access_key: String::new(),
            secret_key: String::new(),
        }
    }
}

/// Waits until the definitions of our kinds are served, and changes nothing.
pub async fn check_definitions(client: &Client) -> Result<(), DefinitionError> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in fleetwright_api::crds() {
        established(&api, &definition.name_any()).await?;
    }
    Ok(())
}

/// Makes a namespace unless it is there. One that is there costs no write.
pub async fn namespace(client: &Client, name: &str) -> Result<(), SeedError> {
    let api: Api<Namespace> = Api::all(client.clone());
    let there = api
        .get_metadata_opt(name)
        .await
        .map_err(|source| SeedError::new(&format!("Namespace {name}"), source))?;
    if there.is_some() {
        return Ok(());
    }
    create(&api, json!({"metadata": {"name": name}})).await.map(drop)
}

/// Installs or updates the definitions of our kinds, and waits until they are served.
pub async fn definitions(client: &Client) -> Result<(), DefinitionError> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definitions = fleetwright_api::crds();
    for definition in &definitions {
        let name = definition.name_any();
        api.patch(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(definition))
            .await
            .map_err(|source| SeedError { what: format!("the definition {name}"), source })?;
    }
    for definition in &definitions {
        established(&api, &definition.name_any()).await?;
    }
    Ok(())
}

async fn established(
    api: &Api<CustomResourceDefinition>,
    name: &str,
) -> Result<(), DefinitionError> {
    for _ in 0..POLLS {
        let found = api
            .get(name)
            .await
            .map_err(|source| SeedError { what: format!("the definition {name}"), source })?;
        let conditions = found.status.and_then(|status| status.conditions).unwrap_or_default();
        if conditions.iter().any(|c| c.type_ == "Established" && c.status == "True") {
            return Ok(());
        }
        tokio::time::sleep(POLL).await;
    }
    Err(DefinitionError::NotEstablished(name.to_owned()))
}

/// Makes what is missing of the installation. What is there is left as it is.
pub async fn installation(client: &Client, installed: &Installation) -> Result<(), SeedError> {
    for name in [names::MACHINE_NAMESPACE, SYSTEM_NAMESPACE] {
        namespace(client, name).await?;
    }
    let secrets: Api<Secret> = Api::namespaced(client.clone(), names::MACHINE_NAMESPACE);
    for (name, data) in secrets_of(installed) {
        create(&secrets, json!({"metadata": {"name": name}, "stringData": data})).await?;
    }
    infrastructure(client, installed).await
}

/// The secrets that Machines refer to unless they say otherwise.
fn secrets_of(installed: &Installation) -> [(&'static str, Value); 3] {
    // A pointer to the rest, as an installer writes it; simulated nodes do not follow it.
    let pointer = |role: &str| {
        json!({"userData": json!({
            "ignition": {
                "version": "3.2.0",
                "config": {"merge": [{"source":
                    format!("https://api-int.{}.example:22623/config/{role}", installed.cluster)}]},
            },
        }).to_string()})
    };
    [
        ("worker-user-data", pointer("worker")),
        ("master-user-data", pointer("master")),
        (
            "aws-cloud-credentials",
            json!({
                "aws_access_key_id": installed.access_key,
                "aws_secret_access_key": installed.secret_key,
            }),
        ),
    ]
}

/// The Infrastructure, whose status an installer writes.
pub async fn infrastructure(client: &Client, installed: &Installation) -> Result<(), SeedError> {
    let api: Api<Infrastructure> = Api::all(client.clone());
    let made = create(
        &api,
        json!({
            "metadata": {"name": names::INFRASTRUCTURE},
            "spec": {"platformSpec": {"type": "AWS"}},
        }),
    )
    .await?;
    let described = made.is_none()
        && api.get(names::INFRASTRUCTURE).await.is_ok_and(|found| found.cluster().is_some());
    if described {
        return Ok(());
    }
    let status = json!({"status": {
        "infrastructureName": installed.cluster,
        "platform": "AWS",
        "platformStatus": {"type": "AWS", "aws": {"region": installed.region}},
        "controlPlaneTopology": "HighlyAvailable",
        "infrastructureTopology": "HighlyAvailable",
        "cpuPartitioning": "None",
        "apiServerURL": "",
        "apiServerInternalURI": "",
        "etcdDiscoveryDomain": "",
    }});
    api.patch_status(names::INFRASTRUCTURE, &PatchParams::default(), &Patch::Merge(status))
        .await
        .map(drop)
        .map_err(|source| SeedError { what: "the status of the Infrastructure".to_owned(), source })
}

/// Makes an object; none when there is one already.
async fn create<K>(api: &Api<K>, object: Value) -> Result<Option<K>, SeedError>
where
    K: Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
{
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let what = format!("{} {name}", K::kind(&()));
    let failed = |source| SeedError { what: what.clone(), source };
    let object: K =
        serde_json::from_value(object).map_err(kube::Error::SerdeError).map_err(failed)?;
    let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
    match api.create(&params, &object).await {
        Ok(made) => Ok(Some(made)),
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(None),
        Err(source) => Err(failed(source)),
    }
}
