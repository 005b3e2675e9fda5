//! What answers of the instance metadata service mean.

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use serde::Deserialize;

use crate::trouble::Trouble;

/// What EC2 is about to do to a spot instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// `terminate`, `stop` or `hibernate`: the Node goes away with each of them.
    pub action: String,
    /// When.
    pub time: Timestamp,
}

/// Something that EC2 plans to do to the hardware.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledEvent {
    /// `instance-event-…`.
    pub id: String,
    /// Such as `system-reboot`.
    pub code: String,
    /// `active`, `completed` or `canceled`.
    pub state: String,
    /// Not before this time.
    pub not_before: Timestamp,
}

impl ScheduledEvent {
    /// Whether the instance does not come back from it: a reboot or maintenance of the network or
    /// power is no termination.
    pub fn ends_instance(&self) -> bool {
        self.state == "active"
            && matches!(self.code.as_str(), "instance-stop" | "instance-retirement")
    }
}

/// The body of an item; none when there is no such item.
fn item<'a>(what: &'static str, status: u16, body: &'a [u8]) -> Result<Option<&'a str>, Trouble> {
    match status {
        200 => {
            let text = std::str::from_utf8(body);
            text.map(Some).map_err(|error| Trouble::unreadable(what, error))
        }
        404 => Ok(None),
        status => Err(Trouble::Status { what, status }),
    }
}

/// `spot/instance-action`.
pub fn instance_action(status: u16, body: &[u8]) -> Result<Option<Action>, Trouble> {
    #[derive(Deserialize)]
    struct Wire {
        action: String,
        time: String,
    }
    let what = "spot/instance-action";
    let Some(text) = item(what, status, body)? else { return Ok(None) };
    let Wire { action, time } =
        serde_json::from_str(text).map_err(|error| Trouble::unreadable(what, error))?;
    let time = time.parse().map_err(|error| Trouble::unreadable(what, error))?;
    Ok(Some(Action { action, time }))
}

/// `spot/termination-time`: anything but a time means no.
pub fn termination_time(status: u16, body: &[u8]) -> Result<Option<Timestamp>, Trouble> {
    let text = item("spot/termination-time", status, body)?;
    Ok(text.and_then(|text| text.trim().parse().ok()))
}

/// `events/recommendations/rebalance`: since when.
pub fn rebalance(status: u16, body: &[u8]) -> Result<Option<Timestamp>, Trouble> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Wire {
        notice_time: String,
    }
    let what = "events/recommendations/rebalance";
    let Some(text) = item(what, status, body)? else { return Ok(None) };
    let Wire { notice_time } =
        serde_json::from_str(text).map_err(|error| Trouble::unreadable(what, error))?;
    notice_time.parse().map(Some).map_err(|error| Trouble::unreadable(what, error))
}

/// `events/maintenance/scheduled`.
pub fn scheduled(status: u16, body: &[u8]) -> Result<Vec<ScheduledEvent>, Trouble> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Wire {
        #[serde(default)]
        event_id: String,
        code: String,
        state: String,
        not_before: String,
    }
    let what = "events/maintenance/scheduled";
    let Some(text) = item(what, status, body)? else { return Ok(Vec::new()) };
    // An instance that never had one may say nothing at all.
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let events: Vec<Wire> =
        serde_json::from_str(text).map_err(|error| Trouble::unreadable(what, error))?;
    let read = |Wire { event_id, code, state, not_before }: Wire| {
        let time = moment(&not_before).map_err(|error| Trouble::unreadable(what, error))?;
        Ok(ScheduledEvent { id: event_id, code, state, not_before: time })
    };
    events.into_iter().map(read).collect()
}

/// `21 Jan 2019 09:00:43 GMT`, or RFC 3339 as some services write it.
fn moment(text: &str) -> Result<Timestamp, jiff::Error> {
    if let Ok(time) = text.parse() {
        return Ok(time);
    }
    let time = DateTime::strptime("%d %b %Y %H:%M:%S GMT", text)?;
    Ok(time.to_zoned(TimeZone::UTC)?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spot_action() {
        let body = br#"{"action":"stop","time":"2026-01-01T00:02:00Z"}"#;
        let found = instance_action(200, body).unwrap().unwrap();
        assert_eq!((found.action.as_str(), found.time.as_second()), ("stop", 1_767_225_720));
        assert_eq!(instance_action(404, b"<html>").unwrap(), None);
        for (status, body) in [
            (200, &b"<html>"[..]),
            (200, b""),
            (200, b"\xff\xfe"),
            (200, br#"{"action":"stop"}"#),
            (200, br#"{"action":"stop","time":"soon"}"#),
            (204, b""),
            (301, b""),
            (401, b""),
            (429, b""),
            (503, br#"{"action":"stop","time":"2026-01-01T00:02:00Z"}"#),
        ] {
            assert!(instance_action(status, body).is_err(), "{status} {body:?}");
        }
    }

    #[test]
    fn a_termination_time_is_a_time_or_nothing() {
        assert!(termination_time(200, b"2026-01-01T00:02:00Z\n").unwrap().is_some());
        for body in ["", "never", "<html>"] {
            assert_eq!(termination_time(200, body.as_bytes()).unwrap(), None);
        }
        assert_eq!(termination_time(404, b"").unwrap(), None);
        assert!(termination_time(500, b"").is_err());
    }

    #[test]
    fn scheduled_events() {
        let body = br#"[
            {"Code":"instance-retirement","State":"active","NotBefore":"5 Jan 2026 09:00:00 GMT","EventId":"a"},
            {"Code":"system-reboot","State":"active","NotBefore":"05 Jan 2026 09:00:00 GMT","EventId":"b"},
            {"Code":"instance-stop","State":"canceled","NotBefore":"2026-01-05T09:00:00Z","EventId":"c"}]"#;
        let events = scheduled(200, body).unwrap();
        assert!(events.iter().all(|event| event.not_before.as_second() == 1_767_603_600));
        let ends: Vec<bool> = events.iter().map(ScheduledEvent::ends_instance).collect();
        assert_eq!(ends, [true, false, false]);
        assert_eq!(scheduled(200, b"[]").unwrap(), []);
        assert_eq!(scheduled(200, b"").unwrap(), []);
        assert_eq!(scheduled(404, b"").unwrap(), []);
        assert!(scheduled(200, b"{}").is_err() && scheduled(500, b"[]").is_err());
    }
}
