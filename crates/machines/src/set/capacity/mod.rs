//! What a Machine of a set would be, for the autoscaler, which must know that before there is one:
//! annotations made from the instance type.
//!
//! A controller of its own, so that a slow cloud never holds up replicas.

mod decide;

use fleetwright_api::{aws::AWSMachineProviderConfig, machine::MachineSet};
use fleetwright_cloud::{CloudError, InstanceType};
use fleetwright_runtime::{
    Action, Controller, ControllerOptions, CutOff, EventRecorder, EventType, Informer, Metrics,
    ObjectKey,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

pub use self::decide::{Nature, annotations, changes};
use crate::clouds::{Clouds, NoSite};

/// The controller's name.
pub const CONTROLLER: &str = "machineset-capacity";
/// In whose name the API is written to.
pub const FIELD_MANAGER: &str = "fleetwright/machineset-capacity";
/// What the user is told about a type that the cloud does not have.
const UNKNOWN_TYPE: &str = "failed to set autoscaling from zero annotations, instance type unknown";

/// The annotations could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CapacityError {
    /// The place of the set in the cloud is not known.
    #[error(transparent)]
    Place(#[from] NoSite),
    /// The cloud did not say what the type is.
    #[error("could not describe instance type: {0}")]
    Cloud(#[from] CloudError),
    /// The Kubernetes API refused the annotations.
    #[error("could not annotate the MachineSet")]
    Api(#[source] kube::Error),
}

/// What the controller is made of.
pub struct Parts {
    /// The Kubernetes API.
    pub client: Client,
    /// MachineSets.
    pub sets: Informer<MachineSet>,
    /// Where they live.
    pub clouds: Clouds,
    /// Tells users.
    pub events: EventRecorder,
    /// Tells operators.
    pub metrics: Metrics,
}

/// The controller, not yet running.
pub struct CapacityController {
    controller: Controller<ObjectKey>,
    reconciler: Reconciler,
}

impl CapacityController {
    /// Wires the controller to its sources.
    pub fn new(parts: Parts) -> Self {
        let Parts { client, sets, clouds, events, metrics } = parts;
        let controller = Controller::new(CONTROLLER, ControllerOptions::default(), &metrics)
            .watches(&sets, |set| [ObjectKey::of(set)])
            .waits_for(clouds.infrastructures())
            .waits_for(clouds.secrets());
        let events = events.of_component(CONTROLLER);
        let reconciler = Reconciler { client, sets, clouds, events };
        Self { controller, reconciler }
    }

    /// Reconciles until `stop`.
    pub async fn run(self, stop: CancellationToken) -> Result<(), CutOff> {
        let Self { controller, reconciler } = self;
        controller.run(move |key| reconciler.clone().reconcile(key), stop).await
    }
}

#[derive(Clone)]
struct Reconciler {
    client: Client,
    sets: Informer<MachineSet>,
    clouds: Clouds,
    events: EventRecorder,
}

impl Reconciler {
    async fn reconcile(self, key: ObjectKey) -> Result<Action, CapacityError> {
        let set = self.sets.get(&key);
        let Some(set) = set.filter(|set| set.metadata.deletion_timestamp.is_none()) else {
            return Ok(Action::await_change());
        };
        // A provider spec that makes no sense is the Machine controller's to report.
        let Ok(config) = AWSMachineProviderConfig::read(&set.spec.template.spec.provider_spec)
        else {
            return Ok(Action::await_change());
        };
        if config.instance_type.is_empty() {
            return Ok(Action::await_change());
        }
        let about = set.object_ref(&());
        let Some(instance_type) = self.instance_type(&key.namespace, &config).await? else {
            let message = format!("{UNKNOWN_TYPE}: {}", config.instance_type);
            self.events.record(&about, EventType::Warning, "FailedUpdate", &message);
            return Ok(Action::await_change());
        };
        let template = &set.spec.template.spec;
        let nature = Nature {
            instance_type: &instance_type,
            interruptible: config.is_spot(),
            region: &config.placement.region,
            zone: &config.placement.availability_zone,
            labels: &template.metadata.labels,
            taints: &template.taints,
        };
        let changes = changes(&nature, set.annotations());
        if changes.is_empty() {
            return Ok(Action::await_change());
        }
        let patch = json!({"metadata": {"uid": set.uid(), "annotations": changes}});
        let params =
            PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..Default::default() };
        let api: Api<MachineSet> = Api::namespaced(self.client, &key.namespace);
        match api.patch_metadata(&key.name, &params, &Patch::Merge(patch)).await {
            Ok(_) => Ok(Action::await_change()),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(Action::await_change()),
            Err(error) => Err(CapacityError::Api(error)),
        }
    }

    async fn instance_type(
        &self,
        namespace: &str,
        config: &AWSMachineProviderConfig,
    ) -> Result<Option<InstanceType>, CapacityError> {
        let secret = config.credentials_secret.as_ref().filter(|secret| !secret.name.is_empty());
        let secret = secret.map(|secret| ObjectKey::new(namespace, &secret.name));
        let opened = self.clouds.open(&config.placement.region, secret)?;
        Ok(opened.cloud.instance_type(&config.instance_type).await?)
    }
}
