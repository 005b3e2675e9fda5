//! What all parts share: the connection, time, chance, and one copy of the pods and nodes.

use std::{fmt, sync::Arc, time::Duration};

use fleetwright_clock::{Clock, Random};
use fleetwright_runtime::{
    Controller, ControllerOptions, EventRecorder, EventType, EventWriter, Informer, Metrics,
    ObjectKey,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::core::v1::{Node, Pod},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    error::{Failure, Outcome},
    facts,
};

/// Pods by the node that they are bound to.
pub(crate) const BY_NODE: &str = "node";
/// Objects by the UID of the controller that owns them.
pub(crate) const BY_CONTROLLER: &str = "controller";
/// Objects that no controller owns, by namespace.
pub(crate) const ORPHANS: &str = "orphan";

#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) random: Random,
    pub(crate) metrics: Metrics,
    pub(crate) workers: usize,
    pub(crate) pods: Informer<Pod>,
    pub(crate) nodes: Informer<Node>,
    pub(crate) events: EventRecorder,
}

impl Cluster {
    pub(crate) fn new(
        client: Client,
        clock: Clock,
        random: Random,
        metrics: Metrics,
        workers: usize,
    ) -> (Self, EventWriter) {
        let pods: Informer<Pod> = Informer::new("simnode-pods", Api::all(client.clone()), &metrics);
        pods.index(BY_NODE, |pod| {
            facts::pod::node_name(pod).map(ToOwned::to_owned).into_iter().collect()
        });
        index_owners(&pods);
        let nodes = Informer::new("simnode-nodes", Api::all(client.clone()), &metrics);
        let (events, writer) = EventRecorder::new(
            client.clone(),
            "fleetwright-simnode",
            "",
            clock.clone(),
            &random,
            &metrics,
        );
        (Self { client, clock, random, metrics, workers, pods, nodes, events }, writer)
    }

    /// An informer of one more kind, found by owner, which runs with the rest.
    pub(crate) fn informer<K>(
        &self,
        name: &str,
        tasks: &mut JoinSet<()>,
        stop: &CancellationToken,
    ) -> Informer<K>
    where
        K: Resource<DynamicType = ()>
            + Clone
            + DeserializeOwned
            + fmt::Debug
            + Send
            + Sync
            + 'static,
    {
        let informer = Informer::new(name, Api::all(self.client.clone()), &self.metrics);
        index_owners(&informer);
        tasks.spawn(informer.clone().run(self.random.fork(), stop.clone()));
        informer
    }

    pub(crate) fn controller<Key: fleetwright_runtime::Key>(&self, name: &str) -> Controller<Key> {
        let options = ControllerOptions { workers: self.workers, ..ControllerOptions::default() };
        Controller::new(name, options, &self.metrics)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn of_namespace<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Deletes a pod if it is still the same. `None` leaves the grace period to the pod.
    pub(crate) async fn delete_pod(&self, pod: &Pod, grace: Option<u32>) -> Result<(), Failure> {
        let params = DeleteParams {
            grace_period_seconds: grace,
            preconditions: Some(Preconditions {
                uid: pod.metadata.uid.clone(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        let key = ObjectKey::of(pod);
        let deleted = self.of_namespace::<Pod>(&key.namespace).delete(&key.name, &params).await;
        deleted.unless_gone().trying("delete pod", &key)?;
        Ok(())
    }

    /// Patches the status of a pod if it is still the same.
    pub(crate) async fn patch_pod_status(
        &self,
        pod: &Pod,
        manager: &str,
        status: impl Serialize,
    ) -> Result<(), Failure> {
        let key = ObjectKey::of(pod);
        let patch = of_same(&pod.metadata, "status", status);
        let patched = self
            .of_namespace::<Pod>(&key.namespace)
            .patch_status(&key.name, &managed(manager), &Patch::Strategic(patch))
            .await;
        patched.unless_gone().trying("report the status of pod", &key)?;
        Ok(())
    }

    /// Tells users what happened to an object, in the name of a component.
    pub(crate) fn tell<K: Resource<DynamicType = ()>>(
        &self,
        component: &str,
        about: &K,
        event_type: EventType,
        reason: &str,
        message: &str,
    ) {
        let about = about.object_ref(&());
        self.events.of_component(component).record(&about, event_type, reason, message);
    }
}

fn index_owners<K>(informer: &Informer<K>)
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + fmt::Debug + Send + Sync + 'static,
{
    informer.index(BY_CONTROLLER, |object| {
        facts::controller_uid(object.meta()).map(ToOwned::to_owned).into_iter().collect()
    });
    informer.index(ORPHANS, |object| match facts::controller_uid(object.meta()) {
        Some(_) => Vec::new(),
        None => object.namespace().into_iter().collect(),
    });
}

/// A patch of one field that fails on another object of the same name.
pub(crate) fn of_same(
    meta: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
    field: &str,
    content: impl Serialize,
) -> Value {
    let mut patch = serde_json::json!({"metadata": {"uid": meta.uid}});
    patch[field] = serde_json::to_value(content).unwrap_or_default();
    patch
}

/// A patch in the name of a component.
pub(crate) fn managed(manager: &str) -> PatchParams {
    PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() }
}

/// A create in the name of a component.
pub(crate) fn posted(manager: &str) -> PostParams {
    PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() }
}

/// How long from `now` until `at`; zero if that has passed.
pub(crate) fn until(now: Timestamp, at: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or_default()
}

/// A time later.
pub(crate) fn after(time: Timestamp, wait: Duration) -> Timestamp {
    let wait = SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX);
    time.saturating_add(wait).unwrap_or(Timestamp::MAX)
}

/// A time of an object, if it has it.
pub(crate) fn at(time: Option<&Time>) -> Option<Timestamp> {
    time.map(|Time(time)| *time)
}

/// Names that a controller draws for what it creates.
pub(crate) fn generated(random: &Random, base: &str) -> String {
    // Kubernetes leaves room for the suffix.
    const LONGEST: usize = 63 - 5;
    let base = if base.len() > LONGEST { &base[..LONGEST] } else { base };
    format!("{base}{}", random.name_suffix(5))
}

/// Shared so that closures can keep it.
pub(crate) type SharedCluster = Arc<Cluster>;
