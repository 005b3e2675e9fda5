//! Roles and bindings in parsed form, refreshed when the stored ones change.

use std::{collections::BTreeMap, sync::Arc};

use fleetwright_kschema::gotext::quote;
use serde_json::Value;

use super::{CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, GROUP, PolicyRule, ROLE_BINDINGS, ROLES};
use crate::{
    auth::{ObjectSource, names},
    object,
    user::UserInfo,
};

/// What a binding refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RoleRef {
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) name: String,
}

impl RoleRef {
    pub(super) fn of(binding: &Value) -> Self {
        let text = |key| object::text(binding, &["roleRef", key]).to_owned();
        Self { group: text("apiGroup"), kind: text("kind"), name: text("name") }
    }
}

/// Why the rules of a role cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unresolved {
    /// The role does not exist.
    Missing {
        /// `role` or `clusterrole`.
        singular: &'static str,
        /// The role's name.
        name: String,
    },
    /// The reference is to something that is not a role.
    UnsupportedKind(String),
}

impl Unresolved {
    /// The message of the storage, which names the resource that the request is about, not the
    /// one that was looked for.
    pub(super) fn during_request_for(&self, resource: &str) -> String {
        match self {
            Self::Missing { name, .. } => {
                format!("{resource}.{GROUP} {} not found", quote(name))
            }
            Self::UnsupportedKind(_) => self.to_string(),
        }
    }
}

impl std::fmt::Display for Unresolved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing { singular, name } => {
                write!(f, "{singular}.{GROUP} {} not found", quote(name))
            }
            Self::UnsupportedKind(kind) => {
                write!(f, "unsupported role reference kind: {}", quote(kind))
            }
        }
    }
}

#[derive(Debug)]
enum Subject {
    User(String),
    Group(String),
    ServiceAccount { namespace: String, name: String },
}

#[derive(Debug)]
struct Binding {
    resource_version: String,
    role: RoleRef,
    subjects: Vec<Subject>,
    /// The beginning of the reason for allowing something: all but the subject.
    description: String,
}

impl Binding {
    fn parse(binding: &Value, namespace: &str) -> Self {
        let role = RoleRef::of(binding);
        let name = object::name(binding);
        let description = if namespace.is_empty() {
            format!("RBAC: allowed by ClusterRoleBinding {}", quote(name))
        } else {
            format!("RBAC: allowed by RoleBinding {}", quote(&format!("{name}/{namespace}")))
        };
        let description = format!("{description} of {} {} to ", role.kind, quote(&role.name));
        let subjects = object::list(binding, &["subjects"])
            .iter()
            .filter_map(|subject| {
                let name = object::text(subject, &["name"]).to_owned();
                match object::text(subject, &["kind"]) {
                    "User" => Some(Subject::User(name)),
                    "Group" => Some(Subject::Group(name)),
                    "ServiceAccount" => {
                        let of = object::text(subject, &["namespace"]);
                        let of = if of.is_empty() { namespace } else { of };
                        (!of.is_empty())
                            .then(|| Subject::ServiceAccount { namespace: of.to_owned(), name })
                    }
                    _ => None,
                }
            })
            .collect();
        Self {
            resource_version: object::resource_version(binding).to_owned(),
            role,
            subjects,
            description,
        }
    }

    /// The reason for allowing something to the user, if the binding is about them.
    fn applies_to(&self, user: &UserInfo) -> Option<Arc<str>> {
        let subject = self.subjects.iter().find(|subject| match subject {
            Subject::User(name) => *name == user.name,
            Subject::Group(name) => user.in_group(name),
            Subject::ServiceAccount { namespace, name } => {
                names::is_service_account(&user.name, namespace, name)
            }
        })?;
        let subject = match subject {
            Subject::User(name) => format!("User {}", quote(name)),
            Subject::Group(name) => format!("Group {}", quote(name)),
            Subject::ServiceAccount { namespace, name } => {
                format!("ServiceAccount {}", quote(&format!("{name}/{namespace}")))
            }
        };
        Some(format!("{}{subject}", self.description).into())
    }
}

#[derive(Debug)]
struct Role {
    resource_version: String,
    rules: Vec<Arc<PolicyRule>>,
}

impl Role {
    fn parse(role: &Value) -> Self {
        Self {
            resource_version: object::resource_version(role).to_owned(),
            rules: PolicyRule::parse_all(role).into_iter().map(Arc::new).collect(),
        }
    }
}

/// The objects of one resource by namespace and name.
#[derive(Debug)]
struct Table<T> {
    version: u64,
    by_namespace: BTreeMap<String, BTreeMap<String, Arc<T>>>,
}

impl<T> Table<T> {
    fn get(&self, namespace: &str, name: &str) -> Option<&Arc<T>> {
        self.by_namespace.get(namespace)?.get(name)
    }

    fn of(&self, namespace: &str) -> impl Iterator<Item = &Arc<T>> {
        self.by_namespace.get(namespace).into_iter().flat_map(BTreeMap::values)
    }

    /// Reads the resource if it changed, parsing only the objects that changed.
    fn refresh(
        old: Option<&Arc<Self>>,
        source: &dyn ObjectSource,
        resource: &str,
        parse: impl Fn(&Value) -> T,
        resource_version: impl Fn(&T) -> &str,
    ) -> Arc<Self> {
        // Read before listing: a change in between makes the list newer than its number, and
        // it is only read once more than needed.
        let version = source.version(resource);
        if let Some(old) = old.filter(|old| old.version == version) {
            return Arc::clone(old);
        }
        let mut by_namespace = BTreeMap::<String, BTreeMap<String, Arc<T>>>::new();
        for value in source.list(resource, None) {
            let (namespace, name) = (object::namespace(&value), object::name(&value));
            let current = object::resource_version(&value);
            let parsed = old
                .and_then(|old| old.get(namespace, name))
                .filter(|known| !current.is_empty() && resource_version(known) == current)
                .map_or_else(|| Arc::new(parse(&value)), Arc::clone);
            by_namespace.entry(namespace.to_owned()).or_default().insert(name.to_owned(), parsed);
        }
        Arc::new(Self { version, by_namespace })
    }
}

/// All roles and bindings at one time.
#[derive(Debug)]
pub(super) struct Policy {
    roles: Arc<Table<Role>>,
    cluster_roles: Arc<Table<Role>>,
    role_bindings: Arc<Table<Binding>>,
    cluster_role_bindings: Arc<Table<Binding>>,
}

/// A rule and why it applies.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    pub(super) rules: Vec<Arc<PolicyRule>>,
    pub(super) reason: Arc<str>,
}

/// What a user may do, and what could not be found out.
#[derive(Clone, Debug, Default)]
pub(super) struct Grants {
    pub(super) grants: Vec<Grant>,
    pub(super) errors: Vec<Unresolved>,
}

impl Grants {
    /// The errors as one message, each written by `write`.
    pub(super) fn error(&self, write: impl Fn(&Unresolved) -> String) -> Option<String> {
        let mut distinct: Vec<String> = Vec::new();
        for error in self.errors.iter().map(write) {
            if !distinct.contains(&error) {
                distinct.push(error);
            }
        }
        match distinct.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            several => Some(format!("[{}]", several.join(", "))),
        }
    }
}

impl Policy {
    /// The policy as stored now. What did not change since `old` is taken from there.
    pub(super) fn read(old: Option<&Self>, source: &dyn ObjectSource) -> Self {
        Self {
            roles: Table::refresh(old.map(|old| &old.roles), source, ROLES, Role::parse, |role| {
                &role.resource_version
            }),
            cluster_roles: Table::refresh(
                old.map(|old| &old.cluster_roles),
                source,
                CLUSTER_ROLES,
                Role::parse,
                |role| &role.resource_version,
            ),
            role_bindings: Table::refresh(
                old.map(|old| &old.role_bindings),
                source,
                ROLE_BINDINGS,
                |binding| Binding::parse(binding, object::namespace(binding)),
                |binding| &binding.resource_version,
            ),
            cluster_role_bindings: Table::refresh(
                old.map(|old| &old.cluster_role_bindings),
                source,
                CLUSTER_ROLE_BINDINGS,
                |binding| Binding::parse(binding, ""),
                |binding| &binding.resource_version,
            ),
        }
    }

    /// Whether the stored objects are still those that were read.
    pub(super) fn is_current(&self, source: &dyn ObjectSource) -> bool {
        source.version(ROLE_BINDINGS) == self.role_bindings.version
            && source.version(CLUSTER_ROLE_BINDINGS) == self.cluster_role_bindings.version
            && source.version(ROLES) == self.roles.version
            && source.version(CLUSTER_ROLES) == self.cluster_roles.version
    }

    /// The rules of the role that a binding in `namespace` refers to.
    pub(super) fn rules_of(
        &self,
        role: &RoleRef,
        namespace: &str,
    ) -> Result<&[Arc<PolicyRule>], Unresolved> {
        let (found, singular) = match role.kind.as_str() {
            "Role" => (self.roles.get(namespace, &role.name), "role"),
            "ClusterRole" => (self.cluster_roles.get("", &role.name), "clusterrole"),
            other => return Err(Unresolved::UnsupportedKind(other.to_owned())),
        };
        found
            .map(|role| role.rules.as_slice())
            .ok_or_else(|| Unresolved::Missing { singular, name: role.name.clone() })
    }

    /// Everything that applies to the user in the namespace.
    pub(super) fn grants(&self, user: &UserInfo, namespace: &str) -> Grants {
        let mut result = Grants::default();
        let cluster = self.cluster_role_bindings.of("").map(|binding| (binding, ""));
        let local = (!namespace.is_empty())
            .then(|| self.role_bindings.of(namespace).map(|binding| (binding, namespace)));
        for (binding, namespace) in cluster.chain(local.into_iter().flatten()) {
            let Some(reason) = binding.applies_to(user) else { continue };
            match self.rules_of(&binding.role, namespace) {
                Ok(rules) => result.grants.push(Grant { rules: rules.to_vec(), reason }),
                Err(error) => result.errors.push(error),
            }
        }
        result
    }
}
