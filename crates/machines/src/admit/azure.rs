//! The rules for a provider spec on Azure: how the virtual machine is bought.

use fleetwright_admission::FieldError;
use fleetwright_api::azure::AzureMachineProviderSpec;
use fleetwright_api::config::AzureCloud;
use fleetwright_lifecycle::quantity;

use super::Facts;
use super::findings::Findings;
use super::platform::{Owner, TypeMeta, interruptible};

const SPOT: &str = "providerSpec.spotVMOptions";

/// Checks a provider spec.
pub(super) fn check(
    spec: &AzureMachineProviderSpec,
    owner: Owner,
    facts: &Facts,
    findings: &mut Findings,
) {
    TypeMeta {
        api_version: spec.api_version.as_deref(),
        kind: spec.kind.as_deref(),
        known: AzureMachineProviderSpec::API_VERSIONS,
        expected: AzureMachineProviderSpec::KIND,
    }
    .check(findings);
    let Some(options) = &spec.spot_vm_options else { return };
    if let Some(price) = options.max_price.as_deref().filter(|p| quantity::number(p).is_none()) {
        findings.error(FieldError::invalid(
            "providerSpec.spotVMOptions.maxPrice",
            price,
            "must be a number such as 0.05, or -1 for the price on demand",
        ));
    }
    interruptible(SPOT, owner, facts, findings);
    if facts.azure_cloud == Some(AzureCloud::UsGovernment) {
        findings.warn("spot VMs may not be supported when using GovCloud region");
    }
    if !spec.availability_set.is_empty() {
        findings.warn(format!(
            "providerSpec.availabilitySet: {:?}: spot VMs are never in an availability set: it has \
             no effect",
            spec.availability_set
        ));
    }
    if !spec.capacity_reservation_group_id.is_empty() {
        findings.warn(
            "providerSpec.capacityReservationGroupID: spot VMs take no capacity from a reservation: \
             the Machine will fail; remove one of them",
        );
    }
}
