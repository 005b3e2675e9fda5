//! Repairs by somebody else.

use std::time::Duration;

use fleetwright_api::{
    machine::{Machine, MachineHealthCheck},
    names::{annotation, condition},
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{check, condition as set_condition, counts, living, machine, says, set, start};
use crate::group::testbed::{Bed, NAMESPACE};

const GROUP: &str = "infrastructure.machine.openshift.io";
const KIND: &str = "InfrastructureRemediation";

async fn kind(bed: &Bed, kind: &str) -> Api<DynamicObject> {
    let plural = format!("{}s", kind.to_lowercase());
    let crd = json!({
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "names": {"kind": kind, "plural": plural},
            "versions": [{
                "name": "v1alpha3", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    });
    let crds: Api<CustomResourceDefinition> = Api::all(bed.user.clone());
    let params = PostParams::default();
    crds.create(&params, &serde_json::from_value(crd).unwrap()).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    let resource =
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(GROUP, "v1alpha3", kind), &plural);
    Api::namespaced_with(bed.user.clone(), NAMESPACE, &resource)
}

fn with_template() -> Value {
    let mut check = check("c", "100%");
    check["spec"]["remediationTemplate"] = json!({
        "apiVersion": format!("{GROUP}/v1alpha3"), "kind": format!("{KIND}Template"), "name": "t",
    });
    check
}

#[tokio::test(start_paused = true)]
async fn a_request_for_each_that_is_sick_until_it_is_well() {
    let bed = Bed::start().await;
    let requests = kind(&bed, KIND).await;
    let templates = kind(&bed, &format!("{KIND}Template")).await;
    let process = bed.process(start);
    let owner = set(&bed, "s").await;
    for name in ["a", "b"] {
        machine(&bed, name, Some(&owner)).await;
    }
    bed.create::<MachineHealthCheck>(with_template()).await;
    set_condition(&bed, "a", "Terminating", "True").await;
    let found = bed
        .until("the template is missed", || async {
            let found = bed.api::<MachineHealthCheck>().get("c").await.unwrap();
            says(&found, condition::EXTERNAL_REMEDIATION_TEMPLATE).map(|says| (says, found))
        })
        .await;
    assert_eq!(found.0.1, "ExternalRemediationTemplateNotFound");
    assert!(found.0.2.contains("InfrastructureRemediationTemplate t"), "{}", found.0.2);

    let template = json!({
        "apiVersion": format!("{GROUP}/v1alpha3"), "kind": format!("{KIND}Template"),
        "metadata": {"name": "t"},
        "spec": {"template": {"spec": {"strategy": "reboot"}}},
    });
    let params = PostParams::default();
    templates.create(&params, &serde_json::from_value(template).unwrap()).await.unwrap();
    let request = bed.until("a request", || async { requests.get_opt("a").await.unwrap() }).await;
    assert_eq!(request.data["spec"], json!({"strategy": "reboot"}));
    assert_eq!(request.owner_references()[0].name, "a");
    assert_eq!(request.owner_references()[0].controller, None);
    assert_eq!(request.annotations()[annotation::CLONED_FROM_NAME], "t");
    let group_kind = format!("{KIND}Template.{GROUP}");
    assert_eq!(request.annotations()[annotation::CLONED_FROM_GROUP_KIND], group_kind);
    assert_eq!(living(&bed).await, ["a", "b"], "nothing is deleted");
    let found = counts(&bed, "c", 2, 1).await;
    let says = says(&found, condition::EXTERNAL_REMEDIATION_TEMPLATE);
    assert!(says.is_none_or(|(status, ..)| status == "True"));

    set_condition(&bed, "a", "Terminating", "False").await;
    let gone = || async { requests.get_opt("a").await.unwrap().is_none().then_some(()) };
    bed.until("the request is withdrawn", gone).await;
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_asked_before_a_restart_is_withdrawn_after_it() {
    let bed = Bed::start().await;
    let requests = kind(&bed, KIND).await;
    kind(&bed, &format!("{KIND}Template")).await;
    let owner = set(&bed, "s").await;
    machine(&bed, "a", Some(&owner)).await;
    for name in ["a", "of-nobody"] {
        let request = json!({
            "apiVersion": format!("{GROUP}/v1alpha3"), "kind": KIND, "metadata": {"name": name},
        });
        let params = PostParams::default();
        requests.create(&params, &serde_json::from_value(request).unwrap()).await.unwrap();
    }
    bed.create::<MachineHealthCheck>(with_template()).await;
    let process = bed.process(start);
    counts(&bed, "c", 1, 1).await;
    sleep(Duration::from_secs(2)).await;
    let left = requests.list(&ListParams::default()).await.unwrap();
    let names: Vec<String> = left.items.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["of-nobody"], "what is not about our Machines is not ours");
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn hosts_of_metal_are_annotated_unless_the_machine_failed() {
    let bed = Bed::start().await;
    let process = bed.process(start);
    let owner = set(&bed, "s").await;
    for name in ["a", "failed"] {
        machine(&bed, name, Some(&owner)).await;
    }
    bed.merge_status::<Machine>("failed", json!({"status": {"phase": "Failed"}})).await;
    set_condition(&bed, "a", "Terminating", "True").await;
    let mut metal = check("c", "100%");
    metal["metadata"]["annotations"] =
        json!({"machine.openshift.io/remediation-strategy": "external-baremetal"});
    bed.create::<MachineHealthCheck>(metal).await;
    sleep(Duration::from_secs(5)).await;
    assert_eq!(living(&bed).await, ["a"]);
    let machine = bed.api::<Machine>().get("a").await.unwrap();
    assert_eq!(machine.annotations()["host.metal3.io/external-remediation"], "");
    process.stop().await;
}
