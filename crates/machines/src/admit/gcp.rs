//! The rules for a provider spec on Google Cloud: how the instance is bought.

use fleetwright_admission::FieldError;
use fleetwright_api::gcp::{
    GCPMachineProviderSpec, HostMaintenance, ProvisioningModel, RestartPolicy,
};

use super::Facts;
use super::findings::Findings;
use super::platform::{Owner, TypeMeta, interruptible};

const PREEMPTIBLE: &str = "providerSpec.preemptible";
const MODEL: &str = "providerSpec.provisioningModel";

/// Checks a provider spec.
pub(super) fn check(
    spec: &GCPMachineProviderSpec,
    owner: Owner,
    facts: &Facts,
    findings: &mut Findings,
) {
    TypeMeta {
        api_version: spec.api_version.as_deref(),
        kind: spec.kind.as_deref(),
        known: GCPMachineProviderSpec::API_VERSIONS,
        expected: GCPMachineProviderSpec::KIND,
    }
    .check(findings);
    match &spec.provisioning_model {
        Some(ProvisioningModel::Other(word)) => findings.error(FieldError::invalid(
            MODEL,
            word.as_str(),
            "provisioningModel must be \"Spot\" or omit for standard provisioning",
        )),
        Some(ProvisioningModel::Spot) if spec.preemptible => findings.error(FieldError::forbidden(
            MODEL,
            "preemptible cannot be used together with \"Spot\" provisioning model",
        )),
        Some(ProvisioningModel::Spot) | None => {}
    }
    if !spec.is_interruptible() {
        return;
    }
    interruptible(if spec.preemptible { PREEMPTIBLE } else { MODEL }, owner, facts, findings);
    // No error, because the cluster may hold such Machines: their launch is what fails.
    if spec.restart_policy == RestartPolicy::Always {
        findings.warn(
            "providerSpec.restartPolicy: preemptible/spot instances cannot be automatically \
             restarted: the Machine will fail; set Never, or omit it",
        );
    }
    if spec.on_host_maintenance == HostMaintenance::Migrate {
        findings.warn(
            "providerSpec.onHostMaintenance: preemptible/spot instances cannot migrate: the \
             Machine will fail; set Terminate, or omit it",
        );
    }
}
