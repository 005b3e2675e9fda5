//! Defaults of pods and of everything inside them.

use serde_json::{Map, Value, json};

use super::defaults::{child, image_is_latest, set};

type Fields = Map<String, Value>;

/// The permissions of files in volumes: 0644.
const FILE_MODE: i32 = 0o644;

/// Fills in what is not set in a value of the core type `name`.
pub(super) fn fill(name: &str, map: &mut Fields) {
    match name {
        "Pod" => pod(map),
        "PodSpec" => pod_spec(map),
        "PodStatus" => pod_ips(map),
        "Container" | "EphemeralContainer" => container(map),
        "ContainerPort" => set(map, "protocol", "TCP"),
        "Probe" => {
            set(map, "timeoutSeconds", 1);
            set(map, "periodSeconds", 10);
            set(map, "successThreshold", 1);
            set(map, "failureThreshold", 3);
        }
        "HTTPGetAction" => {
            set(map, "path", "/");
            set(map, "scheme", "HTTP");
        }
        "GRPCAction" => set(map, "service", ""),
        "ObjectFieldSelector" => set(map, "apiVersion", "v1"),
        "FileKeySelector" => set(map, "optional", false),
        "Volume" => volume(map),
        "SecretVolumeSource"
        | "ConfigMapVolumeSource"
        | "DownwardAPIVolumeSource"
        | "ProjectedVolumeSource" => set(map, "defaultMode", FILE_MODE),
        "ServiceAccountTokenProjection" => set(map, "expirationSeconds", 3600),
        "HostPathVolumeSource" => set(map, "type", ""),
        "ImageVolumeSource" => {
            let image = map.get("reference").and_then(Value::as_str).unwrap_or_default();
            let policy = pull_policy(image);
            set(map, "pullPolicy", policy);
        }
        "ISCSIVolumeSource" | "ISCSIPersistentVolumeSource" => {
            set(map, "iscsiInterface", "default");
        }
        "RBDVolumeSource" | "RBDPersistentVolumeSource" => {
            set(map, "pool", "rbd");
            set(map, "user", "admin");
            set(map, "keyring", "/etc/ceph/keyring");
        }
        "AzureDiskVolumeSource" => {
            set(map, "cachingMode", "ReadWrite");
            set(map, "fsType", "ext4");
            set(map, "readOnly", false);
            set(map, "kind", "Shared");
        }
        "ScaleIOVolumeSource" | "ScaleIOPersistentVolumeSource" => {
            set(map, "storageMode", "ThinProvisioned");
            set(map, "fsType", "xfs");
        }
        _ => {}
    }
}

fn pull_policy(image: &str) -> &'static str {
    if image_is_latest(image) { "Always" } else { "IfNotPresent" }
}

fn container(map: &mut Fields) {
    let image = map.get("image").and_then(Value::as_str).unwrap_or_default();
    let policy = pull_policy(image);
    set(map, "imagePullPolicy", policy);
    set(map, "terminationMessagePath", "/dev/termination-log");
    set(map, "terminationMessagePolicy", "File");
}

fn containers(spec: &mut Fields) -> impl Iterator<Item = &mut Fields> {
    spec.iter_mut()
        .filter(|(key, _)| matches!(key.as_str(), "containers" | "initContainers"))
        .filter_map(|(_, list)| list.as_array_mut())
        .flatten()
        .filter_map(Value::as_object_mut)
}

/// What holds for pods but not for templates of pods.
fn pod(map: &mut Fields) {
    let Some(spec) = child(map, "spec") else { return };
    if spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|s| s < 0) {
        spec.insert("terminationGracePeriodSeconds".to_owned(), 1.into());
    }
    set(spec, "enableServiceLinks", true);
    let on_host = spec.get("hostNetwork").and_then(Value::as_bool).unwrap_or_default();
    for container in containers(spec) {
        request_limits(container);
        if on_host {
            open_on_host(container);
        }
    }
}

/// A limit without a request is the request too.
fn request_limits(container: &mut Fields) {
    let limits = container.get("resources").and_then(|r| r.get("limits")?.as_object()).cloned();
    if let Some(limits) = limits
        && let Some(requests) = child(container, "resources").and_then(|r| child(r, "requests"))
    {
        for (key, value) in limits {
            requests.entry(key).or_insert(value);
        }
    }
}

fn open_on_host(container: &mut Fields) {
    let ports = container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten();
    for port in ports.filter_map(Value::as_object_mut) {
        if port.get("hostPort").is_none_or(|p| p.is_null() || p == 0)
            && let Some(number) = port.get("containerPort").cloned()
        {
            port.insert("hostPort".to_owned(), number);
        }
    }
}

fn pod_spec(map: &mut Fields) {
    // The old name of the field follows the new one.
    let account = ["serviceAccountName", "serviceAccount"]
        .iter()
        .filter_map(|key| map.get(*key)?.as_str())
        .find(|name| !name.is_empty())
        .map(str::to_owned);
    if let Some(account) = account {
        map.insert("serviceAccountName".to_owned(), account.clone().into());
        map.insert("serviceAccount".to_owned(), account.into());
    }
    set(map, "dnsPolicy", "ClusterFirst");
    set(map, "restartPolicy", "Always");
    set(map, "securityContext", json!({}));
    set(map, "terminationGracePeriodSeconds", 30);
    set(map, "schedulerName", "default-scheduler");
}

/// Keeps the first address and the list of addresses alike; the single one wins.
fn pod_ips(map: &mut Fields) {
    let single = map.get("podIP").and_then(Value::as_str).unwrap_or_default().to_owned();
    let first = map
        .get("podIPs")
        .and_then(|ips| ips.get(0)?.get("ip")?.as_str())
        .unwrap_or_default()
        .to_owned();
    if single.is_empty() && !first.is_empty() {
        map.insert("podIP".to_owned(), first.into());
    } else if !single.is_empty() && single != first {
        map.insert("podIPs".to_owned(), json!([{"ip": single}]));
    }
}

fn volume(map: &mut Fields) {
    if map.iter().all(|(key, value)| key == "name" || value.is_null()) {
        map.insert("emptyDir".to_owned(), json!({}));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::complete;
    use super::*;

    #[test]
    fn a_pod_gets_its_defaults() {
        let mut pod = json!({
            "spec": {
                "hostNetwork": true,
                "serviceAccount": "robot",
                "containers": [{
                    "name": "a",
                    "image": "registry:5000/nginx",
                    "ports": [{"containerPort": 80}],
                    "resources": {"limits": {"cpu": "1000m"}},
                    "livenessProbe": {"httpGet": {"port": 80}},
                }],
                "volumes": [{"name": "v"}, {"name": "s", "secret": {"secretName": "x"}}],
            },
        });
        complete("v1/Pod", &mut pod);
        assert_eq!(
            pod,
            json!({
                "metadata": {},
                "spec": {
                    "containers": [{
                        "name": "a",
                        "image": "registry:5000/nginx",
                        "imagePullPolicy": "Always",
                        "ports": [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}],
                        "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}},
                        "terminationMessagePath": "/dev/termination-log",
                        "terminationMessagePolicy": "File",
                        "livenessProbe": {
                            "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"},
                            "timeoutSeconds": 1,
                            "periodSeconds": 10,
                            "successThreshold": 1,
                            "failureThreshold": 3,
                        },
                    }],
                    "volumes": [
                        {"name": "v", "emptyDir": {}},
                        {"name": "s", "secret": {"secretName": "x", "defaultMode": 420}},
                    ],
                    "dnsPolicy": "ClusterFirst",
                    "enableServiceLinks": true,
                    "hostNetwork": true,
                    "restartPolicy": "Always",
                    "schedulerName": "default-scheduler",
                    "securityContext": {},
                    "serviceAccount": "robot",
                    "serviceAccountName": "robot",
                    "terminationGracePeriodSeconds": 30,
                },
                "status": {},
            })
        );
    }

    #[test]
    fn images_name_their_tag() {
        let cases = [
            ("nginx", true),
            ("nginx:latest", true),
            ("nginx:1", false),
            ("host:5000/nginx", true),
            ("host:5000/nginx:1", false),
            ("nginx@sha256:0", false),
            ("nginx:latest@sha256:0", true),
            ("", false),
        ];
        for (image, latest) in cases {
            assert_eq!(image_is_latest(image), latest, "{image}");
        }
    }
}
