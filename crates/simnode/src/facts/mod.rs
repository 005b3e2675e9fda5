//! What objects say, read without any I/O: amounts, selectors, taints, the state of a pod.

pub(crate) mod pod;
pub(crate) mod resources;
pub(crate) mod selectors;
pub(crate) mod taints;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Labels and annotations.
pub(crate) type Texts = BTreeMap<String, String>;

static NONE: Texts = BTreeMap::new();

/// The labels of an object.
pub(crate) fn labels(meta: &ObjectMeta) -> &Texts {
    meta.labels.as_ref().unwrap_or(&NONE)
}

/// An annotation of an object.
pub(crate) fn annotation<'a>(meta: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    meta.annotations.as_ref()?.get(name).map(String::as_str)
}

/// The UID, empty if there is none yet.
pub(crate) fn uid(meta: &ObjectMeta) -> &str {
    meta.uid.as_deref().unwrap_or_default()
}

/// The UID of the controller that owns an object.
pub(crate) fn controller_uid(meta: &ObjectMeta) -> Option<&str> {
    let owners = meta.owner_references.as_deref().unwrap_or_default();
    owners.iter().find(|owner| owner.controller == Some(true)).map(|owner| owner.uid.as_str())
}
