//! Which rules a provider spec is held to, and what they share.

use fleetwright_admission::FieldError;
use fleetwright_api::config::PlatformType;
use fleetwright_api::machine::{ProviderSpec, ProviderSpecError};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::findings::Findings;
use super::{Facts, InterruptibleControlPlane, aws, azure, gcp};

/// What the Machine is, as far as a provider spec depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owner {
    /// Whether it belongs to the control plane.
    pub(super) control_plane: bool,
}

/// Checks a provider spec by the rules of the cluster's platform.
pub(super) fn check(spec: &ProviderSpec, owner: Owner, facts: &Facts) -> Findings {
    let mut findings = Findings::default();
    let checked = match facts.platform {
        Some(PlatformType::Aws) => {
            read(spec).map(|spec| aws::check(&spec, owner, facts, &mut findings))
        }
        Some(PlatformType::Gcp) => {
            read(spec).map(|spec| gcp::check(&spec, owner, facts, &mut findings))
        }
        Some(PlatformType::Azure) => {
            read(spec).map(|spec| azure::check(&spec, owner, facts, &mut findings))
        }
        _ => Ok(()),
    };
    if let Err(error) = checked {
        findings.error(error);
    }
    findings
}

/// Reads a provider spec, or says why not.
pub(super) fn read<T: DeserializeOwned>(spec: &ProviderSpec) -> Result<T, FieldError> {
    spec.read().map_err(|error| match error {
        ProviderSpecError::Absent => {
            FieldError::required("providerSpec.value", "a value must be provided")
        }
        ProviderSpecError::Malformed(error) => FieldError::invalid(
            "providerSpec.value",
            spec.value.clone().unwrap_or(Value::Null),
            error.to_string(),
        ),
    })
}

/// What an object says it is, and what it should be.
#[derive(Debug, Clone, Copy)]
pub(super) struct TypeMeta<'a> {
    /// Group and version as written.
    pub(super) api_version: Option<&'a str>,
    /// Kind as written.
    pub(super) kind: Option<&'a str>,
    /// Groups and versions that are known.
    pub(super) known: [&'static str; 2],
    /// The kind that it should have.
    pub(super) expected: &'static str,
}

impl TypeMeta<'_> {
    /// An object of another kind is read as this one, with a warning.
    pub(super) fn check(self, findings: &mut Findings) {
        let Self { api_version, kind, known, expected } = self;
        let (api_version, kind) = (api_version.unwrap_or_default(), kind.unwrap_or_default());
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let known = known
            .iter()
            .any(|known| known.split_once('/').is_some_and(|(known, _)| known == group));
        if !known || !matches!(version, "v1" | "v1beta1") || kind != expected {
            findings.warn(format!(
                "incorrect GroupVersionKind for {expected} object: {group}/{version}, Kind={kind}"
            ));
        }
    }
}

/// A control plane that the cloud may take back at short notice is none. `field` asks for it.
pub(super) fn interruptible(field: &str, owner: Owner, facts: &Facts, findings: &mut Findings) {
    if !owner.control_plane {
        return;
    }
    let detail = "a Machine of the control plane must not be interruptible: when the cloud takes \
                  it back, etcd may lose its quorum; remove the spot market request";
    match facts.interruptible_control_plane {
        InterruptibleControlPlane::Refuse => {
            findings.error(FieldError::forbidden(field, detail));
        }
        InterruptibleControlPlane::Warn => findings.warn(format!("{field}: {detail}")),
    }
}
