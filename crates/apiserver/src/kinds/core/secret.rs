//! Secrets.

use base64::{Engine, engine::general_purpose::STANDARD};
use fleetwright_kschema::{
    field::{FieldError, Path},
    names,
};
use serde_json::{Value, json};

use super::{
    super::{
        Column, Kind,
        age::age,
        check::{Errors, each, immutable, map},
        shape, tables,
    },
    config_map::{MAX_SIZE, decoded_len, unchanged_if_immutable},
};
use crate::{object, request::Context};

const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";

pub(super) struct Secret;

impl Kind for Secret {
    fn default(&self, object: &mut Value) {
        // What the client writes as plain text is stored like the rest.
        if let Some(Value::Object(texts)) = object::remove(object, &["stringData"]) {
            let data = object::ensure_map(object, &["data"]);
            for (key, text) in texts {
                let text = text.as_str().unwrap_or_default();
                data.insert(key, STANDARD.encode(text).into());
            }
        }
        shape::complete("v1/Secret", object);
        // A key without a value is an empty value.
        if let Some(data) = object.get_mut("data").and_then(Value::as_object_mut) {
            for (_, value) in data.iter_mut().filter(|(_, value)| value.is_null()) {
                *value = json!("");
            }
        }
    }

    fn prepare_update(&self, _context: &Context, new: &mut Value, old: &Value) {
        if object::text(new, &["type"]).is_empty() {
            super::super::keep(new, old, "type");
        }
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Errors::new();
        let path = Path::new("data");
        let mut size = 0;
        for (key, value) in map(object, &["data"]).into_iter().flatten() {
            errors.extend(each(&path.key(key), key, names::config_map_key(key)));
            size += decoded_len(value);
        }
        if size > MAX_SIZE {
            errors.push(FieldError::too_long(&path, MAX_SIZE));
        }
        errors.extend(typed_data(object, &path));
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = immutable(new.get("type"), old.get("type"), &Path::new("type"));
        errors.extend(unchanged_if_immutable(new, old, &["data"]));
        errors.extend(self.validate_create(new));
        errors
    }

    fn selectable_field(&self, object: &Value, field: &str) -> Option<String> {
        (field == "type").then(|| object::text(object, &["type"]).to_owned())
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("v1/secrets")
    }

    fn cells(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        vec![
            tables::name(object),
            tables::text(object, &["type"]),
            tables::count(object, &["data"]).into(),
            age(object, now),
        ]
    }
}

/// What a secret of a well-known type must hold.
fn typed_data(object: &Value, path: &Path) -> Errors {
    let value = |key: &str| object::get(object, &["data", key]).and_then(Value::as_str);
    let required = |key: &str| FieldError::required(&path.key(key), "");
    let present = |keys: &[&str]| -> Errors {
        keys.iter().filter(|key| value(key).is_none()).map(|key| required(key)).collect()
    };
    match object::text(object, &["type"]) {
        "kubernetes.io/service-account-token"
            if object::text(object, &["metadata", "annotations", ACCOUNT_NAME]).is_empty() =>
        {
            let path = Path::new("metadata").child("annotations").key(ACCOUNT_NAME);
            vec![FieldError::required(&path, "")]
        }
        "kubernetes.io/dockercfg" => json_object(value(".dockercfg"), ".dockercfg", path),
        "kubernetes.io/dockerconfigjson" => {
            json_object(value(".dockerconfigjson"), ".dockerconfigjson", path)
        }
        "kubernetes.io/basic-auth"
            if value("username").is_none() && value("password").is_none() =>
        {
            present(&["username", "password"])
        }
        "kubernetes.io/ssh-auth" if value("ssh-privatekey").unwrap_or_default().is_empty() => {
            vec![required("ssh-privatekey")]
        }
        "kubernetes.io/tls" => present(&["tls.crt", "tls.key"]),
        _ => Errors::new(),
    }
}

fn json_object(value: Option<&str>, key: &str, path: &Path) -> Errors {
    let path = path.key(key);
    let Some(value) = value else { return vec![FieldError::required(&path, "")] };
    let bytes = STANDARD.decode(value).unwrap_or_default();
    let reason = match serde_json::from_slice::<Value>(&bytes) {
        Ok(Value::Object(_) | Value::Null) => return Errors::new(),
        Ok(Value::Array(_)) => go_mismatch("array"),
        Ok(Value::String(_)) => go_mismatch("string"),
        Ok(Value::Number(_)) => go_mismatch("number"),
        Ok(Value::Bool(_)) => go_mismatch("bool"),
        Err(_) if bytes.is_empty() => "unexpected end of JSON input".to_owned(),
        Err(error) if error.is_eof() => "unexpected end of JSON input".to_owned(),
        Err(_) => invalid_character(&bytes),
    };
    vec![FieldError::invalid(&path, "<secret contents redacted>", reason)]
}

fn go_mismatch(found: &str) -> String {
    format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}")
}

fn invalid_character(bytes: &[u8]) -> String {
    let first = bytes.iter().find(|b| !b.is_ascii_whitespace()).copied().unwrap_or_default();
    format!("invalid character '{}' looking for beginning of value", char::from(first))
}

#[cfg(test)]
mod tests {
    use super::super::super::check::texts;
    use super::*;

    #[test]
    fn plain_text_becomes_data() {
        let mut secret = json!({"stringData": {"a": "x"}, "data": {"a": "AA==", "b": "AA=="}});
        Secret.default(&mut secret);
        assert_eq!(
            secret,
            json!({"metadata": {}, "type": "Opaque", "data": {"a": "eA==", "b": "AA=="}})
        );
    }

    #[test]
    fn known_types_hold_what_they_must() {
        let cases = [
            (
                "kubernetes.io/tls",
                json!({"tls.crt": "AA=="}),
                vec!["data[tls.key]: Required value"],
            ),
            (
                "kubernetes.io/basic-auth",
                json!({}),
                vec!["data[username]: Required value", "data[password]: Required value"],
            ),
            ("kubernetes.io/ssh-auth", json!({}), vec!["data[ssh-privatekey]: Required value"]),
            (
                "kubernetes.io/dockerconfigjson",
                json!({".dockerconfigjson": "WyJhIl0="}),
                vec![
                    "data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": json: \
                     cannot unmarshal array into Go value of type map[string]interface {}",
                ],
            ),
            (
                "kubernetes.io/service-account-token",
                json!({}),
                vec!["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
            ),
            ("Opaque", json!({}), vec![]),
            ("my.own/type", json!({}), vec![]),
        ];
        for (kind, data, expected) in cases {
            let errors = Secret.validate_create(&json!({"type": kind, "data": data}));
            assert_eq!(texts(&errors), expected, "{kind}");
        }
    }

    #[test]
    fn the_type_stays() {
        let errors = Secret.validate_update(&json!({"type": "b"}), &json!({"type": "a"}));
        assert_eq!(texts(&errors), ["type: Invalid value: \"b\": field is immutable"]);
    }
}
