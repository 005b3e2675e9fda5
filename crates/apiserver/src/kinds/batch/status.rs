//! What the status of a job may become.

use fleetwright_kschema::field::{BadValue, FieldError, Path};
use serde_json::Value;

use super::{
    super::{
        age::time,
        check::{Errors, IMMUTABLE, flag, none_negative},
    },
    condition,
};
use crate::object;

/// What is wrong with a change of a job's status. Most rules hold for what changes only, so that
/// other updates go on where the status was wrong before.
pub(super) fn check(new: &Value, old: &Value) -> Errors {
    let path = Path::new("status");
    let status = new.get("status").unwrap_or(&Value::Null);
    let numbers = ["active", "succeeded", "failed", "ready", "terminating"];
    let mut errors = none_negative(status, &numbers, &path);
    errors.extend(exclusive(new, old, &path.child("conditions")));
    errors.extend(completion(new, old, &path));
    errors.extend(finished(new, old, &path));
    if changes(new, old, "ready") || changes(new, old, "active") {
        let ready = object::integer(status, &["ready"]);
        let active = object::integer(status, &["active"]).unwrap_or_default();
        if let Some(ready) = ready.filter(|&ready| ready > active) {
            let reason = "cannot set more ready pods than active";
            errors.push(FieldError::invalid(&path.child("ready"), ready, reason));
        }
    }
    errors.extend(one_way(new, old, &path));
    errors
}

fn changes(new: &Value, old: &Value, key: &str) -> bool {
    let get = |job| object::get(job, &["status", key]);
    get(new) != get(old)
}

fn condition_changes(new: &Value, old: &Value, kind: &str) -> bool {
    condition(new, kind) != condition(old, kind)
}

fn is_finished(job: &Value) -> bool {
    condition(job, "Complete") || condition(job, "Failed")
}

/// Conditions that exclude or require each other.
fn exclusive(new: &Value, old: &Value, path: &Path) -> Errors {
    let is = |kind| condition(new, kind);
    let differs = |kinds: [&str; 2]| kinds.iter().any(|kind| condition_changes(new, old, kind));
    let rules = [
        (
            differs(["Complete", "Failed"]) && is("Complete") && is("Failed"),
            "cannot set Complete=True and Failed=true conditions",
        ),
        (
            differs(["Complete", "FailureTarget"]) && is("Complete") && is("FailureTarget"),
            "cannot set Complete=True and FailureTarget=true conditions",
        ),
        (
            condition_changes(new, old, "Failed") && is("Failed") && !is("FailureTarget"),
            "cannot set Failed=True condition without the FailureTarget=true condition",
        ),
        (
            differs(["Complete", "SuccessCriteriaMet"])
                && is("Complete")
                && !is("SuccessCriteriaMet"),
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
        ),
        (
            is("SuccessCriteriaMet") && is("Failed"),
            "cannot set SuccessCriteriaMet=True and Failed=true conditions",
        ),
        (
            is("SuccessCriteriaMet") && is("FailureTarget"),
            "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
        ),
    ];
    rules
        .into_iter()
        .filter(|(broken, _)| *broken)
        .map(|(_, reason)| FieldError::invalid(path, BadValue::Omitted, reason))
        .collect()
}

fn completion(new: &Value, old: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let path = path.child("completionTime");
    let completed = object::get(new, &["status", "completionTime"]).filter(|t| !t.is_null());
    if condition_changes(new, old, "Complete") || changes(new, old, "completionTime") {
        match completed {
            Some(completed) if !condition(new, "Complete") => {
                let reason = "cannot set completionTime when there is no Complete=True condition";
                errors.push(FieldError::invalid(&path, completed.clone(), reason));
            }
            None if condition(new, "Complete") => {
                let reason = "completionTime is required for Complete jobs";
                errors.push(FieldError::required(&path, reason));
            }
            _ => {}
        }
    }
    let at = |key| time(new, &["status", key]);
    if let (Some(start), Some(end), Some(shown)) =
        (at("startTime"), at("completionTime"), completed)
        && end < start
        && (changes(new, old, "startTime") || changes(new, old, "completionTime"))
    {
        let reason = "must be equal to or after `startTime`";
        errors.push(FieldError::invalid(&path, shown.clone(), reason));
    }
    errors
}

fn finished(new: &Value, old: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    if !is_finished(new) {
        return errors;
    }
    let just_finished = !is_finished(old);
    for key in ["active", "terminating"] {
        let number = object::integer(new, &["status", key]).unwrap_or_default();
        if number > 0 && (just_finished || changes(new, old, key)) {
            let reason = format!("{key}>0 is invalid for finished job");
            errors.push(FieldError::invalid(&path.child(key), number, reason));
        }
    }
    let started = object::get(new, &["status", "startTime"]).is_some_and(|t| !t.is_null());
    let never_started = flag(new, &["spec", "suspend"])
        && object::integer(new, &["spec", "completions"]) == Some(0);
    if !started && !never_started && (just_finished || changes(new, old, "startTime")) {
        let path = path.child("startTime");
        errors.push(FieldError::required(&path, "startTime is required for finished job"));
    }
    errors
}

/// What does not go back.
fn one_way(new: &Value, old: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let conditions = path.child("conditions");
    for kind in ["Failed", "Complete", "FailureTarget"] {
        if condition(old, kind) && !condition(new, kind) {
            let reason = format!("cannot disable the terminal {kind}=True condition");
            errors.push(FieldError::invalid(&conditions, BadValue::Omitted, reason));
        }
    }
    for key in ["failed", "succeeded"] {
        let number = |job| object::integer(job, &["status", key]).unwrap_or_default();
        if number(new) < number(old) {
            let reason = format!("cannot decrease the {key} counter");
            errors.push(FieldError::invalid(&path.child(key), number(new), reason));
        }
    }
    let get = |job, key| object::get(job, &["status", key]).filter(|value| !value.is_null());
    if let (Some(now), Some(before)) = (get(new, "completionTime"), get(old, "completionTime"))
        && now != before
    {
        let path = path.child("completionTime");
        errors.push(FieldError::invalid(&path, now.clone(), IMMUTABLE));
    }
    let resumes = condition(old, "Suspended") && !condition(new, "Suspended");
    if get(old, "startTime").is_some()
        && changes(new, old, "startTime")
        && !flag(new, &["spec", "suspend"])
        && !resumes
    {
        let value = get(new, "startTime").cloned().unwrap_or_default();
        let reason = "field is immutable for unsuspended job once set";
        errors.push(FieldError::invalid(&path.child("startTime"), value, reason));
    }
    if condition(old, "SuccessCriteriaMet") && !condition(new, "SuccessCriteriaMet") {
        let reason = "cannot disable the SuccessCriteriaMet=True condition";
        errors.push(FieldError::invalid(&conditions, BadValue::Omitted, reason));
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::check::texts;
    use super::*;

    fn job(kinds: &[&str], rest: &Value) -> Value {
        let conditions: Vec<Value> =
            kinds.iter().map(|kind| json!({"type": kind, "status": "True"})).collect();
        let mut job = json!({"status": rest});
        object::set(&mut job, &["status", "conditions"], conditions);
        job
    }

    #[test]
    fn a_job_completes_properly() {
        let running = job(&[], &json!({"startTime": "2026-01-01T00:00:00Z", "active": 1}));
        let done = job(&["Complete"], &json!({"startTime": "2026-01-01T00:00:00Z", "active": 1}));
        assert_eq!(
            texts(&check(&done, &running)),
            [
                "status.conditions: Invalid value: cannot set Complete=True condition without the \
                 SuccessCriteriaMet=true condition",
                "status.completionTime: Required value: completionTime is required for Complete jobs",
                "status.active: Invalid value: 1: active>0 is invalid for finished job",
            ]
        );
        let properly = job(
            &["SuccessCriteriaMet", "Complete"],
            &json!({"startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:01:00Z"}),
        );
        assert!(check(&properly, &running).is_empty());
        assert_eq!(check(&running, &properly).len(), 2);
    }
}
