//! Probes and hooks.

use fleetwright_kschema::{
    field::{FieldError, Path},
    names,
};
use serde_json::Value;

use super::super::super::super::check::{Errors, each, has, none_negative, one_of};
use super::containers::port_number;
use crate::object;

const HANDLERS: &[&str] = &["exec", "httpGet", "tcpSocket", "grpc", "sleep"];

/// What is wrong with the hooks and probes of a container.
pub(super) fn all(container: &Value, grace: Option<i64>, path: &Path) -> Errors {
    let mut errors = Errors::new();
    for hook in ["postStart", "preStop"] {
        if let Some(handler) = object::get(container, &["lifecycle", hook]) {
            errors.extend(check_handler(handler, grace, &path.child("lifecycle").child(hook)));
        }
    }
    for key in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(value) = container.get(key).filter(|value| !value.is_null()) {
            errors.extend(probe(key, value, grace, &path.child(key)));
        }
    }
    errors
}

fn probe(key: &str, probe: &Value, grace: Option<i64>, path: &Path) -> Errors {
    let mut errors = check_handler(probe, grace, path);
    let numbers = [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ];
    errors.extend(none_negative(probe, &numbers, path));
    let own_grace = object::integer(probe, &["terminationGracePeriodSeconds"]);
    let grace_path = path.child("terminationGracePeriodSeconds");
    if let Some(seconds) = own_grace {
        if seconds <= 0 {
            errors.push(FieldError::invalid(&grace_path, seconds, "must be greater than 0"));
        }
        if key == "readinessProbe" {
            let reason = "must not be set for readinessProbes";
            errors.push(FieldError::invalid(&grace_path, seconds, reason));
        }
    }
    let successes = object::integer(probe, &["successThreshold"]).unwrap_or_default();
    if key != "readinessProbe" && successes != 1 {
        errors.push(FieldError::invalid(&path.child("successThreshold"), successes, "must be 1"));
    }
    errors
}

fn check_handler(handler: &Value, grace: Option<i64>, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let mut found = false;
    for key in HANDLERS {
        let Some(action) = handler.get(key).filter(|action| !action.is_null()) else { continue };
        let path = path.child(key);
        if found {
            errors.push(FieldError::forbidden(&path, "may not specify more than 1 handler type"));
            continue;
        }
        found = true;
        errors.extend(match *key {
            "exec" if !has(action, &["command"]) => {
                vec![FieldError::required(&path.child("command"), "")]
            }
            "exec" => Errors::new(),
            "httpGet" => http_get(action, &path),
            "sleep" => sleep(action, grace, &path),
            _ => port(action.get("port"), &path.child("port")),
        });
    }
    if !found {
        errors.push(FieldError::required(path, "must specify a handler type"));
    }
    errors
}

fn http_get(action: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    if !has(action, &["path"]) {
        errors.push(FieldError::required(&path.child("path"), ""));
    }
    errors.extend(port(action.get("port"), &path.child("port")));
    let scheme = object::text(action, &["scheme"]);
    errors.extend(one_of(scheme, &["HTTP", "HTTPS"], &path.child("scheme")));
    for header in object::list(action, &["httpHeaders"]) {
        let name = object::text(header, &["name"]);
        errors.extend(each(&path.child("httpHeaders"), name, names::http_header_name(name)));
    }
    errors
}

fn sleep(action: &Value, grace: Option<i64>, path: &Path) -> Errors {
    let seconds = object::integer(action, &["seconds"]).unwrap_or_default();
    match grace {
        Some(grace) if seconds < 0 || seconds > grace => {
            let reason = format!(
                "must be non-negative and less than terminationGracePeriodSeconds ({grace})"
            );
            vec![FieldError::invalid(path, seconds, reason)]
        }
        _ => Errors::new(),
    }
}

/// A port by number or by name.
pub(crate) fn port(port: Option<&Value>, path: &Path) -> Errors {
    match port {
        Some(Value::String(name)) => each(path, name, names::port_name(name)),
        Some(Value::Number(number)) => port_number(number.as_i64().unwrap_or_default(), path),
        _ => port_number(0, path),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::super::super::check::texts;
    use super::*;

    #[test]
    fn a_probe_has_one_handler_and_sane_numbers() {
        let container = json!({
            "lifecycle": {"preStop": {"sleep": {"seconds": 40}}},
            "livenessProbe": {"successThreshold": 2, "httpGet": {"path": "/", "port": 0, "scheme": "HTTP"}},
            "readinessProbe": {"successThreshold": 1, "periodSeconds": -1},
            "startupProbe": {
                "successThreshold": 1,
                "exec": {"command": ["x"]},
                "tcpSocket": {"port": 1},
            },
        });
        assert_eq!(
            texts(&all(&container, Some(30), &Path::new("c"))),
            [
                "c.lifecycle.preStop.sleep: Invalid value: 40: must be non-negative and less than \
                 terminationGracePeriodSeconds (30)",
                "c.livenessProbe.httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive",
                "c.livenessProbe.successThreshold: Invalid value: 2: must be 1",
                "c.readinessProbe: Required value: must specify a handler type",
                "c.readinessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
                "c.startupProbe.tcpSocket: Forbidden: may not specify more than 1 handler type",
            ]
        );
    }
}
