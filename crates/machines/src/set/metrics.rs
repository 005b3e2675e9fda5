//! MachineSets as dashboards know them: read from the informer when they are asked for.

use std::fmt;

use fleetwright_api::machine::MachineSet;
use fleetwright_runtime::{Informer, Metrics};
use kube::ResourceExt;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, gauge::ConstGauge},
};

/// Adds the metrics of MachineSets.
pub(super) fn register(metrics: &Metrics, sets: Informer<MachineSet>) {
    metrics.register(|registry| registry.register_collector(Box::new(SetMetrics { sets })));
}

#[derive(Debug)]
struct SetMetrics {
    sets: Informer<MachineSet>,
}

/// A count of a status, with its name and help.
type Count = (&'static str, &'static str, fn(&MachineSet) -> Option<i32>);

const COUNTS: [Count; 3] = [
    (
        "mapi_machine_set_status_replicas",
        "Information of the mapi managed Machineset's status for replicas",
        |set| set.status.as_ref().map(|status| status.replicas),
    ),
    (
        "mapi_machine_set_status_replicas_ready",
        "Information of the mapi managed Machineset's status for ready replicas",
        |set| set.status.as_ref()?.ready_replicas,
    ),
    (
        "mapi_machine_set_status_replicas_available",
        "Information of the mapi managed Machineset's status for available replicas",
        |set| set.status.as_ref()?.available_replicas,
    ),
];

impl Collector for SetMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let sets = self.sets.list();
        let items = ConstGauge::new(i64::try_from(sets.len()).unwrap_or(i64::MAX));
        items.encode(encoder.encode_descriptor(
            "mapi_machineset_items",
            "Count of machinesets at the apiserver",
            None,
            MetricType::Gauge,
        )?)?;
        let mut created = encoder.encode_descriptor(
            "mapi_machineset_created_timestamp_seconds",
            "Timestamp of the mapi managed Machineset creation time",
            None,
            MetricType::Gauge,
        )?;
        for set in &sets {
            let Some(time) = set.creation_timestamp() else { continue };
            let labels = [
                ("name", set.name_any()),
                ("namespace", set.namespace().unwrap_or_default()),
                ("api_version", MachineSet::API_VERSION.to_owned()),
            ];
            ConstGauge::new(time.0.as_second()).encode(created.encode_family(&labels)?)?;
        }
        for (name, help, count) in COUNTS {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for set in &sets {
                let labels =
                    [("name", set.name_any()), ("namespace", set.namespace().unwrap_or_default())];
                let value = i64::from(count(set).unwrap_or_default());
                ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
