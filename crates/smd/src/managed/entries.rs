//! `metadata.managedFields` read into the book of owners and written back.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::fieldpath::{FieldsError, Set};
use crate::merge::{Managers, VersionedSet};

/// Why `managedFields` cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// An entry is not an object, or one of its fields is of the wrong type.
    #[error("managed fields entry {0} is malformed")]
    Malformed(usize),
    /// The operation is missing or unknown.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// The version is missing.
    #[error("apiVersion must not be empty")]
    ApiVersion,
    /// The type of the fields is missing.
    #[error("missing fieldsType in managed fields entry {0}")]
    NoFieldsType(usize),
    /// The type of the fields is unknown.
    #[error("invalid fieldsType {} in managed fields entry {index}", fleetwright_gotext::quote(.found))]
    FieldsType {
        /// The position of the entry.
        index: usize,
        /// What was found.
        found: String,
    },
    /// The fields cannot be read.
    #[error("error decoding versioned set from entry {index}: error decoding set: {error}")]
    Fields {
        /// The position of the entry.
        index: usize,
        /// What is wrong with them.
        error: FieldsError,
    },
}

/// What tells one manager from another. Its order is the order of managers in messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) manager: String,
    pub(super) operation: String,
    /// Empty for appliers: they are the same manager in every version.
    pub(super) api_version: String,
    pub(super) subresource: String,
}

impl Identity {
    /// The key of the manager in the book.
    pub(super) fn key(&self) -> String {
        let mut out = String::from("{");
        for (name, value) in [
            ("manager", &self.manager),
            ("operation", &self.operation),
            ("apiVersion", &self.api_version),
            ("subresource", &self.subresource),
        ] {
            if !value.is_empty() {
                let comma = if out.len() > 1 { "," } else { "" };
                let _ = write!(out, "{comma}\"{name}\":{}", Value::from(value.as_str()));
            }
        }
        out.push('}');
        out
    }
}

/// The book: who owns what, and since when.
#[derive(Clone, Debug, Default)]
pub(super) struct Managed {
    pub(super) managers: Managers,
    /// RFC 3339 in UTC with whole seconds, so that text order is time order.
    pub(super) times: BTreeMap<String, String>,
    identities: BTreeMap<String, Identity>,
}

impl Managed {
    /// Makes a manager known and gives its key.
    pub(super) fn introduce(&mut self, identity: Identity) -> String {
        let key = identity.key();
        self.identities.insert(key.clone(), identity);
        key
    }

    pub(super) fn identity(&self, key: &str) -> Identity {
        self.identities.get(key).cloned().unwrap_or_default()
    }

    /// Reads `managedFields`; anything but a list is as good as nothing.
    pub(super) fn decode(entries: Option<&Value>) -> Result<Self, DecodeError> {
        let mut book = Self::default();
        for (index, entry) in entries.and_then(Value::as_array).into_iter().flatten().enumerate() {
            let entry = Entry::read(entry).ok_or(DecodeError::Malformed(index))?;
            if !matches!(entry.operation, "Apply" | "Update") {
                return Err(DecodeError::Operation);
            }
            if entry.api_version.is_empty() {
                return Err(DecodeError::ApiVersion);
            }
            match entry.fields_type {
                "FieldsV1" => {}
                "" => return Err(DecodeError::NoFieldsType(index)),
                other => return Err(DecodeError::FieldsType { index, found: other.to_owned() }),
            }
            let set = match entry.fields {
                Some(fields) => Set::from_fields_v1(fields)
                    .map_err(|error| DecodeError::Fields { index, error })?,
                None => Set::new(),
            };
            let applied = entry.operation == "Apply";
            let key = book.introduce(Identity {
                manager: entry.manager.to_owned(),
                operation: entry.operation.to_owned(),
                api_version: if applied { String::new() } else { entry.api_version.to_owned() },
                subresource: entry.subresource.to_owned(),
            });
            match entry.time {
                Some(time) => book.times.insert(key.clone(), time),
                None => book.times.remove(&key),
            };
            let api_version = entry.api_version.to_owned();
            book.managers.insert(key, VersionedSet { set, api_version, applied });
        }
        Ok(book)
    }

    /// Writes the book as `managedFields`; `None` if it is empty.
    pub(super) fn encode(&self) -> Option<Value> {
        if self.managers.is_empty() {
            return None;
        }
        let mut rows: Vec<_> = self
            .managers
            .iter()
            .map(|(key, entry)| {
                let identity = self.identity(key);
                let operation = if entry.applied { "Apply".to_owned() } else { identity.operation };
                let time = self.times.get(key).map_or("", String::as_str);
                (operation, time, identity.manager, &entry.api_version, identity.subresource, entry)
            })
            .collect();
        rows.sort_by(|l, r| (&l.0, l.1, &l.2, l.3, &l.4).cmp(&(&r.0, r.1, &r.2, r.3, &r.4)));
        let entries =
            rows.into_iter().map(|(operation, time, manager, api_version, subresource, entry)| {
                let mut out = Map::new();
                for (name, value) in [
                    ("manager", manager),
                    ("operation", operation),
                    ("apiVersion", api_version.clone()),
                    ("time", time.to_owned()),
                    ("subresource", subresource),
                ] {
                    if !value.is_empty() {
                        out.insert(name.to_owned(), Value::String(value));
                    }
                }
                out.insert("fieldsType".to_owned(), Value::from("FieldsV1"));
                out.insert("fieldsV1".to_owned(), entry.set.to_fields_v1());
                Value::Object(out)
            });
        Some(entries.collect())
    }
}

/// One entry as it stands in the object.
#[derive(Default, PartialEq)]
struct Entry<'v> {
    manager: &'v str,
    operation: &'v str,
    api_version: &'v str,
    time: Option<String>,
    fields_type: &'v str,
    fields: Option<&'v Value>,
    subresource: &'v str,
}

impl<'v> Entry<'v> {
    /// Reads an entry; `None` if a field is of the wrong type.
    fn read(entry: &'v Value) -> Option<Self> {
        let fields = match entry {
            Value::Null => return Some(Self::default()),
            other => other.as_object()?,
        };
        let text = |name: &str| match fields.get(name) {
            None | Some(Value::Null) => Some(""),
            Some(value) => value.as_str(),
        };
        let time = match text("time")? {
            "" => None,
            time => Some(canonical_time(time)?),
        };
        Some(Self {
            manager: text("manager")?,
            operation: text("operation")?,
            api_version: text("apiVersion")?,
            time,
            fields_type: text("fieldsType")?,
            fields: fields.get("fieldsV1").filter(|value| !value.is_null()),
            subresource: text("subresource")?,
        })
    }
}

/// Whether a request wants the book thrown away: an empty list, or one with an empty entry.
pub(super) fn asks_for_reset(entries: Option<&Value>) -> bool {
    match entries.and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => true,
        Some([only]) => Entry::read(only).is_some_and(|entry| entry == Entry::default()),
        _ => false,
    }
}

/// A time in UTC with whole seconds; `None` if it is not RFC 3339.
fn canonical_time(time: &str) -> Option<String> {
    let is_canonical = time.len() == 20
        && time.bytes().enumerate().all(|(i, byte)| match i {
            4 | 7 => byte == b'-',
            10 => byte == b'T',
            13 | 16 => byte == b':',
            19 => byte == b'Z',
            _ => byte.is_ascii_digit(),
        });
    if is_canonical {
        return Some(time.to_owned());
    }
    let timestamp: jiff::Timestamp = time.parse().ok()?;
    Some(timestamp.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// Checks `metadata.managedFields` of an object, as is done after admission webhooks.
pub fn validate_managed_fields(entries: Option<&Value>) -> Result<(), DecodeError> {
    Managed::decode(entries).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn entries_are_sorted_by_operation_time_manager_version_and_subresource() {
        let entry = |manager: &str, operation: &str, version: &str, time: &str, sub: &str| {
            let mut entry = json!({
                "manager": manager, "operation": operation, "apiVersion": version,
                "fieldsType": "FieldsV1", "fieldsV1": {"f:a": {}},
            });
            if !time.is_empty() {
                entry["time"] = time.into();
            }
            if !sub.is_empty() {
                entry["subresource"] = sub.into();
            }
            entry
        };
        let sorted = json!([
            entry("b", "Apply", "v1", "", ""),
            entry("a", "Apply", "v1", "2002-01-01T01:00:00Z", ""),
            entry("d", "Update", "v1", "", "status"),
            entry("c", "Update", "v1", "2001-01-01T01:00:00Z", ""),
            entry("a", "Update", "v1", "2003-01-01T01:00:00Z", ""),
            entry("b", "Update", "v1", "2003-01-01T01:00:00Z", ""),
            entry("b", "Update", "v1", "2003-01-01T01:00:00Z", "scale"),
            entry("b", "Update", "v2", "2003-01-01T01:00:00Z", ""),
        ]);
        let mut shuffled = sorted.as_array().unwrap().clone();
        shuffled.reverse();
        let book = Managed::decode(Some(&shuffled.into())).unwrap();
        assert_eq!(book.encode(), Some(sorted));
    }

    #[test]
    fn decoding_errors() {
        let ok = json!({"operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1"});
        let cases = [
            ("operation", json!(null), "operation must be `Apply` or `Update`"),
            ("operation", json!("Create"), "operation must be `Apply` or `Update`"),
            ("operation", json!(3), "managed fields entry 0 is malformed"),
            ("apiVersion", json!(""), "apiVersion must not be empty"),
            ("fieldsType", json!(""), "missing fieldsType in managed fields entry 0"),
            ("fieldsType", json!("V2"), "invalid fieldsType \"V2\" in managed fields entry 0"),
            ("fieldsV1", json!({"x": {}}), "error decoding set: "),
            ("time", json!("yesterday"), "managed fields entry 0 is malformed"),
        ];
        assert_eq!(validate_managed_fields(Some(&json!([ok]))), Ok(()));
        for (field, value, expected) in cases {
            let mut entry = ok.clone();
            entry[field] = value;
            let error = validate_managed_fields(Some(&json!([entry]))).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn times_are_kept_in_utc_seconds() {
        for time in ["2020-01-01T00:00:00Z", "2020-01-01T02:00:00+02:00", "2020-01-01T00:00:00.9Z"]
        {
            assert_eq!(canonical_time(time).as_deref(), Some("2020-01-01T00:00:00Z"), "{time}");
        }
    }

    #[test]
    fn reset_requests() {
        let cases = [
            (None, false),
            (Some(json!(null)), false),
            (Some(json!([])), true),
            (Some(json!([{}])), true),
            (Some(json!([{"manager": ""}])), true),
            (Some(json!([{"manager": "a"}])), false),
            (Some(json!([{}, {}])), false),
        ];
        for (entries, expected) in cases {
            assert_eq!(asks_for_reset(entries.as_ref()), expected, "{entries:?}");
        }
    }
}
