//! Profile files, as the vendor's tools write them.

use std::collections::BTreeMap;

use fleetwright_cloud::CloudError;

use super::{Keys, SESSION, Source, refused};

/// A profile of a file.
#[derive(Debug)]
pub(super) struct Profile(BTreeMap<String, String>);

/// Profiles that take their keys from another, from another …
const LONGEST_CHAIN: usize = 8;

impl Profile {
    /// Finds a profile in a file.
    pub(super) fn parse(file: &str, name: &str) -> Result<Self, CloudError> {
        let mut found: Option<BTreeMap<String, String>> = None;
        let mut inside = false;
        for line in file.lines().map(str::trim) {
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                let section = section.trim();
                inside = section.strip_prefix("profile ").unwrap_or(section).trim() == name;
                if inside {
                    found.get_or_insert_default();
                }
            } else if inside
                && let Some(profile) = &mut found
                && let Some((key, value)) = line.split_once('=')
            {
                profile.insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
            }
        }
        found.map(Self).ok_or_else(|| refused(format!("there is no profile {name:?} in the file")))
    }

    /// Where its keys come from; other profiles of the file may be needed for that.
    pub(super) fn source(&self, file: &str) -> Result<Source, CloudError> {
        self.source_within(file, LONGEST_CHAIN)
    }

    fn source_within(&self, file: &str, left: usize) -> Result<Source, CloudError> {
        let Some(role) = self.get("role_arn") else { return self.given() };
        let session = self.get("role_session_name").unwrap_or_else(|| SESSION.to_owned());
        if let Some(token_file) = self.get("web_identity_token_file") {
            return Ok(Source::WebIdentity { role, token_file, session });
        }
        let by = match self.get("source_profile") {
            Some(_) if left == 0 => {
                return Err(refused("the profiles of the file refer to each other"));
            }
            Some(name) => Self::parse(file, &name)?.source_within(file, left - 1)?,
            None if self.get("credential_source").is_some() => Source::Ambient,
            None => self.given()?,
        };
        let external_id = self.get("external_id");
        Ok(Source::Role { role, session, external_id, by: Box::new(by) })
    }

    fn given(&self) -> Result<Source, CloudError> {
        match (self.get("aws_access_key_id"), self.get("aws_secret_access_key")) {
            (Some(access_key_id), Some(secret_access_key)) => Ok(Source::Given(Keys {
                access_key_id,
                secret_access_key,
                session_token: self.get("aws_session_token"),
                expires: None,
            })),
            _ => Err(refused(
                "the profile has neither aws_access_key_id with aws_secret_access_key, nor \
                 role_arn with web_identity_token_file",
            )),
        }
    }

    fn get(&self, key: &str) -> Option<String> {
        self.0.get(key).filter(|value| !value.is_empty()).cloned()
    }
}
