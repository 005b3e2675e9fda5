//! Watches that run in the background while a script goes on.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use super::Until;
use crate::http_client::Streaming;

/// How long events are waited for before the script goes on without them.
const EVENT_LIMIT: Duration = Duration::from_secs(10);
/// How long a watch is observed after the last expected event: one more would be a fault.
const SETTLE: Duration = Duration::from_millis(120);

/// A watch, and what it saw.
#[derive(Debug)]
pub(super) struct Watch {
    seen: Arc<Seen>,
    _reader: JoinSet<()>,
}

#[derive(Debug, Default)]
struct Seen {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    events: Vec<Value>,
    closed: bool,
}

impl Watch {
    /// Reads a stream until it ends.
    pub(super) fn read(mut stream: Streaming) -> Self {
        let seen = Arc::new(Seen::default());
        let sink = Arc::clone(&seen);
        let mut reader = JoinSet::new();
        reader.spawn(async move {
            let mut pending = Vec::new();
            while let Ok(Some(chunk)) = stream.chunk().await {
                pending.extend_from_slice(&chunk);
                sink.add(take_events(&mut pending));
            }
            sink.close(take_rest(&pending));
        });
        Self { seen, _reader: reader }
    }

    /// Waits as told, then takes what was seen: the events, and whether the stream has ended.
    /// Bookmarks come when the server likes, so they are left out unless asked for; the one
    /// that ends the initial events always counts.
    pub(super) async fn collect(&self, until: &Until, bookmarks: bool) -> (Vec<Value>, bool) {
        let deadline = Instant::now() + EVENT_LIMIT;
        match until {
            Until::Passed(time) => sleep(*time).await,
            Until::Events(count) => {
                self.wait(deadline, |state| {
                    state.events.iter().filter(|event| counts(event, bookmarks)).count() >= *count
                })
                .await;
                sleep(SETTLE).await;
            }
            Until::Closed => self.wait(deadline, |_| false).await,
        }
        let mut state = self.seen.state.lock().unwrap_or_else(PoisonError::into_inner);
        let events = std::mem::take(&mut state.events);
        (events.into_iter().filter(|event| counts(event, bookmarks)).collect(), state.closed)
    }

    async fn wait(&self, deadline: Instant, done: impl Fn(&State) -> bool) {
        loop {
            // Subscribed before looking, so that no change is missed.
            let changed = self.seen.changed.notified();
            {
                let state = self.seen.state.lock().unwrap_or_else(PoisonError::into_inner);
                if state.closed || done(&state) {
                    return;
                }
            }
            if timeout_at(deadline, changed).await.is_err() {
                return;
            }
        }
    }
}

impl Seen {
    fn add(&self, events: Vec<Value>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.events.extend(events);
        drop(state);
        self.changed.notify_waiters();
    }

    fn close(&self, events: Vec<Value>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.events.extend(events);
        state.closed = true;
        drop(state);
        self.changed.notify_waiters();
    }
}

fn counts(event: &Value, bookmarks: bool) -> bool {
    let marks_the_end = || {
        event
            .pointer("/object/metadata/annotations/k8s.io~1initial-events-end")
            .is_some_and(|mark| mark == "true")
    };
    bookmarks || event["type"] != "BOOKMARK" || marks_the_end()
}

/// Takes the whole lines from a buffer.
fn take_events(pending: &mut Vec<u8>) -> Vec<Value> {
    let Some(end) = pending.iter().rposition(|byte| *byte == b'\n') else {
        return Vec::new();
    };
    let lines: Vec<u8> = pending.drain(..=end).collect();
    documents(&lines)
}

fn take_rest(pending: &[u8]) -> Vec<Value> {
    documents(pending)
}

/// Splits a sequence of JSON documents. What is no JSON is kept as text, so that it shows.
pub(super) fn documents(bytes: &[u8]) -> Vec<Value> {
    let mut stream = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>();
    let mut found = Vec::new();
    loop {
        match stream.next() {
            Some(Ok(value)) => found.push(value),
            Some(Err(_)) => {
                let rest = bytes.get(stream.byte_offset()..).unwrap_or_default();
                found.push(Value::String(String::from_utf8_lossy(rest).into_owned()));
                return found;
            }
            None => return found,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_taken_line_by_line() {
        let mut pending = b"{\"a\":1}\n{\"b\":2}\n{\"c\"".to_vec();
        assert_eq!(take_events(&mut pending), [json!({"a": 1}), json!({"b": 2})]);
        assert_eq!(pending, b"{\"c\"");
        assert_eq!(documents(b"{} nonsense"), [json!({}), json!("nonsense")]);
    }

    #[test]
    fn ordinary_bookmarks_do_not_count() {
        let plain = json!({"type": "BOOKMARK", "object": {}});
        let end = json!({"type": "BOOKMARK", "object": {"metadata": {"annotations":
            {"k8s.io/initial-events-end": "true"}}}});
        assert!(!counts(&plain, false));
        assert!(counts(&plain, true));
        assert!(counts(&end, false));
        assert!(counts(&json!({"type": "ADDED"}), false));
    }
}
