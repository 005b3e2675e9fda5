//! Role based access control.
//!
//! Roles and bindings are parsed once and kept until they change; what a user may do is
//! compiled once per user and namespace and kept until any role or binding changes
//! ([`authorizer`]). Around that: which roles an aggregated role gathers ([`aggregate`]), whether
//! somebody hands out more than they have ([`escalation`]), and the policy that a new cluster
//! starts with ([`bootstrap`]).

pub mod aggregate;
pub mod authorizer;
pub mod bootstrap;
mod covers;
pub mod escalation;
mod policy;
mod rule;

pub use authorizer::Rbac;
pub use covers::covers;
pub use rule::PolicyRule;

/// The API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";
/// Roles, as an [`ObjectSource`](super::ObjectSource) knows them.
pub const ROLES: &str = "rbac.authorization.k8s.io/roles";
/// Bindings of one namespace.
pub const ROLE_BINDINGS: &str = "rbac.authorization.k8s.io/rolebindings";
/// Cluster roles.
pub const CLUSTER_ROLES: &str = "rbac.authorization.k8s.io/clusterroles";
/// Bindings for the whole cluster.
pub const CLUSTER_ROLE_BINDINGS: &str = "rbac.authorization.k8s.io/clusterrolebindings";
