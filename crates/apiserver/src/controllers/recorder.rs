//! Tells users what happened, in Events.
//!
//! The same thing told again is counted instead of written anew, and an object that much happens
//! to is told about less and less, as the real controllers do it.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    handlers::timestamp, internal::InternalClient, object, server::Server, status::Result,
};

/// So many events about one object at once,
const BURST: u32 = 25;
/// and one more in each such time.
const REFILL_SECONDS: u64 = 300;
/// What is remembered at most, of events and of objects.
const REMEMBERED: usize = 4096;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    Normal,
    Warning,
}

impl Severity {
    fn name(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// The same object, severity, reason and message are the same event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Topic {
    uid: String,
    severity: Severity,
    reason: &'static str,
    message: String,
}

/// An event that was told.
#[derive(Clone)]
struct Told {
    name: String,
    count: u64,
}

#[derive(Clone, Copy)]
struct Allowance {
    left: u32,
    since: Instant,
}

#[derive(Default)]
struct Memory {
    told: BTreeMap<Topic, Told>,
    allowances: BTreeMap<String, Allowance>,
}

/// Writes events.
pub(super) struct Recorder {
    server: Server,
    client: InternalClient,
    component: &'static str,
    memory: Mutex<Memory>,
}

impl Recorder {
    pub(super) fn new(server: &Server, client: &InternalClient, component: &'static str) -> Self {
        Self { server: server.clone(), client: client.clone(), component, memory: Mutex::default() }
    }

    /// Tells of something that happened to an object, which has its `apiVersion` and `kind`. That
    /// it cannot be told stops nobody.
    pub(super) async fn tell(
        &self,
        about: &Value,
        severity: Severity,
        reason: &'static str,
        message: &str,
    ) {
        let topic = Topic {
            uid: object::uid(about).to_owned(),
            severity,
            reason,
            message: message.to_owned(),
        };
        let Some(told) = self.remember(&topic, object::name(about)) else { return };
        if let Err(error) = self.write(about, &topic, &told).await {
            tracing::debug!(reason, error = error.message(), "an event was not written");
        }
    }

    /// What to write, unless too much is told of the object.
    fn remember(&self, topic: &Topic, name: &str) -> Option<Told> {
        let mut memory = self.memory.lock();
        let Memory { told, allowances } = &mut *memory;
        let fresh = Allowance { left: BURST, since: Instant::now() };
        let allowance = allowances.entry(topic.uid.clone()).or_insert(fresh);
        if !allowance.take(Instant::now()) {
            return None;
        }
        let nanoseconds = self.server.now().as_nanosecond();
        let known = told
            .entry(topic.clone())
            .or_insert_with(|| Told { name: format!("{name}.{nanoseconds:x}"), count: 0 });
        known.count += 1;
        let result = known.clone();
        while told.len() > REMEMBERED {
            told.pop_first();
        }
        while allowances.len() > REMEMBERED {
            allowances.pop_first();
        }
        Some(result)
    }

    async fn write(&self, about: &Value, topic: &Topic, told: &Told) -> Result<Value> {
        let namespace = match object::namespace(about) {
            "" => "default",
            namespace => namespace,
        };
        let collection = format!("/api/v1/namespaces/{namespace}/events");
        let now = timestamp(self.server.now());
        if told.count > 1 {
            let patch = json!({"count": told.count, "lastTimestamp": now});
            match self.client.merge(&format!("{collection}/{}", told.name), &patch).await {
                // It is old news, and told as new.
                Err(error) if error.reason() == "NotFound" => {}
                other => return other,
            }
        }
        let metadata = |field: &str| object::text(about, &["metadata", field]);
        let event = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": told.name, "namespace": namespace},
            "involvedObject": {
                "apiVersion": about["apiVersion"],
                "kind": about["kind"],
                "namespace": metadata("namespace"),
                "name": metadata("name"),
                "uid": metadata("uid"),
                "resourceVersion": metadata("resourceVersion"),
            },
            "type": topic.severity.name(),
            "reason": topic.reason,
            "message": topic.message,
            "source": {"component": self.component},
            "reportingComponent": self.component,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": told.count,
        });
        self.client.post(&collection, &event).await
    }
}

impl Allowance {
    fn take(&mut self, now: Instant) -> bool {
        let gained = now.duration_since(self.since).as_secs() / REFILL_SECONDS;
        if gained > 0 {
            let gained = u32::try_from(gained).unwrap_or(u32::MAX);
            self.left = self.left.saturating_add(gained).min(BURST);
            self.since = now;
        }
        let allowed = self.left > 0;
        self.left = self.left.saturating_sub(1);
        allowed
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn much_is_told_at_once_and_then_little() {
        let mut allowance = Allowance { left: BURST, since: Instant::now() };
        let told = (0..100).filter(|_| allowance.take(Instant::now())).count();
        assert_eq!(told, 25);
        tokio::time::advance(Duration::from_secs(299)).await;
        assert!(!allowance.take(Instant::now()));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(allowance.take(Instant::now()));
        assert!(!allowance.take(Instant::now()));
    }
}
