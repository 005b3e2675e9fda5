//! What the process counts, and how it is read.
//!
//! Names follow controller-runtime and client-go wherever the same thing is measured, so that
//! dashboards and alerts written for them work unchanged. Everything hangs on one [`Metrics`]
//! value that is passed around; there is no global registry.

mod families;
mod serve;

use std::{fmt, sync::Arc};

use parking_lot::Mutex;
use prometheus_client::{encoding::text::encode, registry::Registry};

pub use families::{ControllerLabels, QueueLabels, ReconcileLabels};
pub(crate) use families::{
    ControllerMetrics, EventMetrics, InformerMetrics, LeaderMetrics, QueueMetrics,
};
pub use serve::{Check, Health, answer_health, answer_metrics, serve};

/// The media type of [`Metrics::text`].
pub const TEXT_MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics of the process. Cheap to clone.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Mutex<Registry>,
    /// Called before each reading, for values that are only true at the moment of asking.
    refreshers: Mutex<Vec<Refresher>>,
    queue: families::QueueFamilies,
    controller: families::ControllerFamilies,
    informer: families::InformerFamilies,
    events: EventMetrics,
    leader: families::LeaderFamilies,
}

/// Brings a value up to date; says whether it wants to be called again.
type Refresher = Box<dyn Fn() -> bool + Send + Sync>;

impl Metrics {
    /// A registry that holds the metrics of this crate.
    pub fn new() -> Self {
        let mut registry = Registry::default();
        let inner = Inner {
            queue: families::QueueFamilies::register(&mut registry),
            controller: families::ControllerFamilies::register(&mut registry),
            informer: families::InformerFamilies::register(&mut registry),
            events: EventMetrics::register(&mut registry),
            leader: families::LeaderFamilies::register(&mut registry),
            refreshers: Mutex::default(),
            registry: Mutex::new(registry),
        };
        Self(Arc::new(inner))
    }

    /// Lets the caller add metrics of its own.
    pub fn register<T>(&self, add: impl FnOnce(&mut Registry) -> T) -> T {
        add(&mut self.0.registry.lock())
    }

    /// Everything, in the OpenMetrics text format.
    pub fn text(&self) -> Result<String, fmt::Error> {
        self.0.refreshers.lock().retain(|refresh| refresh());
        let mut text = String::new();
        encode(&mut text, &self.0.registry.lock())?;
        Ok(text)
    }

    /// Has `refresh` called before each reading, for as long as it answers true.
    pub(crate) fn refresh_with(&self, refresh: impl Fn() -> bool + Send + Sync + 'static) {
        self.0.refreshers.lock().push(Box::new(refresh));
    }

    pub(crate) fn queue(&self, name: &str) -> QueueMetrics {
        self.0.queue.of(name)
    }

    pub(crate) fn controller(&self, name: &str) -> ControllerMetrics {
        self.0.controller.of(name)
    }

    pub(crate) fn informer(&self, name: &str) -> InformerMetrics {
        self.0.informer.of(name)
    }

    pub(crate) fn events(&self) -> EventMetrics {
        self.0.events.clone()
    }

    pub(crate) fn leader(&self, name: &str) -> LeaderMetrics {
        self.0.leader.of(name)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}
