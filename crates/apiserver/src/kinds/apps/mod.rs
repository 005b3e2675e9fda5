//! Workloads.

mod controller_revision;
mod daemon_set;
mod deployment;
mod replica_set;
mod stateful_set;
pub(super) mod workload;

use std::sync::Arc;

use super::{Builtin, Kind};
use crate::gvk::GroupVersionKind;

/// The kinds of the group `apps`.
pub(super) fn builtins() -> Vec<Builtin> {
    let scaled: &[&str] = &["scale", "status"];
    vec![
        apps(
            "Deployment",
            "deployments",
            "deployment",
            &["deploy"],
            scaled,
            deployment::Deployment,
        )
        .in_all(),
        apps("ReplicaSet", "replicasets", "replicaset", &["rs"], scaled, replica_set::ReplicaSet)
            .in_all(),
        apps("DaemonSet", "daemonsets", "daemonset", &["ds"], &["status"], daemon_set::DaemonSet)
            .in_all(),
        apps(
            "StatefulSet",
            "statefulsets",
            "statefulset",
            &["sts"],
            scaled,
            stateful_set::StatefulSet,
        )
        .in_all(),
        apps(
            "ControllerRevision",
            "controllerrevisions",
            "controllerrevision",
            &[],
            &[],
            controller_revision::ControllerRevision,
        ),
    ]
}

fn apps(
    kind: &str,
    plural: &'static str,
    singular: &'static str,
    short_names: &'static [&'static str],
    subresources: &'static [&'static str],
    implementation: impl Kind,
) -> Builtin {
    Builtin {
        gvk: GroupVersionKind::new("apps", "v1", kind),
        plural,
        singular,
        short_names,
        categories: &[],
        namespaced: true,
        subresources,
        kind: Arc::new(implementation),
    }
}
