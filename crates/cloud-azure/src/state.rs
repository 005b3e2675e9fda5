//! What a virtual machine is doing.

use fleetwright_cloud::InstanceState;

/// What comes before a power state.
const POWER: &str = "PowerState/";

/// The state of a virtual machine in the words of a Machine's status. While the cloud works on it,
/// that is what the cloud does; else whether it is on. Empty when nothing is known.
pub fn vm_state(provisioning: Option<&str>, power: Option<&str>) -> String {
    let Some(provisioning) = provisioning else { return String::new() };
    // `Failed` tells of the last thing that was done to it, and not whether it is on.
    if !matches!(provisioning, "Succeeded" | "Failed" | "Canceled") {
        return provisioning.to_owned();
    }
    let Some(power) = power else { return String::new() };
    let state = match power.strip_prefix(POWER).unwrap_or(power) {
        "starting" => "Starting",
        "running" => "Running",
        "stopping" => "Stopping",
        "stopped" => "Stopped",
        "deallocating" => "Deallocating",
        "deallocated" => "Deallocated",
        _ => "Unknown",
    };
    state.to_owned()
}

/// The same, as far as any cloud has it. Whatever is shown is there: one that is gone is not shown
/// at all.
pub fn instance_state(vm_state: &str) -> InstanceState {
    match vm_state {
        "Creating" | "Starting" | "" => InstanceState::Pending,
        "Stopping" | "Deallocating" => InstanceState::Stopping,
        "Stopped" | "Deallocated" => InstanceState::Stopped,
        "Deleting" => InstanceState::ShuttingDown,
        _ => InstanceState::Running,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states() {
        for (provisioning, power, name, state) in [
            (None, Some("PowerState/running"), "", InstanceState::Pending),
            (Some("Creating"), None, "Creating", InstanceState::Pending),
            (Some("Succeeded"), Some("PowerState/running"), "Running", InstanceState::Running),
            (Some("Succeeded"), Some("deallocated"), "Deallocated", InstanceState::Stopped),
            (Some("Succeeded"), Some("deallocating"), "Deallocating", InstanceState::Stopping),
            (Some("Canceled"), Some("stopped"), "Stopped", InstanceState::Stopped),
            (Some("Deleting"), Some("running"), "Deleting", InstanceState::ShuttingDown),
            (Some("Updating"), Some("running"), "Updating", InstanceState::Running),
        ] {
            let found = vm_state(provisioning, power);
            assert_eq!((found.as_str(), instance_state(&found)), (name, state));
        }
    }
}
