//! The Node that a simulated kubelet registers, and the conditions that it reports.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Node, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo},
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{ObjectMeta, Time},
    },
};

use super::host::Host;
use crate::{
    facts::{
        resources::{Amounts, CPU, MEMORY, PODS, STORAGE},
        taints::{self, NO_SCHEDULE, NOT_READY},
    },
    settings::KubeletSettings,
};

const VERSION: &str = "v1.37.1";
const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
const WORKER: &str = "node-role.kubernetes.io/worker";
const GPUS: &str = "nvidia.com/gpu";
/// The root volume of every simulated machine.
const STORAGE_KI: u64 = 120 * 1024 * 1024;

/// The condition that says whether a node can run pods.
pub(crate) const READY: &str = "Ready";
pub(crate) const PRESSURES: [&str; 3] = ["MemoryPressure", "DiskPressure", "PIDPressure"];

const GOOD: [(&str, &str, &str, &str); 3] = [
    (
        "MemoryPressure",
        "False",
        "KubeletHasSufficientMemory",
        "kubelet has sufficient memory available",
    ),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
];
const READY_TRUE: (&str, &str, &str, &str) =
    (READY, "True", "KubeletReady", "kubelet is posting ready status");
const READY_FALSE: (&str, &str, &str, &str) = (
    READY,
    "False",
    "KubeletNotReady",
    "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady \
     message:Network plugin returns error: cni plugin not initialized",
);

/// The Node as kubelet and cloud controller make it.
pub(super) fn node(
    host: &Host,
    boot_id: &str,
    network: Option<u16>,
    ready: bool,
    settings: &KubeletSettings,
    now: Timestamp,
) -> Node {
    let mut taints = host.taints.clone();
    if !ready {
        taints.push(taints::taint(NOT_READY, NO_SCHEDULE));
    }
    let cidr = network.map(pod_cidr);
    Node {
        metadata: ObjectMeta {
            name: Some(host.name.clone()),
            labels: Some(labels(host)),
            annotations: Some(BTreeMap::from([(
                "volumes.kubernetes.io/controller-managed-attach-detach".to_owned(),
                "true".to_owned(),
            )])),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            provider_id: Some(host.provider_id.clone()).filter(|id| !id.is_empty()),
            pod_cidrs: cidr.clone().map(|cidr| vec![cidr]),
            pod_cidr: cidr,
            taints: Some(taints).filter(|taints| !taints.is_empty()),
            ..NodeSpec::default()
        }),
        status: Some(status(host, boot_id, &[], ready, settings, now)),
    }
}

/// The whole status; conditions keep the time of their last change.
pub(super) fn status(
    host: &Host,
    boot_id: &str,
    known: &[NodeCondition],
    ready: bool,
    settings: &KubeletSettings,
    now: Timestamp,
) -> NodeStatus {
    let capacity = capacity(host);
    let wanted = GOOD.iter().chain([if ready { &READY_TRUE } else { &READY_FALSE }]);
    let conditions = wanted.map(|(kind, status, reason, message)| {
        let same = known.iter().find(|old| old.type_ == *kind && old.status == *status);
        let since = same.and_then(|old| old.last_transition_time.clone());
        NodeCondition {
            type_: (*kind).to_owned(),
            status: (*status).to_owned(),
            reason: Some((*reason).to_owned()),
            message: Some((*message).to_owned()),
            last_heartbeat_time: Some(Time(now)),
            last_transition_time: Some(since.unwrap_or(Time(now))),
        }
    });
    NodeStatus {
        addresses: Some(host.addresses.clone()),
        allocatable: Some(allocatable(host, &capacity, settings)),
        capacity: Some(capacity),
        conditions: Some(conditions.collect()),
        node_info: Some(NodeSystemInfo {
            architecture: host.architecture.clone(),
            boot_id: boot_id.to_owned(),
            container_runtime_version: "cri-o://1.37.0".to_owned(),
            kernel_version: "6.12.0-simulated".to_owned(),
            kube_proxy_version: String::new(),
            kubelet_version: VERSION.to_owned(),
            machine_id: host.name.clone(),
            operating_system: "linux".to_owned(),
            os_image: "Fleetwright simulated Linux".to_owned(),
            system_uuid: host.provider_id.clone(),
            ..NodeSystemInfo::default()
        }),
        ..NodeStatus::default()
    }
}

pub(super) fn labels(host: &Host) -> BTreeMap<String, String> {
    let mut labels = host.labels.clone();
    let facts = [
        ("kubernetes.io/hostname", host.name.as_str()),
        ("kubernetes.io/arch", &host.architecture),
        ("kubernetes.io/os", "linux"),
        ("beta.kubernetes.io/arch", &host.architecture),
        ("beta.kubernetes.io/os", "linux"),
        ("node.kubernetes.io/instance-type", &host.instance_type),
        ("beta.kubernetes.io/instance-type", &host.instance_type),
        ("topology.kubernetes.io/zone", &host.zone),
        ("failure-domain.beta.kubernetes.io/zone", &host.zone),
        ("topology.kubernetes.io/region", &host.region),
        ("failure-domain.beta.kubernetes.io/region", &host.region),
    ];
    for (key, value) in facts.into_iter().filter(|(_, value)| !value.is_empty()) {
        labels.insert(key.to_owned(), value.to_owned());
    }
    if !labels.keys().any(|key| key.starts_with(ROLE_PREFIX)) {
        labels.insert(WORKER.to_owned(), String::new());
    }
    labels
}

fn capacity(host: &Host) -> Amounts {
    let mut capacity = BTreeMap::from([
        (CPU.to_owned(), Quantity(host.cpu.to_string())),
        (MEMORY.to_owned(), kibibytes(host.memory)),
        (STORAGE.to_owned(), Quantity(format!("{STORAGE_KI}Ki"))),
        (PODS.to_owned(), Quantity(host.pods.to_string())),
    ]);
    let gpus = (host.gpus > 0).then(|| (GPUS.to_owned(), u64::from(host.gpus)));
    for (name, amount) in host.extended.clone().into_iter().chain(gpus) {
        capacity.insert(name, Quantity(amount.to_string()));
    }
    capacity
}

fn allocatable(host: &Host, capacity: &Amounts, settings: &KubeletSettings) -> Amounts {
    let mut left = capacity.clone();
    let milli = i64::from(host.cpu) * 1000;
    let milli = milli - settings.reserved_cpu.clamp(0, milli / 2);
    left.insert(CPU.to_owned(), Quantity(format!("{milli}m")));
    let reserved = u64::try_from(settings.reserved_memory).unwrap_or_default();
    left.insert(MEMORY.to_owned(), kibibytes(host.memory - reserved.min(host.memory / 2)));
    left
}

fn kibibytes(bytes: u64) -> Quantity {
    Quantity(format!("{}Ki", bytes / 1024))
}

/// How many networks of 254 pods there are.
pub(super) const NETWORKS: u16 = 64 * 256;

/// The addresses of the pods of one node: 10.128.0.0/10, cut in pieces.
pub(super) fn pod_cidr(network: u16) -> String {
    format!("{}.0/24", prefix(network))
}

/// The address of one pod.
pub(super) fn pod_address(network: u16, number: u8) -> String {
    format!("{}.{number}", prefix(network))
}

/// Which network an address range is.
pub(super) fn network_of(cidr: &str) -> Option<u16> {
    let mut parts = cidr.strip_prefix("10.")?.split('.');
    let (high, low): (u16, u16) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let network = high.checked_sub(128)?.checked_mul(256)?.checked_add(low)?;
    (network < NETWORKS).then_some(network)
}

fn prefix(network: u16) -> String {
    format!("10.{}.{}", 128 + network / 256, network % 256)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_of_nodes() {
        for network in [0, 1, 255, 256, NETWORKS - 1] {
            assert_eq!(network_of(&pod_cidr(network)), Some(network));
        }
        assert_eq!(pod_cidr(257), "10.129.1.0/24");
        assert_eq!(pod_address(257, 7), "10.129.1.7");
        assert_eq!(network_of("192.168.0.0/24"), None);
        assert_eq!(network_of("10.1.0.0/24"), None);
    }

    #[test]
    fn what_is_left_for_pods() {
        let settings = KubeletSettings::default();
        let host = Host { cpu: 4, memory: 16 << 30, gpus: 8, ..Host::default() };
        let left = allocatable(&host, &capacity(&host), &settings);
        assert_eq!(left[CPU].0, "3500m");
        assert_eq!(left[MEMORY].0, format!("{}Ki", 15 << 20));
        assert_eq!((left[GPUS].0.as_str(), left[PODS].0.as_str()), ("8", "250"));
        let small = Host { cpu: 1, memory: 1 << 30, ..Host::default() };
        let left = allocatable(&small, &capacity(&small), &settings);
        assert_eq!((left[CPU].0.as_str(), left[MEMORY].0.as_str()), ("500m", "524288Ki"));
    }
}
