//! What happened to an object, in order: from its conditions and its events.

use std::fmt::Write as _;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;

use crate::Snapshot;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub time: Timestamp,
    pub text: String,
}

impl Moment {
    pub(crate) fn new(time: Timestamp, text: impl Into<String>) -> Self {
        Self { time, text: text.into() }
    }
}

/// The birth of an object, and the events about it.
pub(crate) fn life(
    snapshot: &Snapshot,
    kind: &str,
    name: &str,
    born: Option<Timestamp>,
) -> Vec<Moment> {
    let about = |event: &&Event| {
        event.involved_object.kind.as_deref() == Some(kind)
            && event.involved_object.name.as_deref() == Some(name)
    };
    let birth = born.map(|born| Moment::new(born, "created"));
    birth.into_iter().chain(snapshot.events.iter().filter(about).filter_map(moment)).collect()
}

/// When an event was last seen.
pub(crate) fn time_of(event: &Event) -> Option<Timestamp> {
    event
        .last_timestamp
        .as_ref()
        .map(|time| time.0)
        .or_else(|| event.event_time.as_ref().map(|time| time.0))
        .or_else(|| event.first_timestamp.as_ref().map(|time| time.0))
        .or_else(|| event.metadata.creation_timestamp.as_ref().map(|time| time.0))
}

fn moment(event: &Event) -> Option<Moment> {
    let time = time_of(event)?;
    let count = event.count.filter(|count| *count > 1);
    let often = count.map(|count| format!(" ({count} times)")).unwrap_or_default();
    let reason = event.reason.as_deref().unwrap_or_default();
    let warning = if event.type_.as_deref() == Some("Warning") { "warning " } else { "" };
    let message = event.message.as_deref().unwrap_or_default();
    Some(Moment::new(time, format!("{warning}{reason}: {message}{often}")))
}

/// Lines with the time in front, the first first; what happened in one second stays in order.
pub(crate) fn lines(mut moments: Vec<Moment>) -> String {
    moments.sort_by_key(|moment| moment.time);
    moments.dedup();
    let mut text = String::new();
    for moment in &moments {
        // Writing to a String cannot fail.
        let time = moment.time.strftime("%Y-%m-%d %H:%M:%S");
        let _ = writeln!(text, "  {time}  {}", moment.text);
    }
    text
}
