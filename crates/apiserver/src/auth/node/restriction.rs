//! NodeRestriction: a node changes its own objects only, and nothing that would let it draw
//! workloads or secrets to itself.

use std::collections::BTreeSet;

use fleetwright_kschema::gotext::quote;
use serde_json::Value;

use super::{
    authorizer::LEASE_NAMESPACE,
    node_name,
    relations::{MIRROR, config_maps, node_of, secrets, volume_claim},
};
use crate::{
    auth::{
        Attributes, Authorizer, ObjectSource,
        source::{NODES, PODS},
    },
    gvk::GroupResource,
    object,
    request::Operation,
    status::ApiError,
    user::UserInfo,
};

/// Labels of Kubernetes that a node may set on itself.
const OWN_LABELS: &[&str] = &[
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
];
/// Label prefixes of Kubernetes that belong to nodes.
const OWN_PREFIXES: &[&str] = &["kubelet.kubernetes.io", "node.kubernetes.io"];
/// The label prefix that is kept from nodes.
const RESTRICTED_PREFIX: &str = "node-restriction.kubernetes.io";

/// A write that is about to happen.
pub struct Change<'a> {
    /// Who writes.
    pub user: &'a UserInfo,
    /// How.
    pub operation: Operation,
    /// The group and resource.
    pub resource: &'a GroupResource,
    /// The subresource, or empty.
    pub subresource: &'a str,
    /// The namespace.
    pub namespace: &'a str,
    /// The name in the path, or of the new object.
    pub name: &'a str,
    /// What is written; not for deletions.
    pub object: Option<&'a Value>,
    /// What was there.
    pub old: Option<&'a Value>,
}

/// Refuses what a node may not write. Others are not restricted.
pub fn check(
    change: &Change<'_>,
    source: &dyn ObjectSource,
    authorizer: &dyn Authorizer,
) -> Result<(), ApiError> {
    let Some(node) = node_name(change.user) else { return Ok(()) };
    let restriction = Restriction { change, node, source, authorizer };
    if node.is_empty() {
        let user = quote(&change.user.name);
        return restriction.refuse(&format!("could not determine node from user {user}"));
    }
    restriction.check()
}

struct Restriction<'a> {
    change: &'a Change<'a>,
    node: &'a str,
    source: &'a dyn ObjectSource,
    authorizer: &'a dyn Authorizer,
}

type Verdict = Result<(), ApiError>;

impl<'a> Restriction<'a> {
    fn check(&self) -> Verdict {
        let change = self.change;
        match (&*change.resource.group, &*change.resource.resource, change.subresource) {
            ("", "pods", "") => self.pod(),
            ("", "pods", "status") => self.pod_status(),
            ("", "pods", "eviction") => self.eviction(),
            ("", "pods", other) => self.refuse(&format!(
                "unexpected pod subresource {}, only 'status' and 'eviction' are allowed",
                quote(other)
            )),
            ("", "nodes", _) => self.own_node(),
            ("", "persistentvolumeclaims", "status") => self.claim_status(),
            ("", "persistentvolumeclaims", _) => self.refuse("may only update PVC status"),
            ("", "serviceaccounts", "token") if change.operation == Operation::Create => {
                self.token()
            }
            ("coordination.k8s.io", "leases", _) => self.lease(),
            ("storage.k8s.io", "csinodes", _) => self.csi_node(),
            ("resource.k8s.io", "resourceslices", _) => self.resource_slice(),
            _ => Ok(()),
        }
    }

    fn refuse(&self, why: &str) -> Verdict {
        let generated = self.new_text(&["metadata", "generateName"]);
        let name = [self.change.name, generated, "Unknown"].into_iter().find(|n| !n.is_empty());
        Err(ApiError::forbidden(self.change.resource, name.unwrap_or_default(), why))
    }

    fn new_text(&self, path: &[&str]) -> &'a str {
        self.change.object.map(|object| object::text(object, path)).unwrap_or_default()
    }

    fn new_value(&self, path: &[&str]) -> &'a Value {
        self.change.object.and_then(|object| object::get(object, path)).unwrap_or(&Value::Null)
    }

    fn old_value(&self, path: &[&str]) -> &'a Value {
        self.change.old.and_then(|object| object::get(object, path)).unwrap_or(&Value::Null)
    }

    /// Whether a list, a map or a struct is the same as before; an empty one is as good as none.
    fn is_unchanged(&self, path: &[&str]) -> bool {
        let full = |value: &'a Value| Some(value).filter(|value| !is_empty(value));
        full(self.new_value(path)) == full(self.old_value(path))
    }

    fn stored_pod(&self, name: &str) -> Result<std::sync::Arc<Value>, ApiError> {
        let found = self.source.get(PODS, Some(self.change.namespace), name);
        found.ok_or_else(|| not_found("pod", name))
    }

    fn pod(&self) -> Verdict {
        let (node, change) = (quote(self.node), self.change);
        match change.operation {
            Operation::Create => self.new_pod(&node),
            Operation::Delete => {
                let runs_here = change.old.is_some_and(|pod| node_of(pod) == self.node);
                if runs_here {
                    return Ok(());
                }
                self.refuse(&format!(
                    "node {node} can only delete pods with spec.nodeName set to itself"
                ))
            }
            Operation::Update => self.refuse(&format!(
                "unexpected operation \"UPDATE\", node {node} can only create and delete mirror pods"
            )),
        }
    }

    /// A pod that a kubelet shows for one of its own.
    fn new_pod(&self, node: &str) -> Verdict {
        if self.new_value(&["metadata", "annotations", MIRROR]).is_null() {
            return self.refuse(&format!(
                "pod does not have {} annotation, node {node} can only create mirror pods",
                quote(MIRROR)
            ));
        }
        if self.new_text(&["spec", "nodeName"]) != self.node {
            return self.refuse(&format!(
                "node {node} can only create pods with spec.nodeName set to itself"
            ));
        }
        let owners = self.new_value(&["metadata", "ownerReferences"]).as_array();
        let owner = match owners.map(Vec::as_slice).unwrap_or_default() {
            [] => {
                return self.refuse(&format!(
                    "node {node} can only create pods with an owner reference set to itself"
                ));
            }
            [one] => one,
            _ => {
                return self.refuse(&format!(
                    "node {node} can only create pods with a single owner reference set to itself"
                ));
            }
        };
        let text = |key| object::text(owner, &[key]);
        if (text("apiVersion"), text("kind"), text("name")) != ("v1", "Node", self.node) {
            return self.refuse(&format!(
                "node {node} can only create pods with an owner reference set to itself"
            ));
        }
        if owner.get("controller") != Some(&Value::Bool(true)) {
            return self.refuse(&format!(
                "node {node} can only create pods with a controller owner reference set to itself"
            ));
        }
        if owner.get("blockOwnerDeletion") == Some(&Value::Bool(true)) {
            return self.refuse(&format!(
                "node {node} must not set blockOwnerDeletion on an owner reference"
            ));
        }
        let own = self.source.get(NODES, None, self.node);
        let own = own.ok_or_else(|| not_found("node", self.node))?;
        if text("uid") != object::uid(&own) {
            return self.refuse(&format!(
                "node {} UID mismatch: expected {} got {}",
                self.node,
                text("uid"),
                object::uid(&own)
            ));
        }
        match self.change.object.and_then(reference) {
            Some(what) => {
                self.refuse(&format!("node {node} can not create pods that reference {what}"))
            }
            None => Ok(()),
        }
    }

    fn pod_status(&self) -> Verdict {
        let node = quote(self.node);
        if self.change.operation != Operation::Update {
            return self.refuse(&format!("unexpected operation {}", self.operation()));
        }
        if self.change.old.is_none_or(|pod| node_of(pod) != self.node) {
            return self.refuse(&format!(
                "node {node} can only update pod status for pods with spec.nodeName set to itself"
            ));
        }
        for (path, what) in [
            (&["metadata", "labels"][..], "labels through pod status"),
            (&["status", "resourceClaimStatuses"], "resource claim statues"),
            (&["status", "extendedResourceClaimStatus"], "extended resource claim status"),
            (
                &["status", "nodeAllocatableResourceClaimStatuses"],
                "node allocatable resource claim statuses",
            ),
        ] {
            if !self.is_unchanged(path) {
                return self.refuse(&format!("node {node} cannot update {what}"));
            }
        }
        Ok(())
    }

    fn eviction(&self) -> Verdict {
        if node_of(&*self.stored_pod(self.change.name)?) == self.node {
            return Ok(());
        }
        self.refuse(&format!(
            "node {} can only evict pods with spec.nodeName set to itself",
            self.node
        ))
    }

    fn own_node(&self) -> Verdict {
        let (node, change) = (quote(self.node), self.change);
        if change.name != self.node {
            return self.refuse(&format!(
                "node {node} is not allowed to modify node {}",
                quote(change.name)
            ));
        }
        let source = self.new_value(&["spec", "configSource"]);
        match change.operation {
            Operation::Create => {
                if !source.is_null() {
                    return self.refuse(&format!(
                        "node {node} is not allowed to create pods with a non-nil configSource"
                    ));
                }
                let labels = self.forbidden_labels();
                if !labels.is_empty() {
                    return self.refuse(&format!(
                        "node {node} is not allowed to set the following labels: {labels}"
                    ));
                }
            }
            Operation::Update => {
                if !source.is_null() && !self.is_unchanged(&["spec", "configSource"]) {
                    return self.refuse(&format!(
                        "node {node} is not allowed to update configSource to a new non-nil configSource"
                    ));
                }
                for (path, what) in [
                    (["spec", "taints"], "taints"),
                    (["metadata", "ownerReferences"], "ownerReferences"),
                ] {
                    if !self.is_unchanged(&path) {
                        return self
                            .refuse(&format!("node {node} is not allowed to modify {what}"));
                    }
                }
                let labels = self.forbidden_labels();
                if !labels.is_empty() {
                    return self.refuse(&format!("is not allowed to modify labels: {labels}"));
                }
            }
            Operation::Delete => {}
        }
        Ok(())
    }

    /// The changed labels that are none of a node's business.
    fn forbidden_labels(&self) -> String {
        let path = ["metadata", "labels"];
        let (new, old) = (self.new_value(&path), self.old_value(&path));
        let keys: BTreeSet<&String> = [new, old]
            .into_iter()
            .filter_map(Value::as_object)
            .flat_map(|labels| labels.keys())
            .filter(|key| new.get(key) != old.get(key) && is_forbidden(key))
            .collect();
        keys.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ")
    }

    fn claim_status(&self) -> Verdict {
        if self.change.operation != Operation::Update {
            return self.refuse(&format!("unexpected operation {}", self.operation()));
        }
        let rest = |claim: Option<&Value>| {
            let mut rest = claim.cloned().unwrap_or_default();
            for path in [
                ["metadata", "resourceVersion"],
                ["metadata", "managedFields"],
                ["status", "capacity"],
                ["status", "conditions"],
                ["status", "allocatedResourceStatuses"],
                ["status", "allocatedResources"],
            ] {
                object::remove(&mut rest, &path);
            }
            rest
        };
        if rest(self.change.object) == rest(self.change.old) {
            return Ok(());
        }
        self.refuse(&format!(
            "node {} is not allowed to update fields other than status.quantity and status.conditions",
            quote(self.node)
        ))
    }

    fn token(&self) -> Verdict {
        let reference = self.new_value(&["spec", "boundObjectRef"]);
        let text = |key| object::text(reference, &[key]);
        if (text("apiVersion"), text("kind")) != ("v1", "Pod") || text("name").is_empty() {
            return self.refuse("node requested token not bound to a pod");
        }
        if text("uid").is_empty() {
            return self.refuse("node requested token with a pod binding without a uid");
        }
        let pod = self.stored_pod(text("name"))?;
        if text("uid") != object::uid(&pod) {
            return self.refuse(&format!(
                "the UID in the bound object reference ({}) does not match the UID in record. The object might have been deleted and then recreated",
                text("uid")
            ));
        }
        if node_of(&pod) != self.node {
            return self
                .refuse("node requested token bound to a pod scheduled on a different node");
        }
        self.audience(&pod)
    }

    /// A node asks for tokens that its pod mounts, or that it was given the right to ask for.
    fn audience(&self, pod: &Value) -> Verdict {
        let audiences = self.new_value(&["spec", "audiences"]).as_array();
        let audience = match audiences.map(Vec::as_slice).unwrap_or_default() {
            [] => "",
            [one] => one.as_str().unwrap_or_default(),
            _ => return self.refuse("node may only request 0 or 1 audiences"),
        };
        let quoted = quote(audience);
        match self.mounts(pod, audience) {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(why) => {
                return self.refuse(&format!("error validating audience {quoted}: {why}"));
            }
        }
        let user = self.change.user;
        let allowed = self.authorizer.authorize(&Attributes {
            version: "v1",
            namespace: self.change.namespace,
            ..Attributes::of_resource(
                user,
                "request-serviceaccounts-token-audience",
                "",
                audience,
                self.change.name,
            )
        });
        if allowed.is_allowed() {
            return Ok(());
        }
        self.refuse(&format!(
            "{} is not authorized to request tokens for audience {quoted}",
            user.name
        ))
    }

    /// Whether a volume of the pod needs a token for the audience.
    fn mounts(&self, pod: &Value, audience: &str) -> Result<bool, String> {
        let mut errors = Vec::new();
        for volume in object::list(pod, &["spec", "volumes"]) {
            let projected = object::list(volume, &["projected", "sources"]);
            if projected.iter().any(|source| {
                source
                    .get("serviceAccountToken")
                    .is_some_and(|token| object::text(token, &["audience"]) == audience)
            }) {
                return Ok(true);
            }
            match self.driver_wants(pod, volume, audience) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(why) => errors.push(why),
            }
        }
        match errors.as_slice() {
            [] => Ok(false),
            [one] => Err(one.clone()),
            several => Err(format!("[{}]", several.join(", "))),
        }
    }

    fn driver_wants(&self, pod: &Value, volume: &Value, audience: &str) -> Result<bool, String> {
        let get = |resource: &str, kind: &str, namespace, name: &str| {
            let found = self.source.get(resource, namespace, name);
            found.ok_or_else(|| not_found(kind, name).message().to_owned())
        };
        let driver = if let Some(name) = volume_claim(pod, volume) {
            let namespace = Some(self.change.namespace);
            let claim = get("/persistentvolumeclaims", "persistentvolumeclaim", namespace, &name)?;
            let name = object::text(&claim, &["spec", "volumeName"]);
            let volume = get("/persistentvolumes", "persistentvolume", None, name)?;
            object::text(&volume, &["spec", "csi", "driver"]).to_owned()
        } else {
            object::text(volume, &["csi", "driver"]).to_owned()
        };
        if driver.is_empty() {
            return Ok(false);
        }
        let driver = get("storage.k8s.io/csidrivers", "csidriver.storage.k8s.io", None, &driver)?;
        let requests = object::list(&driver, &["spec", "tokenRequests"]);
        Ok(requests.iter().any(|request| object::text(request, &["audience"]) == audience))
    }

    fn lease(&self) -> Verdict {
        if self.change.namespace != LEASE_NAMESPACE {
            return self.refuse(&format!(
                "can only access leases in the {} system namespace",
                quote(LEASE_NAMESPACE)
            ));
        }
        self.same_name("node lease")
    }

    fn csi_node(&self) -> Verdict {
        self.same_name("CSINode")?;
        if self.change.subresource == "status" {
            return self.refuse("CSIVolumeHealth feature gate is disabled");
        }
        Ok(())
    }

    fn same_name(&self, what: &str) -> Verdict {
        if self.change.name == self.node {
            return Ok(());
        }
        self.refuse(&format!("can only access {what} with the same name as the requesting node"))
    }

    fn resource_slice(&self) -> Verdict {
        let (path, verb) = (["spec", "nodeName"], &self.change.operation);
        let (named, verb) = match verb {
            Operation::Create => (self.new_value(&path), "create"),
            Operation::Delete => (self.old_value(&path), "delete"),
            Operation::Update => return Ok(()),
        };
        if named.as_str() == Some(self.node) {
            return Ok(());
        }
        self.refuse(&format!(
            "can only {verb} ResourceSlice with the same NodeName as the requesting node"
        ))
    }

    fn operation(&self) -> &'static str {
        match self.change.operation {
            Operation::Create => "\"CREATE\"",
            Operation::Update => "\"UPDATE\"",
            Operation::Delete => "\"DELETE\"",
        }
    }
}

/// What the cache of a server says when something is not in it.
fn not_found(kind: &str, name: &str) -> ApiError {
    ApiError::not_found(&GroupResource::new("", kind), name)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// Whether a label would let a node choose its workloads.
fn is_forbidden(key: &str) -> bool {
    let prefix = key.split_once('/').map_or("", |(prefix, _)| prefix);
    let within = |parent: &str| {
        prefix.strip_suffix(parent).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let of_kubernetes = within("kubernetes.io") || within("k8s.io");
    let own = OWN_LABELS.contains(&key) || OWN_PREFIXES.iter().any(|own| within(own));
    within(RESTRICTED_PREFIX) || (of_kubernetes && !own)
}

/// The first kind of object that a pod refers to.
fn reference(pod: &Value) -> Option<String> {
    let found = |what: &str| Some(what.to_owned());
    if !object::text(pod, &["spec", "serviceAccountName"]).is_empty() {
        return found("serviceaccounts");
    }
    if !secrets(pod).is_empty() {
        return found("secrets");
    }
    if !config_maps(pod).is_empty() {
        return found("configmaps");
    }
    if !object::list(pod, &["spec", "resourceClaims"]).is_empty() {
        return found("resourceclaims");
    }
    object::list(pod, &["spec", "volumes"]).iter().find_map(|volume| {
        let through = [
            ("configMap", "configmaps (via configmap volumes)"),
            ("secret", "secrets (via secret volumes)"),
            ("csi", "csidrivers (via CSI volumes)"),
            ("glusterfs", "endpoints (via glusterFS volumes)"),
            ("persistentVolumeClaim", "persistentvolumeclaims"),
            ("ephemeral", "persistentvolumeclaims (via ephemeral volumes)"),
            ("azureFile", "secrets (via azureFile volumes)"),
        ];
        let direct = through.iter().find(|(key, _)| volume.get(key).is_some());
        if let Some((_, what)) = direct {
            return found(what);
        }
        object::list(volume, &["projected", "sources"]).iter().find_map(|source| {
            let through = [
                ("configMap", "configmaps (via projected volumes)"),
                ("secret", "secrets (via projected volumes)"),
                ("serviceAccountToken", "serviceaccounts (via projected volumes)"),
                ("clusterTrustBundle", "clustertrustbundles"),
                ("podCertificate", "podcertificates"),
            ];
            let part = through.iter().find(|(key, _)| source.get(key).is_some());
            part.and_then(|(_, what)| found(what))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_kubernetes_are_forbidden_unless_they_are_a_nodes_own() {
        for (key, forbidden) in [
            ("app", false),
            ("example.com/team", false),
            ("kubernetes.io/hostname", false),
            ("topology.kubernetes.io/zone", false),
            ("kubelet.kubernetes.io/x", false),
            ("my.node.kubernetes.io/x", false),
            ("node-role.kubernetes.io/master", true),
            ("node-restriction.kubernetes.io/x", true),
            ("a.node-restriction.kubernetes.io/x", true),
            ("kubernetes.io/x", true),
            ("k8s.io/x", true),
            ("notkubernetes.io/x", false),
            ("kubernetes.io", false),
        ] {
            assert_eq!(is_forbidden(key), forbidden, "{key}");
        }
    }
}
