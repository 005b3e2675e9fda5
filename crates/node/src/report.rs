//! What the handler tells of itself: metrics and health.

use std::sync::{
    Arc,
    atomic::{AtomicI64, AtomicU64},
};

use bytes::Bytes;
use fleetwright_clock::Clock;
use fleetwright_runtime::metrics::{Health, TEXT_MEDIA_TYPE, answer_health};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use jiff::Timestamp;
use parking_lot::Mutex;
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use crate::{notice::Notice, source::Looked};

/// How long the handler may take for one round before it counts as stuck, in seconds.
const STUCK: i64 = 120;
/// How long the metadata service or the API may fail before the handler says so, in seconds.
const UNWELL: i64 = 30;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: &'static str,
}

/// Metrics and health of one handler. Clones are the same.
#[derive(Clone)]
pub struct Report(Arc<Inner>);

struct Inner {
    clock: Clock,
    registry: Mutex<Registry>,
    looks: Family<ResultLabels, Counter>,
    writes: Family<ResultLabels, Counter>,
    notices: Family<KindLabels, Counter>,
    marked: Gauge<f64, AtomicU64>,
    deadline: Gauge<f64, AtomicU64>,
    /// When the loop went round last, when the cloud answered last, when the API did.
    round: AtomicI64,
    cloud: Lately,
    api: Lately,
}

/// How something went lately.
#[derive(Default)]
struct Lately(Mutex<Option<(Timestamp, String)>>);

impl Lately {
    fn well(&self) {
        *self.0.lock() = None;
    }

    fn trouble(&self, now: Timestamp, why: String) {
        let mut known = self.0.lock();
        let since = known.as_ref().map_or(now, |(since, _)| *since);
        *known = Some((since, why));
    }

    fn check(&self, now: Timestamp) -> Result<(), String> {
        match &*self.0.lock() {
            Some((since, why)) if now.duration_since(*since).as_secs() >= UNWELL => {
                Err(format!("since {since}: {why}"))
            }
            _ => Ok(()),
        }
    }
}

impl Report {
    /// Nothing has happened yet.
    pub fn new(clock: Clock) -> Self {
        let mut registry = Registry::with_prefix("fleetwright_termination_handler");
        let (looks, writes, notices) = (Family::default(), Family::default(), Family::default());
        let (marked, deadline) = (Gauge::default(), Gauge::default());
        registry.register(
            "looks",
            "Looks at the metadata service, by how they went",
            Family::clone(&looks),
        );
        registry.register(
            "writes",
            "Attempts to write the Node, by how they went",
            Family::clone(&writes),
        );
        registry.register("notices", "Notices that the cloud gave", Family::clone(&notices));
        registry.register("marked", "Whether the Node is marked: 1 marked", Gauge::clone(&marked));
        registry.register(
            "deadline_timestamp_seconds",
            "When the instance goes; 0 when nothing is known of it",
            Gauge::clone(&deadline),
        );
        let round = AtomicI64::new(clock.now().as_second());
        Self(Arc::new(Inner {
            clock,
            registry: Mutex::new(registry),
            looks,
            writes,
            notices,
            marked,
            deadline,
            round,
            cloud: Lately::default(),
            api: Lately::default(),
        }))
    }

    /// Everything, in the OpenMetrics text format.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.0.registry.lock())?;
        Ok(text)
    }

    /// Answers `/metrics`, `/healthz` and `/readyz`.
    pub fn answer<B>(&self, health: &Health, request: &Request<B>) -> Response<Full<Bytes>> {
        if request.uri().path() != "/metrics" || request.method() != Method::GET {
            return answer_health(health, request);
        }
        let (status, text) = match self.text() {
            Ok(text) => (StatusCode::OK, text),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        };
        let mut answer = Response::new(Full::new(Bytes::from(text)));
        *answer.status_mut() = status;
        let kind = HeaderValue::from_static(TEXT_MEDIA_TYPE);
        answer.headers_mut().insert(header::CONTENT_TYPE, kind);
        answer
    }

    /// `/healthz` fails when the handler is stuck and should be started anew; `/readyz` says for
    /// how long the cloud or the API have not answered.
    pub fn health(&self) -> Health {
        let health = Health::new();
        let inner = Arc::clone(&self.0);
        health.add_live(
            "loop",
            Arc::new(move || {
                let idle = inner.clock.now().as_second()
                    - inner.round.load(std::sync::atomic::Ordering::Relaxed);
                if idle < STUCK { Ok(()) } else { Err(format!("stuck for {idle} seconds")) }
            }),
        );
        let inner = Arc::clone(&self.0);
        health.add_ready("metadata", Arc::new(move || inner.cloud.check(inner.clock.now())));
        let inner = Arc::clone(&self.0);
        health.add_ready("kubernetes", Arc::new(move || inner.api.check(inner.clock.now())));
        health
    }

    pub(crate) fn looked(&self, looked: &Looked) {
        let now = self.0.clock.now();
        self.0.round.store(now.as_second(), std::sync::atomic::Ordering::Relaxed);
        if looked.troubles.is_empty() {
            self.count_look("ok");
            self.0.cloud.well();
        }
        for trouble in &looked.troubles {
            tracing::warn!("{trouble}");
            self.count_look(trouble.as_str());
            self.0.cloud.trouble(now, trouble.to_string());
        }
    }

    fn count_look(&self, result: &'static str) {
        self.0.looks.get_or_create(&ResultLabels { result }).inc();
    }

    pub(crate) fn noticed(&self, notice: &Notice) {
        let kind = notice.kind.as_str();
        tracing::info!(kind, origin = notice.origin, deadline = ?notice.deadline, "notice");
        self.0.notices.get_or_create(&KindLabels { kind }).inc();
    }

    #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 fit")]
    pub(crate) fn stands(&self, deadline: Option<Timestamp>) {
        self.0.deadline.set(deadline.map_or(0.0, |at| at.as_second() as f64));
    }

    pub(crate) fn wrote(&self, marked: bool) {
        self.0.writes.get_or_create(&ResultLabels { result: "ok" }).inc();
        self.0.marked.set(f64::from(u8::from(marked)));
        self.0.api.well();
    }

    pub(crate) fn not_written(&self, error: &dyn std::error::Error) {
        let why = chain(error);
        tracing::warn!("the Node cannot be written: {why}");
        self.0.writes.get_or_create(&ResultLabels { result: "error" }).inc();
        self.0.api.trouble(self.0.clock.now(), why);
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = error.source();
    }
    text
}
