//! How objects are converted between versions.

use serde_json::Value;

use super::spec::{text, texts};
use crate::field::{FieldError, Path};
use crate::names::{dns_1035_label, dns_1123_subdomain, port_number};

pub(super) fn validate(
    conversion: &Value,
    established: bool,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    let strategy = text(conversion, "strategy");
    let place = path.child("strategy");
    match strategy.as_str() {
        "" => errors.push(FieldError::required(&place, "")),
        "None" | "Webhook" => {}
        other => errors.push(FieldError::not_supported(&place, other, &["None", "Webhook"])),
    }
    let none = Value::Null;
    let webhook = conversion.get("webhook").unwrap_or(&none);
    let client = webhook.get("clientConfig").filter(|client| !client.is_null());
    let versions = texts(webhook, "conversionReviewVersions");
    let client_path = path.child("webhookClientConfig");
    let versions_path = path.child("conversionReviewVersions");
    if strategy == "Webhook" {
        match client {
            None => errors.push(FieldError::required(
                &client_path,
                "required when strategy is set to Webhook",
            )),
            Some(client) => client_config(client, established, &client_path, errors),
        }
        review_versions(&versions, &versions_path, errors);
        return;
    }
    let needless = "should not be set when strategy is not set to Webhook";
    if client.is_some() {
        errors.push(FieldError::forbidden(&client_path, needless));
    }
    if !versions.is_empty() {
        errors.push(FieldError::forbidden(&versions_path, needless));
    }
}

fn client_config(client: &Value, established: bool, path: &Path, errors: &mut Vec<FieldError>) {
    let url = client.get("url").and_then(Value::as_str);
    let service = client.get("service").filter(|service| !service.is_null());
    match (url, service) {
        (Some(_), Some(_)) | (None, None) => {
            let detail = "exactly one of url or service is required";
            errors.push(FieldError::required(path, detail));
        }
        (Some(url), None) => webhook_url(url, &path.child("url"), errors),
        (None, Some(service)) => webhook_service(service, &path.child("service"), errors),
    }
    let bundle = text(client, "caBundle");
    if established && !bundle.is_empty() && !is_pem(&bundle) {
        let detail =
            "unable to load root certificates: unable to parse bytes as PEM block".to_owned();
        errors.push(FieldError::invalid(&path.child("caBundle"), bundle, detail));
    }
}

/// Whether base64 text starts as a PEM file does.
fn is_pem(base64: &str) -> bool {
    base64.starts_with("LS0tLS1CRUdJTi")
}

fn webhook_url(url: &str, path: &Path, errors: &mut Vec<FieldError>) {
    let form = "; desired format: https://host[/path]";
    let (rest, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = rest.split_once(':').unwrap_or(("", rest));
    let authority = rest.strip_prefix("//").unwrap_or_default();
    let authority = authority.split('/').next().unwrap_or_default();
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let mut fail = |value: &str, detail: String| {
        errors.push(FieldError::invalid(path, value, detail));
    };
    if scheme.to_lowercase() != "https" {
        let scheme = scheme.to_lowercase();
        fail(&scheme, format!("'https' is the only allowed URL scheme{form}"));
    }
    if host.is_empty() {
        fail(host, format!("host must be specified{form}"));
    }
    if let Some(user) = user {
        fail(user, "user information is not permitted in the URL".to_owned());
    }
    if !fragment.is_empty() {
        fail(fragment, "fragments are not permitted in the URL".to_owned());
    }
    if !query.is_empty() {
        fail(query, "query parameters are not permitted in the URL".to_owned());
    }
}

fn webhook_service(service: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    for name in ["name", "namespace"] {
        if text(service, name).is_empty() {
            errors.push(FieldError::required(&path.child(name), ""));
        }
    }
    let port = service.get("port").and_then(Value::as_i64).unwrap_or(443);
    let reasons = port_number(port);
    if !reasons.is_empty() {
        let detail = format!("port is not valid: {}", reasons.join(", "));
        errors.push(FieldError::invalid(&path.child("port"), port, detail));
    }
    if let Some(url_path) = service.get("path").and_then(Value::as_str) {
        service_path(url_path, &path.child("path"), errors);
    }
}

fn service_path(url_path: &str, path: &Path, errors: &mut Vec<FieldError>) {
    if matches!(url_path, "" | "/") {
        return;
    }
    let mut fail = |detail: String| errors.push(FieldError::invalid(path, url_path, detail));
    if url_path == "//" {
        fail("segment[0] may not be empty".to_owned());
        return;
    }
    if !url_path.starts_with('/') {
        fail("must start with a '/'".to_owned());
    }
    // Without the first character, whatever it is.
    let mut chars = url_path.chars();
    chars.next();
    let rest = chars.as_str();
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    for (i, step) in rest.split('/').enumerate() {
        if step.is_empty() {
            fail(format!("segment[{i}] may not be empty"));
            continue;
        }
        for reason in dns_1123_subdomain(step) {
            fail(format!("segment[{i}]: {reason}"));
        }
    }
}

fn review_versions(versions: &[String], path: &Path, errors: &mut Vec<FieldError>) {
    if versions.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    for (i, version) in versions.iter().enumerate() {
        let seen = versions.get(..i).unwrap_or_default();
        if seen.contains(version) {
            let value = version.as_str();
            errors.push(FieldError::invalid(&path.index(i), value, "duplicate version"));
            continue;
        }
        for reason in dns_1035_label(version) {
            errors.push(FieldError::invalid(&path.index(i), version.as_str(), reason));
        }
    }
    if !versions.iter().any(|version| matches!(version.as_str(), "v1" | "v1beta1")) {
        let detail = "must include at least one of v1, v1beta1";
        errors.push(FieldError::invalid(path, versions.to_vec(), detail));
    }
}
