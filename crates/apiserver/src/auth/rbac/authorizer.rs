//! The RBAC authorizer.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::{Mutex, RwLock};

use super::{
    PolicyRule,
    policy::{Grants, Policy, RoleRef, Unresolved},
};
use crate::{
    auth::{Attributes, Authorizer, Decision, ObjectSource, authorize::UserRules},
    user::UserInfo,
};

/// How many users and namespaces are remembered before starting over: far more than are ever
/// active at once, and little memory.
const REMEMBERED_USERS: usize = 4096;

type UserKey = (String, Vec<String>, String);

struct Compiled {
    policy: Policy,
    users: Mutex<BTreeMap<UserKey, Arc<Grants>>>,
}

/// Decides by roles and bindings.
pub struct Rbac {
    source: Arc<dyn ObjectSource>,
    compiled: RwLock<Option<Arc<Compiled>>>,
}

impl Rbac {
    /// An authorizer for the roles and bindings of `source`.
    pub fn new(source: Arc<dyn ObjectSource>) -> Self {
        Self { source, compiled: RwLock::new(None) }
    }

    fn compiled(&self) -> Arc<Compiled> {
        let known = self.compiled.read().clone();
        if let Some(known) = known.as_ref().filter(|c| c.policy.is_current(&*self.source)) {
            return Arc::clone(known);
        }
        let policy = Policy::read(known.as_ref().map(|c| &c.policy), &*self.source);
        let fresh = Arc::new(Compiled { policy, users: Mutex::default() });
        *self.compiled.write() = Some(Arc::clone(&fresh));
        fresh
    }

    pub(super) fn grants(&self, user: &UserInfo, namespace: &str) -> Arc<Grants> {
        let compiled = self.compiled();
        let key = (user.name.clone(), user.groups.clone(), namespace.to_owned());
        if let Some(known) = compiled.users.lock().get(&key) {
            return Arc::clone(known);
        }
        let grants = Arc::new(compiled.policy.grants(user, namespace));
        let mut users = compiled.users.lock();
        if users.len() >= REMEMBERED_USERS {
            users.clear();
        }
        users.insert(key, Arc::clone(&grants));
        grants
    }

    /// The rules of the role that a binding refers to.
    pub(super) fn rules_of(
        &self,
        role: &RoleRef,
        namespace: &str,
    ) -> Result<Vec<Arc<PolicyRule>>, Unresolved> {
        self.compiled().policy.rules_of(role, namespace).map(<[_]>::to_vec)
    }
}

impl Authorizer for Rbac {
    fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        let grants = self.grants(attributes.user, attributes.namespace);
        for grant in &grants.grants {
            if grant.rules.iter().any(|rule| rule.allows(attributes)) {
                return Decision::allow(Arc::clone(&grant.reason));
            }
        }
        match grants.error(ToString::to_string) {
            Some(error) => Decision::no_opinion(format!("RBAC: {error}")),
            None => Decision::no_opinion(""),
        }
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> UserRules {
        let grants = self.grants(user, namespace);
        UserRules {
            rules: grants.grants.iter().flat_map(|grant| grant.rules.clone()).collect(),
            error: grants.error(ToString::to_string),
            incomplete: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use serde_json::{Value, json};

    use super::*;
    use crate::auth::{
        SuperuserThenRbac, Verdict,
        rbac::{CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES},
        source::memory::MemorySource,
    };

    fn role(namespace: &str, name: &str, verbs: &[&str]) -> Value {
        json!({
            "metadata": {"namespace": namespace, "name": name},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": verbs}],
        })
    }

    fn binding(namespace: &str, name: &str, kind: &str, role: &str, subjects: &Value) -> Value {
        json!({
            "metadata": {"namespace": namespace, "name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
            "subjects": subjects,
        })
    }

    fn ask<'a>(user: &'a UserInfo, verb: &'a str, namespace: &'a str) -> Attributes<'a> {
        Attributes { namespace, ..Attributes::of_resource(user, verb, "", "pods", "") }
    }

    fn fixture() -> (Arc<MemorySource>, SuperuserThenRbac) {
        let source = Arc::new(MemorySource::default());
        source.put(
            CLUSTER_ROLES,
            json!({
                "metadata": {"name": "reader"},
                "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}],
            }),
        );
        source.put(ROLES, role("ns", "writer", &["create"]));
        let rbac = Arc::new(Rbac::new(Arc::clone(&source) as Arc<dyn ObjectSource>));
        (source, SuperuserThenRbac::new(rbac))
    }

    #[test]
    fn bindings_grant_to_users_groups_and_service_accounts() {
        let (source, authorizer) = fixture();
        source.put(
            CLUSTER_ROLE_BINDINGS,
            binding(
                "",
                "all",
                "ClusterRole",
                "reader",
                &json!([
                    {"kind": "User", "name": "alice"},
                    {"kind": "ServiceAccount", "namespace": "ns", "name": "robot"},
                ]),
            ),
        );
        source.put(
            ROLE_BINDINGS,
            binding(
                "ns",
                "some",
                "ClusterRole",
                "reader",
                &json!([
                    {"kind": "Group", "name": "dev"},
                ]),
            ),
        );
        source.put(
            ROLE_BINDINGS,
            binding(
                "ns",
                "write",
                "Role",
                "writer",
                &json!([
                    {"kind": "ServiceAccount", "name": "robot"},
                ]),
            ),
        );
        let alice = UserInfo::new("alice", &[]);
        let dev = UserInfo::new("dave", &["dev"]);
        let robot = UserInfo::new("system:serviceaccount:ns:robot", &[]);
        let root = UserInfo::new("root", &["system:masters"]);
        let cases = [
            (
                ask(&alice, "get", ""),
                Some(
                    r#"RBAC: allowed by ClusterRoleBinding "all" of ClusterRole "reader" to User "alice""#,
                ),
            ),
            (
                ask(&alice, "list", "other"),
                Some(
                    r#"RBAC: allowed by ClusterRoleBinding "all" of ClusterRole "reader" to User "alice""#,
                ),
            ),
            (ask(&alice, "create", "ns"), None),
            (
                ask(&dev, "list", "ns"),
                Some(
                    r#"RBAC: allowed by RoleBinding "some/ns" of ClusterRole "reader" to Group "dev""#,
                ),
            ),
            (ask(&dev, "list", "other"), None),
            (ask(&dev, "list", ""), None),
            (
                ask(&robot, "get", "x"),
                Some(
                    r#"RBAC: allowed by ClusterRoleBinding "all" of ClusterRole "reader" to ServiceAccount "robot/ns""#,
                ),
            ),
            (
                ask(&robot, "create", "ns"),
                Some(
                    r#"RBAC: allowed by RoleBinding "write/ns" of Role "writer" to ServiceAccount "robot/ns""#,
                ),
            ),
            (ask(&root, "delete", ""), Some("")),
        ];
        for (request, expected) in cases {
            let decision = authorizer.authorize(&request);
            match expected {
                Some(reason) => assert_eq!(decision, Decision::allow(reason), "{request:?}"),
                None => assert_eq!(decision, Decision::no_opinion(""), "{request:?}"),
            }
        }
        assert_eq!(authorizer.rules_for(&robot, "ns").rules.len(), 2);
    }

    #[test]
    fn missing_roles_are_named_in_the_reason() {
        let (source, authorizer) = fixture();
        let alice = json!([{"kind": "User", "name": "alice"}]);
        source.put(CLUSTER_ROLE_BINDINGS, binding("", "a", "ClusterRole", "nope", &alice));
        let user = UserInfo::new("alice", &[]);
        assert_eq!(
            authorizer.authorize(&ask(&user, "get", "ns")),
            Decision::no_opinion(
                r#"rbac: RBAC: clusterrole.rbac.authorization.k8s.io "nope" not found"#
            )
        );
        source.put(ROLE_BINDINGS, binding("ns", "a", "Role", "nope", &alice));
        source.put(ROLE_BINDINGS, binding("ns", "b", "Thing", "nope", &alice));
        assert_eq!(
            &*authorizer.authorize(&ask(&user, "get", "ns")).reason,
            r#"rbac: RBAC: [clusterrole.rbac.authorization.k8s.io "nope" not found, role.rbac.authorization.k8s.io "nope" not found, unsupported role reference kind: "Thing"]"#
        );
    }

    #[test]
    fn changes_are_seen_and_nothing_is_read_without_one() {
        let (source, authorizer) = fixture();
        let alice = UserInfo::new("alice", &[]);
        assert_eq!(authorizer.authorize(&ask(&alice, "create", "ns")).verdict, Verdict::NoOpinion);
        let lists = source.lists.load(Ordering::Relaxed);
        for _ in 0..10 {
            authorizer.authorize(&ask(&alice, "create", "ns"));
        }
        assert_eq!(source.lists.load(Ordering::Relaxed), lists);
        source.put(
            ROLE_BINDINGS,
            binding("ns", "b", "Role", "writer", &json!([{"kind": "User", "name": "alice"}])),
        );
        assert!(authorizer.authorize(&ask(&alice, "create", "ns")).is_allowed());
        source.put(ROLES, role("ns", "writer", &["patch"]));
        assert!(!authorizer.authorize(&ask(&alice, "create", "ns")).is_allowed());
        assert!(authorizer.authorize(&ask(&alice, "patch", "ns")).is_allowed());
        source.delete(ROLES, "ns", "writer");
        assert!(!authorizer.authorize(&ask(&alice, "patch", "ns")).is_allowed());
    }
}
