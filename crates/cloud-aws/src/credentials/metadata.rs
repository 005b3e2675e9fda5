//! Keys of the container or the instance that the process runs in.

use bytes::Bytes;
use fleetwright_cloud::{CloudError, ErrorClass};
use http::{Method, Request};
use serde::Deserialize;
use tower::ServiceExt;

use super::{Environment, Keys, OPERATION, refused};
use crate::wire::Wire;

const CONTAINER: &str = "http://169.254.170.2";
const INSTANCE: &str = "http://169.254.169.254";
const TOKEN_HEADER: &str = "x-aws-ec2-metadata-token";
const TOKEN_SECONDS: &str = "21600";

/// What both answer.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    access_key_id: String,
    secret_access_key: String,
    token: Option<String>,
    expiration: Option<String>,
}

pub(super) async fn keys(wire: &Wire, environment: &Environment) -> Result<Keys, CloudError> {
    let get = |name: &str| environment.get(name).filter(|value| !value.is_empty());
    let container = get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
        .map(|path| format!("{CONTAINER}{path}"))
        .or_else(|| get("AWS_CONTAINER_CREDENTIALS_FULL_URI").cloned());
    let answer = if let Some(uri) = container {
        let token = match get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
            Some(file) => Some(std::fs::read_to_string(file).map_err(|error| {
                refused(format!("cannot read the authorization token {file}: {error}"))
            })?),
            None => get("AWS_CONTAINER_AUTHORIZATION_TOKEN").cloned(),
        };
        let headers = token.iter().map(|token| ("authorization", token.trim()));
        ask(wire, Method::GET, &uri, headers).await?
    } else {
        let disabled = get("AWS_EC2_METADATA_DISABLED");
        if disabled.is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Err(none("the instance's metadata is disabled"));
        }
        let base = get("AWS_EC2_METADATA_SERVICE_ENDPOINT").map_or(INSTANCE, String::as_str);
        instance(wire, base.trim_end_matches('/')).await?
    };
    let answer: Answer = serde_json::from_slice(&answer)
        .map_err(|_| refused("the metadata service answered without keys"))?;
    Ok(Keys {
        access_key_id: answer.access_key_id,
        secret_access_key: answer.secret_access_key,
        session_token: answer.token,
        expires: answer.expiration.and_then(|text| text.parse().ok()),
    })
}

/// A token first (version 2), then the name of the role, then its keys.
async fn instance(wire: &Wire, base: &str) -> Result<Bytes, CloudError> {
    let seconds = [("x-aws-ec2-metadata-token-ttl-seconds", TOKEN_SECONDS)];
    let uri = format!("{base}/latest/api/token");
    let token = ask(wire, Method::PUT, &uri, seconds)
        .await
        .map_err(|error| none(&format!("the instance's metadata do not answer ({error})")))?;
    let token = String::from_utf8_lossy(&token).into_owned();
    let header = [(TOKEN_HEADER, token.as_str())];
    let roles = format!("{base}/latest/meta-data/iam/security-credentials/");
    let role = ask(wire, Method::GET, &roles, header).await?;
    let role = String::from_utf8_lossy(&role).lines().next().unwrap_or_default().trim().to_owned();
    ask(wire, Method::GET, &format!("{roles}{role}"), header).await
}

async fn ask<'a>(
    wire: &Wire,
    method: Method,
    uri: &str,
    headers: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Bytes, CloudError> {
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let request = request.body(Bytes::new()).map_err(|error| refused(error.to_string()))?;
    let answer = wire.transport.clone().oneshot(request).await;
    let answer = answer.map_err(|error| {
        CloudError::new(ErrorClass::Transient, OPERATION, "", error.to_string())
    })?;
    if answer.status().is_success() {
        Ok(answer.into_body())
    } else {
        Err(refused(format!("{uri} answered {}", answer.status())))
    }
}

fn none(why: &str) -> CloudError {
    refused(format!(
        "no credentials were found in the environment, in a web identity or in the user's files, \
         and {why}: name a Secret in credentialsSecret, or give the process a role"
    ))
}
