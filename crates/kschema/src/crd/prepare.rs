//! Definitions before they are checked and stored.

use serde_json::{Map, Value, json};

use super::spec::{flag, list, text};

/// Fills in the defaults of a definition.
pub fn default_crd(crd: &mut Value) {
    let Some(fields) = crd.as_object_mut() else { return };
    if let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut) {
        default_spec(spec);
    }
    let stored = fields.get("status").map(|status| list(status, "storedVersions"));
    if stored.is_none_or(|stored| stored.is_empty())
        && let Some(name) = fields.get("spec").and_then(storage_version)
    {
        set_stored_versions(fields, &[Value::from(name)]);
    }
}

fn default_spec(spec: &mut Map<String, Value>) {
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let get = |names: &Map<String, Value>, name: &str| {
            names.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let kind = get(names, "kind");
        if get(names, "singular").is_empty() && !kind.is_empty() {
            names.insert("singular".to_owned(), Value::from(kind.to_lowercase()));
        }
        if get(names, "listKind").is_empty() && !kind.is_empty() {
            names.insert("listKind".to_owned(), Value::from(format!("{kind}List")));
        }
    }
    let conversion = spec.entry("conversion").or_insert(Value::Null);
    if conversion.is_null() {
        *conversion = json!({"strategy": "None"});
    }
    let service = conversion.pointer_mut("/webhook/clientConfig/service");
    if let Some(Value::Object(service)) = service {
        service.entry("port").or_insert_with(|| Value::from(443));
    }
}

fn storage_version(spec: &Value) -> Option<String> {
    let versions = list(spec, "versions");
    versions.iter().find(|version| flag(version, "storage")).map(|version| text(version, "name"))
}

fn set_stored_versions(fields: &mut Map<String, Value>, versions: &[Value]) {
    let status = fields.entry("status").or_insert_with(|| Value::Object(Map::new()));
    if !status.is_object() {
        *status = Value::Object(Map::new());
    }
    if let Some(status) = status.as_object_mut() {
        status.insert("storedVersions".to_owned(), Value::from(versions.to_vec()));
    }
}

/// What a create request cannot set: the status starts with the stored version alone, and the
/// generation with 1.
pub fn prepare_crd_for_create(crd: &mut Value) {
    let Some(fields) = crd.as_object_mut() else { return };
    fields.remove("status");
    if let Some(meta) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        meta.insert("generation".to_owned(), Value::from(1));
    }
    if let Some(name) = fields.get("spec").and_then(storage_version) {
        set_stored_versions(fields, &[Value::from(name)]);
    }
}

/// What an update cannot set: the status stays, except that a new storage version is added to
/// it, and the generation counts changes of the spec.
pub fn prepare_crd_for_update(new: &mut Value, old: &Value) {
    let changed = new.get("spec") != old.get("spec");
    let generation = old.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0);
    let Some(fields) = new.as_object_mut() else { return };
    match old.get("status") {
        Some(status) => {
            fields.insert("status".to_owned(), status.clone());
        }
        None => {
            fields.remove("status");
        }
    }
    if changed && let Some(meta) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        meta.insert("generation".to_owned(), Value::from(generation + 1));
    }
    let Some(name) = fields.get("spec").and_then(storage_version) else { return };
    let mut stored =
        fields.get("status").map(|status| list(status, "storedVersions")).unwrap_or_default();
    if !stored.iter().any(|known| known.as_str() == Some(&name)) {
        stored.push(Value::from(name));
        set_stored_versions(fields, &stored);
    }
}
