//! What a cluster needs to run the handler on its nodes.

use fleetwright_api::names::{MACHINE_NAMESPACE, label};
use serde_json::{Value, json};

/// The name of everything that belongs to the handler.
pub const NAME: &str = "machine-api-termination-handler";
/// Where the handler answers health checks and tells its metrics.
pub const LISTEN: &str = "127.0.0.1:10261";
/// Where a kubelet keeps its kubeconfig.
pub const KUBECONFIG: &str = "/var/lib/kubelet/kubeconfig";

/// Where a kubelet keeps its certificates.
const CERTIFICATES: &str = "/var/lib/kubelet/pki";
const PORT: u16 = 10261;

/// What the service account may do, and nothing else: a fixed text, the same in every cluster.
pub const SECURITY_CONTEXT_CONSTRAINTS: &str =
    include_str!("manifests/security-context-constraints.yaml");

/// Whether the clouds of a platform take instances back with notice.
pub fn runs_on(platform: &str) -> bool {
    matches!(platform, "AWS" | "GCP" | "Azure")
}

/// What can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choices {
    /// The namespace.
    pub namespace: String,
    /// The image with this program.
    pub image: String,
    /// The cloud: `aws`, `gcp` or `azure`.
    pub provider: String,
}

impl Default for Choices {
    fn default() -> Self {
        Self {
            namespace: MACHINE_NAMESPACE.to_owned(),
            image: "fleetwright:latest".to_owned(),
            provider: "aws".to_owned(),
        }
    }
}

/// The namespace. The handler reads the kubelet's files and uses the node's network, which is
/// more than the stricter Pod Security levels allow.
pub fn namespace(choices: &Choices) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": choices.namespace,
            "labels": {
                "pod-security.kubernetes.io/audit": "privileged",
                "pod-security.kubernetes.io/enforce": "privileged",
                "pod-security.kubernetes.io/warn": "privileged",
            },
        },
    })
}

/// The service account. It has no rights, and no token of it is mounted.
pub fn service_account(choices: &Choices) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {
            "name": NAME,
            "namespace": choices.namespace,
            "labels": labels(),
        },
        "automountServiceAccountToken": false,
    })
}

/// The handler on every node that the cloud may take back.
pub fn daemon_set(choices: &Choices) -> Value {
    let probe = |path: &str| {
        json!({
            "httpGet": {"host": "127.0.0.1", "port": PORT, "path": path},
            "periodSeconds": 10,
            "timeoutSeconds": 5,
            "failureThreshold": 6,
        })
    };
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {
            "name": NAME,
            "namespace": choices.namespace,
            "labels": labels(),
            "annotations": {"machine.openshift.io/owned": ""},
        },
        "spec": {
            "selector": {"matchLabels": labels()},
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": "10%"},
            },
            "template": {
                "metadata": {
                    "labels": labels(),
                    "annotations": {
                        "openshift.io/required-scc": NAME,
                        "target.workload.openshift.io/management":
                            r#"{"effect": "PreferredDuringScheduling"}"#,
                    },
                },
                "spec": {
                    "serviceAccountName": NAME,
                    "automountServiceAccountToken": false,
                    "hostNetwork": true,
                    "dnsPolicy": "Default",
                    "priorityClassName": "system-node-critical",
                    // The last check on the way down needs most of it.
                    "terminationGracePeriodSeconds": 30,
                    "nodeSelector": {label::INTERRUPTIBLE: "", "kubernetes.io/os": "linux"},
                    // Whatever befalls the node, the handler stays.
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [{
                        "name": "termination-handler",
                        "image": choices.image,
                        "command": ["fleetwright", "termination-handler"],
                        "args": [
                            "--node-name=$(NODE_NAME)",
                            format!("--kubeconfig={KUBECONFIG}"),
                            format!("--provider={}", choices.provider),
                            "--poll-interval-seconds=2",
                            format!("--listen={LISTEN}"),
                        ],
                        "env": [
                            {
                                "name": "NODE_NAME",
                                "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}},
                            },
                            {"name": "FLEETWRIGHT_LOG", "value": "info"},
                        ],
                        "resources": {"requests": {"cpu": "10m", "memory": "20Mi"}},
                        "livenessProbe": probe("/healthz"),
                        "readinessProbe": probe("/readyz"),
                        "securityContext": {
                            "allowPrivilegeEscalation": false,
                            "capabilities": {"drop": ["ALL"]},
                            "readOnlyRootFilesystem": true,
                            // The kubelet's files are root's alone.
                            "runAsUser": 0,
                        },
                        "terminationMessagePolicy": "FallbackToLogsOnError",
                        "volumeMounts": [
                            {"name": "kubeconfig", "mountPath": KUBECONFIG, "readOnly": true},
                            {"name": "pki", "mountPath": CERTIFICATES, "readOnly": true},
                        ],
                    }],
                    "volumes": [
                        {"name": "kubeconfig", "hostPath": {"path": KUBECONFIG, "type": "File"}},
                        {"name": "pki", "hostPath": {"path": CERTIFICATES, "type": "Directory"}},
                    ],
                },
            },
        },
    })
}

fn labels() -> Value {
    json!({"api": "clusterapi", "k8s-app": "termination-handler"})
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{
        apps::v1::DaemonSet,
        core::v1::{Namespace, ServiceAccount},
    };

    use super::*;

    #[test]
    fn they_are_what_kubernetes_knows() {
        let choices = Choices::default();
        let set: DaemonSet = serde_json::from_value(daemon_set(&choices)).unwrap();
        let pod = set.spec.template.spec.unwrap();
        assert_eq!(
            serde_json::to_value(&pod).unwrap(),
            daemon_set(&choices)["spec"]["template"]["spec"]
        );
        // Declared ports would be ports of the host, which the constraints forbid.
        assert!(pod.containers[0].ports.is_none());
        assert_eq!(LISTEN, format!("127.0.0.1:{PORT}"));
        assert_eq!(pod.automount_service_account_token, Some(false));
        let account: ServiceAccount = serde_json::from_value(service_account(&choices)).unwrap();
        assert_eq!(account.automount_service_account_token, Some(false));
        let _: Namespace = serde_json::from_value(namespace(&choices)).unwrap();
    }

    #[test]
    fn the_constraints_fit_the_pods() {
        let account = format!("system:serviceaccount:{MACHINE_NAMESPACE}:{NAME}");
        assert!(SECURITY_CONTEXT_CONSTRAINTS.contains(&format!("- {account}\n")));
        for volume in ["- downwardAPI\n", "- hostPath\n"] {
            assert!(SECURITY_CONTEXT_CONSTRAINTS.contains(volume));
        }
    }
}
