//! A cluster in one thread.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Arc, Mutex},
    time::Duration,
};

use fleetwright_apiserver::{
    embedded::{Embedded, Running},
    service::KnownUser,
    user::{MASTERS, UserInfo},
};
use fleetwright_clock::{Clock, Random};
use fleetwright_simnode::{Host, Hosts, Settings, SimNodes};
use k8s_openapi::{
    NamespaceResourceScope,
    api::core::v1::{Event, Node, NodeAddress, Pod},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    client::Body,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

pub(crate) const NAMESPACE: &str = "default";

/// A server, simulated nodes, and a user.
pub(crate) struct World {
    pub(crate) client: Client,
    pub(crate) hosts: Hosts,
    stop: CancellationToken,
    tasks: JoinSet<()>,
    requests: Arc<Mutex<BTreeMap<String, usize>>>,
    _running: Running,
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::with(Settings::default()).await
    }

    pub(crate) async fn with(settings: Settings) -> Self {
        let clock = Clock::simulated("2026-01-01T00:00:00Z".parse().unwrap());
        let running = Embedded::in_memory(&clock, Random::seeded(1), |_| true).await.unwrap();
        let user = Arc::new(UserInfo::new("test", &[MASTERS]));
        let requests: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
        let counted = Arc::clone(&requests);
        let service =
            running.server().clone().map_request(move |mut request: http::Request<Body>| {
                let path = request.uri().path();
                let resource = ["leases", "nodes", "pods"].into_iter().find(|r| path.contains(r));
                let what = format!("{} {}", request.method(), resource.unwrap_or("others"));
                *counted.lock().unwrap().entry(what).or_default() += 1;
                request.extensions_mut().insert(KnownUser(Arc::clone(&user)));
                request
            });
        let client = Client::new(service, NAMESPACE);
        let nodes = SimNodes::new(client.clone(), clock, Random::seeded(2), settings);
        let hosts = nodes.hosts();
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(nodes.run(stop.clone()));
        let world = Self { client, hosts, stop, tasks, requests, _running: running };
        world.wait(1).await;
        world
    }

    /// With nodes `n1` to `n3` in zones `a` to `c`, ready.
    pub(crate) async fn with_nodes(count: usize) -> Self {
        let world = Self::start().await;
        for number in 1..=count {
            world.hosts.started(host(&format!("n{number}"), ["a", "b", "c"][(number - 1) % 3]));
        }
        world.wait(5).await;
        world
    }

    /// How many requests there were since the last time, by method and resource, watches aside.
    pub(crate) fn requests(&self) -> BTreeMap<String, usize> {
        let mut requests = std::mem::take(&mut *self.requests.lock().unwrap());
        requests.retain(|what, _| !what.starts_with("GET"));
        requests
    }

    /// Lets time pass.
    pub(crate) async fn wait(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub(crate) async fn create<K>(&self, object: Value) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + Serialize
            + DeserializeOwned,
    {
        let object: K = serde_json::from_value(object).unwrap();
        self.api().create(&PostParams::default(), &object).await.unwrap()
    }

    pub(crate) async fn get<K>(&self, name: &str) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + DeserializeOwned,
    {
        self.api().get(name).await.unwrap()
    }

    pub(crate) async fn merge<K>(&self, name: &str, patch: Value) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + DeserializeOwned,
    {
        let params = PatchParams::default();
        self.api().patch(name, &params, &Patch::Merge(patch)).await.unwrap()
    }

    pub(crate) async fn delete<K>(&self, name: &str)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + DeserializeOwned,
    {
        self.api::<K>().delete(name, &DeleteParams::background()).await.unwrap();
    }

    pub(crate) async fn node(&self, name: &str) -> Option<Node> {
        Api::<Node>::all(self.client.clone()).get_opt(name).await.unwrap()
    }

    pub(crate) async fn patch_node(&self, name: &str, patch: Value) {
        let nodes = Api::<Node>::all(self.client.clone());
        nodes.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub(crate) async fn delete_node(&self, name: &str) {
        let nodes = Api::<Node>::all(self.client.clone());
        nodes.delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) async fn pods(&self) -> Vec<Pod> {
        self.api::<Pod>().list(&ListParams::default()).await.unwrap().items
    }

    /// `name node phase` of every pod, `*` if it is terminating, `!` if it is ready.
    pub(crate) async fn overview(&self) -> Vec<String> {
        let show = |pod: &Pod| {
            let node = pod.spec.as_ref().unwrap().node_name.clone().unwrap_or_else(|| "-".into());
            let mark = if pod.metadata.deletion_timestamp.is_some() {
                "*"
            } else if is_ready(pod) {
                "!"
            } else {
                ""
            };
            format!("{} {node} {}{mark}", pod.name_any(), phase(pod))
        };
        self.pods().await.iter().map(show).collect()
    }

    /// How many pods are ready on each node.
    pub(crate) async fn ready_on(&self, node: &str) -> usize {
        let on = |pod: &&Pod| {
            pod.spec.as_ref().unwrap().node_name.as_deref() == Some(node) && is_ready(pod)
        };
        self.pods().await.iter().filter(on).count()
    }

    /// Messages of the events with a reason.
    pub(crate) async fn events(&self, reason: &str) -> Vec<String> {
        let all = Api::<Event>::all(self.client.clone());
        let events = all.list(&ListParams::default()).await.unwrap().items;
        let with_reason = events.into_iter().filter(|e| e.reason.as_deref() == Some(reason));
        with_reason.filter_map(|event| event.message).collect()
    }

    pub(crate) async fn end(mut self) {
        self.stop.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap();
        }
    }
}

pub(crate) fn host(name: &str, zone: &str) -> Host {
    let address = |kind: &str, address: &str| NodeAddress {
        type_: kind.to_owned(),
        address: address.to_owned(),
    };
    Host {
        name: name.to_owned(),
        provider_id: format!("aws:///{zone}/i-{name}"),
        addresses: vec![address("InternalIP", "10.0.0.1"), address("InternalDNS", name)],
        instance_type: "m6i.xlarge".to_owned(),
        zone: zone.to_owned(),
        region: "sim-1".to_owned(),
        cpu: 4,
        memory: 16 << 30,
        boot_delay: Duration::from_secs(1),
        ..Host::default()
    }
}

pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|(status, _)| status == "True")
}

/// Status and message of a condition.
pub(crate) fn condition(pod: &Pod, kind: &str) -> Option<(String, String)> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let found = conditions.iter().find(|condition| condition.type_ == kind)?;
    Some((found.status.clone(), found.message.clone().unwrap_or_default()))
}
