//! The Node authorizer: decides by what a node's pods need.

use std::sync::Arc;

use super::{
    node_name,
    relations::{Related, is_related},
};
use crate::{
    auth::{
        Attributes, Decision, ObjectSource,
        rbac::{PolicyRule, bootstrap},
    },
    object,
    selector::FieldSelector,
};

/// Where nodes keep the leases that show that they live.
pub const LEASE_NAMESPACE: &str = "kube-node-lease";
/// The role whose rules are the same for all nodes.
const ROLE: &str = "system:node";
const READS: &[&str] = &["get", "list", "watch"];

/// Decides what nodes may do.
pub struct NodeAuthorizer {
    source: Arc<dyn ObjectSource>,
    rules: Vec<PolicyRule>,
}

impl NodeAuthorizer {
    /// An authorizer for nodes whose pods are in `source`.
    pub fn new(source: Arc<dyn ObjectSource>) -> Self {
        let policy = bootstrap::policy();
        let role = policy.iter().find(|policy| {
            policy.resource == crate::auth::rbac::CLUSTER_ROLES
                && object::name(&policy.object) == ROLE
        });
        let rules = role.map(|role| PolicyRule::parse_all(&role.object)).unwrap_or_default();
        Self { source, rules }
    }

    /// Decides one question. Nobody but nodes is known here.
    pub fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        let Some(node) = node_name(attributes.user) else { return Decision::no_opinion("") };
        if node.is_empty() {
            let user = fleetwright_kschema::gotext::quote(&attributes.user.name);
            return Decision::no_opinion(format!("unknown node for user {user}"));
        }
        let question = Question { attributes, node, source: &*self.source };
        let decided = if attributes.is_resource { question.about_resource() } else { None };
        match decided {
            Some(Ok(())) => Decision::allow(""),
            Some(Err(why)) => Decision::no_opinion(why),
            None if self.rules.iter().any(|rule| rule.allows(attributes)) => Decision::allow(""),
            None => Decision::no_opinion(""),
        }
    }
}

/// Yes, or why not.
type Answer = Result<(), String>;

struct Question<'a> {
    attributes: &'a Attributes<'a>,
    node: &'a str,
    source: &'a dyn ObjectSource,
}

impl Question<'_> {
    /// What is decided for each node by itself.
    fn about_resource(&self) -> Option<Answer> {
        let asked = self.attributes;
        Some(match (asked.group, asked.resource) {
            ("", "secrets") => self.read(Related::Secret),
            ("", "configmaps") => self.read(Related::ConfigMap),
            ("", "persistentvolumeclaims") if asked.subresource == "status" => {
                if matches!(asked.verb, "update" | "patch") {
                    self.related(Related::VolumeClaim)
                } else {
                    no("can only get/update/patch this type")
                }
            }
            ("", "persistentvolumeclaims") => self.get(Related::VolumeClaim),
            ("", "persistentvolumes") => self.get(Related::Volume),
            ("resource.k8s.io", "resourceclaims") => self.get(Related::ResourceClaim),
            ("storage.k8s.io", "volumeattachments") => self.get(Related::VolumeAttachment),
            ("", "serviceaccounts") => self.service_account(),
            ("coordination.k8s.io", "leases") => self.lease(),
            ("storage.k8s.io", "csinodes") => self.csi_node(),
            ("resource.k8s.io", "resourceslices") => self.resource_slice(),
            ("", "nodes") => self.own_node(),
            ("", "pods") => self.pod(),
            _ => return None,
        })
    }

    fn get(&self, what: Related) -> Answer {
        if self.attributes.verb != "get" {
            return no("can only get individual resources of this type");
        }
        if !self.attributes.subresource.is_empty() {
            return no("cannot get subresource");
        }
        self.related(what)
    }

    fn read(&self, what: Related) -> Answer {
        if !READS.contains(&self.attributes.verb) {
            return no("can only read resources of this type");
        }
        if !self.attributes.subresource.is_empty() {
            return no("cannot read subresource");
        }
        if self.attributes.namespace.is_empty() {
            return no("can only read namespaced object of this type");
        }
        self.related(what)
    }

    fn related(&self, what: Related) -> Answer {
        let asked = self.attributes;
        if asked.name.is_empty() {
            return no("No Object name found");
        }
        if is_related(self.source, self.node, what, asked.namespace, asked.name) {
            return Ok(());
        }
        Err(format!("no relationship found between node '{}' and this object", self.node))
    }

    fn service_account(&self) -> Answer {
        let asked = self.attributes;
        if asked.verb == "get" && asked.subresource.is_empty() {
            return self.read(Related::ServiceAccount);
        }
        if asked.verb != "create" || asked.name.is_empty() {
            return no("can only create tokens for individual service accounts");
        }
        if asked.subresource != "token" {
            return no("can only create token subresource of serviceaccount");
        }
        self.related(Related::ServiceAccount)
    }

    fn lease(&self) -> Answer {
        let asked = self.attributes;
        if !matches!(asked.verb, "get" | "create" | "update" | "patch" | "delete") {
            return no("can only get, create, update, patch, or delete a node lease");
        }
        if asked.namespace != LEASE_NAMESPACE {
            return Err(format!(
                "can only access leases in the \"{LEASE_NAMESPACE}\" system namespace"
            ));
        }
        // What is created has no name yet here; the restriction looks at it.
        if asked.verb != "create" && asked.name != self.node {
            return no("can only access node lease with the same name as the requesting node");
        }
        Ok(())
    }

    fn csi_node(&self) -> Answer {
        let asked = self.attributes;
        match asked.subresource {
            "" => {}
            "status" => return no("CSINode status access requires CSIVolumeHealth feature"),
            _ => return no("cannot authorize CSINode subresources"),
        }
        if !matches!(asked.verb, "get" | "create" | "update" | "patch" | "delete") {
            return no("can only get, create, update, patch, or delete a CSINode");
        }
        if asked.verb != "create" && asked.name != self.node {
            return no("can only access CSINode with the same name as the requesting node");
        }
        Ok(())
    }

    fn resource_slice(&self) -> Answer {
        if !self.attributes.subresource.is_empty() {
            return no("cannot authorize ResourceSlice subresources");
        }
        match self.attributes.verb {
            "create" => Ok(()),
            "get" | "update" | "patch" | "delete" => self.related(Related::ResourceSlice),
            "watch" | "list" | "deletecollection" if self.selects("spec.nodeName") => Ok(()),
            "watch" | "list" | "deletecollection" => no(
                "can only list/watch/deletecollection resourceslices with nodeName field selector",
            ),
            _ => no(
                "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection",
            ),
        }
    }

    fn own_node(&self) -> Answer {
        let (node, asked) = (self.node, self.attributes);
        match (asked.subresource, asked.verb) {
            ("", "create" | "update" | "patch") | ("status", "update" | "patch") => Ok(()),
            ("", "get" | "list" | "watch") => match asked.name {
                name if name == node => Ok(()),
                "" => Err(format!("node '{node}' cannot read all nodes, only its own Node object")),
                other => {
                    Err(format!("node '{node}' cannot read '{other}', only its own Node object"))
                }
            },
            _ => no(""),
        }
    }

    fn pod(&self) -> Answer {
        let asked = self.attributes;
        match (asked.subresource, asked.verb) {
            ("", "get") => self.get(Related::Pod),
            ("", "list" | "watch") if self.selects("spec.nodeName") => Ok(()),
            ("", "list" | "watch") if !asked.name.is_empty() => self.related(Related::Pod),
            ("", "list" | "watch") => {
                no("can only list/watch pods with spec.nodeName field selector")
            }
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => {
                Ok(())
            }
            _ => no(""),
        }
    }

    /// Whether only objects of this node are asked for.
    fn selects(&self, field: &str) -> bool {
        FieldSelector::parse(self.attributes.field_selector)
            .is_ok_and(|selector| selector.exact(field) == Some(self.node))
    }
}

fn no(why: &str) -> Answer {
    Err(why.to_owned())
}
