//! Jobs.

mod status;

use std::sync::Arc;

use fleetwright_kschema::{
    field::{FieldError, Path},
    names,
};
use jiff::Timestamp;
use serde_json::Value;

use super::{
    Builtin, Column, Kind,
    age::{age, between, time},
    apps::workload,
    check::{
        Errors, IMMUTABLE, each, flag, immutable, is_set, none_negative, one_of, same,
        selector_matches,
    },
    clear_status,
    core::pod,
    internal, shape, tables,
};
use crate::{gvk::GroupVersionKind, object, request::Context};

const KIND: &str = "batch/v1/Job";
/// The labels that tie pods to their job: by name and by UID, old and new.
const NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];
const UID_LABELS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];
const MAX_PARALLELISM: i64 = 100_000;

/// The kinds of the group `batch`.
pub(super) fn builtins() -> Vec<Builtin> {
    vec![
        Builtin {
            gvk: GroupVersionKind::new("batch", "v1", "Job"),
            plural: "jobs",
            singular: "job",
            short_names: &[],
            categories: &[],
            namespaced: true,
            subresources: &["status"],
            kind: Arc::new(Job),
        }
        .in_all(),
    ]
}

struct Job;

impl Kind for Job {
    fn default(&self, object: &mut Value) {
        shape::complete(KIND, object);
    }

    fn prepare_create(&self, _context: &Context, object: &mut Value) {
        if !flag(object, &["spec", "manualSelector"]) {
            generate_selector(object);
        }
        clear_status(KIND, object);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = spec(object);
        errors.extend(generated_selector(object));
        errors.extend(indexed_names(object));
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let path = Path::new("spec");
        let unchanged = |key: &str| {
            let get = |object| object::get(object, &["spec", key]);
            immutable(get(new), get(old), &path.child(key))
        };
        let mut errors = spec(new);
        if object::text(new, &["spec", "completionMode"]) == "Indexed" {
            errors.extend(completions_follow(new, old));
        } else {
            errors.extend(unchanged("completions"));
        }
        errors.extend(unchanged("selector"));
        errors.extend(template_unchanged(new, old));
        for key in [
            "completionMode",
            "podFailurePolicy",
            "backoffLimitPerIndex",
            "managedBy",
            "successPolicy",
        ] {
            errors.extend(unchanged(key));
        }
        errors.extend(indexed_names(new));
        errors
    }

    fn validate_status_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        status::check(new, old)
    }

    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        workload::warnings(object, old)
    }

    fn has_status(&self) -> bool {
        true
    }

    /// As old clients expect it.
    fn orphans_by_default(&self) -> bool {
        true
    }

    fn selectable_field(&self, object: &Value, field: &str) -> Option<String> {
        (field == "status.successful").then(|| {
            object::integer(object, &["status", "succeeded"]).unwrap_or_default().to_string()
        })
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("batch/v1/jobs")
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let [names, images] =
            tables::containers(object, &["spec", "template", "spec", "containers"]);
        vec![
            tables::name(object),
            state(object).into(),
            completions(object).into(),
            duration(object, now).into(),
            age(object, now),
            names,
            images,
            tables::selector(object::get(object, &["spec", "selector"])),
        ]
    }
}

/// Labels the pods and selects them by the UID of the job.
fn generate_selector(object: &mut Value) {
    let (name, uid) = (object::name(object).to_owned(), object::uid(object).to_owned());
    for (labels, value) in [(NAME_LABELS, &name), (UID_LABELS, &uid)] {
        for label in labels {
            let path = ["spec", "template", "metadata", "labels", label];
            object::default(object, &path, value.as_str());
        }
    }
    let [_, uid_label] = UID_LABELS;
    object::default(object, &["spec", "selector", "matchLabels", uid_label], uid);
}

fn spec(object: &Value) -> Errors {
    let path = Path::new("spec");
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let number = |key| object::integer(spec, &[key]);
    let numbers = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    let mut errors = none_negative(spec, &numbers, &path);
    if number("maxFailedIndexes").is_some() && number("backoffLimitPerIndex").is_none() {
        let path = path.child("backoffLimitPerIndex");
        errors.push(FieldError::required(&path, "when maxFailedIndexes is specified"));
    }
    let mode = object::text(spec, &["completionMode"]);
    errors.extend(one_of(mode, &["NonIndexed", "Indexed"], &path.child("completionMode")));
    if mode == "Indexed" {
        if number("completions").is_none() {
            let path = path.child("completions");
            errors.push(FieldError::required(&path, "when completion mode is Indexed"));
        }
        if let Some(parallelism) = number("parallelism").filter(|&p| p > MAX_PARALLELISM) {
            let reason = format!(
                "must be less than or equal to {MAX_PARALLELISM} when completion mode is Indexed"
            );
            errors.push(FieldError::invalid(&path.child("parallelism"), parallelism, reason));
        }
    } else if mode == "NonIndexed" {
        for key in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if let Some(value) = number(key) {
                let reason = "requires indexed completion mode";
                errors.push(FieldError::invalid(&path.child(key), value, reason));
            }
        }
    }
    let replacement = path.child("podReplacementPolicy");
    let policies: &[&str] = if is_set(spec, &["podFailurePolicy"]) {
        &["Failed"]
    } else {
        &["Failed", "TerminatingOrFailed"]
    };
    errors.extend(one_of(object::text(spec, &["podReplacementPolicy"]), policies, &replacement));
    errors.extend(template(spec, &path.child("template")));
    errors.extend(selector(object, &path));
    errors
}

fn template(spec: &Value, path: &Path) -> Errors {
    let template = spec.get("template").unwrap_or(&Value::Null);
    let mut errors = pod::validate::template(template, path);
    let policy = object::text(template, &["spec", "restartPolicy"]);
    let path = path.child("spec").child("restartPolicy");
    match policy {
        "" | "Always" => {
            let reason = "valid values: \"OnFailure\", \"Never\"";
            errors.push(FieldError::required(&path, reason));
        }
        "OnFailure" if is_set(spec, &["podFailurePolicy"]) => {
            let reason = "only \"Never\" is supported when podFailurePolicy is specified";
            errors.push(FieldError::invalid(&path, policy, reason));
        }
        "OnFailure" | "Never" => {}
        _ => errors.push(FieldError::not_supported(&path, policy, &["OnFailure", "Never"])),
    }
    errors
}

fn selector(object: &Value, path: &Path) -> Errors {
    let selector = object::get(object, &["spec", "selector"]).filter(|s| !s.is_null());
    let mut errors = match selector {
        None => vec![FieldError::required(&path.child("selector"), "")],
        Some(selector) => names::validate_label_selector(selector, &path.child("selector")),
    };
    let labels = object::get(object, &["spec", "template", "metadata", "labels"]);
    if !selector_matches(selector, labels) {
        let path = path.child("template").child("metadata").child("labels");
        let value = labels.cloned().unwrap_or_default();
        let reason = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid(&path, value, reason));
    }
    errors
}

/// Labels that the client set against the generated ones.
fn generated_selector(object: &Value) -> Errors {
    let mut errors = Errors::new();
    if flag(object, &["spec", "manualSelector"]) || !is_set(object, &["spec", "selector"]) {
        return errors;
    }
    let labels = object::get(object, &["spec", "template", "metadata", "labels"]);
    let path = Path::new("spec").child("template").child("metadata").child("labels");
    let expected: Vec<(&str, &str)> =
        [(UID_LABELS, object::uid(object)), (NAME_LABELS, object::name(object))]
            .into_iter()
            .flat_map(|(labels, value)| labels.map(|label| (label, value)))
            .collect();
    for (label, value) in &expected {
        let path = path.key(label);
        let reason = format!("must be '{value}'");
        match labels.and_then(|labels| labels.get(label)) {
            None => errors.push(FieldError::required(&path, reason)),
            Some(actual) if actual != value => {
                errors.push(FieldError::invalid(
                    &path,
                    labels.cloned().unwrap_or_default(),
                    reason,
                ));
            }
            Some(_) => {}
        }
    }
    let own: Value = expected.iter().map(|(k, v)| ((*k).to_owned(), Value::from(*v))).collect();
    let selector = object::get(object, &["spec", "selector"]);
    if !selector_matches(selector, Some(&own)) {
        let path = Path::new("spec").child("selector");
        let value = selector.cloned().unwrap_or_default();
        errors.push(FieldError::invalid(&path, value, "`selector` not auto-generated"));
    }
    errors
}

/// The pods of indexed jobs get the index in their host name.
fn indexed_names(object: &Value) -> Errors {
    let completions = object::integer(object, &["spec", "completions"]).unwrap_or_default();
    if object::text(object, &["spec", "completionMode"]) != "Indexed" || completions < 1 {
        return Errors::new();
    }
    let name = object::name(object);
    let longest = format!("{name}-{}", completions - 1);
    if names::dns_1123_label(&longest).is_empty() {
        return Errors::new();
    }
    let path = Path::new("metadata").child("name");
    each(
        &path,
        name,
        vec![format!("will not able to create pod with invalid DNS label: {longest}")],
    )
}

fn completions_follow(new: &Value, old: &Value) -> Errors {
    let number = |object, key| object::integer(object, &["spec", key]);
    match number(new, "completions") {
        Some(completions)
            if number(old, "completions") != Some(completions)
                && number(new, "parallelism") != Some(completions) =>
        {
            let path = Path::new("spec").child("completions");
            let reason = "can only be modified in tandem with spec.parallelism";
            vec![FieldError::invalid(&path, completions, reason)]
        }
        _ => Errors::new(),
    }
}

/// The template stays, but for where pods of a job that has not started may go.
fn template_unchanged(new: &Value, old: &Value) -> Errors {
    let get = |object| object::get(object, &["spec", "template"]).cloned().unwrap_or_default();
    let template = get(new);
    let mut old_template = get(old);
    let waiting = flag(old, &["spec", "suspend"])
        && object::get(old, &["status", "startTime"]).is_none_or(Value::is_null);
    if waiting {
        let mutable: [&[&str]; 6] = [
            &["spec", "nodeSelector"],
            &["spec", "tolerations"],
            &["spec", "schedulingGates"],
            &["spec", "affinity"],
            &["metadata", "annotations"],
            &["metadata", "labels"],
        ];
        for path in mutable {
            match object::get(&template, path) {
                Some(value) => object::set(&mut old_template, path, value.clone()),
                None => {
                    object::remove(&mut old_template, path);
                }
            }
        }
    }
    if same(Some(&template), Some(&old_template)) {
        return Errors::new();
    }
    let path = Path::new("spec").child("template");
    let value = internal::printed("core.PodTemplateSpec", &template);
    vec![FieldError::invalid(&path, value, IMMUTABLE)]
}

fn condition(object: &Value, kind: &str) -> bool {
    object::list(object, &["status", "conditions"]).iter().any(|condition| {
        object::text(condition, &["type"]) == kind && object::text(condition, &["status"]) == "True"
    })
}

fn state(object: &Value) -> &'static str {
    if condition(object, "Complete") {
        "Complete"
    } else if condition(object, "Failed") {
        "Failed"
    } else if object::is_terminating(object) {
        "Terminating"
    } else if condition(object, "Suspended") {
        "Suspended"
    } else if condition(object, "FailureTarget") {
        "FailureTarget"
    } else if condition(object, "SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

fn completions(object: &Value) -> String {
    let succeeded = object::integer(object, &["status", "succeeded"]).unwrap_or_default();
    let parallelism = object::integer(object, &["spec", "parallelism"]).unwrap_or_default();
    match object::integer(object, &["spec", "completions"]) {
        Some(wanted) => format!("{succeeded}/{wanted}"),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        None => format!("{succeeded}/1"),
    }
}

fn duration(object: &Value, now: Timestamp) -> String {
    let at = |key| time(object, &["status", key]);
    at("startTime")
        .map_or_else(String::new, |start| between(start, at("completionTime").unwrap_or(now)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::{check::texts, tests::context},
        *,
    };

    fn job() -> Value {
        let mut job = json!({
            "metadata": {"name": "j", "uid": "u"},
            "spec": {"template": {"spec": {
                "containers": [{"name": "c", "image": "i"}],
                "restartPolicy": "Never",
            }}},
        });
        Job.default(&mut job);
        Job.prepare_create(&context(), &mut job);
        job
    }

    #[test]
    fn pods_are_selected_by_uid() {
        let job = job();
        let labels = json!({
            "batch.kubernetes.io/controller-uid": "u",
            "batch.kubernetes.io/job-name": "j",
            "controller-uid": "u",
            "job-name": "j",
        });
        assert_eq!(job["spec"]["template"]["metadata"]["labels"], labels);
        assert_eq!(job["metadata"]["labels"], labels);
        assert_eq!(
            job["spec"]["selector"],
            json!({"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}})
        );
        assert_eq!(texts(&Job.validate_create(&job)), Vec::<String>::new());
    }

    #[test]
    fn pods_of_jobs_end() {
        let mut job = job();
        object::set(&mut job, &["spec", "template", "spec", "restartPolicy"], "Always");
        object::set(&mut job, &["spec", "backoffLimit"], -1);
        assert_eq!(
            texts(&Job.validate_create(&job)),
            [
                "spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0",
                "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \
                 \"Never\"",
            ]
        );
    }

    #[test]
    fn completions_and_templates_stay() {
        let old = job();
        let mut new = job();
        object::set(&mut new, &["spec", "completions"], 5);
        object::set(&mut new, &["spec", "parallelism"], 5);
        assert_eq!(
            texts(&Job.validate_update(&new, &old)),
            ["spec.completions: Invalid value: 5: field is immutable"]
        );
        let mut new = job();
        object::set(&mut new, &["spec", "template", "spec", "hostPID"], true);
        let errors = texts(&Job.validate_update(&new, &old));
        assert!(errors[0].starts_with("spec.template: Invalid value: {\""), "{errors:?}");
        assert!(errors[0].ends_with(": field is immutable"));
    }

    #[test]
    fn a_row_tells_how_far_it_is() {
        let now = "2026-01-01T00:10:00Z".parse().unwrap();
        let mut job = job();
        object::set(
            &mut job,
            &["status"],
            json!({"startTime": "2026-01-01T00:05:00Z", "succeeded": 0}),
        );
        let cells = Job.cells(&job, now);
        assert_eq!(cells[1..4], [json!("Running"), json!("0/1"), json!("5m")]);
    }
}
