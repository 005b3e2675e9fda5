//! Volume attachments.

use fleetwright_kschema::{
    field::{FieldError, FieldErrorKind, Path},
    names,
};
use serde_json::Value;

use super::super::{
    Column, Kind,
    age::age,
    check::{Errors, IMMUTABLE, each, is_set, same},
    clear_status, shape, tables,
};
use crate::{object, request::Context};

const KIND: &str = "storage.k8s.io/v1/VolumeAttachment";
const EXACTLY_ONE: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";

pub(super) struct VolumeAttachment;

impl Kind for VolumeAttachment {
    fn default(&self, object: &mut Value) {
        shape::complete(KIND, object);
    }

    fn prepare_create(&self, _context: &Context, object: &mut Value) {
        clear_status(KIND, object);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let path = Path::new("spec");
        let attacher = object::text(object, &["spec", "attacher"]);
        let named = driver_name(attacher, &path.child("attacher"));
        // What the types themselves require is told last.
        let (required, mut errors): (Vec<_>, Vec<_>) =
            named.into_iter().partition(|error| error.kind == FieldErrorKind::Required);
        errors.extend(source(object, &path.child("source")));
        let node = object::text(object, &["spec", "nodeName"]);
        errors.extend(each(&path.child("nodeName"), node, names::dns_1123_subdomain(node)));
        if is_set(object, &["spec", "source", "persistentVolumeName"]) {
            let volume = object::text(object, &["spec", "source", "persistentVolumeName"]);
            let path = path.child("source").child("persistentVolumeName");
            errors.extend(each(&path, volume, names::dns_1123_subdomain(volume)));
        }
        errors.extend(required);
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = self.validate_create(new);
        if !same(new.get("spec"), old.get("spec")) {
            errors.push(FieldError::invalid(&Path::new("spec"), Value::Null, IMMUTABLE));
        }
        errors
    }

    fn has_status(&self) -> bool {
        true
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("storage.k8s.io/v1/volumeattachments")
    }

    fn cells(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        let attached = object::get(object, &["status", "attached"]).and_then(Value::as_bool);
        vec![
            tables::name(object),
            tables::text(object, &["spec", "attacher"]),
            tables::text(object, &["spec", "source", "persistentVolumeName"]),
            tables::text(object, &["spec", "nodeName"]),
            attached.unwrap_or_default().into(),
            age(object, now),
        ]
    }
}

/// The name of a driver, whose letters may be large.
fn driver_name(name: &str, path: &Path) -> Errors {
    const MAX: usize = 63;
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = Errors::new();
    if name.len() > MAX {
        errors.push(FieldError::too_long_characters(path, MAX));
    }
    if !names::dns_1123_subdomain(&name.to_lowercase()).is_empty() {
        let reason = "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and \
                      must start and end with an alphanumeric character (e.g. 'Example.com', regex \
                      used for validation is \
                      '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
        errors.push(FieldError::invalid(path, name, reason));
    }
    errors
}

fn source(object: &Value, path: &Path) -> Errors {
    let name = object::get(object, &["spec", "source", "persistentVolumeName"]);
    let inline = is_set(object, &["spec", "source", "inlineVolumeSpec"]);
    match (name.and_then(Value::as_str), inline) {
        (None, false) => vec![FieldError::required(path, EXACTLY_ONE)],
        (Some(_), true) => vec![FieldError::forbidden(path, EXACTLY_ONE)],
        (Some(""), false) => {
            let path = path.child("persistentVolumeName");
            vec![FieldError::required(&path, "must specify non empty persistentVolumeName")]
        }
        _ => Errors::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::check::texts;
    use super::*;

    #[test]
    fn an_attachment_is_complete_and_stays() {
        let mut attachment = json!({"spec": {"attacher": "csi.example.com", "nodeName": "n", "source": {"persistentVolumeName": "pv"}}});
        VolumeAttachment.default(&mut attachment);
        assert_eq!(attachment["status"], json!({"attached": false}));
        assert!(VolumeAttachment.validate_create(&attachment).is_empty());
        let mut new = attachment.clone();
        object::set(&mut new, &["spec", "nodeName"], "m");
        assert_eq!(
            texts(&VolumeAttachment.validate_update(&new, &attachment)),
            ["spec: Invalid value: null: field is immutable"]
        );
    }
}
