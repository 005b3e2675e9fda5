//! Bringing objects from the stored version to the one that is asked for, and back.
//!
//! Custom kinds convert by changing their `apiVersion` alone. A built-in kind that is another
//! view of a stored one (events of `events.k8s.io`) says itself how.

use fleetwright_kschema::builtin;
use serde_json::Value;

use crate::{object, registry::Resource};

/// A stored object as `resource` shows it.
///
/// Built-in kinds are stored without `apiVersion` and `kind`, as lists show them; custom kinds
/// keep theirs, since their storage version may change.
pub fn from_stored(resource: &Resource, value: &mut Value) {
    object::set(value, &["apiVersion"], resource.group_version().to_string());
    object::set(value, &["kind"], &*resource.gvk.kind);
    resource.kind.from_stored(value);
    if resource.kind.stored_as().is_some() {
        // What one view always shows, the other leaves out where it is empty.
        let _ =
            builtin::normalise(&resource.group_version().to_string(), &resource.gvk.kind, value);
        object::set(value, &["apiVersion"], resource.group_version().to_string());
        object::set(value, &["kind"], &*resource.gvk.kind);
    }
}

/// An object as it is stored.
pub fn to_stored(resource: &Resource, value: &mut Value) {
    resource.kind.to_stored(value);
    if resource.is_custom() {
        object::set(value, &["apiVersion"], resource.storage_version.to_string());
    } else if let Some(map) = value.as_object_mut() {
        map.remove("apiVersion");
        map.remove("kind");
    }
}
