//! Whether a webhook is to be asked about a request.

use serde_json::Value;

use super::{
    Admission, Attributes, Equivalent, GroupVersionResource, Hooks,
    attributes::operation_name,
    condition::Verdict,
    configuration::{Rule, Scope, Webhook},
    review,
};
use crate::{
    auth::source::NAMESPACES,
    gvk::{GroupResource, GroupVersionKind},
    object,
    request::Operation,
    selector::LabelSelector,
    status::ApiError,
};

/// Kinds that no webhook may stop, or nobody could repair a webhook that refuses everything.
const EXEMPT: [&str; 6] = [
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
];

/// Whether no webhook is asked about objects of the kind.
pub(super) fn is_exempt(kind: &GroupVersionKind) -> bool {
    &*kind.group == "admissionregistration.k8s.io" && EXEMPT.contains(&&*kind.kind)
}

/// How a webhook is asked: about which version of the object.
#[derive(Clone, Debug)]
pub(super) struct Invocation {
    pub(super) resource: GroupVersionResource,
    pub(super) kind: GroupVersionKind,
}

impl Admission {
    /// How the webhook is to be asked, if it is.
    pub(super) fn invocation(
        &self,
        webhook: &Webhook,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
        hooks: &dyn Hooks,
    ) -> Result<Option<Invocation>, ApiError> {
        // What cannot be decided matters only if a rule matches.
        let in_namespace = self.namespace_matches(webhook, attributes, object);
        let selected = object_matches(webhook, attributes, object);
        if matches!(in_namespace, Ok(false)) || matches!(selected, Ok(false)) {
            return Ok(None);
        }
        let Some(invocation) = by_rules(webhook, attributes, object, hooks) else {
            return Ok(None);
        };
        in_namespace?;
        selected?;
        if webhook.conditions.is_empty() {
            return Ok(Some(invocation));
        }
        let converted = |value: Option<&Value>| convert(value, attributes, &invocation, hooks);
        let (new, old) = (converted(object)?, converted(attributes.old_object)?);
        let request = review::request(attributes, &invocation, object);
        match webhook.conditions.evaluate(new.as_ref(), old.as_ref(), &request) {
            Verdict::Matches => Ok(Some(invocation)),
            Verdict::Excluded => Ok(None),
            Verdict::Failed(_) if webhook.ignores_failure => Ok(None),
            Verdict::Failed(why) => Err(ApiError::forbidden(
                &GroupResource {
                    group: attributes.resource.group.clone(),
                    resource: attributes.resource.resource.clone(),
                },
                attributes.name_of(object),
                &why,
            )),
        }
    }

    fn namespace_matches(
        &self,
        webhook: &Webhook,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<bool, ApiError> {
        let namespace = attributes.namespace_of(object);
        if namespace.is_empty() && !attributes.resource.is_namespaces() {
            return Ok(true);
        }
        let selector = selector(&webhook.namespace_selector)?;
        if selector.is_empty() {
            return Ok(true);
        }
        // A namespace that is being written is not stored as it will be.
        if attributes.resource.is_namespaces()
            && attributes.subresource.is_empty()
            && matches!(attributes.operation, Operation::Create | Operation::Update)
        {
            return Ok(object.is_some_and(|object| selector.matches_object(object)));
        }
        let stored = self
            .source
            .get(NAMESPACES, None, namespace)
            .ok_or_else(|| ApiError::not_found(&GroupResource::new("", "namespaces"), namespace))?;
        Ok(selector.matches_object(&stored))
    }
}

fn selector(selector: &Result<LabelSelector, String>) -> Result<&LabelSelector, ApiError> {
    selector.as_ref().map_err(ApiError::internal)
}

fn object_matches(
    webhook: &Webhook,
    attributes: &Attributes<'_>,
    object: Option<&Value>,
) -> Result<bool, ApiError> {
    let selector = selector(&webhook.object_selector)?;
    Ok(selector.is_empty()
        || [object, attributes.old_object]
            .into_iter()
            .flatten()
            .any(|object| selector.matches_object(object)))
}

fn by_rules(
    webhook: &Webhook,
    attributes: &Attributes<'_>,
    object: Option<&Value>,
    hooks: &dyn Hooks,
) -> Option<Invocation> {
    let namespace = attributes.namespace_of(object);
    if webhook
        .rules
        .iter()
        .any(|rule| rule_matches(rule, attributes, attributes.resource, namespace))
    {
        return Some(Invocation {
            resource: attributes.resource.clone(),
            kind: attributes.kind.clone(),
        });
    }
    if !webhook.matches_equivalents {
        return None;
    }
    let equivalents = hooks.equivalents();
    webhook.rules.iter().find_map(|rule| {
        equivalents
            .iter()
            .filter(|other| other.resource != *attributes.resource)
            .find(|other| rule_matches(rule, attributes, &other.resource, namespace))
            .map(|Equivalent { resource, kind }| Invocation {
                resource: resource.clone(),
                kind: kind.clone(),
            })
    })
}

fn rule_matches(
    rule: &Rule,
    attributes: &Attributes<'_>,
    resource: &GroupVersionResource,
    namespace: &str,
) -> bool {
    let any = |list: &[String], wanted: &str| list.iter().any(|item| item == "*" || item == wanted);
    let namespaced = !resource.is_namespaces() && !namespace.is_empty();
    let in_scope = match rule.scope {
        Scope::All => true,
        Scope::Namespaced => namespaced,
        Scope::Cluster => !namespaced,
        Scope::Unknown => false,
    };
    in_scope
        && any(&rule.operations, operation_name(attributes.operation))
        && any(&rule.groups, &resource.group)
        && any(&rule.versions, &resource.version)
        && rule.resources.iter().any(|pattern| {
            let (of, sub) = pattern.split_once('/').unwrap_or((pattern, ""));
            (of == "*" || of == &*resource.resource)
                && (sub == "*" || sub == attributes.subresource)
        })
}

/// The object in the version that the webhook is asked about.
pub(super) fn convert(
    value: Option<&Value>,
    attributes: &Attributes<'_>,
    invocation: &Invocation,
    hooks: &dyn Hooks,
) -> Result<Option<Value>, ApiError> {
    let Some(value) = value else { return Ok(None) };
    let mut shown = if invocation.kind == *attributes.kind || is_of(value, &invocation.kind) {
        value.clone()
    } else {
        hooks.convert(value, &invocation.kind).map_err(ApiError::internal)?
    };
    // Clients may leave out what the path tells; webhooks are told all the same.
    object::set(&mut shown, &["kind"], &*invocation.kind.kind);
    object::set(&mut shown, &["apiVersion"], invocation.kind.group_version().to_string());
    Ok(Some(shown))
}

fn is_of(value: &Value, kind: &GroupVersionKind) -> bool {
    object::text(value, &["kind"]) == &*kind.kind
        && object::text(value, &["apiVersion"]) == kind.group_version().to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::user::UserInfo;

    #[test]
    fn rules_match_as_upstream() {
        let rule = |resource: &str, scope: &str| {
            let parsed = json!({"webhooks": [{"rules": [{
                "operations": ["CREATE"], "apiGroups": ["", "apps"], "apiVersions": ["v1"],
                "resources": [resource], "scope": scope,
            }]}]});
            let source = crate::auth::source::memory::MemorySource::default();
            source.put(super::super::configuration::MUTATING, parsed);
            super::super::configuration::Configurations::new(super::super::configuration::MUTATING)
                .webhooks(&source)
        };
        let user = UserInfo::default();
        let kind = GroupVersionKind::new("", "v1", "X");
        let cases = [
            ("pods", "*", "pods", "", "ns", true),
            ("pods", "*", "pods", "status", "ns", false),
            ("pods/status", "*", "pods", "status", "ns", true),
            ("pods/status", "*", "pods", "", "ns", false),
            ("pods/*", "*", "pods", "status", "ns", true),
            ("pods/*", "*", "pods", "", "ns", true),
            ("*", "*", "nodes", "", "", true),
            ("*", "*", "nodes", "status", "", false),
            ("*/*", "*", "nodes", "status", "", true),
            ("*/status", "Cluster", "nodes", "status", "", true),
            ("*", "Namespaced", "nodes", "", "", false),
            ("*", "Cluster", "namespaces", "", "ns", true),
        ];
        for (pattern, scope, resource, subresource, namespace, expected) in cases {
            let resource = GroupVersionResource::new("", "v1", resource);
            let attributes = Attributes {
                user: &user,
                operation: Operation::Create,
                kind: &kind,
                resource: &resource,
                subresource,
                name: "",
                namespace,
                old_object: None,
                options: &Value::Null,
                dry_run: false,
            };
            let webhooks = rule(pattern, scope);
            let found = by_rules(&webhooks[0], &attributes, None, &|_: &mut Value| Ok(()));
            assert_eq!(found.is_some(), expected, "{pattern} {resource} {subresource}");
        }
    }
}
