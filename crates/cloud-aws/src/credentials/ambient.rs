//! What the process has.

use std::collections::BTreeMap;

use fleetwright_cloud::CloudError;

use super::{Keys, SESSION, Source, profile::Profile, refused};

/// The variables of the process, read once where it starts.
pub type Environment = BTreeMap<String, String>;

/// Where the environment says that keys come from, in the order of the vendor's own tools: the
/// variables, a web identity, the user's files. None leaves it to the container or the instance.
pub(super) fn source(environment: &Environment) -> Result<Option<Source>, CloudError> {
    let get = |name: &str| environment.get(name).filter(|value| !value.is_empty()).cloned();
    let profile = get("AWS_PROFILE");
    if profile.is_none()
        && let (Some(access_key_id), Some(secret_access_key)) =
            (get("AWS_ACCESS_KEY_ID"), get("AWS_SECRET_ACCESS_KEY"))
    {
        let session_token = get("AWS_SESSION_TOKEN");
        let keys = Keys { access_key_id, secret_access_key, session_token, expires: None };
        return Ok(Some(Source::Given(keys)));
    }
    if let (Some(role), Some(token_file)) =
        (get("AWS_ROLE_ARN"), get("AWS_WEB_IDENTITY_TOKEN_FILE"))
    {
        let session = get("AWS_ROLE_SESSION_NAME").unwrap_or_else(|| SESSION.to_owned());
        return Ok(Some(Source::WebIdentity { role, token_file, session }));
    }
    let home = get("HOME").unwrap_or_default();
    let files = [
        get("AWS_SHARED_CREDENTIALS_FILE").unwrap_or_else(|| format!("{home}/.aws/credentials")),
        get("AWS_CONFIG_FILE").unwrap_or_else(|| format!("{home}/.aws/config")),
    ];
    let name = profile.as_deref().unwrap_or("default");
    // A role may stand in one file and the keys that take it in the other.
    let text: Vec<String> =
        files.iter().filter_map(|file| std::fs::read_to_string(file).ok()).collect();
    let text = text.join("\n");
    match Profile::parse(&text, name) {
        Ok(found) => match found.source(&text) {
            Ok(source) => Ok(Some(source)),
            // A default profile often holds a region alone.
            Err(_) if profile.is_none() => Ok(None),
            Err(error) => Err(error),
        },
        Err(_) if profile.is_none() => Ok(None),
        Err(_) => Err(refused(format!(
            "AWS_PROFILE is {name:?}, and {} have no such profile",
            files.join(" and ")
        ))),
    }
}
