//! What operators read about health checks. The first three names are upstream's, as their alerts
//! use them.

use fleetwright_runtime::{Metrics, ObjectKey};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CheckLabels {
    name: String,
    namespace: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CauseLabels {
    name: String,
    namespace: String,
    cause: String,
}

/// What is counted.
#[derive(Clone, Debug, Default)]
pub(super) struct HealthMetrics {
    covered: Family<CheckLabels, Gauge>,
    short_circuit: Family<CheckLabels, Gauge>,
    repaired: Family<CheckLabels, Counter>,
    evaluations: Family<CheckLabels, Counter>,
    backoff: Family<CheckLabels, Gauge>,
    deferred: Family<CauseLabels, Counter>,
}

fn labels(check: &ObjectKey) -> CheckLabels {
    CheckLabels { name: check.name.clone(), namespace: check.namespace.clone() }
}

impl HealthMetrics {
    pub(super) fn new(metrics: &Metrics) -> Self {
        let own = Self::default();
        metrics.register(|registry| {
            registry.register(
                "mapi_machinehealthcheck_nodes_covered",
                "Number of nodes covered by MachineHealthChecks",
                own.covered.clone(),
            );
            registry.register(
                "mapi_machinehealthcheck_short_circuit",
                "Short circuit status for MachineHealthCheck (0=no, 1=yes)",
                own.short_circuit.clone(),
            );
            registry.register(
                "mapi_machinehealthcheck_remediation_success",
                "Number of successful remediations performed by MachineHealthChecks",
                own.repaired.clone(),
            );
            registry.register(
                "mapi_machinehealthcheck_evaluations",
                "Number of Machines that were judged: once for each change, all at the start",
                own.evaluations.clone(),
            );
            registry.register(
                "mapi_machinehealthcheck_backoff_seconds",
                "Seconds until the next repair that waits for replacements to help",
                own.backoff.clone(),
            );
            registry.register(
                "mapi_machinehealthcheck_remediation_deferred",
                "Number of repairs that had to wait, by cause",
                own.deferred.clone(),
            );
        });
        own
    }

    pub(super) fn observe(&self, check: &ObjectKey, covered: usize, allowed: bool) {
        let covered = i64::try_from(covered).unwrap_or(i64::MAX);
        self.covered.get_or_create(&labels(check)).set(covered);
        self.short_circuit.get_or_create(&labels(check)).set(i64::from(!allowed));
    }

    pub(super) fn judged(&self, check: &ObjectKey, machines: usize) {
        let machines = u64::try_from(machines).unwrap_or(u64::MAX);
        self.evaluations.get_or_create(&labels(check)).inc_by(machines);
    }

    pub(super) fn repaired(&self, check: &ObjectKey) {
        self.repaired.get_or_create(&labels(check)).inc();
    }

    pub(super) fn waits(&self, check: &ObjectKey, seconds: i64) {
        self.backoff.get_or_create(&labels(check)).set(seconds);
    }

    pub(super) fn deferred(&self, check: &ObjectKey, cause: &str, count: u64) {
        let CheckLabels { name, namespace } = labels(check);
        let labels = CauseLabels { name, namespace, cause: cause.to_owned() };
        self.deferred.get_or_create(&labels).inc_by(count);
    }

    pub(super) fn forget(&self, check: &ObjectKey) {
        let labels = labels(check);
        self.covered.remove(&labels);
        self.short_circuit.remove(&labels);
        self.backoff.remove(&labels);
    }
}
