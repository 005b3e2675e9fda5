//! Events: one kind in two groups, with two sets of names for the same fields.

use std::sync::Arc;

use fleetwright_kschema::{
    field::{FieldError, Path},
    names,
};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{
    Builtin, Column, Kind, NameRule,
    age::{between, time},
    check::{Errors, each, has, immutable, is_set},
    internal, shape, tables,
};
use crate::{gvk::GroupVersionKind, object};

/// The most characters that texts of events may have.
const TEXT_MAX: usize = 128;
const MESSAGE_MAX: usize = 1024;
/// The names of fields in `events.k8s.io` and in the core group.
const RENAMED: &[(&str, &str)] = &[
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// Both kinds of events.
pub(super) fn builtins() -> Vec<Builtin> {
    let event = |group: &str, kind: Arc<dyn Kind>| Builtin {
        gvk: GroupVersionKind::new(group, "v1", "Event"),
        plural: "events",
        singular: "event",
        short_names: &["ev"],
        categories: &[],
        namespaced: true,
        subresources: &[],
        kind,
    };
    vec![event("", Arc::new(CoreEvent)), event("events.k8s.io", Arc::new(Event))]
}

/// An event of the core group: as lenient as old clients need.
struct CoreEvent;

/// An event of `events.k8s.io`: new clients are held to the rules.
struct Event;

impl Kind for CoreEvent {
    fn default(&self, object: &mut Value) {
        shape::complete("v1/Event", object);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        lenient(object, "reportingComponent")
    }

    fn name_rule(&self) -> NameRule {
        NameRule::PathSegment
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn selectable_field(&self, object: &Value, field: &str) -> Option<String> {
        let text = |path: &[&str]| Some(object::text(object, path).to_owned());
        match field {
            "involvedObject.kind"
            | "involvedObject.namespace"
            | "involvedObject.name"
            | "involvedObject.uid"
            | "involvedObject.apiVersion"
            | "involvedObject.resourceVersion"
            | "involvedObject.fieldPath"
            | "reason"
            | "reportingComponent"
            | "type" => text(&field.split('.').collect::<Vec<_>>()),
            "source" if has(object, &["source", "component"]) => text(&["source", "component"]),
            "source" => text(&["reportingComponent"]),
            _ => None,
        }
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("v1/events")
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        row(object, now)
    }
}

impl Kind for Event {
    fn default(&self, object: &mut Value) {
        shape::complete("events.k8s.io/v1/Event", object);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let event = as_core(object);
        let mut errors = lenient(&event, "reportingController");
        errors.extend(series(&event));
        errors.extend(strict(&event));
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let (new, old) = (as_core(new), as_core(old));
        let mut errors = lenient(&new, "reportingController");
        if new.get("series") != old.get("series") {
            errors.extend(series(&new));
        }
        errors.extend(unchanged(&new, &old));
        errors
    }

    fn name_rule(&self) -> NameRule {
        NameRule::Subdomain
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn stored_as(&self) -> Option<GroupVersionKind> {
        Some(GroupVersionKind::new("", "v1", "Event"))
    }

    fn to_stored(&self, object: &mut Value) {
        rename(object, RENAMED.iter().copied());
        object::set(object, &["apiVersion"], "v1");
    }

    fn from_stored(&self, object: &mut Value) {
        rename(object, RENAMED.iter().map(|&(new, old)| (old, new)));
        object::set(object, &["apiVersion"], "events.k8s.io/v1");
    }

    fn selectable_field(&self, object: &Value, field: &str) -> Option<String> {
        let field = match field {
            "reason" | "type" => field.to_owned(),
            "reportingController" => "reportingComponent".to_owned(),
            _ => format!("involvedObject.{}", field.strip_prefix("regarding.")?),
        };
        CoreEvent.selectable_field(&as_core(object), &field)
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("events.k8s.io/v1/events")
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        row(&as_core(object), now)
    }
}

fn as_core(object: &Value) -> Value {
    let mut object = object.clone();
    rename(&mut object, RENAMED.iter().copied());
    object
}

fn rename<'a>(object: &mut Value, names: impl Iterator<Item = (&'a str, &'a str)>) {
    if let Some(map) = object.as_object_mut() {
        let renamed: Map<String, Value> =
            names.filter_map(|(from, to)| Some((to.to_owned(), map.remove(from)?))).collect();
        map.extend(renamed);
    }
}

fn lenient(event: &Value, reporter: &str) -> Errors {
    let mut errors = Errors::new();
    let text = |key| object::text(event, &[key]);
    let namespace = object::namespace(event);
    let involved = object::text(event, &["involvedObject", "namespace"]);
    let modern = is_set(event, &["eventTime"]);
    let agrees = match (modern, involved) {
        (true, "") => matches!(namespace, "default" | "kube-system"),
        (true, _) => true,
        (false, "") => matches!(namespace, "" | "default"),
        (false, involved) => involved == namespace,
    };
    if !agrees {
        let path = Path::new("involvedObject").child("namespace");
        errors.push(FieldError::invalid(&path, involved, "does not match event.namespace"));
    }
    if !modern {
        return errors;
    }
    let reporter_path = Path::new(reporter);
    let controller = text("reportingComponent");
    if controller.is_empty() {
        errors.push(FieldError::required(&reporter_path, ""));
    }
    errors.extend(each(&reporter_path, controller, names::qualified_name(controller)));
    for key in ["reportingInstance", "action", "reason"] {
        if text(key).is_empty() {
            errors.push(FieldError::required(&Path::new(key), ""));
        }
        errors.extend(at_most(text(key), TEXT_MAX, key));
    }
    errors.extend(at_most(text("message"), MESSAGE_MAX, "message"));
    errors
}

fn at_most(text: &str, max: usize, key: &str) -> Errors {
    if text.len() <= max {
        return Errors::new();
    }
    let reason = format!("can have at most {max} characters");
    vec![FieldError::invalid(&Path::new(key), "", reason)]
}

fn series(event: &Value) -> Errors {
    let mut errors = Errors::new();
    if is_set(event, &["series"]) {
        if object::integer(event, &["series", "count"]).unwrap_or_default() < 2 {
            let path = Path::new("series.count");
            errors.push(FieldError::invalid(&path, "", "should be at least 2"));
        }
        if !is_set(event, &["series", "lastObservedTime"]) {
            errors.push(FieldError::required(&Path::new("series.lastObservedTime"), ""));
        }
    }
    errors
}

fn strict(event: &Value) -> Errors {
    let mut errors = Errors::new();
    if !is_set(event, &["eventTime"]) {
        errors.push(FieldError::required(&Path::new("eventTime"), ""));
    }
    let kind = object::text(event, &["type"]);
    if !matches!(kind, "Normal" | "Warning") {
        let reason = format!("has invalid value: {kind}");
        errors.push(FieldError::invalid(&Path::new("type"), "", reason));
    }
    let count = object::integer(event, &["count"]).unwrap_or_default();
    let set = [
        ("firstTimestamp", is_set(event, &["firstTimestamp"])),
        ("lastTimestamp", is_set(event, &["lastTimestamp"])),
        ("count", count != 0),
        ("source", has(event, &["source", "component"]) || has(event, &["source", "host"])),
    ];
    for (key, set) in set {
        if set {
            errors.push(FieldError::invalid(&Path::new(key), "", "needs to be unset"));
        }
    }
    errors
}

fn unchanged(new: &Value, old: &Value) -> Errors {
    let keys = [
        ("involvedObject", "involvedObject"),
        ("reason", "reason"),
        ("message", "message"),
        ("source", "source"),
        ("firstTimestamp", "firstTimestamp"),
        ("lastTimestamp", "lastTimestamp"),
        ("count", "count"),
        ("reason", "reason"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingComponent", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ];
    let mut errors = Errors::new();
    for (key, name) in keys {
        for mut error in immutable(new.get(key), old.get(key), &Path::new(name)) {
            let kind = match key {
                "involvedObject" | "related" => Some("core.ObjectReference"),
                "source" => Some("core.EventSource"),
                _ => None,
            };
            if let (Some(kind), Some(value)) = (kind, new.get(key)) {
                error.bad_value = internal::printed(kind, value);
            }
            errors.push(error);
        }
    }
    errors
}

fn row(event: &Value, now: Timestamp) -> Vec<Value> {
    let ago = |time: Option<Timestamp>| {
        time.map_or_else(|| "<unknown>".to_owned(), |then| between(then, now))
    };
    let first = time(event, &["firstTimestamp"]).or_else(|| time(event, &["eventTime"]));
    let mut last = time(event, &["lastTimestamp"]).or(first);
    let mut count = object::integer(event, &["count"]).unwrap_or_default();
    if is_set(event, &["series"]) {
        last = time(event, &["series", "lastObservedTime"]);
        count = object::integer(event, &["series", "count"]).unwrap_or_default();
    } else if count == 0 {
        count = 1;
    }
    let kind = object::text(event, &["involvedObject", "kind"]).to_lowercase();
    let target = match object::text(event, &["involvedObject", "name"]) {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    vec![
        ago(last).into(),
        tables::text(event, &["type"]),
        tables::text(event, &["reason"]),
        target.into(),
        tables::text(event, &["involvedObject", "fieldPath"]),
        source(event).into(),
        object::text(event, &["message"]).trim().into(),
        ago(first).into(),
        count.into(),
        tables::name(event),
    ]
}

/// Who reports, and from where.
fn source(event: &Value) -> String {
    let pick = |new: &str, old: &[&str]| match object::text(event, old) {
        "" => object::text(event, &[new]).to_owned(),
        text => text.to_owned(),
    };
    let component = pick("reportingComponent", &["source", "component"]);
    let host = pick("reportingInstance", &["source", "host"]);
    if host.is_empty() { component } else { format!("{component}, {host}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::check::texts, *};

    #[test]
    fn old_events_only_need_the_right_namespace() {
        let event = json!({"metadata": {"namespace": "a"}, "involvedObject": {"namespace": "b"}});
        assert_eq!(
            texts(&CoreEvent.validate_create(&event)),
            ["involvedObject.namespace: Invalid value: \"b\": does not match event.namespace"]
        );
        let event = json!({"metadata": {"namespace": "default"}, "involvedObject": {}});
        assert!(CoreEvent.validate_create(&event).is_empty());
    }

    #[test]
    fn new_events_are_complete() {
        let event = json!({
            "metadata": {"namespace": "a"},
            "regarding": {"namespace": "a"},
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "series": {"count": 1},
            "deprecatedCount": 3,
        });
        assert_eq!(
            texts(&Event.validate_create(&event)),
            [
                "reportingController: Required value",
                "reportingController: Invalid value: \"\": name part must be non-empty",
                "reportingController: Invalid value: \"\": name part must consist of alphanumeric \
                 characters, '-', '_' or '.', and must start and end with an alphanumeric character \
                 (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                 '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                "reportingInstance: Required value",
                "action: Required value",
                "reason: Required value",
                "series.count: Invalid value: \"\": should be at least 2",
                "series.lastObservedTime: Required value",
                "type: Invalid value: \"\": has invalid value: ",
                "count: Invalid value: \"\": needs to be unset",
            ]
        );
    }

    #[test]
    fn both_groups_show_the_same_event() {
        let mut event =
            json!({"apiVersion": "events.k8s.io/v1", "note": "n", "regarding": {"name": "x"}});
        Event.to_stored(&mut event);
        assert_eq!(
            event,
            json!({"apiVersion": "v1", "message": "n", "involvedObject": {"name": "x"}})
        );
        Event.from_stored(&mut event);
        assert_eq!(event["note"], "n");
        assert_eq!(Event.selectable_field(&event, "regarding.name").as_deref(), Some("x"));
    }

    #[test]
    fn a_row_tells_when_and_about_what() {
        let now = "2026-01-01T00:10:00Z".parse().unwrap();
        let event = json!({
            "metadata": {"name": "e"},
            "type": "Normal",
            "reason": "Started",
            "message": " up ",
            "involvedObject": {"kind": "Node", "name": "n"},
            "source": {"component": "kubelet", "host": "h"},
            "firstTimestamp": "2026-01-01T00:00:00Z",
            "lastTimestamp": "2026-01-01T00:09:00Z",
            "count": 3,
        });
        assert_eq!(
            CoreEvent.cells(&event, now),
            [
                json!("60s"),
                json!("Normal"),
                json!("Started"),
                json!("node/n"),
                json!(""),
                json!("kubelet, h"),
                json!("up"),
                json!("10m"),
                json!(3),
                json!("e"),
            ]
        );
    }
}
