//! The workload controllers: what users deploy becomes pods, and pods that are gone come back.
//!
//! Each controller is a [`Family`]: owners of one kind and the children that they control. What
//! to do is decided by plain functions in the modules of the kinds.

mod children;
mod daemonset;
mod deployment;
mod family;
mod job;
mod replicaset;
mod revisions;
mod statefulset;

use k8s_openapi::{
    api::{
        apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
        batch::v1::Job,
    },
    apimachinery::pkg::{apis::meta::v1::LabelSelector, util::intstr::IntOrString},
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::family::Workload;
use crate::{
    cluster::SharedCluster,
    settings::{DAEMON_SET, DEPLOYMENT, JOB, REPLICA_SET, STATEFUL_SET, Settings},
};

/// Starts the wanted controllers.
pub(crate) fn spawn(
    cluster: &SharedCluster,
    settings: &Settings,
    tasks: &mut JoinSet<()>,
    stop: &CancellationToken,
) {
    let wanted = |name| (settings.wanted)(name);
    if wanted(REPLICA_SET) || wanted(DEPLOYMENT) {
        let sets = cluster.informer::<ReplicaSet>("simnode-replicasets", tasks, stop);
        if wanted(REPLICA_SET) {
            replicaset::spawn(cluster, &sets, tasks, stop);
        }
        if wanted(DEPLOYMENT) {
            deployment::spawn(cluster, &sets, tasks, stop);
        }
    }
    if wanted(STATEFUL_SET) || wanted(DAEMON_SET) {
        let versions = cluster.informer("simnode-controllerrevisions", tasks, stop);
        if wanted(STATEFUL_SET) {
            statefulset::spawn(cluster, &versions, tasks, stop);
        }
        if wanted(DAEMON_SET) {
            daemonset::spawn(cluster, &versions, tasks, stop);
        }
    }
    if wanted(JOB) {
        job::spawn(cluster, tasks, stop);
    }
}

impl Workload for ReplicaSet {
    const COMPONENT: &'static str = REPLICA_SET;

    fn selector(&self) -> Option<&LabelSelector> {
        Some(&self.spec.selector)
    }
}

impl Workload for Deployment {
    const COMPONENT: &'static str = DEPLOYMENT;

    fn selector(&self) -> Option<&LabelSelector> {
        Some(&self.spec.selector)
    }
}

impl Workload for StatefulSet {
    const COMPONENT: &'static str = STATEFUL_SET;

    fn selector(&self) -> Option<&LabelSelector> {
        Some(&self.spec.selector)
    }
}

impl Workload for DaemonSet {
    const COMPONENT: &'static str = DAEMON_SET;

    fn selector(&self) -> Option<&LabelSelector> {
        Some(&self.spec.selector)
    }
}

impl Workload for Job {
    const COMPONENT: &'static str = JOB;

    fn selector(&self) -> Option<&LabelSelector> {
        self.spec.as_ref().and_then(|spec| spec.selector.as_ref())
    }
}

/// A number, or a part of `total`, rounded up or down.
pub(crate) fn scaled(value: Option<&IntOrString>, total: i32, up: bool) -> i32 {
    match value {
        None => 0,
        Some(IntOrString::Int(number)) => *number,
        Some(IntOrString::String(text)) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or_default();
            let product = percent.saturating_mul(total.into());
            let part = if up { (product + 99) / 100 } else { product / 100 };
            i32::try_from(part).unwrap_or(i32::MAX)
        }
    }
}
