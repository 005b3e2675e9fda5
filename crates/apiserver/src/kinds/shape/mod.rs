//! The Go shape of objects.
//!
//! The real server decodes objects into Go structs and encodes them again, which leaves traces:
//! empty values vanish from optional fields, required ones appear with their zero value,
//! unknown fields are gone, quantities and times are written in one way. Clients and managed
//! fields see those traces, so built-in objects get the same shape here. Defaults belong to
//! types (a probe has the same defaults wherever it is), so they are filled in on the same walk.

mod defaults;
mod pods;
mod types;

use serde_json::{Map, Value};

use super::quantity;
use types::{Field, Omit, Type};

/// The types nest less deep than this; a safeguard, since one type refers to itself.
const MAX_DEPTH: usize = 64;

/// Gives an object of a built-in kind (named as `apps/v1/Deployment`) its shape and defaults.
pub(crate) fn complete(kind: &str, object: &mut Value) {
    if let Some(name) = types::of_kind(kind) {
        complete_struct(name, object, 0);
    }
}

fn complete_struct(name: &str, value: &mut Value, depth: usize) {
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    let (Some(fields), Value::Object(map)) = (types::fields(name), value) else { return };
    if depth > MAX_DEPTH {
        return;
    }
    map.retain(|key, value| fields.get(key.as_str()).is_some_and(|field| !field.drops(value)));
    defaults::fill(name, map);
    for (key, field) in fields {
        match map.get_mut(key) {
            Some(value) => {
                complete_value(&field.kind, value, depth);
                if field.drops(value) {
                    map.remove(key);
                }
            }
            None => {
                if let Some(zero) = field.zero(depth) {
                    map.insert(key.clone(), zero);
                }
            }
        }
    }
}

fn complete_value(kind: &Type, value: &mut Value, depth: usize) {
    match (kind, value) {
        (Type::Struct(name), value) => complete_struct(name, value, depth + 1),
        (Type::Pointer(inner), value) if !value.is_null() => complete_value(inner, value, depth),
        (Type::List(inner), Value::Array(items)) => {
            for item in items {
                complete_item(inner, item, depth);
            }
        }
        (Type::Map(inner), Value::Object(entries)) => {
            for (_, entry) in entries.iter_mut() {
                if **inner == Type::Quantity {
                    rewrite_quantity(entry, true);
                } else {
                    complete_item(inner, entry, depth);
                }
            }
        }
        (Type::Quantity, value) => rewrite_quantity(value, false),
        (Type::Time, Value::String(text)) => rewrite_time(text, "%Y-%m-%dT%H:%M:%SZ"),
        (Type::MicroTime, Value::String(text)) => rewrite_time(text, "%Y-%m-%dT%H:%M:%S.%6fZ"),
        _ => {}
    }
}

fn complete_item(kind: &Type, value: &mut Value, depth: usize) {
    if value.is_null()
        && let Some(zero) = (Field { kind: kind.clone(), omit: Omit::Never }).zero(depth)
    {
        *value = zero;
    }
    complete_value(kind, value, depth);
}

fn rewrite_quantity(value: &mut Value, whole_millis: bool) {
    let text = match &*value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => "0".to_owned(),
    };
    if let Ok(text) = quantity::canonical(&text, whole_millis) {
        *value = text.into();
    }
}

fn rewrite_time(text: &mut String, format: &str) {
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        *text = time.strftime(format).to_string();
    }
}

impl Field {
    /// Whether the encoder leaves out `value`. Structs are never empty for Go.
    fn drops(&self, value: &Value) -> bool {
        match self.omit {
            Omit::Never => false,
            Omit::Zero => value.is_null(),
            Omit::Empty => match (&self.kind, value) {
                (
                    Type::Struct(_)
                    | Type::Time
                    | Type::MicroTime
                    | Type::Quantity
                    | Type::IntOrString,
                    _,
                ) => false,
                (_, Value::Null) => true,
                (Type::Pointer(_), _) => false,
                (_, Value::Bool(flag)) => !flag,
                (_, Value::Number(number)) => number.as_f64() == Some(0.0),
                (_, Value::String(text)) => text.is_empty(),
                (Type::Raw, _) => false,
                (_, Value::Array(items)) => items.is_empty(),
                (_, Value::Object(entries)) => entries.is_empty(),
            },
        }
    }

    /// What the encoder writes for a field that was not set.
    fn zero(&self, depth: usize) -> Option<Value> {
        if self.omit == Omit::Zero {
            return None;
        }
        match &self.kind {
            Type::Struct(name) => {
                let mut value = Value::Object(Map::new());
                complete_struct(name, &mut value, depth + 1);
                Some(value)
            }
            Type::Time | Type::MicroTime => Some(Value::Null),
            Type::Quantity => Some("0".into()),
            Type::IntOrString => Some(0.into()),
            _ if self.omit == Omit::Empty => None,
            Type::Text => Some("".into()),
            Type::Number => Some(0.into()),
            Type::Bool => Some(false.into()),
            Type::Bytes | Type::Raw | Type::Pointer(_) | Type::List(_) | Type::Map(_) => {
                Some(Value::Null)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn empty_values_vanish_and_required_ones_appear() {
        let mut event = json!({
            "metadata": {"name": "e", "labels": {}, "creationTimestamp": null},
            "involvedObject": {},
            "count": 0,
            "unknown": 1,
            "lastTimestamp": "2026-01-02T03:04:05.678Z",
            "series": {"count": 0},
        });
        complete("v1/Event", &mut event);
        assert_eq!(
            event,
            json!({
                "metadata": {"name": "e"},
                "involvedObject": {},
                "source": {},
                "firstTimestamp": null,
                "lastTimestamp": "2026-01-02T03:04:05Z",
                "eventTime": null,
                "series": {"lastObservedTime": null},
                "reportingComponent": "",
                "reportingInstance": "",
            })
        );
    }

    #[test]
    fn completing_twice_changes_nothing() {
        let mut pod = json!({"spec": {"containers": [{"name": "a", "image": "b"}], "volumes": [{"name": "v"}]}});
        complete("v1/Pod", &mut pod);
        let once = pod.clone();
        complete("v1/Pod", &mut pod);
        assert_eq!(pod, once);
    }

    #[test]
    fn recursion_is_bounded() {
        // JSONSchemaProps-like recursion does not occur in the kinds here, but a safeguard holds
        // for every type.
        let mut value = json!({});
        complete_struct("core.PodSpec", &mut value, MAX_DEPTH + 1);
        assert_eq!(value, json!({}));
    }
}
