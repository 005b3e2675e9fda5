//! What operators read about Machines. Names and labels are upstream's.

use std::time::Duration;

use fleetwright_api::machine::Machine;
use fleetwright_runtime::{Informer, Metrics};
use kube::ResourceExt as _;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::{ConstGauge, Gauge},
        histogram::Histogram,
    },
    registry::Registry,
};

/// Labels of a failure.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct FailureLabels {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) reason: String,
}

/// Label of a phase.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct PhaseLabels {
    pub(crate) phase: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HopLabels {
    hop: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MachineLabels {
    name: String,
    namespace: String,
    spec_provider_id: String,
    node: String,
    api_version: &'static str,
    phase: String,
}

/// What is counted.
#[derive(Clone, Debug)]
pub(crate) struct MachineMetrics {
    pub(crate) create_failed: Family<FailureLabels, Counter>,
    pub(crate) update_failed: Family<FailureLabels, Counter>,
    pub(crate) delete_failed: Family<FailureLabels, Counter>,
    /// Instances of the cluster that are nobody's and are left as they are.
    pub(crate) without_machine: Gauge,
    pub(crate) phase_transition: Family<PhaseLabels, Histogram, fn() -> Histogram>,
    hops: Family<HopLabels, Histogram, fn() -> Histogram>,
}

fn hop_histogram() -> Histogram {
    Histogram::new([0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 90.0, 120.0, 180.0, 300.0, 600.0])
}

fn phase_histogram() -> Histogram {
    Histogram::new([
        5.0, 10.0, 20.0, 30.0, 60.0, 90.0, 120.0, 180.0, 240.0, 300.0, 360.0, 480.0, 600.0,
    ])
}

impl MachineMetrics {
    /// Registers them.
    pub(crate) fn new(metrics: &Metrics, machines: &Informer<Machine>) -> Self {
        let own = Self {
            create_failed: Family::default(),
            update_failed: Family::default(),
            delete_failed: Family::default(),
            without_machine: Gauge::default(),
            phase_transition: Family::new_with_constructor(phase_histogram),
            hops: Family::new_with_constructor(hop_histogram),
        };
        metrics.register(|registry: &mut Registry| {
            for (name, help, family) in [
                ("mapi_instance_create_failed", "Launches that failed", &own.create_failed),
                ("mapi_instance_update_failed", "Updates that failed", &own.update_failed),
                ("mapi_instance_delete_failed", "Terminations that failed", &own.delete_failed),
            ] {
                registry.register(name, help, family.clone());
            }
            registry.register(
                "fleetwright_instances_without_machine",
                "Instances of the cluster that no Machine has and that are left as they are",
                own.without_machine.clone(),
            );
            registry.register(
                "mapi_machine_phase_transition_seconds",
                "Seconds from the creation of a Machine to its phase",
                own.phase_transition.clone(),
            );
            registry.register(
                "fleetwright_machine_ending_seconds",
                "Seconds of each hop from the notice of a cloud to the end of an instance and its replacement",
                own.hops.clone(),
            );
            registry.register_collector(Box::new(Machines(machines.clone())));
        });
        own
    }

    /// Counts a hop from a notice to the end.
    pub(crate) fn hop(&self, hop: &'static str, span: Duration) {
        self.hops.get_or_create(&HopLabels { hop }).observe(span.as_secs_f64());
    }
}

/// Reads Machines when asked, so that there is nothing to keep in step.
#[derive(Debug)]
struct Machines(Informer<Machine>);

impl Collector for Machines {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let machines = self.0.list();
        let count = ConstGauge::new(i64::try_from(machines.len()).unwrap_or(i64::MAX));
        let family = encoder.encode_descriptor(
            "mapi_machine_items",
            "Machines that there are",
            None,
            count.metric_type(),
        )?;
        count.encode(family)?;
        let mut created = encoder.encode_descriptor(
            "mapi_machine_created_timestamp_seconds",
            "When a Machine was created",
            None,
            ConstGauge::new(0_i64).metric_type(),
        )?;
        for machine in machines {
            let status = machine.status.as_ref();
            let labels = MachineLabels {
                name: machine.name_any(),
                namespace: machine.namespace().unwrap_or_default(),
                spec_provider_id: machine.spec.provider_id.clone().unwrap_or_default(),
                node: status
                    .and_then(|status| status.node_ref.as_ref()?.name.clone())
                    .unwrap_or_default(),
                api_version: Machine::API_VERSION,
                phase: status
                    .and_then(|status| Some(status.phase.as_ref()?.to_string()))
                    .unwrap_or_default(),
            };
            let at = machine.creation_timestamp().map_or(0, |time| time.0.as_second());
            let gauge = ConstGauge::new(at);
            gauge.encode(created.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
