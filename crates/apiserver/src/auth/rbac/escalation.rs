//! Nobody hands out more than they have.
//!
//! Whoever writes a role must hold everything it allows, and whoever writes a binding must hold
//! everything its role allows, unless they may `escalate` or `bind`, or belong to
//! `system:masters`.

use std::sync::Arc;

use fleetwright_kschema::gotext::quote;
use serde_json::Value;

use super::{
    GROUP, PolicyRule, Rbac,
    covers::{compact, covers},
    policy::{RoleRef, Unresolved},
};
use crate::{
    auth::{Attributes, Authorizer, text::quoted_list},
    gvk::GroupResource,
    object,
    request::RequestInfo,
    status::ApiError,
    user::{MASTERS, UserInfo},
};

/// Checks a role or binding about to be written; `old` is what it replaces. Everything that is
/// not a role or a binding passes.
pub fn check(
    rbac: &Rbac,
    authorizer: &dyn Authorizer,
    user: &UserInfo,
    request: &RequestInfo,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    if request.group != GROUP || user.in_group(MASTERS) {
        return Ok(());
    }
    if old.is_some_and(|old| changes_only_bookkeeping(object, old)) {
        return Ok(());
    }
    let check = Check { rbac, authorizer, user, request, object };
    match request.resource.as_str() {
        "roles" => check.role(),
        "clusterroles" => check.cluster_role(old),
        "rolebindings" => check.binding(&request.namespace),
        "clusterrolebindings" => check.binding(""),
        _ => Ok(()),
    }
}

struct Check<'a> {
    rbac: &'a Rbac,
    authorizer: &'a dyn Authorizer,
    user: &'a UserInfo,
    request: &'a RequestInfo,
    object: &'a Value,
}

impl Check<'_> {
    fn role(&self) -> Result<(), ApiError> {
        if self.may_escalate() {
            return Ok(());
        }
        let rules: Vec<_> = PolicyRule::parse_all(self.object).into_iter().map(Arc::new).collect();
        self.holds(&rules).map_err(|why| self.forbidden(&why))
    }

    fn cluster_role(&self, old: Option<&Value>) -> Result<(), ApiError> {
        if self.may_escalate() {
            return Ok(());
        }
        self.role()?;
        // An aggregated role can gather anything.
        if aggregates(self.object) || old.is_some_and(aggregates) {
            self.holds(&PolicyRule::everything().map(Arc::new)).map_err(|_| {
                self.forbidden("must have cluster-admin privileges to use the aggregationRule")
            })?;
        }
        Ok(())
    }

    fn binding(&self, namespace: &str) -> Result<(), ApiError> {
        let role = RoleRef::of(self.object);
        if self.may_bind(&role, namespace) {
            return Ok(());
        }
        let rules = self.rbac.rules_of(&role, namespace).map_err(|error| match error {
            // Named after the request's resource, as the real server does.
            Unresolved::Missing { name, .. } => {
                ApiError::not_found(&GroupResource::new(GROUP, &self.request.resource), &name)
            }
            Unresolved::UnsupportedKind(_) => ApiError::internal(error),
        })?;
        self.holds(&rules).map_err(|why| self.forbidden(&why))
    }

    fn may_escalate(&self) -> bool {
        let request = self.request;
        self.authorizer
            .authorize(&Attributes {
                namespace: &request.namespace,
                ..Attributes::of_resource(
                    self.user,
                    "escalate",
                    GROUP,
                    &request.resource,
                    &request.name,
                )
            })
            .is_allowed()
    }

    fn may_bind(&self, role: &RoleRef, namespace: &str) -> bool {
        let resource = match role.kind.as_str() {
            "Role" => "roles",
            "ClusterRole" => "clusterroles",
            _ => return false,
        };
        self.authorizer
            .authorize(&Attributes {
                namespace,
                ..Attributes::of_resource(self.user, "bind", &role.group, resource, &role.name)
            })
            .is_allowed()
    }

    /// Whether the user holds the rules; if not, what they lack.
    fn holds(&self, rules: &[Arc<PolicyRule>]) -> Result<(), String> {
        let own = self.rbac.grants(self.user, &self.request.namespace);
        let own_rules: Vec<_> = own.grants.iter().flat_map(|grant| grant.rules.clone()).collect();
        let missing = covers(&own_rules, rules);
        if missing.is_empty() {
            return Ok(());
        }
        let mut descriptions: Vec<String> = compact(missing).iter().map(describe).collect();
        descriptions.sort();
        descriptions.dedup();
        let mut message = format!(
            "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            quote(&self.user.name),
            quoted_list(&self.user.groups),
            descriptions.join("\n")
        );
        if let Some(error) = own.error(|error| error.during_request_for(&self.request.resource)) {
            message.push_str("; resolution errors: [");
            message.push_str(&error);
            message.push(']');
        }
        Err(message)
    }

    fn forbidden(&self, why: &str) -> ApiError {
        ApiError::forbidden(
            &GroupResource::new(GROUP, &self.request.resource),
            object::name(self.object),
            why,
        )
    }
}

fn aggregates(role: &Value) -> bool {
    !object::list(role, &["aggregationRule", "clusterRoleSelectors"]).is_empty()
}

/// Whether an update touches only what garbage collection needs to delete the object.
fn changes_only_bookkeeping(new: &Value, old: &Value) -> bool {
    let strip = |value: &Value| {
        let mut value = value.clone();
        for key in ["ownerReferences", "finalizers", "selfLink", "managedFields"] {
            object::remove(&mut value, &["metadata", key]);
        }
        value
    };
    strip(new) == strip(old)
}

fn describe(rule: &PolicyRule) -> String {
    let parts: Vec<String> = [
        ("APIGroups", &rule.api_groups),
        ("Resources", &rule.resources),
        ("NonResourceURLs", &rule.non_resource_urls),
        ("ResourceNames", &rule.resource_names),
        ("Verbs", &rule.verbs),
    ]
    .into_iter()
    .filter(|(_, list)| !list.is_empty())
    .map(|(name, list)| format!("{name}:{}", quoted_list(list)))
    .collect();
    format!("{{{}}}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::auth::{
        ObjectSource, SuperuserThenRbac,
        rbac::{CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES},
        source::memory::MemorySource,
    };

    fn fixture() -> (Arc<MemorySource>, SuperuserThenRbac) {
        let source = Arc::new(MemorySource::default());
        source.put(
            CLUSTER_ROLES,
            json!({
                "metadata": {"name": "dev"},
                "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
            }),
        );
        source.put(
            CLUSTER_ROLE_BINDINGS,
            json!({
                "metadata": {"name": "dev"},
                "roleRef": {"kind": "ClusterRole", "name": "dev"},
                "subjects": [{"kind": "User", "name": "alice"}],
            }),
        );
        let rbac = Arc::new(Rbac::new(Arc::clone(&source) as Arc<dyn ObjectSource>));
        (source, SuperuserThenRbac::new(rbac))
    }

    fn request(resource: &str, namespace: &str) -> RequestInfo {
        RequestInfo {
            is_resource: true,
            verb: "create".into(),
            group: GROUP.into(),
            resource: resource.into(),
            namespace: namespace.into(),
            ..RequestInfo::default()
        }
    }

    fn run(
        authorizer: &SuperuserThenRbac,
        resource: &str,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<(), String> {
        let alice = UserInfo::new("alice", &["a", "b"]);
        check(authorizer.rbac(), authorizer, &alice, &request(resource, "ns"), object, old)
            .map_err(|error| format!("{} {}", error.code().as_u16(), error.message()))
    }

    fn role(verbs: &[&str]) -> Value {
        json!({
            "metadata": {"name": "r"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": verbs}],
        })
    }

    #[test]
    fn roles_beyond_ones_own_are_refused() {
        let (_, authorizer) = fixture();
        assert_eq!(run(&authorizer, "roles", &role(&["get"]), None), Ok(()));
        assert_eq!(
            run(&authorizer, "roles", &role(&["get", "list", "watch"]), None),
            Err("403 roles.rbac.authorization.k8s.io \"r\" is forbidden: user \"alice\" (groups=[\"a\" \"b\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"list\" \"watch\"]}".to_owned())
        );
        let mut aggregated = role(&["get"]);
        aggregated["aggregationRule"] = json!({"clusterRoleSelectors": [{}]});
        assert_eq!(
            run(&authorizer, "clusterroles", &aggregated, None),
            Err("403 clusterroles.rbac.authorization.k8s.io \"r\" is forbidden: must have cluster-admin privileges to use the aggregationRule".to_owned())
        );
    }

    #[test]
    fn what_cannot_be_resolved_is_told() {
        let (source, authorizer) = fixture();
        source.put(
            CLUSTER_ROLE_BINDINGS,
            json!({
                "metadata": {"name": "w2"},
                "roleRef": {"kind": "ClusterRole", "name": "missingone"},
                "subjects": [{"kind": "User", "name": "alice"}],
            }),
        );
        assert_eq!(
            run(&authorizer, "roles", &role(&["list"]), None),
            Err("403 roles.rbac.authorization.k8s.io \"r\" is forbidden: user \"alice\" (groups=[\"a\" \"b\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"list\"]}; resolution errors: [roles.rbac.authorization.k8s.io \"missingone\" not found]".to_owned())
        );
    }

    #[test]
    fn updates_of_bookkeeping_pass() {
        let (_, authorizer) = fixture();
        let old = role(&["delete"]);
        let mut new = old.clone();
        new["metadata"]["finalizers"] = json!(["a/b"]);
        assert_eq!(run(&authorizer, "roles", &new, Some(&old)), Ok(()));
        new["metadata"]["labels"] = json!({"a": "b"});
        assert!(run(&authorizer, "roles", &new, Some(&old)).is_err());
    }

    #[test]
    fn bindings_need_the_rules_or_the_bind_verb() {
        let (source, authorizer) = fixture();
        let binding = |kind: &str, name: &str| {
            json!({
                "metadata": {"name": "b"},
                "roleRef": {"apiGroup": GROUP, "kind": kind, "name": name},
            })
        };
        assert_eq!(run(&authorizer, "rolebindings", &binding("ClusterRole", "dev"), None), Ok(()));
        assert_eq!(
            run(&authorizer, "rolebindings", &binding("Role", "none"), None),
            Err("404 rolebindings.rbac.authorization.k8s.io \"none\" not found".to_owned())
        );
        source.put(
            CLUSTER_ROLES,
            json!({
                "metadata": {"name": "big"},
                "rules": [{"nonResourceURLs": ["/x"], "verbs": ["get"]}],
            }),
        );
        assert_eq!(
            run(&authorizer, "clusterrolebindings", &binding("ClusterRole", "big"), None),
            Err("403 clusterrolebindings.rbac.authorization.k8s.io \"b\" is forbidden: user \"alice\" (groups=[\"a\" \"b\"]) is attempting to grant RBAC permissions not currently held:\n{NonResourceURLs:[\"/x\"], Verbs:[\"get\"]}".to_owned())
        );
        source.put(CLUSTER_ROLES, json!({
            "metadata": {"name": "dev"},
            "rules": [{"apiGroups": [GROUP], "resources": ["clusterroles"], "resourceNames": ["big"], "verbs": ["bind"]}],
        }));
        assert_eq!(
            run(&authorizer, "clusterrolebindings", &binding("ClusterRole", "big"), None),
            Ok(())
        );
    }
}
