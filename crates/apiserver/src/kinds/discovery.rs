//! Endpoint slices.

use std::sync::Arc;

use fleetwright_kschema::field::{FieldError, Path};
use serde_json::Value;

use super::{
    Builtin, Column, Kind,
    age::age,
    check::{Errors, IMMUTABLE, one_of, same},
    core::endpoints::shorten,
    shape, tables,
};
use crate::{gvk::GroupVersionKind, object};

/// The kinds of the group `discovery.k8s.io`.
pub(super) fn builtins() -> Vec<Builtin> {
    vec![Builtin {
        gvk: GroupVersionKind::new("discovery.k8s.io", "v1", "EndpointSlice"),
        plural: "endpointslices",
        singular: "endpointslice",
        short_names: &[],
        categories: &[],
        namespaced: true,
        subresources: &[],
        kind: Arc::new(EndpointSlice),
    }]
}

struct EndpointSlice;

impl Kind for EndpointSlice {
    fn default(&self, object: &mut Value) {
        shape::complete("discovery.k8s.io/v1/EndpointSlice", object);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Errors::new();
        let path = Path::new("addressType");
        let kind = object::text(object, &["addressType"]);
        if kind.is_empty() {
            errors.push(FieldError::required(&path, ""));
        } else {
            errors.extend(one_of(kind, &["FQDN", "IPv4", "IPv6"], &path));
        }
        for (i, endpoint) in object::list(object, &["endpoints"]).iter().enumerate() {
            let path = Path::new("endpoints").index(i).child("addresses");
            if object::list(endpoint, &["addresses"]).is_empty() {
                errors.push(FieldError::required(&path, ""));
            }
        }
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = self.validate_create(new);
        if new.get("addressType") != old.get("addressType") {
            let path = Path::new("addressType");
            errors.push(FieldError::invalid(&path, Value::Null, IMMUTABLE));
        }
        errors
    }

    fn has_generation(&self) -> bool {
        true
    }

    /// Labels tell which service a slice is of, so they count too.
    fn generation_changes(&self, new: &Value, old: &Value) -> bool {
        let labels = |object| object::get(object, &["metadata", "labels"]);
        ["addressType", "endpoints", "ports"].iter().any(|key| new.get(key) != old.get(key))
            || !same(labels(new), labels(old))
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("discovery.k8s.io/v1/endpointslices")
    }

    fn cells(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        let ports: Vec<String> = object::list(object, &["ports"])
            .iter()
            .map(|port| match (object::integer(port, &["port"]), port.get("name")) {
                (Some(number), _) => number.to_string(),
                (None, Some(name)) => name.as_str().unwrap_or_default().to_owned(),
                (None, None) => "*".to_owned(),
            })
            .collect();
        let addresses: Vec<String> = object::list(object, &["endpoints"])
            .iter()
            .flat_map(|endpoint| object::list(endpoint, &["addresses"]))
            .filter_map(|address| address.as_str().map(str::to_owned))
            .collect();
        let or_unset = |text: String| if text.is_empty() { "<unset>".to_owned() } else { text };
        vec![
            tables::name(object),
            tables::text(object, &["addressType"]),
            or_unset(shorten(&ports)).into(),
            or_unset(shorten(&addresses)).into(),
            age(object, now),
        ]
    }
}
