//! The built-in resources of the registry.

use std::sync::Arc;

use crate::{
    crd::DefinitionKind,
    gvk::GroupVersionKind,
    kinds::{self, Builtin},
    registry::{Resource, Scale, Schema},
};

/// Every built-in resource.
pub(crate) fn all() -> Vec<Resource> {
    kinds::builtins().into_iter().chain([definitions()]).map(resource).collect()
}

fn definitions() -> Builtin {
    Builtin {
        gvk: GroupVersionKind::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
        plural: "customresourcedefinitions",
        singular: "customresourcedefinition",
        short_names: &["crd", "crds"],
        categories: &["api-extensions"],
        namespaced: false,
        subresources: &["status"],
        kind: Arc::new(DefinitionKind),
    }
}

fn resource(builtin: Builtin) -> Resource {
    let Builtin { gvk, plural, singular, short_names, categories, namespaced, subresources, kind } =
        builtin;
    let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    let storage_version =
        kind.stored_as().map_or_else(|| gvk.group_version(), |stored| stored.group_version());
    Resource {
        list_kind: format!("{}List", gvk.kind).into(),
        plural: plural.into(),
        singular: singular.into(),
        short_names: owned(short_names),
        categories: owned(categories),
        namespaced,
        storage: format!("{}/{plural}", storage_version.group).into(),
        storage_version,
        schema: Schema::Builtin,
        status: subresources.contains(&"status"),
        scale: subresources.contains(&"scale").then(scale),
        deprecation: None,
        kind,
        gvk,
    }
}

fn scale() -> Scale {
    Scale {
        spec_replicas: ".spec.replicas".to_owned(),
        status_replicas: ".status.replicas".to_owned(),
        selector: ".spec.selector".to_owned(),
        selector_is_object: true,
    }
}
