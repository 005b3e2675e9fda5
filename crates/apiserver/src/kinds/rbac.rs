//! Roles and their bindings.

use std::sync::Arc;

use fleetwright_kschema::{
    field::{FieldError, Path},
    names,
};
use serde_json::{Value, json};

use super::{
    Builtin, Column, Kind, NameRule,
    age::age,
    check::{Errors, IMMUTABLE, each, has, is_set, same},
    internal, shape, tables,
};
use crate::{gvk::GroupVersionKind, object};

const GROUP: &str = "rbac.authorization.k8s.io";

/// The kinds of the group `rbac.authorization.k8s.io`.
pub(super) fn builtins() -> Vec<Builtin> {
    let rbac = |kind: &str, plural, singular, namespaced, implementation: Arc<dyn Kind>| Builtin {
        gvk: GroupVersionKind::new(GROUP, "v1", kind),
        plural,
        singular,
        short_names: &[],
        categories: &[],
        namespaced,
        subresources: &[],
        kind: implementation,
    };
    let role = |namespaced| Arc::new(Role { namespaced });
    let binding = |namespaced| Arc::new(Binding { namespaced });
    vec![
        rbac("Role", "roles", "role", true, role(true)),
        rbac("ClusterRole", "clusterroles", "clusterrole", false, role(false)),
        rbac("RoleBinding", "rolebindings", "rolebinding", true, binding(true)),
        rbac(
            "ClusterRoleBinding",
            "clusterrolebindings",
            "clusterrolebinding",
            false,
            binding(false),
        ),
    ]
}

/// A Role or a ClusterRole.
struct Role {
    namespaced: bool,
}

impl Kind for Role {
    fn default(&self, object: &mut Value) {
        let kind = if self.namespaced { "Role" } else { "ClusterRole" };
        shape::complete(&format!("{GROUP}/v1/{kind}"), object);
        if object::list(object, &["rules"]).is_empty() {
            object::set(object, &["rules"], Value::Null);
        }
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Errors::new();
        let rules = object::list(object, &["rules"]);
        for (i, rule) in rules.iter().enumerate() {
            errors.extend(self.rule(rule, &Path::new("rules").index(i)));
        }
        if is_set(object, &["aggregationRule"]) {
            let path = Path::new("aggregationRule").child("clusterRoleSelectors");
            let selectors = object::list(object, &["aggregationRule", "clusterRoleSelectors"]);
            if selectors.is_empty() {
                let reason =
                    "at least one clusterRoleSelector required if aggregationRule is non-nil";
                errors.push(FieldError::required(&path, reason));
            }
            for (i, selector) in selectors.iter().enumerate() {
                let problems = names::validate_label_selector(selector, &path.index(i));
                if !problems.is_empty() {
                    errors.extend(problems);
                    let reason = "invalid label selector.";
                    errors.push(FieldError::invalid(&path.index(i), Value::Null, reason));
                }
            }
        }
        // What the types themselves require is told last.
        for (i, rule) in rules.iter().enumerate() {
            if !has(rule, &["verbs"]) {
                let path = Path::new("rules").index(i).child("verbs");
                errors.push(FieldError::required(&path, ""));
            }
        }
        errors
    }

    fn name_rule(&self) -> NameRule {
        NameRule::PathSegment
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }
}

impl Role {
    fn rule(&self, rule: &Value, path: &Path) -> Errors {
        let mut errors = Errors::new();
        if let Some(urls) = rule.get("nonResourceURLs").filter(|_| has(rule, &["nonResourceURLs"]))
        {
            let path = path.child("nonResourceURLs");
            if self.namespaced {
                let reason = "namespaced rules cannot apply to non-resource URLs";
                errors.push(FieldError::invalid(&path, urls.clone(), reason));
            }
            if ["apiGroups", "resources", "resourceNames"].iter().any(|key| has(rule, &[key])) {
                let reason = "rules cannot apply to both regular resources and non-resource URLs";
                errors.push(FieldError::invalid(&path, urls.clone(), reason));
            }
            return errors;
        }
        for (key, noun) in [("apiGroups", "api group"), ("resources", "resource")] {
            if !has(rule, &[key]) {
                let reason = format!("resource rules must supply at least one {noun}");
                errors.push(FieldError::required(&path.child(key), reason));
            }
        }
        errors
    }
}

/// A RoleBinding or a ClusterRoleBinding.
struct Binding {
    namespaced: bool,
}

impl Kind for Binding {
    fn default(&self, object: &mut Value) {
        let kind = if self.namespaced { "RoleBinding" } else { "ClusterRoleBinding" };
        shape::complete(&format!("{GROUP}/v1/{kind}"), object);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let path = Path::new("roleRef");
        let text = |key| object::text(object, &["roleRef", key]);
        let mut errors = Errors::new();
        if text("apiGroup") != GROUP {
            let path = path.child("apiGroup");
            errors.push(FieldError::not_supported(&path, text("apiGroup"), &[GROUP]));
        }
        let kinds: &[&str] =
            if self.namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
        if !kinds.contains(&text("kind")) {
            errors.push(FieldError::not_supported(&path.child("kind"), text("kind"), kinds));
        }
        let name_path = path.child("name");
        if !text("name").is_empty() {
            errors.extend(each(&name_path, text("name"), names::path_segment_name(text("name"))));
        }
        for (i, subject) in object::list(object, &["subjects"]).iter().enumerate() {
            errors.extend(self.subject(subject, &Path::new("subjects").index(i)));
        }
        // What the types themselves require is told last.
        if text("name").is_empty() {
            errors.push(FieldError::required(&name_path, ""));
        }
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = self.validate_create(new);
        let reference = |object: &Value| object.get("roleRef").cloned().unwrap_or_default();
        if !same(new.get("roleRef"), old.get("roleRef")) {
            let value = internal::printed("rbac.RoleRef", &reference(new));
            let path = Path::new("roleRef");
            errors.push(FieldError::invalid(&path, value, IMMUTABLE));
        }
        errors
    }

    fn name_rule(&self) -> NameRule {
        NameRule::PathSegment
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn columns(&self) -> Option<Vec<Column>> {
        let plural = if self.namespaced { "rolebindings" } else { "clusterrolebindings" };
        tables::columns(&format!("{GROUP}/v1/{plural}"))
    }

    fn cells(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        let text = |key| object::text(object, &["roleRef", key]);
        let named = |kind: &str| -> Value {
            let names: Vec<String> = object::list(object, &["subjects"])
                .iter()
                .filter(|subject| object::text(subject, &["kind"]) == kind)
                .map(|subject| match kind {
                    "ServiceAccount" => format!(
                        "{}/{}",
                        object::text(subject, &["namespace"]),
                        object::text(subject, &["name"])
                    ),
                    _ => object::text(subject, &["name"]).to_owned(),
                })
                .collect();
            json!(names.join(", "))
        };
        vec![
            tables::name(object),
            format!("{}/{}", text("kind"), text("name")).into(),
            age(object, now),
            named("User"),
            named("Group"),
            named("ServiceAccount"),
        ]
    }
}

impl Binding {
    fn subject(&self, subject: &Value, path: &Path) -> Errors {
        let text = |key| object::text(subject, &[key]);
        let mut errors = Errors::new();
        if text("name").is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        }
        let group_path = path.child("apiGroup");
        match text("kind") {
            "ServiceAccount" => {
                if !text("name").is_empty() {
                    let reasons = names::dns_1123_subdomain(text("name"));
                    errors.extend(each(&path.child("name"), text("name"), reasons));
                }
                if !text("apiGroup").is_empty() {
                    errors.push(FieldError::not_supported(&group_path, text("apiGroup"), &[""]));
                }
                if !self.namespaced && text("namespace").is_empty() {
                    errors.push(FieldError::required(&path.child("namespace"), ""));
                }
            }
            "User" | "Group" => {
                if text("apiGroup") != GROUP {
                    errors.push(FieldError::not_supported(&group_path, text("apiGroup"), &[GROUP]));
                }
            }
            kind => errors.push(FieldError::not_supported(
                &path.child("kind"),
                kind,
                &["ServiceAccount", "User", "Group"],
            )),
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    use super::{super::check::texts, *};

    #[test]
    fn rules_say_what_and_how() {
        let role = Role { namespaced: true };
        let object = json!({"rules": [
            {"apiGroups": [""], "resources": ["pods"]},
            {"verbs": ["get"], "nonResourceURLs": ["/x"], "resources": ["y"]},
            {"verbs": ["get"]},
        ]});
        assert_eq!(
            texts(&role.validate_create(&object)),
            [
                "rules[1].nonResourceURLs: Invalid value: [\"/x\"]: namespaced rules cannot apply to \
                 non-resource URLs",
                "rules[1].nonResourceURLs: Invalid value: [\"/x\"]: rules cannot apply to both regular \
                 resources and non-resource URLs",
                "rules[2].apiGroups: Required value: resource rules must supply at least one api group",
                "rules[2].resources: Required value: resource rules must supply at least one resource",
                "rules[0].verbs: Required value",
            ]
        );
    }

    #[test]
    fn bindings_name_a_role_and_subjects() {
        let binding = Binding { namespaced: false };
        let mut object = json!({
            "roleRef": {"kind": "Role"},
            "subjects": [{"kind": "ServiceAccount", "name": "a"}, {"kind": "User"}, {"kind": "Robot", "name": "r"}],
        });
        binding.default(&mut object);
        assert_eq!(
            texts(&binding.validate_create(&object)),
            [
                "roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\"",
                "subjects[0].namespace: Required value",
                "subjects[1].name: Required value",
                "subjects[2].kind: Unsupported value: \"Robot\": supported values: \
                 \"ServiceAccount\", \"User\", \"Group\"",
                "roleRef.name: Required value",
            ]
        );
    }
}
