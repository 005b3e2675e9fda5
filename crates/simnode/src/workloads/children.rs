//! Pods that owners create and delete.

use std::sync::Arc;

use fleetwright_runtime::{EventType, ObjectKey};
use futures::future::join_all;
use k8s_openapi::{
    api::core::v1::{Pod, PodTemplateSpec},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use super::family::{Family, Workload, reference};
use crate::{
    cluster::posted,
    error::{Failure, Outcome},
    facts,
    lifecycle::MANAGER,
};

/// No owner creates or deletes more pods than this at once.
pub(crate) const BURST: usize = 500;

/// A pod made from a template.
pub(crate) fn from_template<O: Workload>(
    owner: &O,
    template: &PodTemplateSpec,
    name: String,
) -> Pod {
    let of_template = template.metadata.clone().unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: owner.meta().namespace.clone(),
            labels: of_template.labels,
            annotations: of_template.annotations,
            finalizers: of_template.finalizers,
            owner_references: Some(vec![reference(owner)]),
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    }
}

impl<O: Workload> Family<O, Pod> {
    /// Creates pods: one first, then twice as many each time, so that what cannot work fails
    /// once and not a thousand times.
    pub(crate) async fn create(
        &self,
        owner: &O,
        key: &ObjectKey,
        pods: Vec<Pod>,
    ) -> Result<(), Failure> {
        let name_of = |pod: &Pod| pod.metadata.name.clone().unwrap_or_default();
        self.expectations.expect_creates(key, pods.iter().map(name_of));
        let api = self.cluster.of_namespace::<Pod>(&key.namespace);
        let mut rest = pods.as_slice();
        let mut batch = 1;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(batch.min(rest.len()));
            rest = later;
            batch *= 2;
            let params = posted(MANAGER);
            let attempts = now.iter().map(|pod| api.create(&params, pod));
            let mut failure = None;
            for (pod, outcome) in now.iter().zip(join_all(attempts).await) {
                let name = name_of(pod);
                match outcome {
                    Ok(_) => {
                        let message = format!("Created pod: {name}");
                        self.tell(owner, EventType::Normal, "SuccessfulCreate", &message);
                    }
                    Err(error) => {
                        self.expectations.create_settled(key, &name);
                        let message = match &error {
                            kube::Error::Api(status) => status.message.clone(),
                            error => error.to_string(),
                        };
                        let message = format!("Error creating: {message}");
                        self.tell(owner, EventType::Warning, "FailedCreate", &message);
                        failure = Some(Err(error).trying("create pod", &name));
                    }
                }
            }
            if let Some(failure) = failure {
                for pod in rest {
                    self.expectations.create_settled(key, &name_of(pod));
                }
                return failure;
            }
        }
        Ok(())
    }

    /// Tells pods to go.
    pub(crate) async fn delete(
        &self,
        owner: &O,
        key: &ObjectKey,
        pods: &[Arc<Pod>],
    ) -> Result<(), Failure> {
        let uid_of = |pod: &Arc<Pod>| facts::uid(&pod.metadata).to_owned();
        self.expectations.expect_deletes(key, pods.iter().map(uid_of));
        let attempts = pods.iter().map(|pod| self.cluster.delete_pod(pod, None));
        let mut failure = Ok(());
        for (pod, outcome) in pods.iter().zip(join_all(attempts).await) {
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            match outcome {
                Ok(()) => {
                    let message = format!("Deleted pod: {name}");
                    self.tell(owner, EventType::Normal, "SuccessfulDelete", &message);
                }
                Err(error) => {
                    self.expectations.delete_settled(key, &uid_of(pod));
                    failure = Err(error);
                }
            }
        }
        failure
    }
}

impl<O: Workload, C: super::family::Object> Family<O, C> {
    /// Tells users what happened to an owner.
    pub(crate) fn tell(&self, owner: &O, event_type: EventType, reason: &str, message: &str) {
        self.cluster.tell(O::COMPONENT, owner, event_type, reason, message);
    }
}
