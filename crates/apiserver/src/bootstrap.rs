//! What every cluster has from the beginning: namespaces, priority classes and roles.

use serde_json::{Value, json};

use crate::{
    auth::{
        ObjectSource,
        rbac::bootstrap::{PolicyObject, Step, policy, reconcile},
    },
    internal::InternalClient,
    kinds::scheduling::SYSTEM,
    object,
    server::Server,
    status::Result,
};

const NAMESPACES: &[&str] = &["default", "kube-node-lease", "kube-public", "kube-system"];

/// Makes what is missing.
pub(crate) async fn run(server: &Server) -> Result<()> {
    let client = InternalClient::new(server, "kube-apiserver");
    for name in NAMESPACES {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        make(&client, "/api/v1/namespaces", &namespace).await?;
    }
    for (name, value, description) in SYSTEM {
        let class = json!({
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "description": description,
        });
        make(&client, "/apis/scheduling.k8s.io/v1/priorityclasses", &class).await?;
    }
    for expected in policy() {
        reconcile_policy(server, &client, &expected).await?;
    }
    Ok(())
}

/// Makes an object unless it is there.
async fn make(client: &InternalClient, collection: &str, object: &Value) -> Result<()> {
    match client.post(collection, object).await {
        Err(error) if error.reason() != "AlreadyExists" => Err(error),
        _ => Ok(()),
    }
}

/// Brings one role or binding to what it should be.
async fn reconcile_policy(
    server: &Server,
    client: &InternalClient,
    expected: &PolicyObject,
) -> Result<()> {
    let (namespace, name) = (object::namespace(&expected.object), object::name(&expected.object));
    let existing = server.access().objects().get(
        expected.resource,
        Some(namespace).filter(|namespace| !namespace.is_empty()),
        name,
    );
    let Some(step) = reconcile(expected, existing.as_deref()) else { return Ok(()) };
    let (group, plural) = expected.resource.split_once('/').unwrap_or_default();
    let Some(resource) = server.registry().find(group, "v1", plural) else { return Ok(()) };
    let collection = InternalClient::collection(&resource, namespace);
    match step {
        Step::Create(object) => client.post(&collection, &object).await.map(|_| ()),
        Step::Update(object) => {
            client.put(&format!("{collection}/{name}"), &object).await.map(|_| ())
        }
        Step::Recreate(object) => {
            client.delete(&format!("{collection}/{name}"), "", None).await?;
            client.post(&collection, &object).await.map(|_| ())
        }
    }
}
