//! Which objects have to do with a node: those that its pods refer to.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::Value;

use crate::{
    auth::{ObjectSource, source::PODS},
    object,
};

/// Marks the pods that a kubelet makes of files on its disk.
pub const MIRROR: &str = "kubernetes.io/config.mirror";
const PERSISTENT_VOLUMES: &str = "/persistentvolumes";
const VOLUME_ATTACHMENTS: &str = "storage.k8s.io/volumeattachments";
const RESOURCE_SLICES: &str = "resource.k8s.io/resourceslices";

/// Sources of volumes that name a secret with `secretRef`.
const WITH_SECRET: &[&str] =
    &["cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"];

/// What a node may be related to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Related {
    /// A pod that runs there.
    Pod,
    /// A secret that a pod, or a volume of it, uses.
    Secret,
    /// A config map that a pod uses.
    ConfigMap,
    /// The account of a pod.
    ServiceAccount,
    /// A claim for a volume of a pod.
    VolumeClaim,
    /// A volume that is bound to such a claim.
    Volume,
    /// A claim of a pod for a device.
    ResourceClaim,
    /// An attachment of a volume to the node.
    VolumeAttachment,
    /// A list of devices of the node.
    ResourceSlice,
}

/// Whether an object has to do with a node.
pub fn is_related(
    source: &dyn ObjectSource,
    node: &str,
    what: Related,
    namespace: &str,
    name: &str,
) -> bool {
    let get = |resource: &str, namespace| source.get(resource, namespace, name);
    match what {
        Related::Pod => get(PODS, Some(namespace)).is_some_and(|pod| node_of(&pod) == node),
        Related::VolumeAttachment => get(VOLUME_ATTACHMENTS, None)
            .is_some_and(|found| object::text(&found, &["spec", "nodeName"]) == node),
        Related::ResourceSlice => get(RESOURCE_SLICES, None)
            .is_some_and(|found| object::text(&found, &["spec", "nodeName"]) == node),
        Related::Volume => {
            get(PERSISTENT_VOLUMES, None).is_some_and(|volume| uses_volume(source, node, &volume))
        }
        Related::Secret => {
            uses(source, node, what, namespace, name)
                || source.list(PERSISTENT_VOLUMES, None).iter().any(|volume| {
                    volume_secrets(volume).contains(&(namespace, name))
                        && uses_volume(source, node, volume)
                })
        }
        _ => uses(source, node, what, namespace, name),
    }
}

/// Whether a volume is bound to a claim of a pod on the node.
fn uses_volume(source: &dyn ObjectSource, node: &str, volume: &Value) -> bool {
    let claim = |key| object::text(volume, &["spec", "claimRef", key]);
    uses(source, node, Related::VolumeClaim, claim("namespace"), claim("name"))
}

/// Whether a pod on the node refers to an object.
fn uses(source: &dyn ObjectSource, node: &str, what: Related, namespace: &str, name: &str) -> bool {
    let pods: Vec<Arc<Value>> = source.pods_of_node(node, namespace);
    pods.iter().any(|pod| {
        // What a node makes up itself gives it no access.
        object::get(pod, &["metadata", "annotations", MIRROR]).is_none()
            && match what {
                Related::Secret => secrets(pod).contains(name),
                Related::ConfigMap => config_maps(pod).contains(name),
                Related::ServiceAccount => {
                    object::text(pod, &["spec", "serviceAccountName"]) == name
                }
                Related::VolumeClaim => volume_claims(pod).iter().any(|claim| claim == name),
                Related::ResourceClaim => resource_claims(pod).contains(name),
                _ => false,
            }
    })
}

/// The node of a pod, or empty.
pub fn node_of(pod: &Value) -> &str {
    object::text(pod, &["spec", "nodeName"])
}

fn volumes(pod: &Value) -> &[Value] {
    object::list(pod, &["spec", "volumes"])
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    ["containers", "initContainers", "ephemeralContainers"]
        .into_iter()
        .flat_map(|kind| object::list(pod, &["spec", kind]))
}

/// What the environments of a pod's containers refer to, as a whole or for one variable.
fn in_environments<'a>(
    pod: &'a Value,
    whole: &'static str,
    key: &'static str,
) -> impl Iterator<Item = &'a str> {
    containers(pod).flat_map(move |container| {
        let wholes = object::list(container, &["envFrom"])
            .iter()
            .map(move |from| object::text(from, &[whole, "name"]));
        let keys = object::list(container, &["env"])
            .iter()
            .map(move |variable| object::text(variable, &["valueFrom", key, "name"]));
        wholes.chain(keys)
    })
}

/// What the projected volumes of a pod refer to.
fn projected<'a>(pod: &'a Value, kind: &'static str) -> impl Iterator<Item = &'a str> {
    volumes(pod)
        .iter()
        .flat_map(|volume| object::list(volume, &["projected", "sources"]))
        .map(move |source| object::text(source, &[kind, "name"]))
}

/// The names of the secrets that a pod refers to.
pub fn secrets(pod: &Value) -> BTreeSet<&str> {
    let pulls = object::list(pod, &["spec", "imagePullSecrets"]);
    let of_volumes = volumes(pod).iter().flat_map(|volume| {
        let referred =
            WITH_SECRET.iter().map(|kind| object::text(volume, &[kind, "secretRef", "name"]));
        referred.chain([
            object::text(volume, &["secret", "secretName"]),
            object::text(volume, &["azureFile", "secretName"]),
            object::text(volume, &["csi", "nodePublishSecretRef", "name"]),
        ])
    });
    pulls
        .iter()
        .map(|reference| object::text(reference, &["name"]))
        .chain(in_environments(pod, "secretRef", "secretKeyRef"))
        .chain(projected(pod, "secret"))
        .chain(of_volumes)
        .filter(|name| !name.is_empty())
        .collect()
}

/// The names of the config maps that a pod refers to.
pub fn config_maps(pod: &Value) -> BTreeSet<&str> {
    in_environments(pod, "configMapRef", "configMapKeyRef")
        .chain(projected(pod, "configMap"))
        .chain(volumes(pod).iter().map(|volume| object::text(volume, &["configMap", "name"])))
        .filter(|name| !name.is_empty())
        .collect()
}

fn volume_claims(pod: &Value) -> Vec<String> {
    volumes(pod)
        .iter()
        .filter_map(|volume| volume_claim(pod, volume))
        .filter(|name| !name.is_empty())
        .collect()
}

/// The claim of a pod's volume; one that lives as long as the pod is named after both.
pub fn volume_claim(pod: &Value, volume: &Value) -> Option<String> {
    if volume.get("ephemeral").is_some() {
        return Some(format!("{}-{}", object::name(pod), object::text(volume, &["name"])));
    }
    volume.get("persistentVolumeClaim").map(|claim| object::text(claim, &["claimName"]).to_owned())
}

fn resource_claims(pod: &Value) -> BTreeSet<&str> {
    let named = object::list(pod, &["spec", "resourceClaims"])
        .iter()
        .map(|claim| object::text(claim, &["resourceClaimName"]));
    let made = object::list(pod, &["status", "resourceClaimStatuses"])
        .iter()
        .map(|claim| object::text(claim, &["resourceClaimName"]));
    let extended =
        object::text(pod, &["status", "extendedResourceClaimStatus", "resourceClaimName"]);
    named.chain(made).chain([extended]).filter(|name| !name.is_empty()).collect()
}

/// The secrets that a kubelet needs for a volume, with their namespaces.
fn volume_secrets(volume: &Value) -> Vec<(&str, &str)> {
    let claim_namespace = object::text(volume, &["spec", "claimRef", "namespace"]);
    let mut references: Vec<&Value> = WITH_SECRET
        .iter()
        .filter_map(|kind| object::get(volume, &["spec", kind, "secretRef"]))
        .collect();
    for key in ["nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef"] {
        references.extend(object::get(volume, &["spec", "csi", key]));
    }
    let azure = object::get(volume, &["spec", "azureFile"]).map(|azure| {
        (object::text(azure, &["secretNamespace"]), object::text(azure, &["secretName"]))
    });
    references
        .into_iter()
        .map(|reference| {
            (object::text(reference, &["namespace"]), object::text(reference, &["name"]))
        })
        .chain(azure)
        .map(|(namespace, name)| {
            (if namespace.is_empty() { claim_namespace } else { namespace }, name)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::auth::source::memory::MemorySource;

    fn source() -> MemorySource {
        let source = MemorySource::default();
        source.put(PODS, json!({
            "metadata": {"namespace": "ns", "name": "p"},
            "spec": {
                "nodeName": "n",
                "serviceAccountName": "robot",
                "imagePullSecrets": [{"name": "pull"}],
                "containers": [{"name": "c", "envFrom": [{"configMapRef": {"name": "whole"}}]}],
                "initContainers": [{"name": "i", "env": [{"valueFrom": {"secretKeyRef": {"name": "key"}}}]}],
                "resourceClaims": [{"name": "gpu", "resourceClaimName": "device"}],
                "volumes": [
                    {"name": "v1", "persistentVolumeClaim": {"claimName": "claim"}},
                    {"name": "v2", "ephemeral": {}},
                    {"name": "v3", "projected": {"sources": [{"secret": {"name": "part"}}, {"configMap": {"name": "piece"}}]}},
                ],
            },
        }));
        source.put(
            PODS,
            json!({
                "metadata": {"namespace": "ns", "name": "mirror", "annotations": {MIRROR: "x"}},
                "spec": {"nodeName": "m", "imagePullSecrets": [{"name": "pull"}]},
            }),
        );
        source.put(
            PERSISTENT_VOLUMES,
            json!({
                "metadata": {"name": "pv"},
                "spec": {
                    "claimRef": {"namespace": "ns", "name": "claim"},
                    "csi": {"nodeStageSecretRef": {"namespace": "vault", "name": "stage"}},
                },
            }),
        );
        source
    }

    #[test]
    fn a_node_is_related_to_what_its_pods_use() {
        let source = source();
        for (what, namespace, name) in [
            (Related::Pod, "ns", "p"),
            (Related::Secret, "ns", "pull"),
            (Related::Secret, "ns", "key"),
            (Related::Secret, "ns", "part"),
            (Related::Secret, "vault", "stage"),
            (Related::ConfigMap, "ns", "whole"),
            (Related::ConfigMap, "ns", "piece"),
            (Related::ServiceAccount, "ns", "robot"),
            (Related::VolumeClaim, "ns", "claim"),
            (Related::VolumeClaim, "ns", "p-v2"),
            (Related::Volume, "", "pv"),
            (Related::ResourceClaim, "ns", "device"),
        ] {
            assert!(is_related(&source, "n", what, namespace, name), "{what:?} {name}");
            assert!(!is_related(&source, "m", what, namespace, name), "{what:?} {name}");
            assert!(!is_related(&source, "n", what, "other", name) || what == Related::Volume);
        }
    }
}
