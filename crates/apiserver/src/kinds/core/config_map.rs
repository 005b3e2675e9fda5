//! ConfigMaps.

use base64::{Engine, engine::general_purpose::STANDARD};
use fleetwright_kschema::{
    field::{FieldError, Path},
    names,
};
use serde_json::Value;

use super::super::{
    Column, Kind,
    age::age,
    check::{Errors, each, flag, map, same},
    shape, tables,
};

/// The most bytes that the values of a ConfigMap or Secret may have.
pub(super) const MAX_SIZE: usize = 1024 * 1024;

pub(super) struct ConfigMap;

impl Kind for ConfigMap {
    fn default(&self, object: &mut Value) {
        shape::complete("v1/ConfigMap", object);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Errors::new();
        let mut size = 0;
        let data = Path::new("data");
        for (key, value) in map(object, &["data"]).into_iter().flatten() {
            let path = data.key(key);
            errors.extend(each(&path, key, names::config_map_key(key)));
            if map(object, &["binaryData"]).is_some_and(|binary| binary.contains_key(key)) {
                let reason = "duplicate of key present in binaryData";
                errors.push(FieldError::invalid(&path, key.as_str(), reason));
            }
            size += value.as_str().map_or(0, str::len);
        }
        let binary = Path::new("binaryData");
        for (key, value) in map(object, &["binaryData"]).into_iter().flatten() {
            errors.extend(each(&binary.key(key), key, names::config_map_key(key)));
            size += decoded_len(value);
        }
        if size > MAX_SIZE {
            errors.push(FieldError::too_long(&Path::root().key(""), MAX_SIZE));
        }
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = unchanged_if_immutable(new, old, &["data", "binaryData"]);
        errors.extend(self.validate_create(new));
        errors
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("v1/configmaps")
    }

    fn cells(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        let entries = tables::count(object, &["data"]) + tables::count(object, &["binaryData"]);
        vec![tables::name(object), entries.into(), age(object, now)]
    }
}

/// How many bytes a base64 text stands for.
pub(super) fn decoded_len(value: &Value) -> usize {
    value.as_str().and_then(|text| STANDARD.decode(text).ok()).map_or(0, |bytes| bytes.len())
}

/// An object marked as immutable stays so, and its data too.
pub(super) fn unchanged_if_immutable(new: &Value, old: &Value, fields: &[&str]) -> Errors {
    const REASON: &str = "field is immutable when `immutable` is set";
    let mut errors = Errors::new();
    if flag(old, &["immutable"]) {
        if !flag(new, &["immutable"]) {
            errors.push(FieldError::forbidden(&Path::new("immutable"), REASON));
        }
        for field in fields {
            if !same(new.get(field), old.get(field)) {
                errors.push(FieldError::forbidden(&Path::new(field), REASON));
            }
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::check::texts;
    use super::*;

    #[test]
    fn keys_are_well_formed_and_in_one_place() {
        let object = json!({"data": {"a": "1", "b c": "2"}, "binaryData": {"a": "AA=="}});
        assert_eq!(
            texts(&ConfigMap.validate_create(&object)),
            [
                "data[a]: Invalid value: \"a\": duplicate of key present in binaryData",
                "data[b c]: Invalid value: \"b c\": a valid config key must consist of alphanumeric \
                 characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex \
                 used for validation is '[-._a-zA-Z0-9]+')",
            ]
        );
    }

    #[test]
    fn immutable_means_immutable() {
        let old = json!({"immutable": true, "data": {"a": "1"}});
        let new = json!({"data": {"a": "2"}});
        assert_eq!(
            texts(&ConfigMap.validate_update(&new, &old)),
            [
                "immutable: Forbidden: field is immutable when `immutable` is set",
                "data: Forbidden: field is immutable when `immutable` is set",
            ]
        );
    }

    #[test]
    fn size_is_bounded() {
        let object = json!({"data": {"a": "x".repeat(MAX_SIZE + 1)}});
        let errors = ConfigMap.validate_create(&object);
        assert_eq!(errors.len(), 1);
        assert_eq!(errors[0].body(), "Too long: may not be more than 1048576 bytes");
    }
}
