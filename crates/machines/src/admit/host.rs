//! The rules for dedicated hosts.

use fleetwright_admission::FieldError;
use fleetwright_api::aws::{
    AllocationStrategy, DedicatedHost, DynamicHostAllocation, HostAffinity, InstanceTenancy,
    Placement,
};
use serde_json::{Value, json};

use super::aws::is_lower_hex;
use super::findings::Findings;
use super::platform::Owner;

const HOST: &str = "spec.placement.host";
const AFFINITY: &str = "spec.placement.host.affinity";
const DEDICATED_HOST: &str = "spec.placement.host.dedicatedHost";

/// Most tags of a host.
const MOST_TAGS: usize = 50;

/// Checks where the instance runs.
pub(super) fn check(placement: &Placement, owner: Owner, findings: &mut Findings) {
    let on_host = placement.tenancy == Some(InstanceTenancy::Host);
    match &placement.host {
        Some(_) if !on_host => findings.error(FieldError::forbidden(
            HOST,
            "host may only be specified when tenancy is 'host'",
        )),
        _ if on_host && owner.control_plane => findings.error(FieldError::forbidden(
            "spec.placement.tenancy",
            "dedicated host tenancy is not supported for control plane machines",
        )),
        Some(host) => {
            affinity(host.affinity.as_ref(), host.dedicated_host.as_ref(), findings);
            if let Some(host) = &host.dedicated_host {
                dedicated_host(host, findings);
            }
        }
        None => {}
    }
    if let Some(tenancy) = &placement.tenancy
        && !tenancy.is_known()
        && !tenancy.as_str().is_empty()
    {
        findings.error(FieldError::invalid(
            "providerSpec.tenancy",
            tenancy.as_str(),
            "Invalid providerSpec.tenancy, the only allowed options are: default, dedicated, host, \
             or omitted",
        ));
    }
}

fn affinity(
    affinity: Option<&HostAffinity>,
    host: Option<&DedicatedHost>,
    findings: &mut Findings,
) {
    match affinity {
        None => findings.error(FieldError::required(
            AFFINITY,
            "affinity is required and must be set to either AnyAvailable or DedicatedHost",
        )),
        Some(HostAffinity::AnyAvailable) => {
            let strategy = host.and_then(|host| host.allocation_strategy.as_ref());
            if strategy == Some(&AllocationStrategy::Dynamic) {
                findings.error(FieldError::forbidden(
                    AFFINITY,
                    "hostAffinity must be DedicatedHost when using dynamic host allocation",
                ));
            }
        }
        Some(HostAffinity::DedicatedHost) if host.is_none() => {
            findings.error(FieldError::required(
                DEDICATED_HOST,
                "dedicatedHost is required when hostAffinity is DedicatedHost, and optional \
                 otherwise",
            ));
        }
        Some(HostAffinity::DedicatedHost) => {}
        Some(HostAffinity::Other(word)) => findings.error(FieldError::invalid(
            AFFINITY,
            word.as_str(),
            "hostAffinity must be either AnyAvailable or DedicatedHost",
        )),
    }
}

fn dedicated_host(host: &DedicatedHost, findings: &mut Findings) {
    let id = format!("{DEDICATED_HOST}.id");
    match host.allocation_strategy.as_ref() {
        None | Some(AllocationStrategy::UserProvided) => {
            const SHAPE: &str = "must start with 'h-' followed by 8 or 17 lowercase hexadecimal \
                                 characters (0-9 and a-f)";
            if host.id.is_empty() {
                findings.error(FieldError::required(
                    id,
                    format!("id is required when allocationStrategy is UserProvided and {SHAPE}"),
                ));
            } else if !is_host(&host.id) {
                findings.error(FieldError::invalid(id, host.id.as_str(), format!("id {SHAPE}")));
            }
            if let Some(allocation) = &host.dynamic_host_allocation {
                findings.error(FieldError::invalid(
                    format!("{DEDICATED_HOST}.dynamicHostAllocation"),
                    serde_json::to_value(allocation).unwrap_or(Value::Null),
                    "dynamicHostAllocation is only allowed when allocationStrategy is Dynamic",
                ));
            }
        }
        Some(AllocationStrategy::Dynamic) => {
            if !host.id.is_empty() {
                findings.error(FieldError::forbidden(
                    id,
                    "id is only allowed when allocationStrategy is Provided",
                ));
            }
            if let Some(allocation) = &host.dynamic_host_allocation {
                tags(allocation, findings);
            }
        }
        Some(AllocationStrategy::Other(word)) => findings.error(FieldError::invalid(
            format!("{DEDICATED_HOST}.allocationStrategy"),
            word.as_str(),
            "Invalid allocationStrategy, the only allowed options are: UserProvided, Dynamic",
        )),
    }
}

/// `h-` and 8 or 17 hexadecimal digits.
fn is_host(id: &str) -> bool {
    id.strip_prefix("h-").is_some_and(|rest| matches!(rest.len(), 8 | 17) && is_lower_hex(rest))
}

fn tags(allocation: &DynamicHostAllocation, findings: &mut Findings) {
    let field = format!("{DEDICATED_HOST}.dynamicHostAllocation.tags");
    match allocation.tags.as_ref().map(Vec::len) {
        None => findings.error(FieldError::required(
            field,
            "at least one property must be specified in dynamicHostAllocation",
        )),
        Some(0) => {
            findings.error(FieldError::invalid(field, 0, "at least 1 tag must be specified"));
        }
        Some(count) if count > MOST_TAGS => findings.error(FieldError::invalid(
            field,
            json!(count),
            format!("maximum {MOST_TAGS} tags can be specified"),
        )),
        Some(_) => {}
    }
}
