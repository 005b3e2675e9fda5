//! Whether the cloud may take an instance back: as it is asked for, and as it is.

use fleetwright_api::{
    aws::AWSMachineProviderConfig, azure::AzureMachineProviderSpec, gcp::GCPMachineProviderSpec,
    machine::ProviderSpec,
};
use fleetwright_cloud::Instance;

/// Whether a provider spec asks for an instance that the cloud may take back.
pub fn asked(spec: &ProviderSpec) -> bool {
    match spec.kind() {
        Some(GCPMachineProviderSpec::KIND) => {
            GCPMachineProviderSpec::read(spec).is_ok_and(|spec| spec.is_interruptible())
        }
        Some(AzureMachineProviderSpec::KIND) => {
            AzureMachineProviderSpec::read(spec).is_ok_and(|spec| spec.is_interruptible())
        }
        _ => AWSMachineProviderConfig::read(spec).is_ok_and(|config| config.is_spot()),
    }
}

/// Whether the cloud may take an instance back. What the cloud shows counts; where it need not show
/// it, what was asked for.
pub fn interruptible(spec: &ProviderSpec, instance: &Instance) -> bool {
    let told = match spec.kind() {
        // The elder kind, of which an instance may say nothing; that of a spot instance it says.
        Some(GCPMachineProviderSpec::KIND) => {
            GCPMachineProviderSpec::read(spec).is_ok_and(|spec| spec.preemptible)
        }
        Some(AzureMachineProviderSpec::KIND) => asked(spec),
        _ => false,
    };
    told || instance.interruptible
}

#[cfg(test)]
mod tests {
    use fleetwright_cloud::InstanceState;
    use serde_json::{Value, json};

    use super::*;
    use crate::group::testbed::member;

    #[test]
    fn what_is_asked_for_and_what_is() {
        let rows: [(Value, bool, bool); 10] = [
            (json!({"spotMarketOptions": {}}), true, false),
            (json!({"kind": "AWSMachineProviderConfig", "marketType": "Spot"}), true, false),
            (json!({"kind": "AWSMachineProviderConfig"}), false, false),
            (json!({"kind": "GCPMachineProviderSpec", "preemptible": true}), true, true),
            (json!({"kind": "GCPMachineProviderSpec", "provisioningModel": "Spot"}), true, false),
            (json!({"kind": "GCPMachineProviderSpec"}), false, false),
            (json!({"kind": "GCPMachineProviderSpec", "preemptible": "?"}), false, false),
            (json!({"kind": "AzureMachineProviderSpec", "spotVMOptions": {}}), true, true),
            (json!({"kind": "AzureMachineProviderSpec"}), false, false),
            (json!(null), false, false),
        ];
        for (value, wanted, taken) in rows {
            let spec = ProviderSpec { value: Some(value.clone()) };
            let plain = member("i-1", "", "a", InstanceState::Running);
            assert_eq!(asked(&spec), wanted, "{value}");
            assert_eq!(interruptible(&spec, &plain), taken, "{value}");
            let shown = Instance { interruptible: true, ..plain };
            assert!(interruptible(&spec, &shown), "{value}");
        }
    }
}
