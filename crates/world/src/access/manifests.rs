//! The roles of a cluster, from the table.

use serde_json::{Value, json};

use super::{IDENTITIES, Identity, Place, Right, account};
use crate::seed::SYSTEM_NAMESPACE;

const RBAC: &str = "rbac.authorization.k8s.io";

/// ServiceAccounts, roles and bindings, as they are applied.
pub fn manifests(machine_namespace: &str) -> Vec<Value> {
    let mut objects: Vec<Value> = IDENTITIES.iter().map(service_account).collect();
    for place in [Place::Cluster, Place::Machines, Place::System] {
        let namespace = match place {
            Place::Cluster => None,
            Place::Machines => Some(machine_namespace),
            Place::System => Some(SYSTEM_NAMESPACE),
        };
        for identity in IDENTITIES {
            let rules: Vec<Value> =
                identity.rights.iter().filter(|right| right.place == place).map(rule).collect();
            if !rules.is_empty() {
                objects.extend(role(identity, namespace, &rules));
            }
        }
    }
    objects
}

fn service_account(identity: &Identity) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(&account(identity.name), Some(SYSTEM_NAMESPACE)),
    })
}

fn rule(right: &Right) -> Value {
    let mut rule =
        json!({"apiGroups": [right.group], "resources": [right.resource], "verbs": right.verbs});
    if !right.names.is_empty() {
        rule["resourceNames"] = json!(right.names);
    }
    rule
}

/// A role, and the binding that gives it to its one holder.
fn role(identity: &Identity, namespace: Option<&str>, rules: &[Value]) -> [Value; 2] {
    let kind = if namespace.is_some() { "Role" } else { "ClusterRole" };
    let name = account(identity.name);
    [
        json!({
            "apiVersion": format!("{RBAC}/v1"),
            "kind": kind,
            "metadata": metadata(&name, namespace),
            "rules": rules,
        }),
        json!({
            "apiVersion": format!("{RBAC}/v1"),
            "kind": format!("{kind}Binding"),
            "metadata": metadata(&name, namespace),
            "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": SYSTEM_NAMESPACE}],
        }),
    ]
}

fn metadata(name: &str, namespace: Option<&str>) -> Value {
    let mut metadata =
        json!({"name": name, "labels": {"app.kubernetes.io/part-of": "fleetwright"}});
    if let Some(namespace) = namespace {
        metadata["namespace"] = json!(namespace);
    }
    metadata
}
