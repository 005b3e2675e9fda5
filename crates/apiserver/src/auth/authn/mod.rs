//! Who sends a request?
//!
//! Authenticators are tried in order, as kube-apiserver does: the client's certificate, then the
//! bearer token (a table of static tokens, then tokens of service accounts), then, if nothing
//! was presented at all, the anonymous user. A presented credential that is wrong is an error,
//! never anonymous.

pub mod certificate;
mod csv;
pub mod impersonate;
pub mod service_account;
pub mod signing;
pub mod token_request;
pub mod token_table;

use crate::{
    status::ApiError,
    user::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, UserInfo},
};

use service_account::ServiceAccountTokens;
use token_table::TokenTable;

/// The key of a user's extra information under which a credential is identified.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// What a bearer token with a space before it earns the client.
const TOKEN_AFTER_SPACE: &str = "the provided Authorization header contains extra space before the bearer token, and is ignored";

/// The credentials that a request carries.
#[derive(Clone, Copy, Debug, Default)]
pub struct Credentials<'a> {
    /// The client's certificate, already verified against the client authority, in DER.
    pub certificate: Option<&'a [u8]>,
    /// The `Authorization` header.
    pub authorization: Option<&'a str>,
}

/// A user that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authenticated {
    /// The user.
    pub user: UserInfo,
    /// The audiences that the credential is for; empty if it has none.
    pub audiences: Vec<String>,
}

/// Why a request has no user. The client is told nothing but "Unauthorized".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unauthenticated {
    /// Nothing was presented, and anonymous requests are not allowed.
    #[error("no credentials")]
    NoCredentials,
    /// What was presented is wrong.
    #[error("{0}")]
    Rejected(String),
}

impl From<Unauthenticated> for ApiError {
    fn from(_: Unauthenticated) -> Self {
        Self::unauthorized()
    }
}

/// The authenticators of a server.
pub struct Authenticators {
    /// Static tokens.
    pub tokens: TokenTable,
    /// Tokens of service accounts.
    pub service_accounts: ServiceAccountTokens,
    /// Whether requests without credentials are let in as `system:anonymous`.
    pub anonymous: bool,
}

/// What became of looking for a user: the user, or nothing, or a reason to refuse.
type Found = Result<Option<Authenticated>, String>;

impl Authenticators {
    /// Finds the user of a request, and a warning for the client.
    pub fn authenticate(
        &self,
        credentials: &Credentials<'_>,
    ) -> (Result<UserInfo, Unauthenticated>, Option<&'static str>) {
        let (token, warning) = bearer_token(credentials.authorization);
        let result =
            self.identify(credentials.certificate, token, None).and_then(|found| match found {
                Some(found) => Ok(found.user),
                None if self.anonymous => Ok(UserInfo::anonymous()),
                None => Err(Unauthenticated::NoCredentials),
            });
        (result, warning)
    }

    /// Finds the user of a token for the given audiences (those of the server if empty).
    pub fn authenticate_token(
        &self,
        token: &str,
        audiences: &[String],
    ) -> Result<Authenticated, Unauthenticated> {
        let header = format!("Bearer {token}");
        let (token, _) = bearer_token(Some(&header));
        let audiences = (!audiences.is_empty()).then_some(audiences);
        self.identify(None, token, audiences)?.ok_or(Unauthenticated::NoCredentials)
    }

    fn identify(
        &self,
        certificate: Option<&[u8]>,
        token: Option<&str>,
        audiences: Option<&[String]>,
    ) -> Result<Option<Authenticated>, Unauthenticated> {
        let audiences = audiences.unwrap_or(self.service_accounts.audiences());
        let mut errors = Vec::new();
        // The server's own token is looked for first, and a token that is not it is an error,
        // though only one of several.
        if token.is_some() {
            errors.push(INVALID_TOKEN.to_owned());
        }
        let attempts: [&dyn Fn() -> Found; 2] = [
            &|| {
                certificate.map_or(Ok(None), |der| {
                    let user = certificate::user(der)?;
                    Ok(user.map(|user| Authenticated { user, audiences: Vec::new() }))
                })
            },
            &|| token.map_or(Ok(None), |token| self.identify_token(token, audiences)),
        ];
        for attempt in attempts {
            match attempt() {
                Ok(Some(mut found)) => {
                    add_authenticated_group(&mut found.user);
                    return Ok(Some(found));
                }
                Ok(None) => {}
                Err(error) if errors.contains(&error) => {}
                Err(error) => errors.push(error),
            }
        }
        match errors.as_slice() {
            [] => Ok(None),
            [one] => Err(Unauthenticated::Rejected(one.clone())),
            several => Err(Unauthenticated::Rejected(format!("[{}]", several.join(", ")))),
        }
    }

    fn identify_token(&self, token: &str, audiences: &[String]) -> Found {
        // Static tokens are for the server itself, whatever its audiences are called.
        let own: Vec<String> = self
            .service_accounts
            .audiences()
            .iter()
            .filter(|own| audiences.contains(own))
            .cloned()
            .collect();
        if !own.is_empty()
            && let Some(user) = self.tokens.user(token)
        {
            return Ok(Some(Authenticated { user: user.clone(), audiences: own }));
        }
        self.service_accounts
            .authenticate(token, audiences)?
            .map_or_else(|| Err(INVALID_TOKEN.to_owned()), |found| Ok(Some(found)))
    }
}

const INVALID_TOKEN: &str = "invalid bearer token";

/// The token of an `Authorization` header, and a warning for the client.
fn bearer_token(header: Option<&str>) -> (Option<&str>, Option<&'static str>) {
    let mut parts = header.unwrap_or_default().trim().splitn(3, ' ');
    let (scheme, token, rest) = (parts.next(), parts.next(), parts.next());
    if !scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer")) {
        return (None, None);
    }
    match (token, rest) {
        (Some(""), Some(_)) => (None, Some(TOKEN_AFTER_SPACE)),
        (Some("") | None, _) => (None, None),
        (token, _) => (token, None),
    }
}

/// Every user who presented something belongs to `system:authenticated`.
fn add_authenticated_group(user: &mut UserInfo) {
    if user.name != ANONYMOUS && !user.in_group(AUTHENTICATED) && !user.in_group(UNAUTHENTICATED) {
        user.groups.push(AUTHENTICATED.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::auth::{ObjectSource, source::memory::MemorySource};
    use fleetwright_clock::{Clock, Random};

    fn authenticators(anonymous: bool) -> Authenticators {
        Authenticators {
            tokens: TokenTable::parse("secret,alice,1,\"dev,ops\"\nroot,admin,2\n", "t").unwrap(),
            service_accounts: ServiceAccountTokens::new(
                signing::SigningKey::generate().unwrap(),
                "https://issuer".to_owned(),
                Vec::new(),
                Arc::new(MemorySource::default()) as Arc<dyn ObjectSource>,
                Clock::system(),
                Random::seeded(1),
            ),
            anonymous,
        }
    }

    #[test]
    fn tokens_anonymous_and_refusals() {
        let with = authenticators(true);
        let user = |header: Option<&str>| {
            with.authenticate(&Credentials { certificate: None, authorization: header })
        };
        let (alice, _) = user(Some("Bearer secret"));
        let alice = alice.unwrap();
        assert_eq!(alice.name, "alice");
        assert_eq!(alice.uid, "1");
        assert_eq!(alice.groups, ["dev", "ops", "system:authenticated"]);
        assert_eq!(user(Some(" bearer root ")).0.unwrap().name, "admin");
        for header in [None, Some(""), Some("Basic x"), Some("Bearer"), Some("secret")] {
            assert_eq!(user(header).0.unwrap(), UserInfo::anonymous(), "{header:?}");
        }
        assert_eq!(
            user(Some("Bearer  secret")),
            (Ok(UserInfo::anonymous()), Some(TOKEN_AFTER_SPACE))
        );
        assert_eq!(
            user(Some("Bearer wrong")).0,
            Err(Unauthenticated::Rejected("invalid bearer token".to_owned()))
        );
        let (result, _) = authenticators(false).authenticate(&Credentials::default());
        assert_eq!(result, Err(Unauthenticated::NoCredentials));
        assert_eq!(ApiError::from(Unauthenticated::NoCredentials), ApiError::unauthorized());
    }

    #[test]
    fn static_tokens_are_for_the_server_only() {
        let all = authenticators(false);
        let found = all.authenticate_token("secret", &[]).unwrap();
        assert_eq!(found.audiences, ["https://issuer"]);
        assert_eq!(
            all.authenticate_token("secret", &["x".to_owned()]).unwrap_err().to_string(),
            "invalid bearer token"
        );
    }
}
