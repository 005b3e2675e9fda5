//! A cluster, and what users and kubelets do in it.

use std::{fmt::Debug, sync::Arc, time::Duration};

use fleetwright_apiserver::{
    Limits,
    auth::authn::signing::SigningKey,
    embedded::{Embedded, Running, Settings, StoreLocation},
    service::KnownUser,
    user::{MASTERS, UserInfo},
};
use fleetwright_clock::{Clock, Random};
use k8s_openapi::api::{
    apps::v1::DaemonSet,
    core::v1::{Node, Pod},
    policy::v1::PodDisruptionBudget,
};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tower::ServiceBuilder;

/// A server with its controllers, and a client of it.
pub(crate) struct Cluster {
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    _running: Running,
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        let clock = Clock::simulated("2026-01-01T00:00:00Z".parse().unwrap());
        let settings = Settings {
            clock: clock.clone(),
            random: Random::seeded(1),
            limits: Limits::default(),
            tokens: String::new(),
            service_account_key: SigningKey::generate().unwrap().pkcs8().to_vec(),
            authority: "the authority".to_owned(),
            // The owners of the pods are names alone, which a collector would not accept.
            controllers: Box::new(|name| name != "garbage-collector-controller"),
        };
        let embedded = Embedded::open(StoreLocation::Memory, &clock).unwrap();
        let running = embedded.start(settings).await.unwrap();
        let user = Arc::new(UserInfo::new("fleetwright", &[MASTERS]));
        let service = ServiceBuilder::new()
            .map_request(move |mut request: http::Request<kube::client::Body>| {
                request.extensions_mut().insert(KnownUser(Arc::clone(&user)));
                request
            })
            .service(running.server().clone());
        let client = Client::new(service, "default");
        tokio::time::sleep(Duration::from_secs(1)).await;
        Self { client, clock, _running: running }
    }

    pub(crate) fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.client.clone())
    }

    pub(crate) fn budgets(&self) -> Api<PodDisruptionBudget> {
        Api::default_namespaced(self.client.clone())
    }

    pub(crate) fn daemon_sets(&self) -> Api<DaemonSet> {
        Api::default_namespaced(self.client.clone())
    }

    /// A Node with a condition Ready.
    pub(crate) async fn node(&self, name: &str, ready: &str, labels: Value) -> Node {
        let node = json!({"metadata": {"name": name, "labels": labels}});
        create(&self.nodes(), node).await;
        self.set_ready(name, ready).await
    }

    pub(crate) async fn set_ready(&self, name: &str, ready: &str) -> Node {
        let status = json!({"status": {"conditions": [{"type": "Ready", "status": ready}]}});
        self.nodes()
            .patch_status(name, &PatchParams::default(), &Patch::Merge(status))
            .await
            .unwrap()
    }

    /// A running pod on the Node `n1`, with more about it.
    pub(crate) async fn pod(&self, name: &str, more: Value) -> Pod {
        let mut pod = json!({
            "metadata": {
                "name": name,
                "labels": {"app": "web"},
                "ownerReferences": [owner("apps/v1", "ReplicaSet", "web")],
            },
            "spec": {
                "nodeName": "n1",
                "containers": [{"name": "c", "image": "i"}],
            },
        });
        merge(&mut pod, more);
        create(&self.pods(), pod).await;
        let status = json!({"status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
        }});
        self.pods()
            .patch_status(name, &PatchParams::default(), &Patch::Merge(status))
            .await
            .unwrap()
    }

    /// The pod, unless it is gone.
    pub(crate) async fn get(&self, pod: &str) -> Option<Pod> {
        self.pods().get_opt(pod).await.unwrap()
    }

    /// Whether a pod is on its way out.
    pub(crate) async fn terminating(&self, pod: &str) -> bool {
        self.get(pod).await.is_some_and(|pod| pod.metadata.deletion_timestamp.is_some())
    }

    /// Ends a pod, as its kubelet would.
    pub(crate) async fn end(&self, pod: &str) {
        self.pods().delete(pod, &DeleteParams::default().grace_period(0)).await.unwrap();
    }

    /// A budget over all pods.
    pub(crate) async fn budget(&self, min_available: u32) {
        let budget = json!({
            "metadata": {"name": "web"},
            "spec": {
                "minAvailable": min_available,
                "selector": {"matchLabels": {"app": "web"}},
            },
        });
        create(&self.budgets(), budget).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// A controller's reference.
pub(crate) fn owner(version: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": version, "kind": kind, "name": name, "uid": name, "controller": true})
}

pub(crate) async fn create<K>(api: &Api<K>, object: Value) -> K
where
    K: Clone + DeserializeOwned + Debug + serde::Serialize + kube::Resource,
    K::DynamicType: Default,
{
    let object = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap()
}

fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more,
    }
}
