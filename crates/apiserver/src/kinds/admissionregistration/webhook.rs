//! What is wrong with one webhook.

use fleetwright_kschema::{
    field::{FieldError, Path},
    names,
};
use serde_json::{Value, json};

use super::super::check::{Errors, each, has, is_set, one_of};
use crate::{admission::compilation_error, object};

/// The versions of reviews that a webhook can get.
const REVIEWS: &[&str] = &["v1", "v1beta1"];
const URL_FORM: &str = "; desired format: https://host[/path]";

/// What is wrong with a webhook.
pub(super) fn check(hook: &Value, path: &Path) -> Errors {
    let mut errors = qualified(object::text(hook, &["name"]), &path.child("name"));
    for (i, rule) in object::list(hook, &["rules"]).iter().enumerate() {
        errors.extend(rule_with_operations(rule, &path.child("rules").index(i)));
    }
    let choice = |key: &str, values: &[&str]| -> Errors {
        if is_set(hook, &[key]) {
            one_of(object::text(hook, &[key]), values, &path.child(key))
        } else {
            Errors::new()
        }
    };
    errors.extend(choice("failurePolicy", &["Fail", "Ignore"]));
    errors.extend(choice("matchPolicy", &["Equivalent", "Exact"]));
    if !is_set(hook, &["sideEffects"]) {
        let path = path.child("sideEffects");
        errors.push(FieldError::required(&path, "must specify one of None, NoneOnDryRun"));
    }
    errors.extend(choice("sideEffects", &["None", "NoneOnDryRun"]));
    if let Some(seconds) = object::integer(hook, &["timeoutSeconds"])
        && !(1..=30).contains(&seconds)
    {
        let path = path.child("timeoutSeconds");
        let reason = "the timeout value must be between 1 and 30 seconds";
        errors.push(FieldError::invalid(&path, seconds, reason));
    }
    for key in ["namespaceSelector", "objectSelector"] {
        if let Some(selector) = hook.get(key) {
            errors.extend(names::validate_label_selector(selector, &path.child(key)));
        }
    }
    errors.extend(choice("reinvocationPolicy", &["IfNeeded", "Never"]));
    errors.extend(client(hook, &path.child("clientConfig")));
    errors.extend(conditions(hook, &path.child("matchConditions")));
    errors.extend(review_versions(hook, &path.child("admissionReviewVersions")));
    errors
}

fn qualified(name: &str, path: &Path) -> Errors {
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let reasons = names::dns_1123_subdomain(name);
    if !reasons.is_empty() {
        return vec![FieldError::invalid(path, name, reasons.join(","))];
    }
    if name.split('.').count() < 3 {
        let reason = "should be a domain with at least three segments separated by dots";
        return vec![FieldError::invalid(path, name, reason)];
    }
    Errors::new()
}

fn texts<'a>(object: &'a Value, key: &str) -> Vec<&'a str> {
    object::list(object, &[key]).iter().map(|item| item.as_str().unwrap_or_default()).collect()
}

fn rule_with_operations(rule: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let operations = texts(rule, "operations");
    let operations_path = path.child("operations");
    if operations.is_empty() {
        errors.push(FieldError::required(&operations_path, ""));
    }
    if operations.len() > 1 && operations.contains(&"*") {
        let reason = "if '*' is present, must not specify other operations";
        errors.push(FieldError::invalid(&operations_path, json!(operations), reason));
    }
    for (i, operation) in operations.iter().enumerate() {
        let known = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
        errors.extend(one_of(operation, &known, &operations_path.index(i)));
    }
    for (key, noun) in [("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        let items = texts(rule, key);
        let path = path.child(key);
        if items.is_empty() {
            errors.push(FieldError::required(&path, ""));
        }
        if items.len() > 1 && items.contains(&"*") {
            let reason = format!("if '*' is present, must not specify other {noun}");
            errors.push(FieldError::invalid(&path, json!(items), reason));
        }
        for (i, item) in items.iter().enumerate() {
            // The core group has no name.
            if key == "apiVersions" && item.is_empty() {
                errors.push(FieldError::required(&path.index(i), ""));
            }
        }
    }
    errors.extend(resources(&texts(rule, "resources"), &path.child("resources")));
    if is_set(rule, &["scope"]) {
        let scope = object::text(rule, &["scope"]);
        errors.extend(one_of(scope, &["*", "Cluster", "Namespaced"], &path.child("scope")));
    }
    errors
}

fn resources(resources: &[&str], path: &Path) -> Errors {
    let mut errors = Errors::new();
    if resources.is_empty() {
        errors.push(FieldError::required(path, ""));
    }
    let mut plain = false;
    let (mut all_parts_of, mut part_of_all) = (Vec::new(), Vec::new());
    for (i, &resource) in resources.iter().enumerate() {
        let path = path.index(i);
        if resource.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        let Some((name, part)) = resource.split_once('/') else {
            plain = resource != "*";
            continue;
        };
        if all_parts_of.contains(&name) {
            let reason = format!("if '{name}/*' is present, must not specify {resource}");
            errors.push(FieldError::invalid(&path, resource, reason));
        }
        if part_of_all.contains(&part) {
            let reason = format!("if '*/{part}' is present, must not specify {resource}");
            errors.push(FieldError::invalid(&path, resource, reason));
        }
        if part == "*" {
            all_parts_of.push(name);
        }
        if name == "*" {
            part_of_all.push(part);
        }
    }
    if resources.len() > 1 && resources.contains(&"*/*") {
        let reason = "if '*/*' is present, must not specify other resources";
        errors.push(FieldError::invalid(path, json!(resources), reason));
    }
    if plain && resources.contains(&"*") {
        let reason = "if '*' is present, must not specify other resources without subresources";
        errors.push(FieldError::invalid(path, json!(resources), reason));
    }
    errors
}

fn client(hook: &Value, path: &Path) -> Errors {
    let config = hook.get("clientConfig").unwrap_or(&Value::Null);
    let url = config.get("url").and_then(Value::as_str);
    let service = config.get("service").filter(|service| !service.is_null());
    match (url, service) {
        (Some(url), None) => check_url(url, &path.child("url")),
        (None, Some(service)) => check_service(service, &path.child("service")),
        _ => vec![FieldError::required(path, "exactly one of url or service is required")],
    }
}

fn check_url(url: &str, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let (rest, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = rest.split_once("://").unwrap_or(("", rest));
    let authority = if scheme.is_empty() { "" } else { rest.split('/').next().unwrap_or_default() };
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    if scheme != "https" {
        let reason = format!("'https' is the only allowed URL scheme{URL_FORM}");
        errors.push(FieldError::invalid(path, scheme, reason));
    }
    if host.is_empty() {
        let reason = format!("host must be specified{URL_FORM}");
        errors.push(FieldError::invalid(path, "", reason));
    }
    if let Some(user) = user {
        let reason = "user information is not permitted in the URL";
        errors.push(FieldError::invalid(path, user, reason));
    }
    if !fragment.is_empty() {
        let reason = "fragments are not permitted in the URL";
        errors.push(FieldError::invalid(path, fragment, reason));
    }
    if !query.is_empty() {
        let reason = "query parameters are not permitted in the URL";
        errors.push(FieldError::invalid(path, query, reason));
    }
    errors
}

fn check_service(service: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    // The real server mixes up the two in its answer.
    for (missing, blamed) in [("namespace", "name"), ("name", "namespace")] {
        if !has(service, &[missing]) {
            errors.push(FieldError::required(&path.child(blamed), ""));
        }
    }
    let port = object::integer(service, &["port"]).unwrap_or_default();
    let reasons = names::port_number(port);
    if !reasons.is_empty() {
        let reason = format!("port is not valid: {}", reasons.join(", "));
        errors.push(FieldError::invalid(&path.child("port"), port, reason));
    }
    errors.extend(url_path(object::text(service, &["path"]), &path.child("path")));
    errors
}

fn url_path(target: &str, path: &Path) -> Errors {
    let mut errors = Errors::new();
    if target.is_empty() || target == "/" {
        return errors;
    }
    if target == "//" {
        return vec![FieldError::invalid(path, target, "segment[0] may not be empty")];
    }
    if !target.starts_with('/') {
        errors.push(FieldError::invalid(path, target, "must start with a '/'"));
    }
    let mut rest = target.chars();
    rest.next();
    let rest = rest.as_str();
    for (i, step) in rest.strip_suffix('/').unwrap_or(rest).split('/').enumerate() {
        if step.is_empty() {
            let reason = format!("segment[{i}] may not be empty");
            errors.push(FieldError::invalid(path, target, reason));
            continue;
        }
        for reason in names::dns_1123_subdomain(step) {
            errors.push(FieldError::invalid(path, target, format!("segment[{i}]: {reason}")));
        }
    }
    errors
}

fn conditions(hook: &Value, path: &Path) -> Errors {
    const MAX: usize = 64;
    let conditions = object::list(hook, &["matchConditions"]);
    let mut errors = Errors::new();
    if conditions.len() > MAX {
        errors.push(FieldError::too_many(path, Some(conditions.len()), MAX));
    }
    let mut seen = Vec::new();
    for (i, condition) in conditions.iter().enumerate() {
        let path = path.index(i);
        let expression = object::text(condition, &["expression"]);
        let expression_path = path.child("expression");
        if expression.trim().is_empty() {
            errors.push(FieldError::required(&expression_path, ""));
        } else if let Some(why) = compilation_error(expression) {
            errors.push(FieldError::invalid(&expression_path, expression, why));
        }
        let name = object::text(condition, &["name"]);
        let name_path = path.child("name");
        if name.is_empty() {
            errors.push(FieldError::required(&name_path, ""));
            continue;
        }
        errors.extend(each(&name_path, name, names::qualified_name(name)));
        if seen.contains(&name) {
            errors.push(FieldError::duplicate(&name_path, name));
        }
        seen.push(name);
    }
    errors
}

fn review_versions(hook: &Value, path: &Path) -> Errors {
    let versions = texts(hook, "admissionReviewVersions");
    if versions.is_empty() {
        let reason = format!("must specify one of {}", REVIEWS.join(", "));
        return vec![FieldError::required(path, reason)];
    }
    let mut errors = Errors::new();
    let mut seen = Vec::new();
    for (i, &version) in versions.iter().enumerate() {
        let path = path.index(i);
        if seen.contains(&version) {
            errors.push(FieldError::invalid(&path, version, "duplicate version"));
            continue;
        }
        seen.push(version);
        errors.extend(each(&path, version, names::dns_1035_label(version)));
    }
    if !versions.iter().any(|version| REVIEWS.contains(version)) {
        let reason = format!("must include at least one of {}", REVIEWS.join(", "));
        errors.push(FieldError::invalid(path, json!(versions), reason));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::super::super::check::texts as messages;
    use super::*;

    #[test]
    fn a_webhook_says_all_that_it_must() {
        let hook =
            json!({"name": "a.b", "timeoutSeconds": 31, "failurePolicy": "Maybe", "rules": [{}]});
        assert_eq!(
            messages(&check(&hook, &Path::new("w"))),
            [
                "w.name: Invalid value: \"a.b\": should be a domain with at least three segments \
                 separated by dots",
                "w.rules[0].operations: Required value",
                "w.rules[0].apiGroups: Required value",
                "w.rules[0].apiVersions: Required value",
                "w.rules[0].resources: Required value",
                "w.failurePolicy: Unsupported value: \"Maybe\": supported values: \"Fail\", \"Ignore\"",
                "w.sideEffects: Required value: must specify one of None, NoneOnDryRun",
                "w.timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 \
                 seconds",
                "w.clientConfig: Required value: exactly one of url or service is required",
                "w.admissionReviewVersions: Required value: must specify one of v1, v1beta1",
            ]
        );
    }

    #[test]
    fn urls_are_plain_https() {
        assert_eq!(
            messages(&check_url("http://u:p@h/x?q#f", &Path::new("u"))),
            [
                "u: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: \
                 https://host[/path]",
                "u: Invalid value: \"u:p\": user information is not permitted in the URL",
                "u: Invalid value: \"f\": fragments are not permitted in the URL",
                "u: Invalid value: \"q\": query parameters are not permitted in the URL",
            ]
        );
        assert!(check_url("https://127.0.0.1:1234/x", &Path::new("u")).is_empty());
    }

    #[test]
    fn wildcards_stand_alone() {
        assert_eq!(
            messages(&resources(&["pods/*", "pods/x", "*", "pods"], &Path::new("r"))),
            [
                "r[1]: Invalid value: \"pods/x\": if 'pods/*' is present, must not specify pods/x",
                "r: Invalid value: [\"pods/*\",\"pods/x\",\"*\",\"pods\"]: if '*' is present, must not \
                 specify other resources without subresources",
            ]
        );
    }
}
