//! Security contexts.

use fleetwright_kschema::field::{FieldError, Path};
use serde_json::Value;

use super::super::super::super::{
    check::{Errors, flag, is_set, one_of},
    internal,
};
use super::volumes::descending;
use crate::object;

const MAX_ID: i64 = i32::MAX as i64;
const SYSCTL: &str = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

/// What is wrong with the security context of a pod.
pub(super) fn pod(spec: &Value, path: &Path) -> Errors {
    let Some(context) = spec.get("securityContext") else { return Errors::new() };
    let mut errors = ids(context, &["fsGroup", "runAsUser", "runAsGroup"], path);
    for (i, group) in object::list(context, &["supplementalGroups"]).iter().enumerate() {
        errors.extend(id(group.as_i64(), &path.child("supplementalGroups").index(i)));
    }
    let mut seen = Vec::new();
    for (i, sysctl) in object::list(context, &["sysctls"]).iter().enumerate() {
        let path = path.child("sysctls").index(i).child("name");
        let name = object::text(sysctl, &["name"]);
        if name.is_empty() {
            errors.push(FieldError::required(&path, ""));
        } else if !is_sysctl(name) {
            let reason = format!("must have at most 253 characters and match regex {SYSCTL}");
            errors.push(FieldError::invalid(&path, name, reason));
        } else if seen.contains(&name) {
            errors.push(FieldError::duplicate(&path, name));
        }
        errors.extend(of_the_host(spec, name, &path));
        seen.push(name);
    }
    if is_set(context, &["fsGroupChangePolicy"]) {
        errors.extend(one_of(
            object::text(context, &["fsGroupChangePolicy"]),
            &["Always", "OnRootMismatch"],
            &path.child("fsGroupChangePolicy"),
        ));
    }
    errors.extend(profiles(context, path));
    errors
}

/// What is wrong with the security context of a container.
pub(super) fn container(spec: &Value, container: &Value, path: &Path) -> Errors {
    let Some(context) = container.get("securityContext").filter(|c| !c.is_null()) else {
        return Errors::new();
    };
    let mut errors = ids(context, &["runAsUser", "runAsGroup"], path);
    if is_set(context, &["procMount"]) {
        let mount = object::text(context, &["procMount"]);
        let path = path.child("procMount");
        errors.extend(one_of(mount, &["Default", "Unmasked"], &path));
        let on_host = object::get(spec, &["hostUsers"]).and_then(Value::as_bool).unwrap_or(true);
        if mount == "Unmasked" && on_host {
            let reason = "`hostUsers` must be false to use `Unmasked`";
            errors.push(FieldError::invalid(&path, mount, reason));
        }
    }
    let no_escalation = context.get("allowPrivilegeEscalation") == Some(&Value::Bool(false));
    if no_escalation && flag(context, &["privileged"]) {
        let reason = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        errors.push(FieldError::invalid(
            path,
            internal::printed("core.SecurityContext", context),
            reason,
        ));
    }
    let capabilities = object::list(context, &["capabilities", "add"]);
    if no_escalation && capabilities.iter().any(|c| c == "CAP_SYS_ADMIN") {
        let reason = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` \
                      CAP_SYS_ADMIN";
        errors.push(FieldError::invalid(
            path,
            internal::printed("core.SecurityContext", context),
            reason,
        ));
    }
    errors.extend(profiles(context, path));
    errors
}

/// Settings of a namespace that the pod shares with its host are the host's.
fn of_the_host(spec: &Value, name: &str, path: &Path) -> Option<FieldError> {
    let dotted = name.replace('/', ".");
    let communication = ["kernel.shm", "kernel.msg", "fs.mqueue."];
    let shared = if dotted == "kernel.sem" || communication.iter().any(|p| dotted.starts_with(p)) {
        "hostIPC"
    } else if dotted.starts_with("net.") {
        "hostNetwork"
    } else {
        return None;
    };
    let reason = format!("may not be specified when '{shared}' is true");
    flag(spec, &[shared]).then(|| FieldError::invalid(path, name, reason))
}

fn is_sysctl(name: &str) -> bool {
    let end = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.len() <= 253
        && name.split(['.', '/']).all(|segment| {
            let bytes = segment.as_bytes();
            bytes.first().is_some_and(|&c| end(c))
                && bytes.last().is_some_and(|&c| end(c))
                && bytes.iter().all(|&c| end(c) || c == b'-' || c == b'_')
        })
}

fn ids(context: &Value, keys: &[&str], path: &Path) -> Errors {
    keys.iter().flat_map(|key| id(object::integer(context, &[key]), &path.child(key))).collect()
}

fn id(number: Option<i64>, path: &Path) -> Errors {
    match number {
        Some(number) if !(0..=MAX_ID).contains(&number) => {
            let reason = format!("must be between 0 and {MAX_ID}, inclusive");
            vec![FieldError::invalid(path, number, reason)]
        }
        _ => Errors::new(),
    }
}

fn profiles(context: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    for (key, word) in [("seccompProfile", "seccomp"), ("appArmorProfile", "AppArmor")] {
        let Some(profile) = context.get(key).filter(|profile| !profile.is_null()) else { continue };
        let path = path.child(key);
        let kind = object::text(profile, &["type"]);
        let local = profile.get("localhostProfile").and_then(Value::as_str);
        let type_path = path.child("type");
        if kind.is_empty() {
            let reason = format!("type is required when {key} is set");
            errors.push(FieldError::required(&type_path, reason));
        } else {
            let kinds = ["Localhost", "RuntimeDefault", "Unconfined"];
            errors.extend(one_of(kind, &kinds, &type_path));
        }
        let local_path = path.child("localhostProfile");
        match (kind, local) {
            ("Localhost", None) => {
                let reason = format!("must be set when {word} type is Localhost");
                errors.push(FieldError::required(&local_path, reason));
            }
            ("Localhost", Some(local)) => errors.extend(descending(local, &local_path)),
            (_, Some(local)) => {
                let reason = format!("can only be set when {word} type is Localhost");
                let value = match word {
                    "seccomp" => internal::printed("core.SeccompProfile", profile),
                    _ => local.into(),
                };
                errors.push(FieldError::invalid(&local_path, value, reason));
            }
            (_, None) => {}
        }
    }
    errors
}
