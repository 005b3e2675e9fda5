//! Events are forgotten an hour after they were last written.
//!
//! In a real cluster etcd does that by itself, so nobody is asked: no webhooks, no finalizers.

use std::{collections::BTreeMap, time::Duration};

use fleetwright_kstore::{Change, Expect, Key, Write, WriteError};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    driver::{Controller, Next, Seen},
    queue::Queue,
};
use crate::{
    object,
    server::Server,
    status::{ApiError, Result},
    storage,
};

const LIFETIME: Duration = Duration::from_hours(1);

/// Removes old events.
pub(super) struct Events {
    server: Server,
    /// When each event ends.
    ends: Mutex<BTreeMap<Key, Instant>>,
}

impl Events {
    pub(super) fn new(server: &Server) -> Self {
        Self { server: server.clone(), ends: Mutex::default() }
    }
}

impl Controller for Events {
    type Key = Key;
    const NAME: &'static str = "events";
    const FOLLOWS: &'static [&'static str] = &["/events"];

    fn observe(&self, seen: &Seen<'_>, queue: &mut Queue<Key>) {
        let key = &seen.object.key;
        if seen.is_gone() {
            self.ends.lock().remove(key);
            return;
        }
        let left = if seen.event.is_some() {
            LIFETIME
        } else {
            let event = storage::parse(&seen.object.json).unwrap_or_default();
            remaining(&event, self.server.now())
        };
        self.ends.lock().insert(key.clone(), Instant::now() + left);
        queue.add_after(key.clone(), left);
    }

    async fn reconcile(&self, key: &Key) -> Result<Next> {
        let Some(end) = self.ends.lock().get(key).copied() else { return Ok(Next::Rest) };
        let left = end.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            return Ok(Next::After(left));
        }
        let Some(stored) = self.server.storage().get(key) else { return Ok(Next::Rest) };
        let write = Write {
            key: key.clone(),
            expect: Expect::Revision(stored.revision),
            change: Change::Delete { last: None },
        };
        match self.server.storage().write(write).await {
            // Whoever wrote it meanwhile prolonged its life, which is seen soon.
            Ok(_) | Err(WriteError::Conflict { .. } | WriteError::NotFound) => Ok(Next::Rest),
            Err(error) => Err(ApiError::unavailable(error.to_string())),
        }
    }
}

/// How long an event still has, judged by the latest time that it mentions.
fn remaining(event: &Value, now: Timestamp) -> Duration {
    let time = |path: &[&str]| object::text(event, path).parse::<Timestamp>().ok();
    let managed = object::list(event, &["metadata", "managedFields"])
        .iter()
        .filter_map(|entry| object::text(entry, &["time"]).parse().ok());
    let latest = [
        time(&["metadata", "creationTimestamp"]),
        time(&["eventTime"]),
        time(&["lastTimestamp"]),
        time(&["series", "lastObservedTime"]),
    ]
    .into_iter()
    .flatten()
    .chain(managed)
    .max()
    .unwrap_or(now);
    let age = Duration::try_from(now.duration_since(latest)).unwrap_or_default();
    LIFETIME.saturating_sub(age)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_latest_time_counts() {
        let now: Timestamp = "2025-01-01T12:00:00Z".parse().unwrap();
        for (event, minutes) in [
            (json!({"metadata": {"creationTimestamp": "2025-01-01T11:30:00Z"}}), 30),
            (json!({"metadata": {"creationTimestamp": "2025-01-01T09:00:00Z"}}), 0),
            (
                json!({
                    "metadata": {"creationTimestamp": "2025-01-01T09:00:00Z"},
                    "lastTimestamp": "2025-01-01T11:50:00Z",
                }),
                50,
            ),
            (
                json!({
                    "metadata": {"creationTimestamp": "2025-01-01T09:00:00Z"},
                    "eventTime": "2025-01-01T11:10:00.000000Z",
                    "lastTimestamp": null,
                }),
                10,
            ),
            (json!({"lastTimestamp": "2031-01-01T00:00:00Z"}), 60),
            (json!({}), 60),
        ] {
            assert_eq!(remaining(&event, now), Duration::from_mins(minutes), "{event}");
        }
    }
}
