//! Tokens of service accounts: issuing and verifying.

use std::{collections::BTreeMap, sync::Arc};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use fleetwright_clock::{Clock, Random};
use fleetwright_kschema::gotext::quote;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Authenticated, CREDENTIAL_ID,
    signing::{KeyError, SigningKey},
};
use crate::{
    auth::{
        ObjectSource, names,
        source::{NODES, PODS, SECRETS, SERVICE_ACCOUNTS},
        text::quoted_list,
    },
    object,
    user::UserInfo,
};

const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
const POD_UID: &str = "authentication.kubernetes.io/pod-uid";
/// Under this key a user's extra information tells on which node their pod runs.
pub const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
const NODE_UID: &str = "authentication.kubernetes.io/node-uid";

/// Clocks of clients and servers may differ by this much.
const LEEWAY: SignedDuration = SignedDuration::from_secs(60);

const INVALIDATED: &str = "service account token has been invalidated";

/// The claims of a token.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Claims {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) aud: Vec<String>,
    pub(super) exp: i64,
    pub(super) iat: i64,
    pub(super) iss: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) jti: String,
    #[serde(rename = "kubernetes.io")]
    pub(super) kubernetes: KubernetesClaims,
    pub(super) nbf: i64,
    pub(super) sub: String,
}

/// What a token says about its account and the object it is bound to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct KubernetesClaims {
    pub(super) namespace: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) node: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pod: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) secret: Option<Reference>,
    pub(super) serviceaccount: Reference,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) warnafter: Option<i64>,
}

/// An object, as a token names it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Reference {
    pub(super) name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) uid: String,
}

impl Reference {
    pub(super) fn to(value: &Value) -> Self {
        Self { name: object::name(value).to_owned(), uid: object::uid(value).to_owned() }
    }
}

/// Issues and verifies the tokens of service accounts.
pub struct ServiceAccountTokens {
    key: SigningKey,
    issuer: String,
    audiences: Vec<String>,
    pub(super) source: Arc<dyn ObjectSource>,
    pub(super) clock: Clock,
    pub(super) random: Random,
}

impl ServiceAccountTokens {
    /// Tokens signed with `key` in the name of `issuer`. Without `audiences`, the issuer is the
    /// server's audience.
    pub fn new(
        key: SigningKey,
        issuer: String,
        audiences: Vec<String>,
        source: Arc<dyn ObjectSource>,
        clock: Clock,
        random: Random,
    ) -> Self {
        let audiences = if audiences.is_empty() { vec![issuer.clone()] } else { audiences };
        Self { key, issuer, audiences, source, clock, random }
    }

    /// The audiences of this server.
    pub fn audiences(&self) -> &[String] {
        &self.audiences
    }

    /// Who signs the tokens.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The key that signs the tokens.
    pub fn key(&self) -> &SigningKey {
        &self.key
    }

    pub(super) fn sign(&self, claims: &Claims) -> Result<String, KeyError> {
        let claims = serde_json::to_value(claims).map_err(|_| KeyError::Sign)?;
        self.key.sign(&claims)
    }

    /// The service account of a token. `None` if it is no token of this issuer.
    pub(super) fn authenticate(
        &self,
        token: &str,
        wanted: &[String],
    ) -> Result<Option<Authenticated>, String> {
        let Some((message, signature, payload)) = split(token) else { return Ok(None) };
        if payload.get("iss").and_then(Value::as_str) != Some(&self.issuer) {
            return Ok(None);
        }
        let Some((header, signature)) = decode(message).zip(BASE64.decode(signature).ok()) else {
            return Ok(None);
        };
        match header.get("kid").and_then(Value::as_str) {
            None | Some("") => {}
            Some(kid) if kid == self.key.id() => {}
            Some(_) => return Err("invalid signature, no keys found".to_owned()),
        }
        let algorithm = header.get("alg").and_then(Value::as_str);
        if algorithm != Some("ES256") || !self.key.verify(message, &signature) {
            return Err("go-jose/go-jose: error in cryptographic primitive".to_owned());
        }
        let claims: Claims = serde_json::from_value(payload)
            .map_err(|_| "service account token claims could not be validated due to unexpected validation error".to_owned())?;
        let own = if claims.aud.is_empty() { &self.audiences } else { &claims.aud };
        let audiences: Vec<String> = own.iter().filter(|a| wanted.contains(a)).cloned().collect();
        if audiences.is_empty() {
            return Err(format!(
                "token audiences {} is invalid for the target audiences {}",
                quoted_list(own),
                quoted_list(wanted)
            ));
        }
        let user = self.validate(&claims)?;
        Ok(Some(Authenticated { user, audiences }))
    }

    fn validate(&self, claims: &Claims) -> Result<UserInfo, String> {
        let now = self.clock.now();
        let at = |seconds: i64| Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX);
        if now + LEEWAY < at(claims.nbf) {
            return Err("service account token is not valid yet".to_owned());
        }
        if now - LEEWAY > at(claims.exp) {
            return Err("service account token has expired".to_owned());
        }
        if now + LEEWAY < at(claims.iat) {
            return Err("service account token is issued in the future".to_owned());
        }
        let claimed = &claims.kubernetes;
        let namespace = claimed.namespace.as_str();
        let account = &claimed.serviceaccount;
        let stored = self
            .source
            .get(SERVICE_ACCOUNTS, Some(namespace), &account.name)
            .ok_or_else(|| format!("serviceaccounts {} not found", quote(&account.name)))?;
        if object::uid(&stored) != account.uid {
            return Err(format!(
                "service account UID ({}) does not match claim ({})",
                object::uid(&stored),
                account.uid
            ));
        }
        if is_gone(&stored, now) {
            return Err(format!("service account {namespace}/{} has been deleted", account.name));
        }
        if let Some(secret) = &claimed.secret {
            self.check_bound(SECRETS, Some(namespace), "secret", secret, now)?;
        }
        let mut extra = BTreeMap::new();
        if let Some(pod) = &claimed.pod {
            self.check_bound(PODS, Some(namespace), "pod", pod, now)?;
            extra.insert(POD_NAME.to_owned(), vec![pod.name.clone()]);
            extra.insert(POD_UID.to_owned(), vec![pod.uid.clone()]);
        }
        if let Some(node) = &claimed.node {
            // The node of a pod is only information: the pod is what the token is bound to.
            if claimed.pod.is_none() {
                self.check_bound(NODES, None, "node", node, now)?;
            }
            extra.insert(NODE_NAME.to_owned(), vec![node.name.clone()]);
            if !node.uid.is_empty() {
                extra.insert(NODE_UID.to_owned(), vec![node.uid.clone()]);
            }
        }
        if !claims.jti.is_empty() {
            extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("JTI={}", claims.jti)]);
        }
        Ok(UserInfo {
            name: names::service_account_user(namespace, &account.name),
            uid: account.uid.clone(),
            groups: names::service_account_groups(namespace),
            extra,
        })
    }

    /// Whether the object that a token is bound to is still there.
    fn check_bound(
        &self,
        resource: &str,
        namespace: Option<&str>,
        kind: &str,
        claimed: &Reference,
        now: Timestamp,
    ) -> Result<(), String> {
        let stored = self
            .source
            .get(resource, namespace, &claimed.name)
            .ok_or_else(|| INVALIDATED.to_owned())?;
        if object::uid(&stored) != claimed.uid {
            return Err(format!(
                "{kind} UID ({}) does not match service account {kind} ref claim ({})",
                object::uid(&stored),
                claimed.uid
            ));
        }
        if is_gone(&stored, now) {
            return Err(INVALIDATED.to_owned());
        }
        Ok(())
    }
}

/// Whether the object was deleted so long ago that it only waits for its finalizers.
fn is_gone(stored: &Value, now: Timestamp) -> bool {
    object::text(stored, &["metadata", "deletionTimestamp"])
        .parse::<Timestamp>()
        .is_ok_and(|deleted| deleted < now - LEEWAY)
}

/// The signed part, the signature and the claims of a compact token.
fn split(token: &str) -> Option<(&str, &str, Value)> {
    let (message, signature) = token.rsplit_once('.')?;
    let (header, payload) = message.split_once('.')?;
    if header.trim_start().starts_with('{') || payload.contains('.') {
        return None;
    }
    let payload = serde_json::from_slice(&BASE64.decode(payload).ok()?).ok()?;
    Some((message, signature, payload))
}

/// The header of a token.
fn decode(message: &str) -> Option<Value> {
    let (header, _) = message.split_once('.')?;
    serde_json::from_slice(&BASE64.decode(header).ok()?).ok()
}
