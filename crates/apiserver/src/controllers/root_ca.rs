//! The certificate authority of the cluster, published in every namespace for its pods.

use std::sync::Arc;

use fleetwright_kstore::Key;
use serde_json::{Value, json};

use super::{
    AGENT, NAMESPACES,
    driver::{Controller, Next, Seen},
    namespaces::takes_objects,
    queue::Queue,
};
use crate::{internal::InternalClient, object, server::Server, status::Result, storage};

const CONFIG_MAPS: &str = "/configmaps";
const NAME: &str = "kube-root-ca.crt";
const DESCRIPTION: &str = "kubernetes.io/description";
/// A fact of the API: it is what every cluster says here.
const TEXT: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

/// Keeps the config maps with the authority.
pub(super) struct RootCa {
    server: Server,
    client: InternalClient,
    authority: String,
}

impl RootCa {
    pub(super) fn new(server: &Server, authority: &str) -> Self {
        Self {
            server: server.clone(),
            client: InternalClient::new(server, AGENT),
            authority: authority.to_owned(),
        }
    }
}

impl Controller for RootCa {
    type Key = Arc<str>;
    const NAME: &'static str = "root certificates";
    const FOLLOWS: &'static [&'static str] = &[NAMESPACES, CONFIG_MAPS];

    fn observe(&self, seen: &Seen<'_>, queue: &mut Queue<Arc<str>>) {
        let key = &seen.object.key;
        if seen.is(NAMESPACES) {
            if !seen.is_gone() {
                queue.add(key.name.clone());
            }
        } else if &*key.name == NAME {
            queue.add(key.namespace.clone());
        }
    }

    async fn reconcile(&self, namespace: &Arc<str>) -> Result<Next> {
        if !takes_objects(&self.server, namespace) {
            return Ok(Next::Rest);
        }
        let collection = format!("/api/v1/namespaces/{namespace}/configmaps");
        let key = Key::new(CONFIG_MAPS, namespace.clone(), NAME);
        let result = match self.server.storage().get(&key) {
            None => self.client.post(&collection, &published(namespace, &self.authority)).await,
            Some(stored) => {
                let mut map = storage::parse(&stored.json)?;
                if !restore(&mut map, &self.authority) {
                    return Ok(Next::Rest);
                }
                self.client.put(&format!("{collection}/{NAME}"), &map).await
            }
        };
        match result {
            Err(error) if takes_objects(&self.server, namespace) => Err(error),
            _ => Ok(Next::Rest),
        }
    }
}

fn published(namespace: &str, authority: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": namespace, "annotations": {DESCRIPTION: TEXT}},
        "data": {"ca.crt": authority},
    })
}

/// Makes a config map say what it should; says whether it had to be changed.
fn restore(map: &mut Value, authority: &str) -> bool {
    let data = json!({"ca.crt": authority});
    let described = !object::text(map, &["metadata", "annotations", DESCRIPTION]).is_empty();
    if described && map.get("data") == Some(&data) {
        return false;
    }
    object::set(map, &["apiVersion"], "v1");
    object::set(map, &["kind"], "ConfigMap");
    object::set(map, &["data"], data);
    object::set(map, &["metadata", "annotations", DESCRIPTION], TEXT);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_changed_is_restored_and_the_rest_stays() {
        let mut map = published("n", "pem");
        assert!(!restore(&mut map, "pem"));
        assert!(restore(&mut map, "new"));
        assert_eq!(map["data"], json!({"ca.crt": "new"}));
        map["data"]["more"] = "x".into();
        map["metadata"]["annotations"] = json!({"mine": "1"});
        assert!(restore(&mut map, "new"));
        assert_eq!(map["data"], json!({"ca.crt": "new"}));
        assert_eq!(map["metadata"]["annotations"], json!({"mine": "1", DESCRIPTION: TEXT}));
        map["metadata"]["annotations"][DESCRIPTION] = "my own words".into();
        assert!(!restore(&mut map, "new"));
    }
}
