//! What cluster-autoscaler would not understand on a MachineSet. It says so in its own log alone, so
//! the user is told when it is written.

use fleetwright_api::config::PlatformType;
use fleetwright_api::machine::MachineSet;
use fleetwright_api::names::annotation;
use fleetwright_lifecycle::autoscaler::{BoundsError, LeftAlone, Measure, bounds, looked_after};

use super::Facts;
use super::findings::Findings;

/// What instances have, and how it is measured.
const MEASURES: [(&str, Measure); 9] = [
    (annotation::VCPU, Measure::Count),
    (annotation::MEMORY_MB, Measure::Count),
    (annotation::GPU, Measure::Count),
    (annotation::MAX_PODS, Measure::Count),
    (annotation::CAPACITY_CPU, Measure::Cpu),
    (annotation::CAPACITY_MEMORY, Measure::Bytes),
    (annotation::CAPACITY_DISK, Measure::Bytes),
    (annotation::CAPACITY_GPU_COUNT, Measure::Count),
    (annotation::CAPACITY_MAX_PODS, Measure::Count),
];

/// Checks the annotations of a MachineSet.
pub(super) fn check(set: &MachineSet, facts: &Facts, findings: &mut Findings) {
    let annotations = set.metadata.annotations.as_ref();
    let written =
        |key: &str| annotations.and_then(|annotations| annotations.get(key)).map(String::as_str);
    for (key, measure) in MEASURES {
        if let Some(text) = written(key).filter(|text| measure.read(Some(text)).is_none()) {
            let expected = match measure {
                Measure::Cpu | Measure::Bytes => "a quantity such as 2 or 8Gi",
                Measure::Count => "a whole number",
            };
            findings.warn(format!(
                "metadata.annotations[{key}]: {text:?} is not {expected}: cluster-autoscaler cannot \
                 grow this MachineSet from zero"
            ));
        }
    }
    let (min, max) = (written(annotation::AUTOSCALER_MIN), written(annotation::AUTOSCALER_MAX));
    if min.is_none() && max.is_none() {
        return;
    }
    match bounds(min, max) {
        Err(error) => {
            let (key, text, fix) = match error {
                BoundsError::Min => (annotation::AUTOSCALER_MIN, min, "give a whole number"),
                BoundsError::Max => (
                    annotation::AUTOSCALER_MAX,
                    max,
                    "give a whole number that is not less than the min-size",
                ),
            };
            findings.warn(format!(
                "metadata.annotations[{key}]: {:?}: {error}: cluster-autoscaler leaves this \
                 MachineSet alone; {fix}",
                text.unwrap_or_default()
            ));
        }
        Ok(bounds) => {
            // Where there is a provider, its controller writes down what an instance has.
            let known = facts.platform == Some(PlatformType::Aws)
                || [
                    [annotation::VCPU, annotation::MEMORY_MB],
                    [annotation::CAPACITY_CPU, annotation::CAPACITY_MEMORY],
                ]
                .iter()
                .any(|keys| keys.iter().all(|key| written(key).is_some()));
            // What is not said is 1.
            let replicas = set.spec.replicas.map_or(1, i64::from);
            match looked_after(bounds, replicas, known) {
                Ok(()) => {}
                Err(LeftAlone::NoRoom) => findings.warn(format!(
                    "metadata.annotations[{}]: \"0\": cluster-autoscaler leaves this MachineSet \
                     alone; give at least 1",
                    annotation::AUTOSCALER_MAX
                )),
                Err(LeftAlone::UnknownCapacity) => findings.warn(format!(
                    "spec.replicas: 0: cluster-autoscaler cannot grow this MachineSet from zero \
                     unless it has the annotations {} and {}",
                    annotation::CAPACITY_CPU,
                    annotation::CAPACITY_MEMORY
                )),
            }
        }
    }
}
