//! How many pods their controllers want.

use std::{collections::BTreeMap, sync::Arc};

use fleetwright_kschema::gotext::quote;
use fleetwright_kstore::Key;
use serde_json::Value;

use crate::{
    gvk::GroupVersion, internal::InternalClient, object, registry::Resource, server::Server,
    storage,
};

/// A controller and the number of pods that it wants.
type Scaled = (String, i64);

/// What the controllers of some pods want.
pub(super) struct Total {
    /// So many pods.
    pub scale: i64,
    /// Whether every pod has a controller. Those without are not counted.
    pub all_managed: bool,
}

/// Asks for the scale of pods' controllers.
pub(super) struct Scales<'a> {
    pub server: &'a Server,
    pub client: &'a InternalClient,
}

impl Scales<'_> {
    /// The number of pods that the controllers of `pods` want together.
    pub(super) async fn total(&self, namespace: &str, pods: &[Value]) -> Result<Total, String> {
        let mut all_managed = true;
        let mut asked: BTreeMap<&str, Scaled> = BTreeMap::new();
        for pod in pods {
            let Some(reference) = controller_of(pod) else {
                all_managed = false;
                continue;
            };
            let uid = object::text(reference, &["uid"]);
            if asked.contains_key(uid) {
                continue;
            }
            let found = self.scale(reference, namespace).await?.ok_or_else(|| {
                format!("found no controllers for pod {}", quote(object::name(pod)))
            })?;
            asked.insert(uid, found);
        }
        // Several replica sets of one deployment are one controller.
        let scales: BTreeMap<String, i64> = asked.into_values().collect();
        Ok(Total { scale: scales.values().sum(), all_managed })
    }

    async fn scale(&self, reference: &Value, namespace: &str) -> Result<Option<Scaled>, String> {
        let text = |field: &str| object::text(reference, &[field]);
        let version = GroupVersion::parse(text("apiVersion"))
            .ok_or_else(|| format!("unexpected GroupVersion string: {}", text("apiVersion")))?;
        let found = match (&*version.group, text("kind")) {
            ("", "ReplicationController") => self
                .existing("/replicationcontrollers", namespace, reference)
                .map(|found| scaled(&found)),
            ("apps" | "extensions", "ReplicaSet") => self.replica_set(reference, namespace),
            ("apps", "StatefulSet") => {
                self.existing("apps/statefulsets", namespace, reference).map(|found| scaled(&found))
            }
            _ => None,
        };
        match found {
            Some(found) => Ok(Some(found)),
            None => self.subresource(&version, reference, namespace).await,
        }
    }

    /// The scale of a replica set's deployment, or its own if it has none.
    fn replica_set(&self, reference: &Value, namespace: &str) -> Option<Scaled> {
        let set = self.existing("apps/replicasets", namespace, reference)?;
        let Some(owner) = controller_of(&set) else { return Some(scaled(&set)) };
        if object::text(owner, &["kind"]) != "Deployment" {
            return Some(scaled(&set));
        }
        let version = GroupVersion::parse(object::text(owner, &["apiVersion"]))?;
        if !matches!(&*version.group, "apps" | "extensions") {
            return None;
        }
        self.existing("apps/deployments", namespace, owner).map(|found| scaled(&found))
    }

    /// The object that a reference means, if it is there.
    fn existing(&self, resource: &str, namespace: &str, reference: &Value) -> Option<Value> {
        let text = |field: &str| object::text(reference, &[field]);
        let stored = self.server.storage().get(&Key::new(resource, namespace, text("name")))?;
        (*stored.meta.uid == *text("uid")).then(|| storage::parse(&stored.json).ok()).flatten()
    }

    async fn subresource(
        &self,
        version: &GroupVersion,
        reference: &Value,
        namespace: &str,
    ) -> Result<Option<Scaled>, String> {
        let text = |field: &str| object::text(reference, &[field]);
        let resource: Arc<Resource> = self
            .server
            .registry()
            .find_kind(&version.group, &version.version, text("kind"))
            .ok_or_else(|| {
                format!(
                    "no matches for kind {} in version {}",
                    quote(text("kind")),
                    quote(text("apiVersion"))
                )
            })?;
        if resource.scale.is_none() {
            return Err(format!(
                "{} does not implement the scale subresource",
                resource.group_resource()
            ));
        }
        let namespace = if resource.namespaced { namespace } else { "" };
        let path = InternalClient::path(&resource, namespace, text("name"));
        match self.client.get(&format!("{path}/scale")).await {
            Err(error) if error.reason() == "NotFound" => Ok(None),
            Err(error) => Err(error.message().to_owned()),
            Ok(scale) if object::uid(&scale) != text("uid") => Ok(None),
            Ok(scale) => {
                let replicas = object::integer(&scale, &["spec", "replicas"]).unwrap_or(0);
                Ok(Some((text("uid").to_owned(), replicas)))
            }
        }
    }
}

fn scaled(controller: &Value) -> Scaled {
    let replicas = object::integer(controller, &["spec", "replicas"]).unwrap_or(1);
    (object::uid(controller).to_owned(), replicas)
}

/// The reference to the controller of an object.
fn controller_of(object: &Value) -> Option<&Value> {
    object::list(object, &["metadata", "ownerReferences"])
        .iter()
        .find(|reference| object::get(reference, &["controller"]) == Some(&Value::Bool(true)))
}
