//! Storage: classes, drivers, attachments.

mod csi;
mod storage_class;
mod volume_attachment;

use std::sync::Arc;

use super::{Builtin, Kind};
use crate::gvk::GroupVersionKind;

/// The kinds of the group `storage.k8s.io`.
pub(super) fn builtins() -> Vec<Builtin> {
    vec![
        storage(
            "VolumeAttachment",
            "volumeattachments",
            "volumeattachment",
            &["status"],
            volume_attachment::VolumeAttachment,
        )
        .cluster_wide(),
        Builtin {
            short_names: &["sc"],
            ..storage(
                "StorageClass",
                "storageclasses",
                "storageclass",
                &[],
                storage_class::StorageClass,
            )
        }
        .cluster_wide(),
        storage("CSINode", "csinodes", "csinode", &["status"], csi::CsiNode).cluster_wide(),
        storage("CSIDriver", "csidrivers", "csidriver", &[], csi::CsiDriver).cluster_wide(),
        storage(
            "CSIStorageCapacity",
            "csistoragecapacities",
            "csistoragecapacity",
            &[],
            csi::CsiStorageCapacity,
        ),
    ]
}

fn storage(
    kind: &str,
    plural: &'static str,
    singular: &'static str,
    subresources: &'static [&'static str],
    implementation: impl Kind,
) -> Builtin {
    Builtin {
        gvk: GroupVersionKind::new("storage.k8s.io", "v1", kind),
        plural,
        singular,
        short_names: &[],
        categories: &[],
        namespaced: true,
        subresources,
        kind: Arc::new(implementation),
    }
}
