//! Who am I?

use jiff::Timestamp;
use serde_json::{Value, json};

use super::user_to_value;
use crate::{auth::authn::token_request::rfc3339, user::UserInfo};

/// Answers a SelfSubjectReview by `user` at the time `now`.
pub fn self_subject_review(user: &UserInfo, now: Timestamp, review: &Value) -> Value {
    json!({
        "kind": review.get("kind").cloned().unwrap_or_default(),
        "apiVersion": review.get("apiVersion").cloned().unwrap_or_default(),
        "metadata": {"creationTimestamp": rfc3339(now)},
        "status": {"userInfo": user_to_value(user)},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_see_themselves() {
        let now = "2026-11-15T08:19:44.9Z".parse().unwrap();
        let review = json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"});
        assert_eq!(
            self_subject_review(&UserInfo::new("alice", &["dev"]), now, &review),
            json!({
                "kind": "SelfSubjectReview",
                "apiVersion": "authentication.k8s.io/v1",
                "metadata": {"creationTimestamp": "2026-11-15T08:19:44Z"},
                "status": {"userInfo": {"username": "alice", "groups": ["dev"]}},
            })
        );
    }
}
