//! The rules by table, launches by table, and the whole controller on an embedded API server.
//!
//! Upstream's twelve defects are each a test; look for "defect".

mod crashes;
mod launches;
mod rules;
mod whole;

use fleetwright_api::placement::AWSPlacementGroup;
use fleetwright_cloud::{GroupState, PlacementGroup, Strategy};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{GroupController, Parts};
use crate::group::testbed::{Bed, CLUSTER, NAMESPACE, Process};

/// Starts the controller in a process.
pub(crate) fn start(process: &mut Process) {
    let parts = Parts {
        client: process.client.clone(),
        namespace: NAMESPACE.to_owned(),
        groups: process.informer("groups"),
        machines: process.informer("machines"),
        clouds: process.clouds(),
        clock: process.clock.clone(),
        random: process.random.fork(),
        events: process.events.clone(),
        metrics: process.metrics.clone(),
    };
    let controller = GroupController::new(parts);
    process.run(async move {
        let _ = controller.run(CancellationToken::new()).await;
    });
}

fn manifest(name: &str, management: &Value) -> Value {
    json!({
        "apiVersion": "machine.openshift.io/v1", "kind": "AWSPlacementGroup",
        "metadata": {"name": name},
        "spec": {"managementSpec": management},
    })
}

fn managed(group_type: &str) -> Value {
    json!({"managementState": "Managed", "managed": {"groupType": group_type}})
}

fn unmanaged() -> Value {
    json!({"managementState": "Unmanaged"})
}

/// A group in the cloud that is ours.
fn ours(name: &str, strategy: Strategy) -> PlacementGroup {
    let owned = (format!("kubernetes.io/cluster/{CLUSTER}"), "owned".to_owned());
    PlacementGroup {
        name: name.to_owned(),
        id: format!("pg-{name}"),
        strategy,
        partitions: None,
        state: GroupState::Available,
        tags: [owned].into(),
    }
}

/// A group in the cloud that somebody else made.
fn foreign(name: &str, strategy: Strategy) -> PlacementGroup {
    PlacementGroup { tags: [].into(), ..ours(name, strategy) }
}

/// Status, reason and message of a condition.
fn condition(group: &AWSPlacementGroup, type_: &str) -> Option<(String, String, String)> {
    let conditions = &group.status.as_ref()?.conditions;
    let found = conditions.iter().find(|condition| condition.type_ == type_)?;
    Some((found.status.clone(), found.reason.clone(), found.message.clone()))
}

/// Waits until Ready has a reason; gives the object.
async fn ready_with(bed: &Bed, name: &str, status: &str, reason: &str) -> AWSPlacementGroup {
    bed.until(&format!("{name} is Ready={status} {reason}"), || async {
        let group = bed.group(name).await?;
        let (is, why, _) = condition(&group, "Ready")?;
        (is == status && why == reason).then_some(group)
    })
    .await
}

/// Waits until the object is gone.
async fn gone(bed: &Bed, name: &str) {
    bed.until(&format!("{name} is gone"), || async {
        bed.group(name).await.is_none().then_some(())
    })
    .await;
}

/// Takes the rules out of the definition, as upstream's has none: what a user can write then.
async fn without_rules(bed: &Bed) {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.remove("x-kubernetes-validations");
                fields.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let api: kube::Api<CustomResourceDefinition> = kube::Api::all(bed.user.clone());
    let name = "awsplacementgroups.machine.openshift.io";
    let mut definition = serde_json::to_value(api.get(name).await.unwrap()).unwrap();
    strip(&mut definition);
    let definition = serde_json::from_value(definition).unwrap();
    api.replace(name, &kube::api::PostParams::default(), &definition).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
}

async fn delete(bed: &Bed, name: &str) {
    bed.api::<AWSPlacementGroup>().delete(name, &kube::api::DeleteParams::default()).await.unwrap();
}
