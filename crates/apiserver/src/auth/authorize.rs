//! Questions to an authorizer and its answers.

use std::sync::Arc;

use fleetwright_kschema::gotext::quote;

use super::{
    node::{NodeAuthorizer, node_name},
    rbac::{PolicyRule, Rbac},
};
use crate::{
    gvk::GroupResource,
    request::RequestInfo,
    status::ApiError,
    user::{MASTERS, UserInfo},
};

/// What somebody wants to do.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// Who.
    pub user: &'a UserInfo,
    /// Whether a resource is meant, or else a path.
    pub is_resource: bool,
    /// The verb.
    pub verb: &'a str,
    /// The API group.
    pub group: &'a str,
    /// The API version.
    pub version: &'a str,
    /// The namespace, empty for the whole cluster.
    pub namespace: &'a str,
    /// The resource.
    pub resource: &'a str,
    /// The subresource, or empty.
    pub subresource: &'a str,
    /// The name, or empty.
    pub name: &'a str,
    /// The path, if no resource is meant.
    pub path: &'a str,
    /// The field selector of a list, as it was written.
    pub field_selector: &'a str,
}

impl<'a> Attributes<'a> {
    /// What a request asks for.
    pub fn of_request(user: &'a UserInfo, info: &'a RequestInfo) -> Self {
        Self {
            user,
            is_resource: info.is_resource,
            verb: &info.verb,
            group: &info.group,
            version: &info.version,
            namespace: &info.namespace,
            resource: &info.resource,
            subresource: &info.subresource,
            name: &info.name,
            path: &info.path,
            field_selector: &info.field_selector,
        }
    }

    /// A verb on a named resource of the whole cluster.
    pub fn of_resource(
        user: &'a UserInfo,
        verb: &'a str,
        group: &'a str,
        resource: &'a str,
        name: &'a str,
    ) -> Self {
        Self {
            user,
            is_resource: true,
            verb,
            group,
            version: "*",
            namespace: "",
            resource,
            subresource: "",
            name,
            path: "",
            field_selector: "",
        }
    }
}

/// What an authorizer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Yes.
    Allow,
    /// No, whatever others say.
    Deny,
    /// Nothing speaks for it, which also means no unless another authorizer allows it.
    NoOpinion,
}

/// A verdict and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What was decided.
    pub verdict: Verdict,
    /// Why, or empty.
    pub reason: Arc<str>,
}

impl Decision {
    /// Yes, for a reason.
    pub fn allow(reason: impl Into<Arc<str>>) -> Self {
        Self { verdict: Verdict::Allow, reason: reason.into() }
    }

    /// Nothing speaks for it.
    pub fn no_opinion(reason: impl Into<Arc<str>>) -> Self {
        Self { verdict: Verdict::NoOpinion, reason: reason.into() }
    }

    /// Whether it may be done.
    pub fn is_allowed(&self) -> bool {
        self.verdict == Verdict::Allow
    }
}

/// The rules that apply to a user in a namespace.
#[derive(Clone, Debug, Default)]
pub struct UserRules {
    /// Every rule that was found.
    pub rules: Vec<Arc<PolicyRule>>,
    /// What could not be resolved, as one message.
    pub error: Option<String>,
    /// Whether there are rights that no rule tells.
    pub incomplete: bool,
}

/// Decides who may do what.
pub trait Authorizer: Send + Sync {
    /// Decides one question.
    fn authorize(&self, attributes: &Attributes<'_>) -> Decision;

    /// What the user may do in the namespace.
    fn rules_for(&self, user: &UserInfo, namespace: &str) -> UserRules;
}

/// The authorizers of an API server started with `--authorization-mode=Node,RBAC`: members of
/// `system:masters` may do everything, nodes what their pods need, then RBAC decides.
pub struct SuperuserThenRbac {
    nodes: Option<NodeAuthorizer>,
    rbac: Arc<Rbac>,
}

impl SuperuserThenRbac {
    /// Puts the superuser group before `rbac`.
    pub fn new(rbac: Arc<Rbac>) -> Self {
        Self { nodes: None, rbac }
    }

    /// Lets nodes do what they need to.
    #[must_use]
    pub fn with_nodes(mut self, nodes: NodeAuthorizer) -> Self {
        self.nodes = Some(nodes);
        self
    }

    /// The RBAC authorizer behind.
    pub fn rbac(&self) -> &Arc<Rbac> {
        &self.rbac
    }
}

impl Authorizer for SuperuserThenRbac {
    fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        if attributes.user.in_group(MASTERS) {
            return Decision::allow("");
        }
        // Without a verdict, each authorizer's reason carries its name.
        let mut reasons = Vec::new();
        if let Some(nodes) = &self.nodes {
            let decision = nodes.authorize(attributes);
            if decision.verdict != Verdict::NoOpinion {
                return decision;
            }
            if !decision.reason.is_empty() {
                reasons.push(format!("node: {}", decision.reason));
            }
        }
        let decision = self.rbac.authorize(attributes);
        if decision.verdict != Verdict::NoOpinion {
            return decision;
        }
        if !decision.reason.is_empty() {
            reasons.push(format!("rbac: {}", decision.reason));
        }
        Decision::no_opinion(reasons.join("\n"))
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> UserRules {
        let mut rules = self.rbac.rules_for(user, namespace);
        if self.nodes.is_some() && node_name(user).is_some() {
            rules.incomplete = true;
            let own = "node authorizer does not support user rule resolution";
            rules.error = Some(match rules.error {
                None => own.to_owned(),
                Some(other) => format!("[{own}, {other}]"),
            });
        }
        rules
    }
}

/// Lets everyone do everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct AlwaysAllow;

impl Authorizer for AlwaysAllow {
    fn authorize(&self, _: &Attributes<'_>) -> Decision {
        Decision::allow("")
    }

    fn rules_for(&self, _: &UserInfo, _: &str) -> UserRules {
        UserRules { rules: PolicyRule::everything().map(Arc::new).to_vec(), ..UserRules::default() }
    }
}

/// The error for something that is not allowed.
pub fn forbidden(attributes: &Attributes<'_>, reason: &str) -> ApiError {
    let mut why = escape_markup(&forbidden_message(attributes));
    if !reason.is_empty() {
        why.push_str(": ");
        why.push_str(reason);
    }
    ApiError::forbidden(
        &GroupResource::new(attributes.group, attributes.resource),
        attributes.name,
        &why,
    )
}

/// The message must not look like HTML to a browser.
fn escape_markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn forbidden_message(attributes: &Attributes<'_>) -> String {
    let user = quote(&attributes.user.name);
    let verb = attributes.verb;
    if !attributes.is_resource {
        return format!("User {user} cannot {verb} path {}", quote(attributes.path));
    }
    let resource = if attributes.subresource.is_empty() {
        quote(attributes.resource)
    } else {
        quote(&format!("{}/{}", attributes.resource, attributes.subresource))
    };
    let group = quote(attributes.group);
    if attributes.namespace.is_empty() {
        format!(
            "User {user} cannot {verb} resource {resource} in API group {group} at the cluster scope"
        )
    } else {
        let namespace = quote(attributes.namespace);
        format!(
            "User {user} cannot {verb} resource {resource} in API group {group} in the namespace {namespace}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forbidden_errors_read_as_upstream() {
        let alice = UserInfo::new("alice", &[]);
        let list = Attributes {
            namespace: "default",
            ..Attributes::of_resource(&alice, "list", "", "pods", "")
        };
        let cases = [
            (
                list,
                "",
                r#"pods is forbidden: User "alice" cannot list resource "pods" in API group "" in the namespace "default""#,
            ),
            (
                Attributes {
                    subresource: "scale",
                    name: "web",
                    group: "apps",
                    namespace: "",
                    verb: "get",
                    resource: "deployments",
                    ..list
                },
                "no",
                r#"deployments.apps "web" is forbidden: User "alice" cannot get resource "deployments/scale" in API group "apps" at the cluster scope: no"#,
            ),
            (
                Attributes { is_resource: false, verb: "get", path: "/f<o", resource: "", ..list },
                "",
                r#"forbidden: User "alice" cannot get path "/f&lt;o""#,
            ),
        ];
        for (attributes, reason, expected) in cases {
            let error = forbidden(&attributes, reason);
            assert_eq!(error.message(), expected);
            assert_eq!(error.code(), http::StatusCode::FORBIDDEN);
        }
    }
}
