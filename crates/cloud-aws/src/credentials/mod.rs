//! As whom calls are made.
//!
//! Keys come from a Secret (the two keys, or a profile file that may name a role and a web identity
//! token) or from what the process has. Everything that has to be asked for (the token service, the
//! metadata of the instance) is asked over the same transport as any other call, so that it can be
//! simulated and counted; this is also why the vendor's `aws-config` is not used: it brings a
//! second HTTP stack, a second retry policy and its own clock for what is three small requests.

mod ambient;
mod metadata;
mod profile;

use std::{collections::BTreeMap, fmt, time::Duration};

use bytes::Bytes;
use fleetwright_cloud::{CloudError, Credentials, ErrorClass};
use jiff::Timestamp;
use tokio::sync::Mutex;

use crate::{
    model::sts::{requests, responses},
    wire::Wire,
};
use profile::Profile;

pub use ambient::Environment;

/// Keys are renewed this long before they expire.
const RENEW_BEFORE: Duration = Duration::from_mins(5);
/// The name of our sessions in the vendor's logs.
const SESSION: &str = "fleetwright";
/// What went wrong, in the place of an operation.
const OPERATION: &str = "GetCredentials";

/// What signs requests.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Keys {
    pub(crate) access_key_id: String,
    pub(crate) secret_access_key: String,
    pub(crate) session_token: Option<String>,
    pub(crate) expires: Option<Timestamp>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("expires", &self.expires).finish_non_exhaustive()
    }
}

/// Where keys come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// They are here.
    Given(Keys),
    /// A role that a token in a file stands for.
    WebIdentity { role: String, token_file: String, session: String },
    /// A role that other keys may take.
    Role { role: String, session: String, external_id: Option<String>, by: Box<Source> },
    /// What the process has.
    Ambient,
}

impl Source {
    /// Where the keys of an account come from.
    pub(crate) fn of(credentials: &Credentials) -> Result<Self, CloudError> {
        match credentials {
            Credentials::Ambient => Ok(Self::Ambient),
            Credentials::Secret(data) => Self::of_secret(data),
        }
    }

    fn of_secret(data: &BTreeMap<String, Bytes>) -> Result<Self, CloudError> {
        let text = |key: &str| -> Result<Option<String>, CloudError> {
            let Some(bytes) = data.get(key).filter(|bytes| !bytes.is_empty()) else {
                return Ok(None);
            };
            let text = std::str::from_utf8(bytes);
            let text = text.map_err(|_| refused(format!("the Secret's {key} is not text")))?;
            Ok(Some(text.trim().to_owned()))
        };
        if let Some(file) = text("credentials")? {
            return Profile::parse(&file, "default")?.source(&file);
        }
        match (text("aws_access_key_id")?, text("aws_secret_access_key")?) {
            (Some(access_key_id), Some(secret_access_key)) => Ok(Self::Given(Keys {
                access_key_id,
                secret_access_key,
                session_token: text("aws_session_token")?,
                expires: None,
            })),
            _ => Err(refused(
                "the Secret has neither aws_access_key_id with aws_secret_access_key, nor \
                 credentials",
            )),
        }
    }

    /// Whose limits calls count against, as far as it can be told without asking.
    pub(crate) fn account(&self) -> String {
        match self {
            Self::Given(keys) => keys.access_key_id.clone(),
            Self::WebIdentity { role, .. } | Self::Role { role, .. } => role.clone(),
            Self::Ambient => "ambient".to_owned(),
        }
    }

    async fn load(
        &self,
        wire: &Wire,
        region: &str,
        environment: &Environment,
    ) -> Result<Keys, CloudError> {
        match self {
            Self::Given(keys) => Ok(keys.clone()),
            Self::WebIdentity { role, token_file, session } => {
                let token = std::fs::read_to_string(token_file).map_err(|error| {
                    refused(format!("cannot read the web identity token {token_file}: {error}"))
                })?;
                let request = requests::AssumeRoleWithWebIdentityRequest {
                    role_arn: Some(role.clone()),
                    role_session_name: Some(session.clone()),
                    web_identity_token: Some(token.trim().to_owned()),
                };
                let answer = wire.exchange(region, None, &request).await?;
                keys(answer.credentials)
            }
            Self::Role { role, session, external_id, by } => {
                let by = Box::pin(by.load(wire, region, environment)).await?;
                let request = requests::AssumeRoleRequest {
                    role_arn: Some(role.clone()),
                    role_session_name: Some(session.clone()),
                    external_id: external_id.clone(),
                };
                let answer = wire.exchange(region, Some(&by), &request).await?;
                keys(answer.credentials)
            }
            Self::Ambient => match ambient::source(environment)? {
                Some(source) => Box::pin(source.load(wire, region, environment)).await,
                None => metadata::keys(wire, environment).await,
            },
        }
    }
}

fn keys(answer: Option<responses::Credentials>) -> Result<Keys, CloudError> {
    let incomplete = || refused("the token service answered without keys");
    let answer = answer.ok_or_else(incomplete)?;
    Ok(Keys {
        access_key_id: answer.access_key_id.ok_or_else(incomplete)?,
        secret_access_key: answer.secret_access_key.ok_or_else(incomplete)?,
        session_token: answer.session_token,
        expires: answer.expiration.and_then(|text| text.parse().ok()),
    })
}

fn refused(message: impl Into<String>) -> CloudError {
    CloudError::new(ErrorClass::Credentials, OPERATION, "", message)
}

/// Keys, kept and renewed in time.
#[derive(Debug)]
pub(crate) struct KeyRing {
    source: Source,
    environment: Environment,
    kept: Mutex<Option<Keys>>,
}

impl KeyRing {
    pub(crate) fn new(source: Source, environment: Environment) -> Self {
        Self { source, environment, kept: Mutex::new(None) }
    }

    /// Keys that are good for a while. Those who ask together wait for one renewal.
    pub(crate) async fn keys(&self, wire: &Wire, region: &str) -> Result<Keys, CloudError> {
        let mut kept = self.kept.lock().await;
        let now = wire.clock.now();
        let good =
            |keys: &Keys, moment: Timestamp| keys.expires.is_none_or(|expires| expires > moment);
        if let Some(keys) = kept.as_ref().filter(|keys| good(keys, now + RENEW_BEFORE)) {
            return Ok(keys.clone());
        }
        match self.source.load(wire, region, &self.environment).await {
            Ok(keys) => Ok(kept.insert(keys).clone()),
            Err(error) => match kept.as_ref().filter(|keys| good(keys, now)) {
                Some(keys) => Ok(keys.clone()),
                None => Err(error),
            },
        }
    }

    /// The service does not take the keys any more: the next call asks for new ones.
    pub(crate) async fn forget(&self) {
        *self.kept.lock().await = None;
    }
}

#[cfg(test)]
mod tests;
