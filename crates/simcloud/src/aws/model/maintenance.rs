//! What EC2 plans to do to the hardware of an instance.

use jiff::Timestamp;
use serde::Deserialize;

use super::Region;

/// A scheduled event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledEvent {
    /// `instance-event-…`.
    pub id: String,
    /// Such as `instance-retirement`.
    pub code: Code,
    /// Whether it still is to happen.
    pub active: bool,
    /// In words.
    pub description: String,
    /// It begins then.
    pub not_before: Timestamp,
    /// It has ended then.
    pub not_after: Timestamp,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// The instance is rebooted.
    InstanceReboot,
    /// The host is rebooted.
    SystemReboot,
    /// Network or power of the host are worked on.
    SystemMaintenance,
    /// The instance is stopped or terminated for good.
    InstanceRetirement,
    /// The instance is stopped.
    InstanceStop,
}

impl Code {
    /// On the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InstanceReboot => "instance-reboot",
            Self::SystemReboot => "system-reboot",
            Self::SystemMaintenance => "system-maintenance",
            Self::InstanceRetirement => "instance-retirement",
            Self::InstanceStop => "instance-stop",
        }
    }
}

impl Region {
    /// Plans something for an instance. Its identifier; none if there is no such instance. The
    /// event is announced and not carried out.
    pub fn schedule_event(
        &mut self,
        id: &str,
        code: Code,
        not_before: Timestamp,
        not_after: Timestamp,
    ) -> Option<String> {
        let sequence = *self.by_id.get(id)?;
        let event = ScheduledEvent {
            id: super::fresh(&self.random, "instance-event"),
            code,
            active: true,
            description: format!("The instance is scheduled for {}", code.as_str()),
            not_before,
            not_after,
        };
        let name = event.id.clone();
        self.maintenance.entry(sequence).or_default().push(event);
        Some(name)
    }

    /// Gives up what was planned for an instance. Whether there is such an instance.
    pub fn cancel_events(&mut self, id: &str) -> bool {
        let Some(sequence) = self.by_id.get(id) else { return false };
        for event in self.maintenance.get_mut(sequence).into_iter().flatten() {
            event.active = false;
        }
        true
    }
}
