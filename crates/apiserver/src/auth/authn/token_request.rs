//! `serviceaccounts/token`: issuing a token.

use std::sync::Arc;

use fleetwright_kschema::field::{FieldError, Path};
use fleetwright_kschema::gotext::quote;
use jiff::{SignedDuration, Timestamp, Unit};
use serde_json::{Value, json};

use super::service_account::{Claims, KubernetesClaims, Reference, ServiceAccountTokens};
use crate::{
    auth::{
        names,
        source::{NODES, PODS, SECRETS, SERVICE_ACCOUNTS},
    },
    gvk::{GroupResource, GroupVersionKind},
    object,
    status::ApiError,
};

const MINIMUM_SECONDS: i64 = 10 * 60;
const MAXIMUM_SECONDS: i64 = 1 << 32;
const DEFAULT_SECONDS: i64 = 60 * 60;

/// Kubelets ask for tokens of this age for pods that may read a token only once. They get one
/// that lives for a year, and a note of when it should have been renewed.
const WARN_ONLY_SECONDS: i64 = 60 * 60 + 7;
const EXTENDED_SECONDS: i64 = 365 * 24 * 60 * 60;

/// What a token is bound to, besides its account.
#[derive(Default)]
struct Bound {
    pod: Option<Reference>,
    node: Option<Reference>,
    secret: Option<Reference>,
}

/// A TokenRequest that was checked and completed.
pub struct PreparedToken {
    /// The request.
    pub request: Value,
    account: Arc<Value>,
    now: Timestamp,
    seconds: i64,
}

impl ServiceAccountTokens {
    /// Checks a TokenRequest for the service account `name` of `namespace` and fills in what it
    /// leaves out.
    pub fn prepare(
        &self,
        namespace: &str,
        name: &str,
        mut request: Value,
    ) -> Result<PreparedToken, ApiError> {
        must_match(&request, "name", "service account name", name, name)?;
        must_match(&request, "namespace", "service account namespace", namespace, name)?;
        let account = self.stored(SERVICE_ACCOUNTS, Some(namespace), name)?;
        let uid = object::uid(&request);
        if !uid.is_empty() && uid != object::uid(&account) {
            let why = format!(
                "the UID in the token request ({uid}) does not match the UID of the service account ({})",
                object::uid(&account)
            );
            return Err(ApiError::conflict(&token_request_resource(), name, &why));
        }

        let now = self.clock.now();
        let seconds = complete(&mut request, &account, self.audiences(), now);
        validate(seconds)?;
        Ok(PreparedToken { request, account, now, seconds })
    }

    /// Answers a TokenRequest with the request completed by a token.
    pub fn issue(&self, prepared: PreparedToken) -> Result<Value, ApiError> {
        let PreparedToken { mut request, account, now, seconds } = prepared;
        let (namespace, name) = (object::namespace(&account), object::name(&account));
        let bound = self.bound_object(namespace, name, &request)?;

        let audiences: Vec<String> = object::list(&request, &["spec", "audiences"])
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        let extended = seconds == WARN_ONLY_SECONDS
            && bound.pod.is_some()
            && audiences.iter().all(|audience| self.audiences().contains(audience));
        let lifetime = if extended { EXTENDED_SECONDS } else { seconds };
        let claims = Claims {
            aud: audiences,
            exp: now.as_second() + lifetime,
            iat: now.as_second(),
            iss: self.issuer().to_owned(),
            jti: self.random.uuid().to_string(),
            kubernetes: KubernetesClaims {
                namespace: namespace.to_owned(),
                node: bound.node,
                pod: bound.pod,
                secret: bound.secret,
                serviceaccount: Reference::to(&account),
                warnafter: extended.then(|| now.as_second() + seconds),
            },
            nbf: now.as_second(),
            sub: names::service_account_user(namespace, name),
        };
        let token = self
            .sign(&claims)
            .map_err(|error| ApiError::internal(format!("failed to generate token: {error}")))?;
        object::set(&mut request, &["status", "token"], token);
        object::set(
            &mut request,
            &["status", "expirationTimestamp"],
            rfc3339(now + SignedDuration::from_secs(seconds)),
        );
        Ok(request)
    }

    fn stored(
        &self,
        resource: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Arc<Value>, ApiError> {
        self.source.get(resource, namespace, name).ok_or_else(|| {
            let resource = resource.trim_start_matches('/');
            ApiError::not_found(&GroupResource::new("", resource), name)
        })
    }

    fn bound_object(
        &self,
        namespace: &str,
        account: &str,
        request: &Value,
    ) -> Result<Bound, ApiError> {
        let Some(reference) =
            object::get(request, &["spec", "boundObjectRef"]).filter(|r| !r.is_null())
        else {
            return Ok(Bound::default());
        };
        let text = |key| object::text(reference, &[key]);
        let (kind, name) = (text("kind"), text("name"));
        let (group, version) =
            text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
        let mut bound = Bound::default();
        let found = match (group, kind) {
            ("", "Pod") => {
                let pod = self.stored(PODS, Some(namespace), name)?;
                if object::text(&pod, &["spec", "serviceAccountName"]) != account {
                    return Err(ApiError::bad_request(format!(
                        "cannot bind token for serviceaccount {} to pod running with different serviceaccount name.",
                        quote(account)
                    )));
                }
                let node = object::text(&pod, &["spec", "nodeName"]);
                if !node.is_empty() {
                    // A node that is not there is still named, without a UID.
                    bound.node = Some(self.source.get(NODES, None, node).map_or_else(
                        || Reference { name: node.to_owned(), uid: String::new() },
                        |node| Reference::to(&node),
                    ));
                }
                bound.pod.insert(Reference::to(&pod))
            }
            ("", "Node") => bound.node.insert(Reference::to(&*self.stored(NODES, None, name)?)),
            ("", "Secret") => {
                let secret = self.stored(SECRETS, Some(namespace), name)?;
                bound.secret.insert(Reference::to(&secret))
            }
            _ => {
                return Err(ApiError::bad_request(format!(
                    "cannot bind token to object of type {group}/{version}, Kind={kind}"
                )));
            }
        };
        let uid = text("uid");
        if !uid.is_empty() && uid != found.uid {
            return Err(ApiError::conflict(
                &GroupResource::new(group, kind),
                name,
                &format!(
                    "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
                ),
            ));
        }
        Ok(bound)
    }
}

fn kind() -> GroupVersionKind {
    GroupVersionKind::new("authentication.k8s.io", "v1", "TokenRequest")
}

fn token_request_resource() -> GroupResource {
    GroupResource::new("authentication.k8s.io", "TokenRequest")
}

fn must_match(
    request: &Value,
    key: &str,
    what: &str,
    expected: &str,
    account: &str,
) -> Result<(), ApiError> {
    let given = object::text(request, &["metadata", key]);
    if given.is_empty() || given == expected {
        return Ok(());
    }
    let error = FieldError::invalid(
        &Path::new("metadata").child(key),
        given,
        format!("must match the {what} if specified"),
    );
    Err(ApiError::invalid(&kind(), account, &[error]))
}

/// Fills in what the client left out, and returns for how long the token is to live.
fn complete(request: &mut Value, account: &Value, audiences: &[String], now: Timestamp) -> i64 {
    object::set(request, &["status"], json!({"expirationTimestamp": null, "token": ""}));
    for key in ["name", "namespace", "uid"] {
        let value = object::text(account, &["metadata", key]).to_owned();
        object::set(request, &["metadata", key], value);
    }
    object::set(request, &["metadata", "creationTimestamp"], rfc3339(now));
    if object::list(request, &["spec", "audiences"]).is_empty() {
        object::set(request, &["spec", "audiences"], audiences.to_vec());
    }
    object::default(request, &["spec", "expirationSeconds"], DEFAULT_SECONDS);
    // Written even if it is not there.
    object::default(request, &["spec", "boundObjectRef"], Value::Null);
    object::integer(request, &["spec", "expirationSeconds"]).unwrap_or_default()
}

fn validate(seconds: i64) -> Result<(), ApiError> {
    let path = Path::new("spec").child("expirationSeconds");
    let why = if seconds < MINIMUM_SECONDS {
        "may not specify a duration less than 10 minutes"
    } else if seconds > MAXIMUM_SECONDS {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return Ok(());
    };
    Err(ApiError::invalid(&kind(), "", &[FieldError::invalid(&path, seconds, why)]))
}

/// A time as the API writes it, without fractions of a second.
pub(crate) fn rfc3339(time: Timestamp) -> String {
    let rounded =
        time.round(jiff::TimestampRound::new().smallest(Unit::Second).mode(jiff::RoundMode::Floor));
    rounded.unwrap_or(time).to_string()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fleetwright_clock::{Clock, Random};

    use super::*;
    use crate::auth::{ObjectSource, authn::signing::SigningKey, source::memory::MemorySource};

    fn fixture() -> (Arc<MemorySource>, ServiceAccountTokens) {
        let source = Arc::new(MemorySource::default());
        source.put(
            SERVICE_ACCOUNTS,
            json!({"metadata": {"namespace": "ns", "name": "robot", "uid": "u1"}}),
        );
        source.put(
            PODS,
            json!({
                "metadata": {"namespace": "ns", "name": "p", "uid": "p1"},
                "spec": {"serviceAccountName": "robot", "nodeName": "n"},
            }),
        );
        let tokens = ServiceAccountTokens::new(
            SigningKey::generate().unwrap(),
            "https://issuer".to_owned(),
            Vec::new(),
            Arc::clone(&source) as Arc<dyn ObjectSource>,
            Clock::simulated("2026-01-02T03:04:05.6Z".parse().unwrap()),
            Random::seeded(1),
        );
        (source, tokens)
    }

    fn issue(
        tokens: &ServiceAccountTokens,
        namespace: &str,
        name: &str,
        request: &Value,
    ) -> Result<Value, ApiError> {
        tokens.issue(tokens.prepare(namespace, name, request.clone())?)
    }

    fn token(answer: &Value) -> &str {
        object::text(answer, &["status", "token"])
    }

    fn own(tokens: &ServiceAccountTokens) -> Vec<String> {
        tokens.audiences().to_vec()
    }

    #[tokio::test(start_paused = true)]
    async fn tokens_are_issued_accepted_and_expire() {
        let (source, tokens) = fixture();
        let answer = issue(&tokens, "ns", "robot", &json!({"kind": "TokenRequest"})).unwrap();
        assert_eq!(
            answer["metadata"],
            json!({"name": "robot", "namespace": "ns", "uid": "u1", "creationTimestamp": "2026-01-02T03:04:05Z"})
        );
        assert_eq!(
            answer["spec"],
            json!({"audiences": ["https://issuer"], "expirationSeconds": 3600, "boundObjectRef": null})
        );
        assert_eq!(answer["status"]["expirationTimestamp"], "2026-01-02T04:04:05Z");
        let found = tokens.authenticate(token(&answer), &own(&tokens)).unwrap().unwrap();
        assert_eq!(found.user.name, "system:serviceaccount:ns:robot");
        assert_eq!(found.user.uid, "u1");
        assert_eq!(found.user.groups, ["system:serviceaccounts", "system:serviceaccounts:ns"]);
        assert!(
            found.user.extra["authentication.kubernetes.io/credential-id"][0].starts_with("JTI=")
        );
        assert_eq!(found.audiences, ["https://issuer"]);

        let other = tokens.authenticate(token(&answer), &["x".to_owned()]);
        assert_eq!(
            other.unwrap_err(),
            "token audiences [\"https://issuer\"] is invalid for the target audiences [\"x\"]"
        );
        tokio::time::advance(Duration::from_secs(3600 + 59)).await;
        assert!(tokens.authenticate(token(&answer), &own(&tokens)).unwrap().is_some());
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(
            tokens.authenticate(token(&answer), &own(&tokens)).unwrap_err(),
            "service account token has expired"
        );
        let fresh = issue(&tokens, "ns", "robot", &json!({})).unwrap();
        source.put(
            SERVICE_ACCOUNTS,
            json!({"metadata": {"namespace": "ns", "name": "robot", "uid": "u2"}}),
        );
        assert_eq!(
            tokens.authenticate(token(&fresh), &own(&tokens)).unwrap_err(),
            "service account UID (u2) does not match claim (u1)"
        );
        source.delete(SERVICE_ACCOUNTS, "ns", "robot");
        assert_eq!(
            tokens.authenticate(token(&fresh), &own(&tokens)).unwrap_err(),
            "serviceaccounts \"robot\" not found"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn forged_and_foreign_tokens_are_refused() {
        let (_, tokens) = fixture();
        let answer = issue(&tokens, "ns", "robot", &json!({})).unwrap();
        let good = token(&answer);
        for foreign in ["", "x", "a.b.c", &good[1..], &good.replace('.', "")] {
            assert_eq!(tokens.authenticate(foreign, &own(&tokens)), Ok(None), "{foreign}");
        }
        let (message, _) = good.rsplit_once('.').unwrap();
        let forged = format!("{message}.{}", "A".repeat(86));
        assert_eq!(
            tokens.authenticate(&forged, &own(&tokens)).unwrap_err(),
            "go-jose/go-jose: error in cryptographic primitive"
        );
        let (_, others) = fixture();
        assert_eq!(
            others.authenticate(good, &own(&tokens)).unwrap_err(),
            "invalid signature, no keys found"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn bound_tokens_live_as_long_as_their_pod() {
        let (source, tokens) = fixture();
        let bind = |kind: &str, name: &str, uid: &str| {
            json!({
                "spec": {"expirationSeconds": 3607, "boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": name, "uid": uid}},
            })
        };
        let answer = issue(&tokens, "ns", "robot", &bind("Pod", "p", "p1")).unwrap();
        let user = tokens.authenticate(token(&answer), &own(&tokens)).unwrap().unwrap().user;
        assert_eq!(user.extra[POD], ["p"]);
        assert_eq!(user.extra["authentication.kubernetes.io/pod-uid"], ["p1"]);
        assert_eq!(user.extra["authentication.kubernetes.io/node-name"], ["n"]);
        assert_eq!(user.extra.get("authentication.kubernetes.io/node-uid"), None);
        // Asked for as a kubelet does, it outlives its stated end.
        tokio::time::advance(Duration::from_hours(2)).await;
        assert!(tokens.authenticate(token(&answer), &own(&tokens)).is_ok());
        source.delete(PODS, "ns", "p");
        assert_eq!(
            tokens.authenticate(token(&answer), &own(&tokens)).unwrap_err(),
            "service account token has been invalidated"
        );
    }

    const POD: &str = "authentication.kubernetes.io/pod-name";

    #[tokio::test(start_paused = true)]
    async fn bad_requests_are_refused_as_upstream() {
        let (source, tokens) = fixture();
        source.put(SERVICE_ACCOUNTS, json!({"metadata": {"namespace": "ns", "name": "other"}}));
        let bind = |api: &str, kind: &str, name: &str, uid: &str| {
            json!({
                "spec": {"boundObjectRef": {"apiVersion": api, "kind": kind, "name": name, "uid": uid}},
            })
        };
        let cases = [
            ("none", json!({}), 404, "serviceaccounts \"none\" not found"),
            (
                "robot",
                json!({"metadata": {"name": "x"}}),
                422,
                "TokenRequest.authentication.k8s.io \"robot\" is invalid: metadata.name: Invalid value: \"x\": must match the service account name if specified",
            ),
            (
                "robot",
                json!({"metadata": {"namespace": "x"}}),
                422,
                "TokenRequest.authentication.k8s.io \"robot\" is invalid: metadata.namespace: Invalid value: \"x\": must match the service account namespace if specified",
            ),
            (
                "robot",
                json!({"metadata": {"uid": "1"}}),
                409,
                "Operation cannot be fulfilled on TokenRequest.authentication.k8s.io \"robot\": the UID in the token request (1) does not match the UID of the service account (u1)",
            ),
            (
                "robot",
                json!({"spec": {"expirationSeconds": 5}}),
                422,
                "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 5: may not specify a duration less than 10 minutes",
            ),
            (
                "robot",
                bind("a/v1", "Foo", "x", ""),
                400,
                "cannot bind token to object of type a/v1, Kind=Foo",
            ),
            ("robot", bind("v1", "Pod", "x", ""), 404, "pods \"x\" not found"),
            (
                "robot",
                bind("v1", "Pod", "p", "no"),
                409,
                "Operation cannot be fulfilled on Pod \"p\": the UID in the bound object reference (no) does not match the UID in record. The object might have been deleted and then recreated",
            ),
            (
                "other",
                bind("v1", "Pod", "p", ""),
                400,
                "cannot bind token for serviceaccount \"other\" to pod running with different serviceaccount name.",
            ),
        ];
        for (account, request, code, message) in cases {
            let error = issue(&tokens, "ns", account, &request).unwrap_err();
            assert_eq!((error.code().as_u16(), error.message()), (code, message), "{request}");
        }
    }
}
