//! Whose token is this?

use serde_json::{Value, json};

use super::{strings, user_to_value};
use crate::{auth::authn::Authenticators, object, status::ApiError};

/// Answers a TokenReview.
pub fn token_review(authenticators: &Authenticators, review: &Value) -> Result<Value, ApiError> {
    let token = object::text(review, &["spec", "token"]);
    if token.is_empty() {
        return Err(ApiError::bad_request("token is required for TokenReview in authentication"));
    }
    let audiences = strings(object::list(review, &["spec", "audiences"]));
    let status = match authenticators.authenticate_token(token, &audiences) {
        Ok(found) => json!({
            "authenticated": true,
            "user": user_to_value(&found.user),
            "audiences": found.audiences,
        }),
        Err(error) => json!({"user": {}, "error": error.to_string()}),
    };
    let mut answer = review.clone();
    object::set(&mut answer, &["status"], status);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fleetwright_clock::{Clock, Random};

    use super::*;
    use crate::auth::{
        ObjectSource,
        authn::{
            service_account::ServiceAccountTokens, signing::SigningKey, token_table::TokenTable,
        },
        source::{SERVICE_ACCOUNTS, memory::MemorySource},
    };

    #[test]
    fn tokens_are_reviewed() {
        let source = Arc::new(MemorySource::default());
        source.put(
            SERVICE_ACCOUNTS,
            json!({"metadata": {"namespace": "ns", "name": "robot", "uid": "u"}}),
        );
        let all = Authenticators {
            tokens: TokenTable::parse("secret,alice,2,\"dev,ops\"\n", "t").unwrap(),
            service_accounts: ServiceAccountTokens::new(
                SigningKey::generate().unwrap(),
                "https://kubernetes.default.svc".to_owned(),
                Vec::new(),
                source as Arc<dyn ObjectSource>,
                Clock::system(),
                Random::seeded(1),
            ),
            anonymous: true,
        };
        let status = |token: &str, audiences: &[&str]| {
            let review = json!({"spec": {"token": token, "audiences": audiences}});
            token_review(&all, &review).unwrap()["status"].clone()
        };
        assert_eq!(
            status("secret", &[]),
            json!({
                "authenticated": true,
                "user": {"username": "alice", "uid": "2", "groups": ["dev", "ops", "system:authenticated"]},
                "audiences": ["https://kubernetes.default.svc"],
            })
        );
        assert_eq!(status("wrong", &[]), json!({"user": {}, "error": "invalid bearer token"}));
        let prepared = all.service_accounts.prepare("ns", "robot", json!({})).unwrap();
        let answer = all.service_accounts.issue(prepared).unwrap();
        let token = object::text(&answer, &["status", "token"]);
        assert_eq!(status(token, &[])["user"]["username"], "system:serviceaccount:ns:robot");
        assert_eq!(
            status(token, &["foo"])["error"],
            "[invalid bearer token, token audiences [\"https://kubernetes.default.svc\"] is invalid for the target audiences [\"foo\"]]"
        );
        let error = token_review(&all, &json!({"spec": {}})).unwrap_err();
        assert_eq!(error.message(), "token is required for TokenReview in authentication");
    }
}
