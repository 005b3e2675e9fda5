//! What an instance is doing.

use fleetwright_cloud::InstanceState;

/// The state behind a word of Compute Engine. `TERMINATED` is an instance that is off and still
/// there, with its disks; one that is gone is not shown at all.
pub fn state(status: &str) -> InstanceState {
    match status {
        "PROVISIONING" | "STAGING" => InstanceState::Pending,
        "STOPPING" | "SUSPENDING" => InstanceState::Stopping,
        "TERMINATED" | "STOPPED" | "SUSPENDED" => InstanceState::Stopped,
        "DEPROVISIONING" => InstanceState::ShuttingDown,
        // RUNNING, REPAIRING, and words that come later: it is there.
        _ => InstanceState::Running,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_shown_is_there() {
        let words = [
            ("PROVISIONING", InstanceState::Pending),
            ("RUNNING", InstanceState::Running),
            ("REPAIRING", InstanceState::Running),
            ("STOPPING", InstanceState::Stopping),
            ("TERMINATED", InstanceState::Stopped),
            ("SUSPENDED", InstanceState::Stopped),
            ("something new", InstanceState::Running),
        ];
        for (word, wanted) in words {
            assert_eq!(state(word), wanted, "{word}");
            assert!(state(word).exists(), "{word}");
        }
    }
}
