//! What may I do?

use serde_json::{Map, Value, json};

use crate::{
    auth::{Authorizer, rbac::PolicyRule},
    object,
    status::ApiError,
    user::UserInfo,
};

/// Answers a SelfSubjectRulesReview by `user`.
pub fn self_subject_rules_review(
    authorizer: &dyn Authorizer,
    user: &UserInfo,
    review: &Value,
) -> Result<Value, ApiError> {
    let namespace = object::text(review, &["spec", "namespace"]);
    if namespace.is_empty() {
        return Err(ApiError::bad_request("no namespace on request"));
    }
    let found = authorizer.rules_for(user, namespace);
    let resource_rules: Vec<Value> = found
        .rules
        .iter()
        .filter(|rule| !rule.resources.is_empty())
        .map(|rule| PolicyRule { non_resource_urls: Vec::new(), ..(**rule).clone() }.to_value())
        .collect();
    let path_rules: Vec<Value> = found
        .rules
        .iter()
        .filter(|rule| !rule.non_resource_urls.is_empty())
        .map(|rule| json!({"verbs": rule.verbs, "nonResourceURLs": rule.non_resource_urls}))
        .collect();
    let mut status = Map::new();
    status.insert("resourceRules".to_owned(), resource_rules.into());
    status.insert("nonResourceRules".to_owned(), path_rules.into());
    status.insert("incomplete".to_owned(), found.incomplete.into());
    if let Some(error) = found.error {
        status.insert("evaluationError".to_owned(), error.into());
    }
    // The question is not repeated.
    Ok(json!({
        "kind": review.get("kind").cloned().unwrap_or_default(),
        "apiVersion": review.get("apiVersion").cloned().unwrap_or_default(),
        "metadata": {},
        "spec": {},
        "status": status,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::authorize::AlwaysAllow;

    #[test]
    fn rules_are_listed() {
        let user = UserInfo::new("alice", &[]);
        let review = json!({"kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1", "spec": {"namespace": "ns"}});
        assert_eq!(
            self_subject_rules_review(&AlwaysAllow, &user, &review).unwrap(),
            json!({
                "kind": "SelfSubjectRulesReview",
                "apiVersion": "authorization.k8s.io/v1",
                "metadata": {},
                "spec": {},
                "status": {
                    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                    "incomplete": false,
                },
            })
        );
        let error = self_subject_rules_review(&AlwaysAllow, &user, &json!({})).unwrap_err();
        assert_eq!((error.code().as_u16(), error.message()), (400, "no namespace on request"));
    }
}
