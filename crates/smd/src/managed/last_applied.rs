//! The annotation in which client-side apply keeps what was applied last.
//!
//! `kubectl apply --server-side` on an object from client-side apply must not conflict with
//! its own past, and keeps the annotation up to date for the way back.

use serde_json::{Map, Value};

use crate::fieldpath::Set;
use crate::schema::Schema;
use crate::typed::{Duplicates, Typed};

/// The annotation.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The only manager for which the annotation is looked at.
pub(super) const KUBECTL: &str = "kubectl";

/// What all annotations of an object may take together.
const MAX_ANNOTATIONS_BYTES: usize = 256 * 1024;

/// The configuration that client-side apply recorded in an object.
pub(super) fn last_applied(object: &Value) -> Option<&str> {
    let annotation = object.get("metadata")?.get("annotations")?.get(LAST_APPLIED)?;
    annotation.as_str().filter(|text| !text.is_empty())
}

/// The fields that client-side apply set and that still have the values it set.
pub(super) fn unchanged_since_last_applied(
    live: &Value,
    schema: &Schema,
    api_version: &str,
) -> Option<Set> {
    let last: Value = serde_json::from_str(last_applied(live)?).ok()?;
    if last.get("apiVersion").and_then(Value::as_str) != Some(api_version) {
        return None;
    }
    let live = Typed::new(std::borrow::Cow::Borrowed(live), schema, Duplicates::Refused).ok()?;
    let last = Typed::new(std::borrow::Cow::Owned(last), schema, Duplicates::Refused).ok()?;
    let mut set = last.to_field_set().ok()?;
    let changes = last.compare(&live).ok()?;
    set.subtract(&changes.modified);
    set.subtract(&changes.added);
    set.subtract(&changes.removed);
    Some(set)
}

/// Records an applied configuration in an object that client-side apply has recorded one in.
pub(super) fn record_last_applied(object: &mut Value, applied: &Value) {
    if last_applied(object).is_none() {
        return;
    }
    let mut applied = applied.clone();
    if let Some(annotations) = annotations_mut(&mut applied) {
        annotations.remove(LAST_APPLIED);
    }
    // With the line break that Go's encoder ends documents with, and its escapes.
    let text = format!("{}\n", escape_html(&applied.to_string()));
    let Some(annotations) = annotations_mut(object) else { return };
    annotations.insert(LAST_APPLIED.to_owned(), Value::String(text));
    let bytes: usize = annotations
        .iter()
        .map(|(name, value)| name.len() + value.as_str().map_or(0, str::len))
        .sum();
    if bytes > MAX_ANNOTATIONS_BYTES {
        annotations.remove(LAST_APPLIED);
    }
}

fn annotations_mut(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata")?.get_mut("annotations")?.as_object_mut()
}

fn escape_html(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}
