//! The metric families of this crate, and the handles that its parts hold on to.
//!
//! `prometheus-client` appends `_total` to counters when it writes them out.

use std::{fmt::Debug, hash::Hash, sync::atomic::AtomicU64};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Metric, Registry},
};

type FloatGauge = Gauge<f64, AtomicU64>;
type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// Labels of a work queue: controller-runtime writes the same value twice.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct QueueLabels {
    /// The queue's name.
    pub name: String,
    /// The controller that it feeds.
    pub controller: String,
}

/// Labels of a controller.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ControllerLabels {
    /// The controller's name.
    pub controller: String,
}

/// Labels of a finished reconcile.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ReconcileLabels {
    /// The controller's name.
    pub controller: String,
    /// `success`, `requeue_after` or `error`.
    pub result: &'static str,
}

/// A single label `name`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct NameLabels {
    name: String,
}

fn add<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

fn add_histograms<L: EncodeLabelSet + Clone + Eq + Hash + Debug + Send + Sync + 'static>(
    registry: &mut Registry,
    name: &str,
    help: &str,
    make: fn() -> Histogram,
) -> Histograms<L> {
    let histograms = Histograms::new_with_constructor(make);
    registry.register(name, help, histograms.clone());
    histograms
}

fn queue_histogram() -> Histogram {
    Histogram::new(exponential_buckets(10e-9, 10.0, 12))
}

fn reconcile_histogram() -> Histogram {
    Histogram::new([
        0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8,
        0.9, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0,
        15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
    ])
}

pub(crate) struct QueueFamilies {
    depth: Family<QueueLabels, Gauge>,
    adds: Family<QueueLabels, Counter>,
    queue_duration: Histograms<QueueLabels>,
    work_duration: Histograms<QueueLabels>,
    unfinished_work: Family<QueueLabels, FloatGauge>,
    longest_running: Family<QueueLabels, FloatGauge>,
    retries: Family<QueueLabels, Counter>,
}

/// The metrics of one work queue.
#[derive(Clone, Debug)]
pub(crate) struct QueueMetrics {
    pub(crate) depth: Gauge,
    pub(crate) adds: Counter,
    pub(crate) queue_duration: Histogram,
    pub(crate) work_duration: Histogram,
    pub(crate) unfinished_work: FloatGauge,
    pub(crate) longest_running: FloatGauge,
    pub(crate) retries: Counter,
}

impl QueueFamilies {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        Self {
            depth: add(registry, "workqueue_depth", "Current depth of workqueue"),
            adds: add(registry, "workqueue_adds", "Total number of adds handled by workqueue"),
            queue_duration: add_histograms(
                registry,
                "workqueue_queue_duration_seconds",
                "How long in seconds an item stays in workqueue before being requested",
                queue_histogram,
            ),
            work_duration: add_histograms(
                registry,
                "workqueue_work_duration_seconds",
                "How long in seconds processing an item from workqueue takes",
                queue_histogram,
            ),
            unfinished_work: add(
                registry,
                "workqueue_unfinished_work_seconds",
                "Seconds of work in progress that work_duration has not seen yet",
            ),
            longest_running: add(
                registry,
                "workqueue_longest_running_processor_seconds",
                "How many seconds the longest running processor has been running",
            ),
            retries: add(
                registry,
                "workqueue_retries",
                "Total number of retries handled by workqueue",
            ),
        }
    }

    pub(crate) fn of(&self, name: &str) -> QueueMetrics {
        let labels = QueueLabels { name: name.to_owned(), controller: name.to_owned() };
        QueueMetrics {
            depth: self.depth.get_or_create_owned(&labels),
            adds: self.adds.get_or_create_owned(&labels),
            queue_duration: self.queue_duration.get_or_create_owned(&labels),
            work_duration: self.work_duration.get_or_create_owned(&labels),
            unfinished_work: self.unfinished_work.get_or_create_owned(&labels),
            longest_running: self.longest_running.get_or_create_owned(&labels),
            retries: self.retries.get_or_create_owned(&labels),
        }
    }
}

pub(crate) struct ControllerFamilies {
    reconciles: Family<ReconcileLabels, Counter>,
    errors: Family<ControllerLabels, Counter>,
    panics: Family<ControllerLabels, Counter>,
    timeouts: Family<ControllerLabels, Counter>,
    time: Histograms<ControllerLabels>,
    max_concurrent: Family<ControllerLabels, Gauge>,
    active: Family<ControllerLabels, Gauge>,
}

/// The metrics of one controller.
#[derive(Clone, Debug)]
pub(crate) struct ControllerMetrics {
    pub(crate) succeeded: Counter,
    pub(crate) requeued: Counter,
    pub(crate) failed: Counter,
    pub(crate) errors: Counter,
    pub(crate) panics: Counter,
    pub(crate) timeouts: Counter,
    pub(crate) time: Histogram,
    pub(crate) max_concurrent: Gauge,
    pub(crate) active: Gauge,
}

impl ControllerFamilies {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        Self {
            reconciles: add(
                registry,
                "controller_runtime_reconcile",
                "Total number of reconciliations per controller",
            ),
            errors: add(
                registry,
                "controller_runtime_reconcile_errors",
                "Total number of reconciliation errors per controller",
            ),
            panics: add(
                registry,
                "controller_runtime_reconcile_panics",
                "Total number of reconciliation panics per controller",
            ),
            timeouts: add(
                registry,
                "controller_runtime_reconcile_timeouts",
                "Total number of reconciliation timeouts per controller",
            ),
            time: add_histograms(
                registry,
                "controller_runtime_reconcile_time_seconds",
                "Length of time per reconciliation per controller",
                reconcile_histogram,
            ),
            max_concurrent: add(
                registry,
                "controller_runtime_max_concurrent_reconciles",
                "Maximum number of concurrent reconciles per controller",
            ),
            active: add(
                registry,
                "controller_runtime_active_workers",
                "Number of currently used workers per controller",
            ),
        }
    }

    pub(crate) fn of(&self, name: &str) -> ControllerMetrics {
        let labels = ControllerLabels { controller: name.to_owned() };
        let result = |result| {
            let labels = ReconcileLabels { controller: name.to_owned(), result };
            self.reconciles.get_or_create_owned(&labels)
        };
        ControllerMetrics {
            succeeded: result("success"),
            requeued: result("requeue_after"),
            failed: result("error"),
            errors: self.errors.get_or_create_owned(&labels),
            panics: self.panics.get_or_create_owned(&labels),
            timeouts: self.timeouts.get_or_create_owned(&labels),
            time: self.time.get_or_create_owned(&labels),
            max_concurrent: self.max_concurrent.get_or_create_owned(&labels),
            active: self.active.get_or_create_owned(&labels),
        }
    }
}

pub(crate) struct InformerFamilies {
    objects: Family<NameLabels, Gauge>,
    lists: Family<NameLabels, Counter>,
    watches: Family<NameLabels, Counter>,
    failures: Family<NameLabels, Counter>,
    invalid: Family<NameLabels, Counter>,
    handler_panics: Family<NameLabels, Counter>,
}

/// The metrics of one informer.
#[derive(Clone, Debug)]
pub(crate) struct InformerMetrics {
    pub(crate) objects: Gauge,
    pub(crate) lists: Counter,
    pub(crate) watches: Counter,
    pub(crate) failures: Counter,
    pub(crate) invalid: Counter,
    pub(crate) handler_panics: Counter,
}

impl InformerFamilies {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        Self {
            objects: add(
                registry,
                "fleetwright_informer_objects",
                "Objects that the informer holds",
            ),
            lists: add(
                registry,
                "fleetwright_informer_lists",
                "Complete lists that the informer read",
            ),
            watches: add(
                registry,
                "fleetwright_informer_watches",
                "Watches that the informer opened",
            ),
            failures: add(
                registry,
                "fleetwright_informer_failures",
                "Lists and watches that failed",
            ),
            invalid: add(
                registry,
                "fleetwright_informer_invalid_objects",
                "Objects skipped because they could not be understood",
            ),
            handler_panics: add(
                registry,
                "fleetwright_informer_handler_panics",
                "Panics of those who listen to the informer",
            ),
        }
    }

    pub(crate) fn of(&self, name: &str) -> InformerMetrics {
        let labels = NameLabels { name: name.to_owned() };
        InformerMetrics {
            objects: self.objects.get_or_create_owned(&labels),
            lists: self.lists.get_or_create_owned(&labels),
            watches: self.watches.get_or_create_owned(&labels),
            failures: self.failures.get_or_create_owned(&labels),
            invalid: self.invalid.get_or_create_owned(&labels),
            handler_panics: self.handler_panics.get_or_create_owned(&labels),
        }
    }
}

/// The metrics of the event recorder.
#[derive(Clone, Debug)]
pub(crate) struct EventMetrics {
    pub(crate) written: Counter,
    pub(crate) filtered: Counter,
    pub(crate) dropped: Counter,
    pub(crate) failed: Counter,
}

impl EventMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        Self {
            written: add(registry, "fleetwright_events_written", "Events created or updated"),
            filtered: add(
                registry,
                "fleetwright_events_filtered",
                "Events not written because their object had too many",
            ),
            dropped: add(
                registry,
                "fleetwright_events_dropped",
                "Events not written because the queue was full or the process stopped",
            ),
            failed: add(registry, "fleetwright_events_failed", "Events that could not be written"),
        }
    }
}

pub(crate) struct LeaderFamilies {
    status: Family<NameLabels, Gauge>,
    slow_path: Family<NameLabels, Counter>,
}

/// The metrics of one election.
#[derive(Clone, Debug)]
pub(crate) struct LeaderMetrics {
    pub(crate) status: Gauge,
    pub(crate) slow_path: Counter,
}

impl LeaderFamilies {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        Self {
            status: add(
                registry,
                "leader_election_master_status",
                "Whether this process leads: 1 leader, 0 waiting",
            ),
            slow_path: add(
                registry,
                "leader_election_slowpath",
                "Renewals that had to read the lease first",
            ),
        }
    }

    pub(crate) fn of(&self, name: &str) -> LeaderMetrics {
        let labels = NameLabels { name: name.to_owned() };
        LeaderMetrics {
            status: self.status.get_or_create_owned(&labels),
            slow_path: self.slow_path.get_or_create_owned(&labels),
        }
    }
}
