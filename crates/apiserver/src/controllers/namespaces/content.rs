//! Deletes what is in a namespace.

use std::{collections::BTreeMap, sync::Arc};

use fleetwright_kstore::{At, Scope};
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{super::PODS, conditions::Findings};
use crate::{
    internal::InternalClient,
    object,
    registry::Resource,
    server::Server,
    storage::{self, StoredObject},
};

/// How long finalizers are given, in seconds.
const FINALIZER_ESTIMATE: u64 = 15;

/// The content of one namespace.
pub(super) struct Content<'a> {
    server: &'a Server,
    client: &'a InternalClient,
    namespace: &'a str,
}

/// What came of deleting it.
#[derive(Debug, Default)]
pub(super) struct Swept {
    /// What went wrong.
    pub errors: Vec<String>,
    /// In how many seconds the rest may be gone; 0 if there is no rest, or no telling.
    pub estimate: u64,
    remaining: BTreeMap<String, usize>,
    finalizers: BTreeMap<String, usize>,
    waits_for_pods: bool,
}

impl Swept {
    /// What the namespace's conditions say. While pods are left, the rest is not counted.
    pub(super) fn findings(&self) -> Findings {
        let failures = self.errors.clone();
        if self.waits_for_pods {
            return Findings { failures, ..Findings::default() };
        }
        Findings {
            failures,
            remaining: self.remaining.clone(),
            finalizers: self.finalizers.clone(),
        }
    }
}

impl<'a> Content<'a> {
    pub(super) fn new(server: &'a Server, client: &'a InternalClient, namespace: &'a str) -> Self {
        Self { server, client, namespace }
    }

    /// Deletes all there is: pods first, the rest when they are gone.
    pub(super) async fn sweep(&self, deleted_at: Option<Timestamp>) -> Swept {
        let mut swept = Swept::default();
        let (pods, others): (Vec<_>, Vec<_>) = self
            .server
            .registry()
            .stored()
            .into_iter()
            .filter(|resource| resource.namespaced)
            .partition(|resource| *resource.storage == *PODS);
        for resource in &pods {
            self.delete_all(resource, deleted_at, &mut swept).await;
        }
        swept.waits_for_pods = !swept.remaining.is_empty();
        if swept.waits_for_pods {
            return swept;
        }
        for resource in &others {
            self.delete_all(resource, deleted_at, &mut swept).await;
        }
        swept
    }

    async fn delete_all(
        &self,
        resource: &Arc<Resource>,
        deleted_at: Option<Timestamp>,
        swept: &mut Swept,
    ) {
        let objects = self.objects(resource);
        if objects.is_empty() {
            return;
        }
        let mut estimate = 0;
        if *resource.storage == *PODS {
            let pods = objects.iter().filter_map(|pod| storage::parse(&pod.json).ok());
            let age = deleted_at.map_or(0, |at| self.server.now().duration_since(at).as_secs());
            estimate = grace_left(pods, age);
        }
        let options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
        });
        let path = InternalClient::collection(resource, self.namespace);
        let deleted =
            self.client.send(Method::DELETE, &path, "application/json", Some(&options)).await;
        if let Err(error) = deleted {
            swept.errors.push(error.message().to_owned());
            swept.estimate = swept.estimate.max(estimate);
            return;
        }
        let left = self.objects(resource);
        if left.is_empty() {
            return;
        }
        let mut held = false;
        for object in &left {
            let object = storage::parse(&object.json).unwrap_or_default();
            for finalizer in object::finalizers(&object) {
                held = true;
                *swept.finalizers.entry(finalizer.to_owned()).or_default() += 1;
            }
        }
        let name = format!("{}.{}", resource.plural, resource.gvk.group);
        swept.remaining.insert(name, left.len());
        if estimate == 0 && held {
            estimate = FINALIZER_ESTIMATE;
        } else if estimate == 0 {
            let gvk = &resource.gvk;
            swept.errors.push(format!(
                "unexpected items still remain in namespace: {} for gvr: {}/{}, Resource={}",
                self.namespace, gvk.group, gvk.version, resource.plural
            ));
        }
        swept.estimate = swept.estimate.max(estimate);
    }

    fn objects(&self, resource: &Resource) -> Vec<StoredObject> {
        let scope = Scope::in_namespace(resource.storage.clone(), self.namespace);
        let listing = self.server.storage().list(&scope, At::Latest, None);
        listing.map(|listing| listing.items).unwrap_or_default()
    }
}

/// The longest grace period of the pods that are not over, in seconds; 0 once the namespace has
/// been ending for that long.
fn grace_left(pods: impl Iterator<Item = Value>, age: i64) -> u64 {
    let longest = pods
        .filter(|pod| !matches!(object::text(pod, &["status", "phase"]), "Succeeded" | "Failed"))
        .filter_map(|pod| object::integer(&pod, &["spec", "terminationGracePeriodSeconds"]))
        .max()
        .unwrap_or(0);
    if age >= longest { 0 } else { longest.unsigned_abs() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_grace_period_counts_until_it_is_over() {
        let pod = |phase: &str, grace: i64| json!({"spec": {"terminationGracePeriodSeconds": grace}, "status": {"phase": phase}});
        let pods = || [pod("Running", 30), pod("Pending", 5), pod("Failed", 300)].into_iter();
        for (age, left) in [(0, 30), (29, 30), (30, 0), (100, 0)] {
            assert_eq!(grace_left(pods(), age), left);
        }
        assert_eq!(grace_left([pod("Succeeded", 30)].into_iter(), 0), 0);
    }
}
