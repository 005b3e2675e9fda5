//! The controllers at work in a whole server, on virtual time.

mod budgets;
mod collection;
mod keepers;
mod namespaces;

use std::time::Duration;

use fleetwright_clock::{Clock, Random};
use serde_json::{Value, json};

use crate::{
    auth::authn::signing::SigningKey,
    embedded::{Embedded, Running, Settings, StoreLocation},
    internal::InternalClient,
    object,
    server::Limits,
    status::Result,
};

const START: &str = "2025-06-01T00:00:00Z";

/// A server with its controllers, and a user.
struct Cluster {
    running: Running,
    client: InternalClient,
}

impl Cluster {
    async fn start() -> Self {
        let clock = Clock::simulated(START.parse().unwrap());
        let settings = Settings {
            clock: clock.clone(),
            random: Random::seeded(1),
            limits: Limits::default(),
            tokens: String::new(),
            service_account_key: SigningKey::generate().unwrap().pkcs8().to_vec(),
            authority: "the authority".to_owned(),
            controllers: Box::new(|_| true),
        };
        let embedded = Embedded::open(StoreLocation::Memory, &clock).unwrap();
        let running = embedded.start(settings).await.unwrap_or_else(|error| panic!("{error}"));
        let client = InternalClient::new(running.server(), "kubectl");
        let cluster = Self { running, client };
        cluster.settle().await;
        cluster
    }

    /// Lets the controllers do what they do at once.
    async fn settle(&self) {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }

    async fn create(&self, collection: &str, object: &Value) -> Value {
        let created = self.client.post(collection, object).await;
        created.unwrap_or_else(|error| panic!("{object}: {}", error.message()))
    }

    async fn get(&self, path: &str) -> Option<Value> {
        match self.client.get(path).await {
            Ok(object) => Some(object),
            Err(error) if error.reason() == "NotFound" => None,
            Err(error) => panic!("{path}: {}", error.message()),
        }
    }

    async fn delete(&self, path: &str, propagation: &str) {
        let deleted = self.client.delete(path, "", Some(propagation)).await;
        deleted.unwrap_or_else(|error| panic!("{path}: {}", error.message()));
    }

    async fn merge(&self, path: &str, patch: &Value) -> Value {
        let merged = self.client.merge(path, patch).await;
        merged.unwrap_or_else(|error| panic!("{path}: {}", error.message()))
    }

    /// Creates a config map in the namespace `default`.
    async fn map(&self, name: &str, owners: &[Value]) -> Value {
        let map = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "ownerReferences": owners},
        });
        self.create(MAPS, &map).await
    }
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map_path(name: &str) -> String {
    format!("{MAPS}/{name}")
}

/// A reference to an object.
fn reference(owner: &Value, blocks: bool) -> Value {
    json!({
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": object::name(owner),
        "uid": object::uid(owner),
        "blockOwnerDeletion": blocks,
    })
}

fn pod(name: &str, labels: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "nodeName": "node",
            "containers": [{"name": "c", "image": "i"}],
        },
    })
}

/// Makes a pod ready, as its node would.
async fn make_ready(cluster: &Cluster, path: &str) {
    let status = json!({"status": {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
    }});
    cluster.merge(&format!("{path}/status"), &status).await;
}

fn refusal(result: Result<Value>) -> (u16, String) {
    match result {
        Ok(value) => panic!("not refused: {value}"),
        Err(error) => (error.code().as_u16(), error.message().to_owned()),
    }
}
