//! What the simulation can be told.

use std::{fmt, sync::Arc, time::Duration};

use fleetwright_runtime::Metrics;

use crate::kubelet::Agent;

/// The parts, by the names that they have in Kubernetes. Each can be switched off, so that the
/// real one takes its place.
pub const NAMES: &[&str] = &[
    KUBELET,
    NODE_LIFECYCLE,
    TAINT_EVICTION,
    POD_COLLECTION,
    CLOUD_NODE_LIFECYCLE,
    SCHEDULER,
    DEPLOYMENT,
    REPLICA_SET,
    STATEFUL_SET,
    DAEMON_SET,
    JOB,
];

pub(crate) const KUBELET: &str = "kubelet";
pub(crate) const NODE_LIFECYCLE: &str = "node-lifecycle-controller";
pub(crate) const TAINT_EVICTION: &str = "taint-eviction-controller";
pub(crate) const POD_COLLECTION: &str = "pod-garbage-collector-controller";
pub(crate) const CLOUD_NODE_LIFECYCLE: &str = "cloud-node-lifecycle-controller";
pub(crate) const SCHEDULER: &str = "kube-scheduler";
pub(crate) const DEPLOYMENT: &str = "deployment-controller";
pub(crate) const REPLICA_SET: &str = "replicaset-controller";
pub(crate) const STATEFUL_SET: &str = "statefulset-controller";
pub(crate) const DAEMON_SET: &str = "daemonset-controller";
pub(crate) const JOB: &str = "job-controller";

/// Settings of the whole simulation.
#[derive(Clone)]
pub struct Settings {
    /// Which of [`NAMES`] run.
    pub wanted: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    /// Where everything is counted.
    pub metrics: Metrics,
    /// How many objects each part works on at the same time.
    pub workers: usize,
    /// The simulated kubelets.
    pub kubelet: KubeletSettings,
    /// What is done about nodes that no longer answer.
    pub lifecycle: LifecycleSettings,
    /// A real program that runs on some of the nodes.
    pub agent: Option<Agent>,
}

/// How simulated kubelets behave.
#[derive(Clone, Copy, Debug)]
pub struct KubeletSettings {
    /// From registration until the node is ready.
    pub ready_delay: Duration,
    /// From the binding of a pod until its containers run.
    pub pod_start: Duration,
    /// From the request to stop until the containers have ended, unless the pod's annotation
    /// says otherwise.
    pub pod_stop: Duration,
    /// Between renewals of the node's Lease.
    pub lease_interval: Duration,
    /// Between reports of a status that has not changed.
    pub status_interval: Duration,
    /// Kept from pods of every node, at most half of what it has: processors in thousandths.
    pub reserved_cpu: i64,
    /// Kept from pods of every node, at most half of what it has: bytes of memory.
    pub reserved_memory: i64,
}

/// How fast a silent node is given up.
#[derive(Clone, Copy, Debug)]
pub struct LifecycleSettings {
    /// How old a Lease may be before its node counts as unreachable.
    pub grace: Duration,
    /// How long a node must be gone before its pods are removed.
    pub quarantine: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            wanted: Arc::new(|_| true),
            metrics: Metrics::new(),
            workers: 8,
            kubelet: KubeletSettings::default(),
            lifecycle: LifecycleSettings::default(),
            agent: None,
        }
    }
}

impl Default for KubeletSettings {
    fn default() -> Self {
        Self {
            ready_delay: Duration::from_secs(2),
            pod_start: Duration::from_secs(1),
            pod_stop: Duration::from_secs(1),
            lease_interval: Duration::from_secs(10),
            status_interval: Duration::from_mins(5),
            reserved_cpu: 500,
            reserved_memory: 1 << 30,
        }
    }
}

impl KubeletSettings {
    /// Everything happens at once; only heartbeats take time.
    pub fn immediate() -> Self {
        let zero = Duration::ZERO;
        Self { ready_delay: zero, pod_start: zero, pod_stop: zero, ..Self::default() }
    }
}

impl Default for LifecycleSettings {
    fn default() -> Self {
        Self { grace: Duration::from_secs(40), quarantine: Duration::from_secs(40) }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { wanted, metrics: _, workers, kubelet, lifecycle, agent } = self;
        let wanted: Vec<_> = NAMES.iter().filter(|name| wanted(name)).collect();
        f.debug_struct("Settings")
            .field("wanted", &wanted)
            .field("workers", workers)
            .field("kubelet", kubelet)
            .field("lifecycle", lifecycle)
            .field("agent", agent)
            .finish_non_exhaustive()
    }
}
