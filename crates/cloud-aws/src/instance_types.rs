//! What types of instances offer.

use fleetwright_cloud::{InstanceType, Strategy};

use crate::{groups::strategy, model::ec2::responses};

/// A type as EC2 shows it, in our words.
pub fn instance_type(shown: &responses::InstanceTypeInfo) -> Option<InstanceType> {
    let number = |number: Option<i64>| number.and_then(|number| u32::try_from(number).ok());
    let memory = shown.memory_info.as_ref().and_then(|memory| memory.size_in_mi_b);
    let gpus = || shown.gpu_info.iter().flat_map(|info| &info.gpus);
    let architectures = shown.processor_info.iter().flat_map(|info| &info.supported_architectures);
    let strategies = shown.placement_group_info.iter().flat_map(|info| &info.supported_strategies);
    let strategies = strategies.filter_map(|word| strategy(word)).collect::<Vec<Strategy>>();
    Some(InstanceType {
        name: shown.instance_type.clone()?,
        vcpus: number(shown.v_cpu_info.as_ref().and_then(|info| info.default_v_cpus))?,
        memory_mib: memory.and_then(|memory| u64::try_from(memory).ok())?,
        gpus: gpus().filter_map(|gpu| number(gpu.count)).sum(),
        gpu_resource: gpus().find_map(|gpu| gpu_resource(gpu.manufacturer.as_deref()?)),
        architecture: architecture(architectures).to_owned(),
        strategies: strategies.into_iter().collect(),
    })
}

/// What the device plugin of the manufacturer offers.
fn gpu_resource(manufacturer: &str) -> Option<String> {
    let resource = match manufacturer {
        "NVIDIA" => "nvidia.com/gpu",
        "AMD" => "amd.com/gpu",
        "Habana" => "habana.ai/gaudi",
        _ => return None,
    };
    Some(resource.to_owned())
}

/// As in the label `kubernetes.io/arch`; most types are of the older architecture, and say nothing
/// else.
fn architecture<'a>(supported: impl IntoIterator<Item = &'a String>) -> &'static str {
    let arm = supported.into_iter().any(|name| name.starts_with("arm64"));
    if arm { "arm64" } else { "amd64" }
}
