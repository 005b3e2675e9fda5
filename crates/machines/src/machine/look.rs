//! What a look for a Machine's instance means.

use std::time::Duration;

use fleetwright_cloud::{Instance, InstanceState};
use fleetwright_lifecycle::phase::{Failure, UPDATE_ERROR};
use jiff::Timestamp;

/// An instance that was just made may not show yet, as upstream.
pub const NOT_SHOWN_YET: Duration = Duration::from_secs(20);
/// How soon an instance that starts is looked at again; its change wakes the Machine earlier.
pub const STARTING_AGAIN: Duration = Duration::from_secs(20);

/// How new a Machine's instance may be.
#[derive(Clone, Copy, Debug)]
pub struct Youth {
    /// Whether anything was seen of it before.
    pub has_addresses: bool,
    /// When the Machine's status last changed.
    pub updated: Option<Timestamp>,
    /// When its launch was written down.
    pub launched: Option<Timestamp>,
    /// How long what was launched may not show.
    pub settle_time: Duration,
    /// The time.
    pub now: Timestamp,
}

impl Youth {
    /// Whether the instance was made so recently that it may not show, whatever was seen of it
    /// before.
    pub fn may_not_show(&self) -> bool {
        let within = |time: Option<Timestamp>, wait: Duration| {
            time.and_then(|time| time.saturating_add(wait).ok()).is_some_and(|end| end > self.now)
        };
        (!self.has_addresses && within(self.updated, NOT_SHOWN_YET))
            || within(self.launched, self.settle_time)
    }
}

/// Whether the instance of a Machine exists. `known` is the one that the Machine is known to have.
pub fn exists(
    known: Option<&str>,
    found: Option<&Instance>,
    youth: &Youth,
) -> Result<bool, Failure> {
    match (known, found) {
        (_, Some(instance)) => Ok(instance.state.exists() && !was_taken_back(instance)),
        (Some(id), None) if youth.may_not_show() => {
            let why = format!(
                "Machine was already created, InstanceID is set in providerStatus: {id} does not \
                 show yet"
            );
            Err(Failure::later(UPDATE_ERROR, NOT_SHOWN_YET, why))
        }
        (_, None) => Ok(false),
    }
}

/// Whether the cloud took an instance back without ending it. We never stop one, so somebody else
/// did; should it come back, its Node was replaced in the meantime.
fn was_taken_back(instance: &Instance) -> bool {
    instance.interruptible
        && matches!(instance.state, InstanceState::Stopping | InstanceState::Stopped)
}

/// When to look again at an instance that is there.
pub fn again(instance: &Instance) -> Option<Duration> {
    (instance.state == InstanceState::Pending).then_some(STARTING_AGAIN)
}

#[cfg(test)]
mod tests {
    use fleetwright_lifecycle::phase::FailureKind;

    use super::*;
    use crate::group::testbed::member;

    #[test]
    fn an_interruptible_instance_that_stopped_was_taken_back() {
        let youth = Youth {
            has_addresses: true,
            updated: None,
            launched: None,
            settle_time: Duration::from_mins(2),
            now: Timestamp::UNIX_EPOCH,
        };
        for (interruptible, state, wanted) in [
            (true, InstanceState::Stopped, false),
            (true, InstanceState::Stopping, false),
            (true, InstanceState::Running, true),
            (false, InstanceState::Stopped, true),
        ] {
            let instance = Instance { interruptible, ..member("i-1", "g", "z", state) };
            assert_eq!(exists(Some("i-1"), Some(&instance), &youth).unwrap(), wanted, "{state:?}");
        }
    }

    #[test]
    fn what_does_not_show_is_gone_only_when_it_must_have_shown() {
        let time = |second| Timestamp::from_second(second).unwrap();
        let youth = |updated: Option<i64>, launched: Option<i64>, has_addresses| Youth {
            has_addresses,
            updated: updated.map(time),
            launched: launched.map(time),
            settle_time: Duration::from_mins(2),
            now: time(1000),
        };
        for (updated, launched, has_addresses, young) in [
            (Some(981), None, false, true),
            (Some(980), None, false, false),
            (Some(999), None, true, false),
            (None, None, false, false),
            (Some(0), Some(881), true, true),
            (Some(0), Some(880), false, false),
        ] {
            let youth = youth(updated, launched, has_addresses);
            assert_eq!(youth.may_not_show(), young, "{youth:?}");
            let found = exists(Some("i-1"), None, &youth);
            let kind = found.err().map(|failure| failure.kind);
            assert_eq!(kind, young.then_some(FailureKind::Later(NOT_SHOWN_YET)));
            assert_eq!(exists(None, None, &youth), Ok(false), "it has none");
        }
    }

    #[test]
    fn what_is_terminated_does_not_exist_and_what_shuts_down_does() {
        let youth = Youth {
            has_addresses: false,
            updated: None,
            launched: None,
            settle_time: Duration::ZERO,
            now: Timestamp::UNIX_EPOCH,
        };
        for (state, there, soon) in [
            (InstanceState::Pending, true, true),
            (InstanceState::Running, true, false),
            (InstanceState::Stopped, true, false),
            (InstanceState::ShuttingDown, true, false),
            (InstanceState::Terminated, false, false),
        ] {
            let instance = member("i-1", "", "a", state);
            assert_eq!(exists(None, Some(&instance), &youth), Ok(there), "{state}");
            assert_eq!(again(&instance).is_some(), soon, "{state}");
        }
    }
}
