//! Kinds of the core group.

mod config_map;
pub(super) mod endpoints;
mod namespace;
mod node;
pub(super) mod persistent_volume;
pub(crate) mod pod;
mod quotas;
mod replication_controller;
mod resources;
mod secret;
mod service;
mod service_account;
mod taints;

use std::sync::Arc;

use super::{Builtin, Kind};
use crate::gvk::GroupVersionKind;

/// The kinds of the core group.
pub(super) fn builtins() -> Vec<Builtin> {
    vec![
        core("Namespace", "namespaces", "namespace", &["ns"], &["status"], namespace::Namespace)
            .cluster_wide(),
        core("Node", "nodes", "node", &["no"], &["status"], node::Node).cluster_wide(),
        core("Pod", "pods", "pod", &["po"], &["status"], pod::Pod).in_all(),
        core("Secret", "secrets", "secret", &[], &[], secret::Secret),
        core("ConfigMap", "configmaps", "configmap", &["cm"], &[], config_map::ConfigMap),
        core(
            "ServiceAccount",
            "serviceaccounts",
            "serviceaccount",
            &["sa"],
            &[],
            service_account::ServiceAccount,
        ),
        core("Service", "services", "service", &["svc"], &["status"], service::Service).in_all(),
        core(
            "PersistentVolume",
            "persistentvolumes",
            "persistentvolume",
            &["pv"],
            &["status"],
            persistent_volume::PersistentVolume,
        )
        .cluster_wide(),
        core(
            "PersistentVolumeClaim",
            "persistentvolumeclaims",
            "persistentvolumeclaim",
            &["pvc"],
            &["status"],
            persistent_volume::PersistentVolumeClaim,
        ),
        core(
            "ReplicationController",
            "replicationcontrollers",
            "replicationcontroller",
            &["rc"],
            &["scale", "status"],
            replication_controller::ReplicationController,
        )
        .in_all(),
        core(
            "ResourceQuota",
            "resourcequotas",
            "resourcequota",
            &["quota"],
            &["status"],
            quotas::ResourceQuota,
        ),
        core("LimitRange", "limitranges", "limitrange", &["limits"], &[], quotas::LimitRange),
        core("Endpoints", "endpoints", "endpoints", &["ep"], &[], endpoints::Endpoints),
    ]
}

fn core(
    kind: &str,
    plural: &'static str,
    singular: &'static str,
    short_names: &'static [&'static str],
    subresources: &'static [&'static str],
    implementation: impl Kind,
) -> Builtin {
    Builtin {
        gvk: GroupVersionKind::new("", "v1", kind),
        plural,
        singular,
        short_names,
        categories: &[],
        namespaced: true,
        subresources,
        kind: Arc::new(implementation),
    }
}
