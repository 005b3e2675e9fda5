//! The check that replaces interruptible Machines which the cloud takes back.
//!
//! It is made when it is missing and put right when it was changed, unless it carries the
//! annotation `fleetwright.dev/management-state: Unmanaged`.

use std::time::Duration;

use fleetwright_api::{
    machine::MachineHealthCheck,
    names::{MACHINE_NAMESPACE, annotation, label},
};
use fleetwright_runtime::{
    Action, Controller, ControllerOptions, CutOff, Informer, Metrics, ObjectKey,
};
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// The controller's name.
pub const CONTROLLER: &str = "terminationcheck";
/// In whose name the check is written.
pub const FIELD_MANAGER: &str = "fleetwright/terminationcheck";
/// The name of the check, as users know it.
pub const NAME: &str = "machine-api-termination-handler";
/// How soon it is tried again when the namespace is not there yet.
const NO_NAMESPACE_YET: Duration = Duration::from_secs(10);

/// The check as it is to be in a namespace.
pub fn manifest(namespace: &str) -> Value {
    json!({
        "apiVersion": MachineHealthCheck::API_VERSION,
        "kind": MachineHealthCheck::KIND,
        "metadata": {
            "name": NAME,
            "namespace": namespace,
            "labels": {"api": "clusterapi", "k8s-app": "termination-handler"},
        },
        "spec": {
            "selector": {"matchLabels": {label::INTERRUPTIBLE: ""}},
            // What the cloud takes back is lost already: there is nothing to hold back.
            "maxUnhealthy": "100%",
            // A spot Machine may take long to start, and that is no interruption.
            "nodeStartupTimeout": "0",
            "unhealthyConditions": [{"type": "Terminating", "status": "True", "timeout": "0s"}],
        },
    })
}

/// Whether we leave a check alone.
pub fn is_unmanaged(check: &MachineHealthCheck) -> bool {
    check.annotations().get(annotation::MANAGEMENT_STATE).map(String::as_str)
        == Some(annotation::UNMANAGED)
}

/// Whether a check is as it is to be. What others add to it is theirs.
pub fn is_as_wanted(check: &MachineHealthCheck) -> bool {
    let wanted: Value = manifest(MACHINE_NAMESPACE);
    let found = serde_json::to_value(check).unwrap_or_default();
    found["spec"] == wanted["spec"]
        && wanted["metadata"]["labels"].as_object().is_some_and(|labels| {
            labels.iter().all(|(key, value)| found["metadata"]["labels"][key] == *value)
        })
}

/// Keeps the check, not yet running.
pub struct TerminationCheck {
    controller: Controller<ObjectKey>,
    checks: Informer<MachineHealthCheck>,
    client: Client,
}

impl TerminationCheck {
    /// Wires it to the checks of a namespace.
    pub fn new(
        client: Client,
        checks: Informer<MachineHealthCheck>,
        namespace: &str,
        metrics: &Metrics,
    ) -> Self {
        let key = ObjectKey::new(namespace, NAME);
        let ours = key.clone();
        let controller = Controller::new(CONTROLLER, ControllerOptions::default(), metrics)
            .watches(&checks, move |check| {
                Some(ObjectKey::of(check)).filter(|changed| *changed == ours)
            });
        // It is looked for once, even if there is none.
        controller.queue().add(key);
        Self { controller, checks, client }
    }

    /// Keeps the check until `stop`.
    pub async fn run(self, stop: CancellationToken) -> Result<(), CutOff> {
        let Self { controller, checks, client } = self;
        controller.run(move |key| keep(key, checks.clone(), client.clone()), stop).await
    }
}

async fn keep(
    key: ObjectKey,
    checks: Informer<MachineHealthCheck>,
    client: Client,
) -> Result<Action, kube::Error> {
    let known = checks.get(&key);
    let fine = known.is_some_and(|check| {
        is_unmanaged(&check) || is_as_wanted(&check) || check.metadata.deletion_timestamp.is_some()
    });
    if fine {
        return Ok(Action::await_change());
    }
    let api: Api<MachineHealthCheck> = Api::namespaced(client, &key.namespace);
    // Our copy may be old: what is unmanaged by now must stay as it is.
    if api.get_opt(&key.name).await?.is_some_and(|check| is_unmanaged(&check)) {
        return Ok(Action::await_change());
    }
    let params = PatchParams::apply(FIELD_MANAGER).force();
    match api.patch(&key.name, &params, &Patch::Apply(manifest(&key.namespace))).await {
        Ok(_) => {
            tracing::info!(
                check = key.name,
                "put the health check of interruptible Machines right"
            );
            Ok(Action::await_change())
        }
        Err(kube::Error::Api(status)) if status.is_not_found() => {
            Ok(Action::requeue_after(NO_NAMESPACE_YET))
        }
        Err(error) => Err(error),
    }
}
