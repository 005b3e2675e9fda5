//! May somebody do something?

use std::collections::BTreeMap;

use fleetwright_kschema::{
    field::{BadValue, FieldError, Path},
    gotext,
    names::validate_label_selector,
};
use serde_json::{Map, Value};

use super::{metadata, strings};
use crate::{
    auth::{Attributes, Authorizer, Verdict},
    gvk::GroupVersionKind,
    object,
    selector::{FieldSelector, LabelSelector},
    status::ApiError,
    user::UserInfo,
};

const ONE_OF: &str = "exactly one of nonResourceAttributes or resourceAttributes must be specified";

/// Answers a SelfSubjectAccessReview by `user`.
pub fn self_subject_access_review(
    authorizer: &dyn Authorizer,
    user: &UserInfo,
    review: &Value,
) -> Result<Value, ApiError> {
    let mut errors = validate_attributes(review);
    errors.extend(validate_selectors(review));
    errors.extend(metadata::must_be_empty(review, &[], "must be empty"));
    refuse(&errors)?;
    Ok(answer(authorizer, user, review))
}

/// Answers a SubjectAccessReview.
pub fn subject_access_review(
    authorizer: &dyn Authorizer,
    review: &Value,
) -> Result<Value, ApiError> {
    let mut errors = validate_subject(review);
    errors.extend(metadata::must_be_empty(review, &[], "must be empty"));
    refuse(&errors)?;
    Ok(answer(authorizer, &subject(review), review))
}

/// Answers a LocalSubjectAccessReview in `namespace`.
pub fn local_subject_access_review(
    authorizer: &dyn Authorizer,
    namespace: &str,
    review: &Value,
) -> Result<Value, ApiError> {
    let mut review = review.clone();
    if object::namespace(&review).is_empty() {
        object::set(&mut review, &["metadata", "namespace"], namespace);
    }
    let mut errors = validate_subject(&review);
    errors.extend(metadata::must_be_empty(
        &review,
        &["namespace"],
        "must be empty except for namespace",
    ));
    let asked = object::text(&review, &["spec", "resourceAttributes", "namespace"]);
    if present(&review, "resourceAttributes").is_some() && asked != object::namespace(&review) {
        errors.push(FieldError::invalid(
            &Path::from("spec.resourceAttributes.namespace"),
            asked,
            "must match metadata.namespace",
        ));
    }
    if let Some(attributes) = present(&review, "nonResourceAttributes") {
        errors.push(FieldError::invalid(
            &Path::from("spec.nonResourceAttributes"),
            path_attributes(Some(attributes)),
            "disallowed on this kind of request",
        ));
    }
    refuse(&errors)?;
    if namespace != object::namespace(&review) {
        return Err(ApiError::bad_request(format!(
            "spec.resourceAttributes.namespace must match namespace: {namespace}"
        )));
    }
    Ok(answer(authorizer, &subject(&review), &review))
}

/// These errors do not name the kind, because upstream's do not.
fn refuse(errors: &[FieldError]) -> Result<(), ApiError> {
    if errors.is_empty() {
        return Ok(());
    }
    let kind = GroupVersionKind::new("authorization.k8s.io", "v1", "");
    Err(ApiError::invalid(&kind, "", errors))
}

fn present<'a>(review: &'a Value, key: &str) -> Option<&'a Value> {
    object::get(review, &["spec", key]).filter(|value| !value.is_null())
}

fn subject(review: &Value) -> UserInfo {
    let text = |key| object::text(review, &["spec", key]).to_owned();
    let extra: BTreeMap<String, Vec<String>> = object::get(review, &["spec", "extra"])
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, values)| (key.clone(), strings(values.as_array().map_or(&[], Vec::as_slice))))
        .collect();
    let groups = strings(object::list(review, &["spec", "groups"]));
    UserInfo { name: text("user"), uid: text("uid"), groups, extra }
}

fn validate_subject(review: &Value) -> Vec<FieldError> {
    let mut errors = validate_attributes(review);
    let user = object::text(review, &["spec", "user"]);
    if user.is_empty() && object::list(review, &["spec", "groups"]).is_empty() {
        errors.push(FieldError::invalid(
            &Path::new("spec").child("user"),
            user,
            "at least one of user or group must be specified",
        ));
    }
    errors.extend(validate_selectors(review));
    errors
}

fn validate_attributes(review: &Value) -> Vec<FieldError> {
    let path = present(review, "nonResourceAttributes");
    if present(review, "resourceAttributes").is_some() == path.is_some() {
        vec![FieldError::invalid(&Path::new("spec"), path_attributes(path), ONE_OF)]
    } else {
        Vec::new()
    }
}

/// The attributes as the message prints them: with the names of Go.
fn path_attributes(attributes: Option<&Value>) -> BadValue {
    let Some(attributes) = attributes else { return BadValue::Json(Value::Null) };
    let text = |key| gotext::json(&object::text(attributes, &[key]).into());
    BadValue::Rendered(format!("{{\"Path\":{},\"Verb\":{}}}", text("path"), text("verb")))
}

fn validate_selectors(review: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for key in ["fieldSelector", "labelSelector"] {
        let Some(selector) =
            object::get(review, &["spec", "resourceAttributes", key]).filter(|s| !s.is_null())
        else {
            continue;
        };
        let path = Path::from("spec.resourceAttributes").child(key);
        let raw = object::text(selector, &["rawSelector"]);
        let requirements = object::list(selector, &["requirements"]);
        if !raw.is_empty() && !requirements.is_empty() {
            errors.push(FieldError::invalid(
                &path.child("rawSelector"),
                raw,
                "may not specified at the same time as requirements",
            ));
        }
        if raw.is_empty() && requirements.is_empty() {
            errors.push(FieldError::required(
                &path.child("requirements"),
                format!("when {path} is specified, requirements or rawSelector is required"),
            ));
        }
        for (index, requirement) in requirements.iter().enumerate() {
            errors.extend(validate_requirement(
                requirement,
                &path.child("requirements").index(index),
                key == "labelSelector",
            ));
        }
    }
    errors
}

/// Unknown operators pass: they are for newer servers.
fn validate_requirement(requirement: &Value, path: &Path, of_labels: bool) -> Vec<FieldError> {
    let values = object::list(requirement, &["values"]);
    let mut errors = Vec::new();
    match object::text(requirement, &["operator"]) {
        "In" | "NotIn" if values.is_empty() => errors.push(FieldError::required(
            &path.child("values"),
            "must be specified when `operator` is 'In' or 'NotIn'",
        )),
        "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(FieldError::forbidden(
            &path.child("values"),
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        )),
        _ => {}
    }
    let key = object::text(requirement, &["key"]);
    if of_labels {
        // The rules for keys and values are those of selectors; their paths are ours.
        let selector =
            serde_json::json!({"matchExpressions": [{"key": key, "operator": "Exists"}]});
        errors.extend(
            validate_label_selector(&selector, &Path::root())
                .into_iter()
                .map(|error| FieldError { path: path.child("key"), ..error }),
        );
    } else if key.is_empty() {
        errors.push(FieldError::required(&path.child("key"), "must be specified"));
    }
    errors
}

fn answer(authorizer: &dyn Authorizer, user: &UserInfo, review: &Value) -> Value {
    let resource = present(review, "resourceAttributes");
    let asked = resource.or_else(|| present(review, "nonResourceAttributes"));
    let text = |key| asked.map(|asked| object::text(asked, &[key])).unwrap_or_default();
    let version = if text("version").is_empty() { "*" } else { text("version") };
    let decision = authorizer.authorize(&Attributes {
        user,
        is_resource: resource.is_some(),
        verb: text("verb"),
        group: text("group"),
        version,
        namespace: text("namespace"),
        resource: text("resource"),
        subresource: text("subresource"),
        name: text("name"),
        path: text("path"),
        field_selector: "",
    });
    let mut status = Map::new();
    status.insert("allowed".to_owned(), decision.is_allowed().into());
    if decision.verdict == Verdict::Deny {
        status.insert("denied".to_owned(), true.into());
    }
    if !decision.reason.is_empty() {
        status.insert("reason".to_owned(), (*decision.reason).into());
    }
    let errors = selector_errors(review);
    if !errors.is_empty() {
        status.insert("evaluationError".to_owned(), errors.join("; ").into());
    }
    let mut answer = review.clone();
    object::set(&mut answer, &["status"], status);
    answer
}

/// Selectors that cannot be understood do not count, which is said in the answer.
fn selector_errors(review: &Value) -> Vec<String> {
    ["fieldSelector", "labelSelector"]
        .into_iter()
        .filter_map(|key| {
            let selector = object::get(review, &["spec", "resourceAttributes", key])?;
            let raw = object::text(selector, &["rawSelector"]);
            let requirements = object::list(selector, &["requirements"]);
            let (understood, of) = if requirements.is_empty() {
                let parsed = if key == "fieldSelector" {
                    FieldSelector::parse(raw).is_ok()
                } else {
                    LabelSelector::parse(raw).is_ok()
                };
                (usize::from(parsed), 1)
            } else {
                let known = |requirement: &&Value| {
                    let operator = object::text(requirement, &["operator"]);
                    if key == "fieldSelector" {
                        matches!(operator, "In" | "NotIn")
                            && object::list(requirement, &["values"]).len() == 1
                    } else {
                        matches!(operator, "In" | "NotIn" | "Exists" | "DoesNotExist")
                    }
                };
                (requirements.iter().filter(known).count(), requirements.len())
            };
            let partially = if understood > 0 { "partially " } else { "" };
            (understood < of).then(|| {
                format!("spec.resourceAttributes.{key} {partially}ignored due to parse error")
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::auth::{
        ObjectSource, SuperuserThenRbac,
        rbac::{CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, Rbac},
        source::memory::MemorySource,
    };

    fn authorizer() -> SuperuserThenRbac {
        let source = Arc::new(MemorySource::default());
        source.put(
            CLUSTER_ROLES,
            json!({"metadata": {"name": "r"}, "rules": [
                {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
                {"nonResourceURLs": ["/api"], "verbs": ["get"]},
            ]}),
        );
        source.put(
            CLUSTER_ROLE_BINDINGS,
            json!({
                "metadata": {"name": "b"},
                "roleRef": {"kind": "ClusterRole", "name": "r"},
                "subjects": [{"kind": "Group", "name": "dev"}],
            }),
        );
        SuperuserThenRbac::new(Arc::new(Rbac::new(source as Arc<dyn ObjectSource>)))
    }

    #[test]
    fn reviews_are_answered() {
        let authorizer = authorizer();
        let dev = UserInfo::new("alice", &["dev"]);
        let ask = |verb: &str| {
            json!({
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": {"verb": verb, "resource": "pods"}},
            })
        };
        let yes = self_subject_access_review(&authorizer, &dev, &ask("get")).unwrap();
        assert_eq!(
            yes["status"],
            json!({
                "allowed": true,
                "reason": "RBAC: allowed by ClusterRoleBinding \"b\" of ClusterRole \"r\" to Group \"dev\"",
            })
        );
        assert_eq!(yes["kind"], "SelfSubjectAccessReview");
        let no = self_subject_access_review(&authorizer, &dev, &ask("list")).unwrap();
        assert_eq!(no["status"], json!({"allowed": false}));
        let about = json!({"spec": {"groups": ["dev"], "nonResourceAttributes": {"path": "/api", "verb": "get"}}});
        let answer = subject_access_review(&authorizer, &about).unwrap();
        assert_eq!(answer["status"]["allowed"], true);
        let local = json!({"spec": {"groups": ["dev"], "resourceAttributes": {"namespace": "ns", "verb": "get", "resource": "pods"}}});
        let answer = local_subject_access_review(&authorizer, "ns", &local).unwrap();
        assert_eq!(answer["status"]["allowed"], true);
    }

    #[test]
    fn selectors_that_do_not_parse_are_reported() {
        let cases = [
            (
                json!({"labelSelector": {"rawSelector": "a===b"}}),
                Some("spec.resourceAttributes.labelSelector ignored due to parse error"),
            ),
            (json!({"labelSelector": {"rawSelector": "a=b"}}), None),
            (
                json!({"fieldSelector": {"requirements": [
                    {"key": "a", "operator": "In", "values": ["b"]},
                    {"key": "a", "operator": "Exists"},
                ]}}),
                Some("spec.resourceAttributes.fieldSelector partially ignored due to parse error"),
            ),
        ];
        for (attributes, expected) in cases {
            let review = json!({"spec": {"resourceAttributes": attributes}});
            let answer =
                self_subject_access_review(&authorizer(), &UserInfo::default(), &review).unwrap();
            let error = answer["status"].get("evaluationError").and_then(Value::as_str);
            assert_eq!(error, expected, "{review}");
        }
    }

    #[test]
    fn bad_reviews_are_refused_as_upstream() {
        let authorizer = authorizer();
        let user = UserInfo::new("alice", &[]);
        let own = |review: Value| self_subject_access_review(&authorizer, &user, &review);
        let other = |review: Value| subject_access_review(&authorizer, &review);
        let local = |review: Value| local_subject_access_review(&authorizer, "default", &review);
        let pods = json!({"verb": "get", "resource": "pods"});
        let cases = [
            (
                own(json!({"spec": {}})),
                r"spec: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified",
            ),
            (
                own(
                    json!({"spec": {"resourceAttributes": pods, "nonResourceAttributes": {"path": "/"}}}),
                ),
                r#"spec: Invalid value: {"Path":"/","Verb":""}: exactly one of nonResourceAttributes or resourceAttributes must be specified"#,
            ),
            (
                own(json!({"metadata": {"name": "x"}, "spec": {"resourceAttributes": pods}})),
                r#"metadata: Invalid value: {"name":"x"}: must be empty"#,
            ),
            (
                own(json!({"spec": {"resourceAttributes": {"labelSelector": {}}}})),
                "spec.resourceAttributes.labelSelector.requirements: Required value: when spec.resourceAttributes.labelSelector is specified, requirements or rawSelector is required",
            ),
            (
                other(json!({"spec": {"resourceAttributes": pods}})),
                r#"spec.user: Invalid value: "": at least one of user or group must be specified"#,
            ),
            (
                local(
                    json!({"spec": {"user": "bob", "nonResourceAttributes": {"path": "/api", "verb": "get"}}}),
                ),
                r#"spec.nonResourceAttributes: Invalid value: {"Path":"/api","Verb":"get"}: disallowed on this kind of request"#,
            ),
            (
                local(
                    json!({"spec": {"user": "bob", "resourceAttributes": {"namespace": "other"}}}),
                ),
                r#"spec.resourceAttributes.namespace: Invalid value: "other": must match metadata.namespace"#,
            ),
        ];
        for (result, expected) in cases {
            let error = result.unwrap_err();
            assert_eq!(error.code().as_u16(), 422);
            assert_eq!(
                error.message(),
                format!(".authorization.k8s.io \"\" is invalid: {expected}")
            );
        }
    }
}
