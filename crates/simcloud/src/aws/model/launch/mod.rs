//! RunInstances: what is asked for, whether it can be, and what comes of it.
//!
//! The order of the checks: the request itself, then tokens, then the things it names, then what
//! they allow together, then quotas and capacity. Nothing is changed before all have passed.

mod checks;
mod make;
mod plan;
mod request;
mod room;

use std::collections::BTreeMap;

use jiff::Timestamp;

pub use request::{
    InterfaceRequest, LaunchRequest, MetadataRequest, PlacementRequest, ProfileRequest,
    SpotRequestOptions,
};

use super::{
    Region,
    error::{ApiError, Outcome},
    ids,
    instance::{Instance, InstanceState},
};

/// What a call with a client token made.
#[derive(Clone, Debug)]
pub(super) struct TokenRecord {
    parameters: BTreeMap<String, String>,
    sequences: Vec<u64>,
}

impl Region {
    /// RunInstances. The instances, by their sequence: those just made, or those that the client
    /// token made before.
    pub fn run_instances(&mut self, now: Timestamp, request: &LaunchRequest) -> Outcome<Vec<u64>> {
        let (min, max) = checks::counts(request, self.settings.quotas.instances_per_call)?;
        checks::check_plain(request)?;
        let (zone, zonal) = self.zone_of(request)?;
        let scope = if zonal { zone } else { String::new() };
        if let Some(made) = self.replayed(request, &scope)? {
            return Ok(made);
        }
        let plan = self.plan_launch(request, min, max)?;
        if request.parameters.get("DryRun").is_some_and(|v| v.eq_ignore_ascii_case("true")) {
            return Err(ApiError::dry_run());
        }
        let sequences = self.make(now, request, &plan)?;
        if let Some(token) = &request.token {
            let record = TokenRecord {
                parameters: request.parameters.clone(),
                sequences: sequences.clone(),
            };
            self.tokens.insert((scope, token.clone()), record);
        }
        Ok(sequences)
    }

    /// What the same client token made before, if it did.
    fn replayed(&self, request: &LaunchRequest, scope: &str) -> Outcome<Option<Vec<u64>>> {
        let Some(token) = &request.token else {
            return Ok(None);
        };
        let Some(record) = self.tokens.get(&(scope.to_owned(), token.clone())) else {
            return Ok(None);
        };
        if record.parameters != request.parameters {
            return Err(ApiError::client(
                "IdempotentParameterMismatch",
                "The parameters provided with the client token do not match the parameters of the \
                 original request.",
            ));
        }
        let listed: Vec<u64> =
            record.sequences.iter().copied().filter(|s| self.instances.contains_key(s)).collect();
        let alive = listed
            .iter()
            .any(|sequence| self.instances[sequence].latest().state != InstanceState::Terminated);
        if !alive {
            return Err(ApiError::client(
                "IdempotentInstanceTerminated",
                "The client token was used by a launch whose instances have been terminated.",
            ));
        }
        Ok(Some(listed))
    }

    /// The keys under which the launch of an instance may be remembered.
    pub(super) fn token_keys(&self, instance: &Instance) -> Vec<(String, String)> {
        let token = instance.with.reservation.token.iter();
        token
            .flat_map(|t| [(instance.zone.clone(), t.clone()), (String::new(), t.clone())])
            .filter(|key| {
                self.tokens.get(key).is_some_and(|r| r.sequences.contains(&instance.sequence))
            })
            .collect()
    }

    /// Forgets a token, unless instances of it are still listed.
    pub(super) fn forget_token(&mut self, key: &(String, String)) {
        let listed = |record: &TokenRecord| {
            record.sequences.iter().any(|sequence| self.instances.contains_key(sequence))
        };
        if self.tokens.get(key).is_some_and(|record| !listed(record)) {
            self.tokens.remove(key);
        }
    }
}

pub(crate) fn malformed(code: &'static str, id: &str, prefix: &str) -> ApiError {
    ApiError::client(code, format!("Invalid id: \"{id}\" (expecting \"{prefix}-...\")"))
}

pub(crate) fn unknown_image(id: &str) -> ApiError {
    if ids::well_formed(id, "ami") {
        let message = format!("The image id '[{id}]' does not exist");
        ApiError::client("InvalidAMIID.NotFound", message)
    } else {
        malformed("InvalidAMIID.Malformed", id, "ami")
    }
}

pub(crate) fn unknown_subnet(id: &str) -> ApiError {
    let message = format!("The subnet ID '{id}' does not exist");
    ApiError::client("InvalidSubnetID.NotFound", message)
}
