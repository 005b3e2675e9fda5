//! Devices: what nodes have (slices), what there is to choose from (classes), what pods want
//! (claims). Schedulers and autoscalers list them.

mod claim;
mod class;
mod requests;
mod slice;

use std::sync::Arc;

use super::{Builtin, Kind};
use crate::gvk::GroupVersionKind;

/// The kinds of the group `resource.k8s.io`.
pub(super) fn builtins() -> Vec<Builtin> {
    vec![
        device("DeviceClass", "deviceclasses", "deviceclass", class::DeviceClass).cluster_wide(),
        Builtin {
            subresources: &["status"],
            ..device("ResourceClaim", "resourceclaims", "resourceclaim", claim::ResourceClaim)
        },
        device(
            "ResourceClaimTemplate",
            "resourceclaimtemplates",
            "resourceclaimtemplate",
            claim::ResourceClaimTemplate,
        ),
        device("ResourceSlice", "resourceslices", "resourceslice", slice::ResourceSlice)
            .cluster_wide(),
    ]
}

fn device(
    kind: &str,
    plural: &'static str,
    singular: &'static str,
    implementation: impl Kind,
) -> Builtin {
    Builtin {
        gvk: GroupVersionKind::new("resource.k8s.io", "v1", kind),
        plural,
        singular,
        short_names: &[],
        categories: &[],
        namespaced: true,
        subresources: &[],
        kind: Arc::new(implementation),
    }
}
