//! Volumes, and where containers mount them.

use std::collections::{BTreeMap, BTreeSet};

use fleetwright_kschema::{
    field::{FieldError, Path},
    names,
};
use serde_json::Value;

use super::super::super::super::{
    check::{Errors, each, flag, has, is_set, one_of, quantity},
    quantity::Quantity,
};
use super::env;
use crate::object;

/// What a volume's file can tell about its pod.
const FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.labels",
    "metadata.annotations",
    "metadata.uid",
];
const MORE_THAN_ONE: &str = "may not specify more than 1 volume type";
const FILE_MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";
const HOST_PATH_TYPES: &[&str] = &[
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];
/// The kinds of volumes in the order in which they are checked.
const SOURCES: &[&str] = &[
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];

/// The valid volumes of a pod by name, and what is wrong with the others.
pub(super) fn volumes<'a>(
    spec: &'a Value,
    pod: Option<&str>,
    path: &Path,
) -> (BTreeMap<&'a str, &'a Value>, Errors) {
    let mut valid = BTreeMap::new();
    let mut errors = Errors::new();
    for (i, volume) in object::list(spec, &["volumes"]).iter().enumerate() {
        let path = path.index(i);
        let name = object::text(volume, &["name"]);
        let name_path = path.child("name");
        let mut own = source(volume, &path);
        if name.is_empty() {
            own.push(FieldError::required(&name_path, ""));
        } else {
            own.extend(each(&name_path, name, names::dns_1123_label(name)));
        }
        if valid.contains_key(name) {
            own.push(FieldError::duplicate(&name_path, name));
        }
        if own.is_empty() {
            valid.insert(name, volume);
        }
        errors.extend(own);
        let claim = object::text(volume, &["persistentVolumeClaim", "claimName"]);
        if pod.is_some_and(|pod| is_made_for(spec, pod, claim)) {
            let path = path.child("persistentVolumeClaim").child("claimName");
            let reason = "must not reference a PVC that gets created for an ephemeral volume";
            errors.push(FieldError::invalid(&path, claim, reason));
        }
    }
    (valid, errors)
}

fn is_made_for(spec: &Value, pod: &str, claim: &str) -> bool {
    !pod.is_empty()
        && object::list(spec, &["volumes"]).iter().any(|volume| {
            is_set(volume, &["ephemeral"])
                && claim.strip_prefix(pod).and_then(|rest| rest.strip_prefix('-'))
                    == volume.get("name").and_then(Value::as_str)
        })
}

fn source(volume: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let mut found = false;
    for key in SOURCES {
        let Some(source) = volume.get(key).filter(|source| !source.is_null()) else { continue };
        let path = path.child(key);
        if found {
            errors.push(FieldError::forbidden(&path, MORE_THAN_ONE));
            continue;
        }
        found = true;
        errors.extend(one_source(key, source, &path));
    }
    if !found {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
    errors
}

fn one_source(key: &str, source: &Value, path: &Path) -> Errors {
    let required = |keys: &[&str]| -> Errors {
        keys.iter()
            .filter(|key| !has(source, &[key]))
            .map(|key| FieldError::required(&path.child(key), ""))
            .collect()
    };
    match key {
        "emptyDir" => empty_dir(source, path),
        "hostPath" => host_path(source, path),
        "secret" => {
            let mut errors = required(&["secretName"]);
            errors.extend(files(source, path));
            errors
        }
        "configMap" => {
            let mut errors = required(&["name"]);
            errors.extend(files(source, path));
            errors
        }
        "nfs" => {
            let mut errors = required(&["server", "path"]);
            let target = object::text(source, &["path"]);
            if !target.starts_with('/') {
                let path = path.child("path");
                errors.push(FieldError::invalid(&path, target, "must be an absolute path"));
            }
            errors
        }
        "persistentVolumeClaim" => required(&["claimName"]),
        "downwardAPI" => {
            let mut errors = mode(source, "defaultMode", path);
            for file in object::list(source, &["items"]) {
                errors.extend(downward_file(file, path));
            }
            errors
        }
        "projected" => projected(source, path),
        "csi" => csi(source, path),
        "ephemeral" => required(&["volumeClaimTemplate"]),
        "image" => required(&["reference"]),
        _ => Errors::new(),
    }
}

fn empty_dir(source: &Value, path: &Path) -> Errors {
    let negative = source.get("sizeLimit").and_then(quantity).is_some_and(Quantity::is_negative);
    if !negative {
        return Errors::new();
    }
    let reason = "SizeLimit field must be a valid resource quantity";
    vec![FieldError::forbidden(&path.child("sizeLimit"), reason)]
}

fn host_path(source: &Value, path: &Path) -> Errors {
    let target = object::text(source, &["path"]);
    if target.is_empty() {
        return vec![FieldError::required(&path.child("path"), "")];
    }
    let mut errors = no_backsteps(target, &path.child("path"));
    let kind = object::text(source, &["type"]);
    errors.extend(one_of(kind, HOST_PATH_TYPES, &path.child("type")));
    errors
}

/// A path must not lead upwards.
pub(super) fn no_backsteps(target: &str, path: &Path) -> Errors {
    if target.split('/').any(|part| part == "..") {
        return vec![FieldError::invalid(path, target, "must not contain '..'")];
    }
    Errors::new()
}

/// A relative path that does not lead upwards.
pub(super) fn descending(target: &str, path: &Path) -> Errors {
    let mut errors = Errors::new();
    if target.starts_with('/') {
        errors.push(FieldError::invalid(path, target, "must be a relative path"));
    }
    errors.extend(no_backsteps(target, path));
    errors
}

fn not_reserved(target: &str, path: &Path) -> Errors {
    let mut errors = descending(target, path);
    if target.starts_with("..") && !target.starts_with("../") {
        errors.push(FieldError::invalid(path, target, "must not start with '..'"));
    }
    errors
}

fn mode(source: &Value, key: &str, path: &Path) -> Errors {
    match object::integer(source, &[key]) {
        Some(mode) if !(0..=0o777).contains(&mode) => {
            vec![FieldError::invalid(&path.child(key), mode, FILE_MODE)]
        }
        _ => Errors::new(),
    }
}

/// Files made from the entries of a Secret or ConfigMap.
fn files(source: &Value, path: &Path) -> Errors {
    let mut errors = mode(source, "defaultMode", path);
    for (i, item) in object::list(source, &["items"]).iter().enumerate() {
        errors.extend(key_to_path(item, &path.child("items").index(i)));
    }
    errors
}

fn key_to_path(item: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    for key in ["key", "path"] {
        if !has(item, &[key]) {
            errors.push(FieldError::required(&path.child(key), ""));
        }
    }
    errors.extend(not_reserved(object::text(item, &["path"]), &path.child("path")));
    errors.extend(mode(item, "mode", path));
    errors
}

fn downward_file(file: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let target = object::text(file, &["path"]);
    if target.is_empty() {
        errors.push(FieldError::required(&path.child("path"), ""));
    }
    errors.extend(not_reserved(target, &path.child("path")));
    let resource = file.get("resourceFieldRef").filter(|r| !r.is_null());
    match (file.get("fieldRef").filter(|r| !r.is_null()), resource) {
        (Some(field), resource) => {
            errors.extend(env::field_ref(field, FIELDS, &path.child("fieldRef")));
            if resource.is_some() {
                let reason = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.push(FieldError::invalid(path, "resource", reason));
            }
        }
        (None, Some(resource)) => {
            let path = path.child("resourceFieldRef");
            errors.extend(env::resource_ref(resource, true, &path));
        }
        (None, None) => {
            let reason = "one of fieldRef and resourceFieldRef is required";
            errors.push(FieldError::required(path, reason));
        }
    }
    errors.extend(mode(file, "mode", path));
    errors
}

fn projected(source: &Value, path: &Path) -> Errors {
    let mut errors = mode(source, "defaultMode", path);
    let mut targets = BTreeSet::new();
    for (i, part) in object::list(source, &["sources"]).iter().enumerate() {
        let part_path = path.child("sources").index(i);
        for key in ["secret", "configMap", "downwardAPI"] {
            let Some(list) = part.get(key).filter(|list| !list.is_null()) else { continue };
            let list_path = part_path.child(key);
            let name = object::text(list, &["name"]);
            if key != "downwardAPI" && name.is_empty() {
                errors.push(FieldError::required(&list_path.child("name"), ""));
            }
            for (j, item) in object::list(list, &["items"]).iter().enumerate() {
                let target = object::text(item, &["path"]);
                errors.extend(if key == "downwardAPI" {
                    downward_file(item, &list_path)
                } else {
                    key_to_path(item, &list_path.child("items").index(j))
                });
                if !target.is_empty() && !targets.insert(target) {
                    let value = if key == "downwardAPI" { target } else { name };
                    errors.push(FieldError::invalid(path, value, "conflicting duplicate paths"));
                }
            }
        }
        if let Some(token) = part.get("serviceAccountToken").filter(|token| !token.is_null()) {
            errors.extend(token_file(token, path, &part_path.child("serviceAccountToken")));
        }
        let count =
            part.as_object().map_or(0, |part| part.values().filter(|v| !v.is_null()).count());
        if count > 1 {
            let reason = "may not specify more than 1 volume type per source";
            errors.push(FieldError::forbidden(&part_path, reason));
        }
    }
    errors
}

fn token_file(token: &Value, volume_path: &Path, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let seconds = object::integer(token, &["expirationSeconds"]).unwrap_or_default();
    let seconds_path = path.child("expirationSeconds");
    if seconds < 600 {
        let reason = "may not specify a duration less than 10 minutes";
        errors.push(FieldError::invalid(&seconds_path, seconds, reason));
    }
    if seconds > 1 << 32 {
        let reason = "may not specify a duration larger than 2^32 seconds";
        errors.push(FieldError::invalid(&seconds_path, seconds, reason));
    }
    let target = object::text(token, &["path"]);
    if target.is_empty() {
        errors.push(FieldError::required(&volume_path.child("path"), ""));
    } else {
        errors.extend(not_reserved(target, &volume_path.child("path")));
    }
    errors
}

fn csi(source: &Value, path: &Path) -> Errors {
    let driver = object::text(source, &["driver"]);
    let mut errors = csi_driver_name(driver, &path.child("driver"));
    if is_set(source, &["nodePublishSecretRef"]) && !has(source, &["nodePublishSecretRef", "name"])
    {
        let path = path.child("nodePublishSecretRef").child("name");
        errors.push(FieldError::required(&path, ""));
    }
    errors
}

/// The name of a CSI driver.
pub(crate) fn csi_driver_name(driver: &str, path: &Path) -> Errors {
    const MAX: usize = 63;
    if driver.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = Errors::new();
    if driver.len() > MAX {
        errors.push(FieldError::too_long(path, MAX));
    }
    errors.extend(each(path, driver, names::dns_1123_subdomain(&driver.to_lowercase())));
    errors
}

/// What is wrong with the mounts of a container.
pub(super) fn mounts(container: &Value, volumes: &BTreeMap<&str, &Value>, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let mut targets = BTreeSet::new();
    let devices = object::list(container, &["volumeDevices"]);
    for (i, mount) in object::list(container, &["volumeMounts"]).iter().enumerate() {
        let list = path;
        let path = path.index(i);
        let text = |key| object::text(mount, &[key]);
        let (name, target) = (text("name"), text("mountPath"));
        if name.is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        }
        if !volumes.contains_key(name) {
            errors.push(FieldError::not_found(&path.child("name"), name));
        }
        if target.is_empty() {
            errors.push(FieldError::required(&path.child("mountPath"), ""));
        }
        if !targets.insert(target) {
            errors.push(FieldError::invalid(&path.child("mountPath"), target, "must be unique"));
        }
        if devices.iter().any(|device| object::text(device, &["name"]) == name) {
            let reason = "must not already exist in volumeDevices";
            errors.push(FieldError::invalid(&path.child("name"), name, reason));
        }
        if devices.iter().any(|device| object::text(device, &["devicePath"]) == target) {
            let reason = "must not already exist as a path in volumeDevices";
            errors.push(FieldError::invalid(&path.child("mountPath"), target, reason));
        }
        if !text("subPath").is_empty() {
            errors.extend(descending(text("subPath"), &list.child("subPath")));
        }
        let expression = text("subPathExpr");
        if !expression.is_empty() {
            if !text("subPath").is_empty() {
                let reason = "subPathExpr and subPath are mutually exclusive";
                errors.push(FieldError::invalid(&path.child("subPathExpr"), expression, reason));
            }
            errors.extend(descending(expression, &list.child("subPathExpr")));
        }
        errors.extend(propagation(container, mount, &list.child("mountPropagation")));
        errors.extend(recursive_read_only(mount, &list.child("recursiveReadOnly")));
    }
    errors
}

fn propagation(container: &Value, mount: &Value, path: &Path) -> Errors {
    if !is_set(mount, &["mountPropagation"]) {
        return Errors::new();
    }
    let mode = object::text(mount, &["mountPropagation"]);
    let mut errors = one_of(mode, &["Bidirectional", "HostToContainer", "None"], path);
    if mode == "Bidirectional" && !flag(container, &["securityContext", "privileged"]) {
        let reason = "Bidirectional mount propagation is available only to privileged containers";
        errors.push(FieldError::forbidden(path, reason));
    }
    errors
}

fn recursive_read_only(mount: &Value, path: &Path) -> Errors {
    if !is_set(mount, &["recursiveReadOnly"]) {
        return Errors::new();
    }
    let mode = object::text(mount, &["recursiveReadOnly"]);
    let mut errors = one_of(mode, &["Disabled", "Enabled", "IfPossible"], path);
    if matches!(mode, "Enabled" | "IfPossible") {
        if !flag(mount, &["readOnly"]) {
            let reason = "may only be specified when readOnly is true";
            errors.push(FieldError::forbidden(path, reason));
        }
        if !matches!(object::text(mount, &["mountPropagation"]), "" | "None") {
            let reason = "may only be specified when mountPropagation is None or not specified";
            errors.push(FieldError::forbidden(path, reason));
        }
    }
    errors
}

/// What is wrong with the raw devices of a container.
pub(super) fn devices(container: &Value, volumes: &BTreeMap<&str, &Value>, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let mut seen_names = BTreeSet::new();
    let mut seen_paths = BTreeSet::new();
    for (i, device) in object::list(container, &["volumeDevices"]).iter().enumerate() {
        let path = path.index(i);
        let (name, target) =
            (object::text(device, &["name"]), object::text(device, &["devicePath"]));
        let name_path = path.child("name");
        let target_path = path.child("devicePath");
        if name.is_empty() {
            errors.push(FieldError::required(&name_path, ""));
        } else if !seen_names.insert(name) {
            errors.push(FieldError::invalid(&name_path, name, "must be unique"));
        }
        match volumes.get(name) {
            None => errors.push(FieldError::not_found(&name_path, name)),
            Some(volume)
                if !is_set(volume, &["persistentVolumeClaim"])
                    && !is_set(volume, &["ephemeral"]) =>
            {
                let reason = "can only use volume source type of PersistentVolumeClaim or Ephemeral \
                              for block mode";
                errors.push(FieldError::invalid(&name_path, name, reason));
            }
            Some(_) => {}
        }
        if target.is_empty() {
            errors.push(FieldError::required(&target_path, ""));
        }
        if target.split('/').any(|part| part == "..") {
            let reason = "can not contain backsteps ('..')";
            errors.push(FieldError::invalid(&target_path, target, reason));
        } else if !seen_paths.insert(target) {
            errors.push(FieldError::invalid(&target_path, target, "must be unique"));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::super::super::{Kind, check::texts};
    use super::super::super::Pod;

    #[test]
    fn volumes_and_mounts_fit_together() {
        let mut pod = json!({
            "metadata": {"name": "p"},
            "spec": {
                "volumes": [
                    {"name": "a", "hostPath": {"path": "/a/../b", "type": "Dir"}},
                    {"name": "b", "emptyDir": {}, "secret": {"secretName": "s"}},
                    {"name": "c", "configMap": {}},
                    {"name": "d"},
                    {"name": "d"},
                    {"name": "e", "configMap": {"name": "x", "defaultMode": 512, "items": [{"key": "k", "path": "../x"}]}},
                ],
                "containers": [{
                    "name": "c",
                    "image": "i",
                    "volumeMounts": [
                        {"name": "d", "mountPath": "/d"},
                        {"name": "d", "mountPath": "/d", "subPath": "/x"},
                        {"name": "nope", "mountPath": ""},
                    ],
                }],
            },
        });
        Pod.default(&mut pod);
        assert_eq!(
            texts(&Pod.validate_create(&pod)),
            [
                "spec.volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
                "spec.volumes[0].hostPath.type: Unsupported value: \"Dir\": supported values: \"\", \
                 \"BlockDevice\", \"CharDevice\", \"Directory\", \"DirectoryOrCreate\", \"File\", \
                 \"FileOrCreate\", \"Socket\"",
                "spec.volumes[1].secret: Forbidden: may not specify more than 1 volume type",
                "spec.volumes[2].configMap.name: Required value",
                "spec.volumes[4].name: Duplicate value: \"d\"",
                "spec.volumes[5].configMap.defaultMode: Invalid value: 512: must be a number between \
                 0 and 0777 (octal), both inclusive",
                "spec.volumes[5].configMap.items[0].path: Invalid value: \"../x\": must not contain \
                 '..'",
                "spec.containers[0].volumeMounts[1].mountPath: Invalid value: \"/d\": must be unique",
                "spec.containers[0].volumeMounts.subPath: Invalid value: \"/x\": must be a relative \
                 path",
                "spec.containers[0].volumeMounts[2].name: Not found: \"nope\"",
                "spec.containers[0].volumeMounts[2].mountPath: Required value",
            ]
        );
    }
}
