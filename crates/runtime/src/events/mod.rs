//! Events about objects, for people who ask `kubectl describe`.
//!
//! Recording never waits: an event goes into a bounded queue, and one task writes them, counting
//! repetitions instead of writing them again. What cannot be queued or written is counted and
//! forgotten; no reconcile fails for an event.

mod correlate;
mod lru;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use fleetwright_clock::{Clock, Random};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use parking_lot::Mutex;
use serde_json::json;
use tokio::{sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;

use self::correlate::{Correlator, Verdict};
use crate::{
    error_chain,
    metrics::{EventMetrics, Metrics},
};

/// As many events wait as in client-go.
const QUEUE_LENGTH: usize = 1000;
const MAX_TRIES: u32 = 12;
const RETRY_PAUSE: Duration = Duration::from_secs(10);
/// An answer that takes longer is lost.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// Longest name of an object.
const NAME_LIMIT: usize = 253;

/// Kinds of events that Kubernetes knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// As it should be.
    Normal,
    /// Somebody should look.
    Warning,
}

impl EventType {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// Takes events. Clones share a queue.
#[derive(Clone, Debug)]
pub struct EventRecorder {
    queue: mpsc::Sender<Event>,
    component: String,
    host: String,
    clock: Clock,
    random: Random,
    /// When the last event was recorded: no two have the same time, since their names have it.
    last: Arc<Mutex<Timestamp>>,
    metrics: EventMetrics,
}

/// Writes the events of a recorder.
pub struct EventWriter {
    queue: mpsc::Receiver<Event>,
    client: Client,
    random: Random,
    correlator: Correlator,
    metrics: EventMetrics,
}

impl EventRecorder {
    /// A recorder for `component` on `host` (may be empty), and what writes its events: nothing
    /// is written unless [`EventWriter::run`] runs.
    pub fn new(
        client: Client,
        component: &str,
        host: &str,
        clock: Clock,
        random: &Random,
        metrics: &Metrics,
    ) -> (Self, EventWriter) {
        let (sender, receiver) = mpsc::channel(QUEUE_LENGTH);
        let recorder = Self {
            queue: sender,
            component: component.to_owned(),
            host: host.to_owned(),
            clock,
            random: random.fork(),
            last: Arc::new(Mutex::new(Timestamp::MIN)),
            metrics: metrics.events(),
        };
        let writer = EventWriter {
            queue: receiver,
            client,
            random: random.fork(),
            correlator: Correlator::new(),
            metrics: metrics.events(),
        };
        (recorder, writer)
    }

    /// The same recorder in the name of another component.
    #[must_use]
    pub fn of_component(&self, component: &str) -> Self {
        Self { component: component.to_owned(), ..self.clone() }
    }

    /// Records that something happened to the object.
    pub fn record(
        &self,
        about: &ObjectReference,
        event_type: EventType,
        reason: &str,
        message: &str,
    ) {
        let event = self.event(about, event_type, reason, message);
        if self.queue.try_send(event).is_err() {
            self.metrics.dropped.inc();
            tracing::warn!(reason, message, "dropped an event: too many are waiting");
        }
    }

    fn event(
        &self,
        about: &ObjectReference,
        event_type: EventType,
        reason: &str,
        message: &str,
    ) -> Event {
        let time = self.next_time();
        let about_name = about.name.as_deref().unwrap_or_default();
        let mut name = format!("{about_name}.{:x}", time.as_nanosecond());
        if !is_subdomain(&name) {
            name = self.random.uuid().to_string();
        }
        let namespace = about.namespace.clone().filter(|namespace| !namespace.is_empty());
        Event {
            metadata: ObjectMeta {
                name: Some(name),
                namespace: Some(namespace.unwrap_or_else(|| "default".to_owned())),
                ..ObjectMeta::default()
            },
            involved_object: about.clone(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            first_timestamp: Some(Time(time)),
            last_timestamp: Some(Time(time)),
            count: Some(1),
            type_: Some(event_type.as_str().to_owned()),
            source: Some(EventSource {
                component: Some(self.component.clone()),
                host: Some(self.host.clone()).filter(|host| !host.is_empty()),
            }),
            reporting_component: Some(self.component.clone()),
            reporting_instance: Some(self.host.clone()),
            ..Event::default()
        }
    }

    fn next_time(&self) -> Timestamp {
        let mut last = self.last.lock();
        let now = self.clock.now();
        let next = last.saturating_add(SignedDuration::from_nanos(1)).unwrap_or(now);
        *last = now.max(next);
        *last
    }
}

impl EventWriter {
    /// Writes events until `stop`, and then those that wait, each tried once.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            let event = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                event = self.queue.recv() => event,
            };
            match event {
                Some(event) => self.write(event, &stop).await,
                // All recorders are gone, but a task ends only when it is told to.
                None => stop.cancelled().await,
            }
        }
        self.queue.close();
        while let Some(event) = self.queue.recv().await {
            self.write(event, &stop).await;
        }
    }

    async fn write(&mut self, event: Event, stop: &CancellationToken) {
        let verdict = self.correlator.judge(event);
        if verdict == Verdict::Skip {
            self.metrics.filtered.inc();
            return;
        }
        for tried in 1..=MAX_TRIES {
            let error = match timeout(ANSWER_LIMIT, self.send(&verdict)).await {
                Ok(Ok(())) => {
                    self.metrics.written.inc();
                    return;
                }
                Ok(Err(kube::Error::Api(status))) => {
                    // The server has decided; asking again would change nothing.
                    self.metrics.failed.inc();
                    let (reason, message) = (&status.reason, &status.message);
                    tracing::debug!(reason, message, "the server rejected an event");
                    return;
                }
                Ok(Err(error)) => error_chain(&error),
                Err(_elapsed) => "no answer".to_owned(),
            };
            tracing::warn!(tried, error, "could not write an event");
            // The first pause is random, so that those who failed together part.
            let share = if tried == 1 { self.random.fraction() } else { 1.0 };
            let pause = RETRY_PAUSE.mul_f64(share);
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = tokio::time::sleep(pause) => {}
            }
        }
        self.metrics.failed.inc();
    }

    async fn send(&self, verdict: &Verdict) -> Result<(), kube::Error> {
        let (event, update) = match verdict {
            Verdict::Skip => return Ok(()),
            Verdict::Create(event) => (event, false),
            Verdict::Update(event) => (event, true),
        };
        let namespace = event.metadata.namespace.as_deref().unwrap_or_default();
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        if update {
            let patch = Patch::Strategic(json!({
                "count": event.count,
                "lastTimestamp": event.last_timestamp,
                "message": event.message,
            }));
            let name = event.metadata.name.as_deref().unwrap_or_default();
            match api.patch(name, &PatchParams::default(), &patch).await {
                // Events expire: it is written anew.
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                done => return done.map(|_| ()),
            }
        }
        api.create(&PostParams::default(), event).await.map(|_| ())
    }
}

/// Whether the text may be the name of an object.
pub(crate) fn is_subdomain(name: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() <= NAME_LIMIT
        && name.split('.').all(|label| {
            let bytes = label.as_bytes();
            bytes.iter().all(|byte| alphanumeric(*byte) || *byte == b'-')
                && bytes.first().is_some_and(|byte| alphanumeric(*byte))
                && bytes.last().is_some_and(|byte| alphanumeric(*byte))
        })
}
