//! The policy that every cluster starts with.
//!
//! The roles are the ones that kube-apiserver 1.37 creates, written in a form of our own that
//! fits a role on a few lines (`*.policy`, read by [`notation`]). At each start the server
//! creates what is missing and adds permissions that roles lack ([`reconcile`]), so that a new
//! version's roles reach old clusters; a role annotated with
//! `rbac.authorization.kubernetes.io/autoupdate: "false"` is left alone.

mod notation;
mod reconcile;

use serde_json::Value;

pub use reconcile::{Step, reconcile};

/// A role or binding of the initial policy.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyObject {
    /// The resource with its group, as an [`ObjectSource`](crate::auth::ObjectSource) names it.
    pub resource: &'static str,
    /// The object.
    pub object: Value,
}

const POLICIES: [&str; 3] = [
    include_str!("cluster.policy"),
    include_str!("controllers.policy"),
    include_str!("namespaces.policy"),
];

/// The roles and bindings of a new cluster. Those in a namespace need `kube-system` and
/// `kube-public` to exist.
pub fn policy() -> Vec<PolicyObject> {
    POLICIES.iter().flat_map(|text| notation::read(text)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{
        auth::rbac::{
            CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, PolicyRule, ROLE_BINDINGS, ROLES, aggregate,
        },
        object,
    };

    fn named<'a>(objects: &'a [PolicyObject], resource: &str, name: &str) -> &'a Value {
        &objects
            .iter()
            .find(|o| o.resource == resource && object::name(&o.object) == name)
            .unwrap()
            .object
    }

    #[test]
    fn all_roles_and_bindings_are_there() {
        let objects = policy();
        let count = |resource| objects.iter().filter(|o| o.resource == resource).count();
        assert_eq!(count(CLUSTER_ROLES), 73);
        assert_eq!(count(CLUSTER_ROLE_BINDINGS), 54);
        assert_eq!(count(ROLES), 7);
        assert_eq!(count(ROLE_BINDINGS), 7);
        let distinct: BTreeSet<_> = objects
            .iter()
            .map(|o| (o.resource, object::namespace(&o.object), object::name(&o.object)))
            .collect();
        assert_eq!(distinct.len(), objects.len());
    }

    #[test]
    fn objects_look_like_upstream() {
        let objects = policy();
        let expected = serde_json::json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {
                "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
                "labels": {
                    "kubernetes.io/bootstrapping": "rbac-defaults",
                    "rbac.authorization.k8s.io/aggregate-to-admin": "true",
                },
                "name": "edit",
            },
            "aggregationRule": {"clusterRoleSelectors": [
                {"matchLabels": {"rbac.authorization.k8s.io/aggregate-to-edit": "true"}},
            ]},
            "rules": null,
        });
        assert_eq!(named(&objects, CLUSTER_ROLES, "edit"), &expected);
        let binding = named(&objects, CLUSTER_ROLE_BINDINGS, "system:kube-dns");
        assert_eq!(
            binding["subjects"],
            serde_json::json!([{"kind": "ServiceAccount", "namespace": "kube-system", "name": "kube-dns"}])
        );
        assert_eq!(named(&objects, CLUSTER_ROLE_BINDINGS, "system:node").get("subjects"), None);
    }

    #[test]
    fn view_gathers_what_readers_need() {
        let objects = policy();
        let roles: Vec<&Value> =
            objects.iter().filter(|o| o.resource == CLUSTER_ROLES).map(|o| &o.object).collect();
        let view = named(&objects, CLUSTER_ROLES, "view");
        let rules = aggregate::rules(view, roles.iter().copied()).unwrap();
        assert!(rules.iter().any(|rule: &PolicyRule| rule.resources.contains(&"pods".to_owned())));
        assert!(rules.iter().all(|rule| rule.verbs == ["get", "list", "watch"]));
    }
}
