//! The objects that views are made of.

use fleetwright_api::{
    config::Infrastructure,
    machine::{Machine, MachineSet},
    names,
    placement::AWSPlacementGroup,
};
use k8s_openapi::api::core::v1::{Event, Node};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::ListParams,
    core::{ClusterResourceScope, NamespaceResourceScope},
};

/// Everything that a view may need, read once.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The cluster in its cloud.
    pub infrastructure: Option<Infrastructure>,
    /// MachineSets, by name.
    pub sets: Vec<MachineSet>,
    /// Machines, by name.
    pub machines: Vec<Machine>,
    /// Placement groups, by name.
    pub groups: Vec<AWSPlacementGroup>,
    /// Nodes, by name.
    pub nodes: Vec<Node>,
    /// Events in the namespace of the Machines.
    pub events: Vec<Event>,
}

/// The objects cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {what}")]
pub struct ReadError {
    what: String,
    source: kube::Error,
}

/// How many objects are read at a time.
const PAGE: u32 = 500;

impl Snapshot {
    /// Reads what is there in a namespace. Kinds that the cluster does not have are empty.
    pub async fn read(client: &Client, namespace: &str) -> Result<Self, ReadError> {
        Ok(Self {
            infrastructure: all_of::<Infrastructure>(client)
                .await?
                .into_iter()
                .find(|infrastructure| infrastructure.name_any() == names::INFRASTRUCTURE),
            sets: all_in(client, namespace).await?,
            machines: all_in(client, namespace).await?,
            groups: all_in(client, namespace).await?,
            nodes: all_of(client).await?,
            events: all_in(client, namespace).await?,
        })
    }

    /// The Node with a name.
    pub(crate) fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.metadata.name.as_deref() == Some(name))
    }

    /// The Machines that a MachineSet controls.
    pub(crate) fn machines_of<'a>(
        &'a self,
        set: &'a MachineSet,
    ) -> impl Iterator<Item = &'a Machine> {
        self.machines.iter().filter(move |machine| controller(machine) == set.uid().as_deref())
    }
}

/// The UID of what controls a Machine.
pub(crate) fn controller(machine: &Machine) -> Option<&str> {
    machine
        .owner_references()
        .iter()
        .find(|owner| owner.controller == Some(true))
        .map(|owner| owner.uid.as_str())
}

async fn all_in<K>(client: &Client, namespace: &str) -> Result<Vec<K>, ReadError>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + serde::de::DeserializeOwned
        + std::fmt::Debug,
{
    pages(&Api::namespaced(client.clone(), namespace)).await
}

async fn all_of<K>(client: &Client) -> Result<Vec<K>, ReadError>
where
    K: Resource<DynamicType = (), Scope = ClusterResourceScope>
        + Clone
        + serde::de::DeserializeOwned
        + std::fmt::Debug,
{
    pages(&Api::all(client.clone())).await
}

async fn pages<K>(api: &Api<K>) -> Result<Vec<K>, ReadError>
where
    K: Resource<DynamicType = ()> + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let mut params = ListParams::default().limit(PAGE);
    let mut all = Vec::new();
    loop {
        let page = match api.list(&params).await {
            Ok(page) => page,
            // The cluster does not have the kind.
            Err(kube::Error::Api(status)) if status.is_not_found() && all.is_empty() => {
                return Ok(all);
            }
            Err(source) => return Err(ReadError { what: K::plural(&()).into_owned(), source }),
        };
        all.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(all),
        }
    }
}
