//! Who may come in, and do what: the glue between requests and [`crate::auth`].

use std::sync::{Arc, OnceLock};

use fleetwright_clock::{Clock, Random};
use http::{header, request::Parts};
use serde_json::Value;

use crate::{
    auth::{
        Attributes, Authorizer, SuperuserThenRbac,
        authn::{
            Authenticators, Credentials, impersonate, service_account::ServiceAccountTokens,
            signing::SigningKey, token_request::PreparedToken, token_table::TokenTable,
        },
        authorize,
        node::NodeAuthorizer,
        rbac::Rbac,
    },
    objects::Objects,
    request::RequestInfo,
    service::{KnownUser, PeerCertificate},
    status::Result,
    storage::Storage,
    user::UserInfo,
};

/// Who issues the tokens of service accounts.
const ISSUER: &str = "https://kubernetes.default.svc";

/// Authentication and authorization of a server.
pub struct Access {
    authenticators: Authenticators,
    authorizer: SuperuserThenRbac,
    objects: Arc<Objects>,
    audience: OnceLock<Audience>,
}

/// Hears of every request, and whether it was allowed.
type Audience = Box<dyn Fn(&Attributes<'_>, bool) + Send + Sync>;

impl Access {
    /// Users come with certificates, with `tokens` (CSV), or as service accounts.
    pub fn new(
        storage: Arc<Storage>,
        clock: &Clock,
        random: &Random,
        tokens: &str,
        service_account_key: &[u8],
    ) -> std::result::Result<Self, String> {
        let objects = Arc::new(Objects::new(storage));
        let key = SigningKey::from_pkcs8(service_account_key).map_err(|error| error.to_string())?;
        let service_accounts = ServiceAccountTokens::new(
            key,
            ISSUER.to_owned(),
            Vec::new(),
            Arc::clone(&objects) as _,
            clock.clone(),
            random.fork(),
        );
        let tokens = TokenTable::parse(tokens, "token file").map_err(|error| error.to_string())?;
        let rbac = Arc::new(Rbac::new(Arc::clone(&objects) as _));
        Ok(Self {
            authenticators: Authenticators { tokens, service_accounts, anonymous: true },
            authorizer: SuperuserThenRbac::new(rbac)
                .with_nodes(NodeAuthorizer::new(Arc::clone(&objects) as _)),
            objects,
            audience: OnceLock::new(),
        })
    }

    /// Has `audience` hear of every request from now on, and whether it was allowed. The first
    /// one stays.
    pub fn audit(&self, audience: impl Fn(&Attributes<'_>, bool) + Send + Sync + 'static) {
        let _ = self.audience.set(Box::new(audience));
    }

    /// The objects that decisions are made from.
    pub fn objects(&self) -> Arc<Objects> {
        Arc::clone(&self.objects)
    }

    /// Decides what users may do.
    pub fn authorizer(&self) -> &dyn Authorizer {
        &self.authorizer
    }

    /// The roles behind those decisions.
    pub fn rbac(&self) -> &Rbac {
        self.authorizer.rbac()
    }

    /// Finds out who users are.
    pub fn authenticators(&self) -> &Authenticators {
        &self.authenticators
    }

    /// Finds the user of a request, impersonated if asked for.
    pub(crate) fn identify(
        &self,
        parts: &Parts,
        info: &RequestInfo,
        warnings: &mut Vec<String>,
    ) -> Result<Arc<UserInfo>> {
        let user = match parts.extensions.get::<KnownUser>() {
            Some(KnownUser(user)) => Arc::clone(user),
            None => self.authenticate(parts, warnings)?,
        };
        match impersonate::wanted_user(&parts.headers)? {
            None => Ok(user),
            Some(wanted) => {
                let request = Attributes::of_request(&user, info);
                impersonate::impersonate(&self.authorizer, &wanted, &request).map(Arc::new)
            }
        }
    }

    fn authenticate(&self, parts: &Parts, warnings: &mut Vec<String>) -> Result<Arc<UserInfo>> {
        let certificate = parts.extensions.get::<PeerCertificate>();
        let authorization = parts.headers.get(header::AUTHORIZATION);
        // A connection has one certificate and many requests.
        if authorization.is_none()
            && let Some(user) = certificate.and_then(|certificate| certificate.user.get())
        {
            return Ok(Arc::clone(user));
        }
        let (found, warning) = self.authenticators.authenticate(&Credentials {
            certificate: certificate.map(|certificate| &*certificate.der),
            authorization: authorization.and_then(|value| value.to_str().ok()),
        });
        warnings.extend(warning.map(str::to_owned));
        let user = Arc::new(found?);
        if authorization.is_none()
            && let Some(certificate) = certificate
        {
            // Another request may have been faster, with the same result.
            let _ = certificate.user.set(Arc::clone(&user));
        }
        Ok(user)
    }

    /// Refuses what the user may not do.
    pub(crate) fn authorize(&self, user: &UserInfo, info: &RequestInfo) -> Result<()> {
        let attributes = Attributes::of_request(user, info);
        let decision = self.authorizer.authorize(&attributes);
        if let Some(audience) = self.audience.get() {
            audience(&attributes, decision.is_allowed());
        }
        if decision.is_allowed() {
            return Ok(());
        }
        Err(authorize::forbidden(&attributes, &decision.reason))
    }

    /// Checks and completes a request for a token of a service account.
    pub(crate) fn prepare_token(
        &self,
        namespace: &str,
        name: &str,
        request: Value,
    ) -> Result<PreparedToken> {
        self.authenticators.service_accounts.prepare(namespace, name, request)
    }

    /// Answers it with a token.
    pub(crate) fn issue_token(&self, prepared: PreparedToken) -> Result<Value> {
        self.authenticators.service_accounts.issue(prepared)
    }
}
