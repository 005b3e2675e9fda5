//! What a Machine's status says after a pass, and whether that is news.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::{
    conditions::{Condition, same_all, whole_second},
    phase::{Failure, Phase},
};

/// Annotation with the cloud's word for what the instance does.
pub const INSTANCE_STATE_ANNOTATION: &str = "machine.openshift.io/instance-state";
/// Its value for a Machine that is Failed.
pub const UNKNOWN_INSTANCE_STATE: &str = "Unknown";
/// Where provider statuses keep that word: AWS, Google Cloud and vSphere, then Azure.
const STATE_KEYS: [&str; 2] = ["instanceState", "vmState"];

/// The parts of a Machine's status that a pass changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineStatus {
    /// `phase`; empty when there is none.
    pub phase: String,
    /// `errorReason`.
    pub error_reason: Option<String>,
    /// `errorMessage`.
    pub error_message: Option<String>,
    /// `providerStatus`.
    pub provider_status: Option<Value>,
    /// `conditions`.
    pub conditions: Vec<Condition>,
    /// `lastUpdated`.
    pub last_updated: Option<Timestamp>,
}

/// A status that is ready to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct Settled {
    /// The status.
    pub status: MachineStatus,
    /// Whether it differs from the one before; an equal one is not written.
    pub changed: bool,
    /// The value that [`INSTANCE_STATE_ANNOTATION`] takes, if it is to be set.
    pub instance_state: Option<&'static str>,
}

/// Settles what a status says. `after` is the status `before` with what the calls of the pass left
/// in it; the phase and the error are decided here.
pub fn settle(
    before: &MachineStatus,
    mut after: MachineStatus,
    phase: Option<Phase>,
    error: Option<&Failure>,
    now: Timestamp,
) -> Settled {
    let mut instance_state = None;
    if let Some(phase) = phase {
        phase.as_str().clone_into(&mut after.phase);
        after.error_reason = None;
        after.error_message = None;
        if phase == Phase::Failed {
            instance_state = Some(UNKNOWN_INSTANCE_STATE);
            if let Some(Value::Object(provider_status)) = &mut after.provider_status {
                forget_instance_state(provider_status);
            }
            if let Some(error) = error {
                after.error_reason =
                    Some(error.reason.to_owned()).filter(|reason| !reason.is_empty());
                after.error_message = Some(error.message.clone());
            }
        }
    }
    after.last_updated = before.last_updated;
    let changed = !same(before, &after);
    if changed {
        after.last_updated = Some(whole_second(now));
    }
    Settled { status: after, changed, instance_state }
}

fn same(before: &MachineStatus, after: &MachineStatus) -> bool {
    let without_conditions =
        |status: &MachineStatus| MachineStatus { conditions: Vec::new(), ..status.clone() };
    without_conditions(before) == without_conditions(after)
        && same_all(&before.conditions, &after.conditions)
}

/// Nobody looks after the instance of a Failed Machine, so what it does is not known any more.
fn forget_instance_state(provider_status: &mut Map<String, Value>) {
    for key in STATE_KEYS {
        if let Some(state @ Value::String(_)) = provider_status.get_mut(key) {
            *state = UNKNOWN_INSTANCE_STATE.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phase::CREATE_ERROR;

    #[test]
    fn an_error_goes_when_the_phase_is_another() {
        let now = Timestamp::from_second(5).unwrap();
        let failure = Failure::fatal(CREATE_ERROR, "no");
        let clean = MachineStatus::default();
        let failed = settle(&clean, clean.clone(), Some(Phase::Failed), Some(&failure), now);
        assert!(failed.changed);
        assert_eq!(failed.instance_state, Some("Unknown"));
        assert_eq!(failed.status.error_reason.as_deref(), Some(CREATE_ERROR));
        assert_eq!(failed.status.error_message.as_deref(), Some("no"));
        assert_eq!(failed.status.last_updated, Some(now));
        let failed = failed.status;
        let going = settle(&failed, failed.clone(), Some(Phase::Deleting), None, now);
        assert_eq!(going.status.error_message, None);
        let kept = settle(&failed, failed.clone(), None, None, now);
        assert!(!kept.changed);
        assert_eq!(kept.status, failed);
    }
}
