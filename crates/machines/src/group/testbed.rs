//! What tests of whole controllers stand on: an embedded API server in this process, a small fake
//! cloud, and a way to crash, refuse and lose answers at any write. On virtual time.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use fleetwright_api::{
    config::Infrastructure,
    machine::{Machine, MachineSet},
    placement::AWSPlacementGroup,
};
use fleetwright_apiserver::{
    Server,
    embedded::{Embedded, Running},
    service::{KnownUser, ResponseBody, handle},
    user::{MASTERS, UserInfo},
};
use fleetwright_clock::{Clock, Random};
use fleetwright_cloud::{
    Account, Cloud, CloudError, Connector, ErrorClass, GroupOrder, GroupState, Instance,
    InstanceState, InstanceType, Launch, LaunchOrder, PlacementGroup, PlacementGroups, PortFuture,
    ResolveRequest, Tag,
};
use fleetwright_runtime::{EventRecorder, Informer, Metrics};
use futures::{FutureExt, future::BoxFuture};
use http::{Method, Request, Response};
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Event, Secret},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource,
    api::{Patch, PatchParams, PostParams},
};
use parking_lot::Mutex;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::{
    sync::Notify,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::clouds::Clouds;

pub(crate) const NAMESPACE: &str = "openshift-machine-api";
pub(crate) const CLUSTER: &str = "mycluster-abc12";
pub(crate) const REGION: &str = "us-east-1";

/// When a write goes wrong, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harm {
    /// The process ends before the write has an effect.
    CrashBefore,
    /// The process ends after it had.
    CrashAfter,
    /// The write has its effect, and the answer is lost.
    LoseAnswer,
    /// The write is refused.
    Refuse,
}

/// Counts writes to the API and the cloud, and harms the one that it is told to.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    count: AtomicUsize,
    harm: Mutex<Option<(usize, Harm)>>,
    crashed: Notify,
}

impl Writes {
    /// The number of writes so far.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Harms the write of this number, counted from 0.
    pub(crate) fn harm(&self, write: usize, harm: Harm) {
        *self.harm.lock() = Some((write, harm));
    }

    /// Forgets what was, and harms nothing.
    pub(crate) fn reset(&self) {
        self.count.store(0, Ordering::Relaxed);
        *self.harm.lock() = None;
    }

    fn next(&self) -> Option<Harm> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let harm = *self.harm.lock();
        harm.filter(|(at, _)| *at == number).map(|(_, harm)| harm)
    }

    /// Does a write with the harm that is due; `lost` makes what a lost answer looks like,
    /// `refused` a refusal.
    pub(crate) async fn around<T>(
        &self,
        write: impl Future<Output = T>,
        lost: impl FnOnce() -> T,
        refused: impl FnOnce() -> T,
    ) -> T {
        match self.next() {
            None => write.await,
            Some(Harm::Refuse) => refused(),
            Some(Harm::LoseAnswer) => {
                write.await;
                lost()
            }
            Some(Harm::CrashBefore) => {
                self.crashed.notify_one();
                std::future::pending().await
            }
            Some(Harm::CrashAfter) => {
                write.await;
                self.crashed.notify_one();
                std::future::pending().await
            }
        }
    }
}

/// An API server and a cloud.
pub(crate) struct Bed {
    running: Running,
    pub(crate) clock: Clock,
    pub(crate) random: Random,
    pub(crate) cloud: FakeCloud,
    /// Writes of the controllers.
    pub(crate) writes: Arc<Writes>,
    /// Requests of the controllers: method and path.
    pub(crate) requests: Arc<Mutex<Vec<String>>>,
    /// Whose requests are never harmed.
    pub(crate) user: Client,
}

impl Bed {
    pub(crate) async fn start() -> Self {
        Self::seeded(1).await
    }

    /// Beds of different seeds have different UIDs.
    pub(crate) async fn seeded(seed: u64) -> Self {
        let clock = Clock::simulated("2026-01-01T00:00:00Z".parse().unwrap());
        let random = Random::seeded(seed);
        let running = Embedded::in_memory(&clock, random.fork(), |_| true).await.unwrap();
        let user = Client::new(Door::open(running.server()), NAMESPACE);
        let bed = Self {
            cloud: FakeCloud::new(clock.clone()),
            running,
            clock,
            random,
            writes: Arc::default(),
            requests: Arc::default(),
            user,
        };
        bed.furnish().await;
        bed
    }

    /// What an installer leaves.
    async fn furnish(&self) {
        for crd in fleetwright_api::crds() {
            self.create_anywhere(&between_apis(&crd)).await;
        }
        self.create_anywhere(&namespace()).await;
        sleep(Duration::from_secs(1)).await;
        let infrastructure = json!({
            "apiVersion": "config.openshift.io/v1", "kind": "Infrastructure",
            "metadata": {"name": "cluster"}, "spec": {},
        });
        let api: Api<Infrastructure> = Api::all(self.user.clone());
        api.create(&PostParams::default(), &serde_json::from_value(infrastructure).unwrap())
            .await
            .unwrap();
        let status = json!({"status": {
            "infrastructureName": CLUSTER,
            "platformStatus": {"type": "AWS", "aws": {
                "region": REGION, "resourceTags": [{"key": "team", "value": "hpc"}],
            }},
        }});
        let params = PatchParams::default();
        api.patch_status("cluster", &params, &Patch::Merge(status)).await.unwrap();
    }

    async fn create_anywhere<K>(&self, object: &K)
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Serialize + fmt::Debug,
    {
        Api::<K>::all(self.user.clone()).create(&PostParams::default(), object).await.unwrap();
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.user.clone(), NAMESPACE)
    }

    pub(crate) async fn create<K>(&self, object: Value) -> K
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + Serialize
            + fmt::Debug,
    {
        let object: K = serde_json::from_value(object).unwrap();
        self.api::<K>().create(&PostParams::default(), &object).await.unwrap()
    }

    pub(crate) async fn merge<K>(&self, name: &str, patch: Value) -> K
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + fmt::Debug,
    {
        let params = PatchParams::default();
        self.api::<K>().patch(name, &params, &Patch::Merge(patch)).await.unwrap()
    }

    pub(crate) async fn merge_status<K>(&self, name: &str, patch: Value) -> K
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + fmt::Debug,
    {
        let params = PatchParams::default();
        self.api::<K>().patch_status(name, &params, &Patch::Merge(patch)).await.unwrap()
    }

    pub(crate) async fn group(&self, name: &str) -> Option<AWSPlacementGroup> {
        self.api().get_opt(name).await.unwrap()
    }

    pub(crate) async fn machines(&self) -> Vec<Machine> {
        self.api().list(&kube::api::ListParams::default()).await.unwrap().items
    }

    /// Reasons and messages of events about an object.
    pub(crate) async fn events(&self, name: &str) -> Vec<(String, String)> {
        let events = self.api::<Event>().list(&kube::api::ListParams::default()).await.unwrap();
        let about = events
            .items
            .into_iter()
            .filter(|event| event.involved_object.name.as_deref() == Some(name));
        about
            .map(|event| (event.reason.unwrap_or_default(), event.message.unwrap_or_default()))
            .collect()
    }

    /// Waits until `found` finds what it looks for.
    pub(crate) async fn until<T, F>(&self, what: &str, mut found: impl FnMut() -> F) -> T
    where
        F: Future<Output = Option<T>>,
    {
        let waiting = async {
            loop {
                if let Some(found) = found().await {
                    return found;
                }
                sleep(Duration::from_millis(200)).await;
            }
        };
        match timeout(Duration::from_mins(20), waiting).await {
            Ok(found) => found,
            Err(elapsed) => panic!("never: {what} ({elapsed})"),
        }
    }

    /// A process that runs what `start` starts, and is started again whenever it crashes.
    pub(crate) fn process(&self, start: impl Fn(&mut Process) + Send + 'static) -> Supervised {
        let stop = CancellationToken::new();
        let (writes, ended) = (self.writes.clone(), stop.clone());
        let (server, requests) = (self.running.server().clone(), self.requests.clone());
        let (clock, random, cloud) = (self.clock.clone(), self.random.fork(), self.cloud.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            loop {
                let door = Door {
                    server: server.clone(),
                    writes: Some(writes.clone()),
                    requests: Some(requests.clone()),
                };
                let client = Client::new(door, NAMESPACE);
                let cloud = cloud.harmed_by(writes.clone());
                let mut process = Process::new(client, cloud, clock.clone(), random.fork());
                start(&mut process);
                tokio::select! {
                    () = ended.cancelled() => return process.tasks.shutdown().await,
                    () = writes.crashed.notified() => process.tasks.shutdown().await,
                }
            }
        });
        Supervised { stop, tasks }
    }
}

/// A definition as in clusters that move to Cluster API: there, status says whose a resource is.
fn between_apis(crd: &CustomResourceDefinition) -> CustomResourceDefinition {
    let mut crd = serde_json::to_value(crd).unwrap();
    let kind = crd["spec"]["names"]["kind"].as_str();
    if kind == Some(Machine::KIND) || kind == Some(MachineSet::KIND) {
        let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        schema["properties"]["status"]["properties"]["authoritativeAPI"] =
            json!({"type": "string"});
    }
    serde_json::from_value(crd).unwrap()
}

fn namespace() -> k8s_openapi::api::core::v1::Namespace {
    serde_json::from_value(json!({"metadata": {"name": NAMESPACE}})).unwrap()
}

/// A process that is started again when it crashes, until it is stopped.
pub(crate) struct Supervised {
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl Supervised {
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

/// What runs in a process.
pub(crate) struct Process {
    pub(crate) client: Client,
    pub(crate) cloud: FakeCloud,
    pub(crate) clock: Clock,
    pub(crate) random: Random,
    pub(crate) metrics: Metrics,
    pub(crate) events: EventRecorder,
    tasks: JoinSet<()>,
}

impl Process {
    fn new(client: Client, cloud: FakeCloud, clock: Clock, random: Random) -> Self {
        let metrics = Metrics::new();
        let (events, writer) =
            EventRecorder::new(client.clone(), "test", "", clock.clone(), &random, &metrics);
        let mut tasks = JoinSet::new();
        tasks.spawn(writer.run(CancellationToken::new()));
        Self { client, cloud, clock, random, metrics, events, tasks }
    }

    pub(crate) fn run(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// An informer of the namespace, running.
    pub(crate) fn informer<K>(&mut self, name: &str) -> Informer<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + fmt::Debug
            + Send
            + Sync
            + 'static,
    {
        self.watch(name, Api::namespaced(self.client.clone(), NAMESPACE))
    }

    /// An informer of everything, running.
    pub(crate) fn watch<K>(&mut self, name: &str, api: Api<K>) -> Informer<K>
    where
        K: Resource + Clone + DeserializeOwned + fmt::Debug + Send + Sync + 'static,
    {
        let informer = Informer::new(name, api, &self.metrics);
        self.tasks.spawn(informer.clone().run(self.random.fork(), CancellationToken::new()));
        informer
    }

    pub(crate) fn clouds(&mut self) -> Clouds {
        let infrastructures = self.watch("infrastructures", Api::all(self.client.clone()));
        let secrets = self.informer::<Secret>("secrets");
        Clouds::new(Arc::new(self.cloud.clone()), infrastructures, secrets)
    }
}

/// The way to the API server.
#[derive(Clone)]
struct Door {
    server: Server,
    writes: Option<Arc<Writes>>,
    requests: Option<Arc<Mutex<Vec<String>>>>,
}

impl Door {
    fn open(server: &Server) -> Self {
        Self { server: server.clone(), writes: None, requests: None }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the answer was lost")]
struct Lost;

impl tower::Service<Request<kube::client::Body>> for Door {
    type Response = Response<ResponseBody>;
    type Error = Lost;
    type Future = BoxFuture<'static, Result<Self::Response, Lost>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Lost>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<kube::client::Body>) -> Self::Future {
        let user = Arc::new(UserInfo::new("test", &[MASTERS]));
        request.extensions_mut().insert(KnownUser(user));
        let path = request.uri().path().to_owned();
        if let Some(requests) = &self.requests {
            requests.lock().push(format!("{} {path}", request.method()));
        }
        // Events are told once and forgotten: to lose one harms nobody.
        let harmless = request.method() == Method::GET || path.ends_with("/events");
        let server = self.server.clone();
        let refused = |server: Server| async move {
            // Nobody in particular may do nothing in particular.
            let request = Request::builder().method(Method::DELETE).uri("/api/v1/nodes/none");
            handle(server, request.body(kube::client::Body::empty()).unwrap()).await
        };
        match self.writes.clone().filter(|_| !harmless) {
            None => async move { Ok(handle(server, request).await) }.boxed(),
            Some(writes) => async move {
                let refusal = refused(server.clone()).await;
                let write = async { Ok(handle(server, request).await) };
                writes.around(write, || Err(Lost), || Ok(refusal)).await
            }
            .boxed(),
        }
    }
}

/// A cloud in a few lines. Clones are the same cloud.
#[derive(Clone)]
pub(crate) struct FakeCloud {
    state: Arc<Mutex<CloudState>>,
    writes: Option<Arc<Writes>>,
    clock: Clock,
}

#[derive(Default)]
pub(crate) struct CloudState {
    pub(crate) groups: BTreeMap<String, (Timestamp, PlacementGroup)>,
    pub(crate) instances: Vec<Instance>,
    pub(crate) types: BTreeMap<String, InstanceType>,
    /// The next answers of an operation, before it works again.
    pub(crate) refusals: BTreeMap<String, VecDeque<CloudError>>,
    /// How long a new group does not show.
    pub(crate) lag: Duration,
    pub(crate) calls: Vec<String>,
    /// Every group that was ever made or removed, in order.
    pub(crate) history: Vec<String>,
}

impl FakeCloud {
    fn new(clock: Clock) -> Self {
        Self { state: Arc::default(), writes: None, clock }
    }

    fn harmed_by(&self, writes: Arc<Writes>) -> Self {
        Self { writes: Some(writes), ..self.clone() }
    }

    pub(crate) fn state(&self) -> parking_lot::MutexGuard<'_, CloudState> {
        self.state.lock()
    }

    pub(crate) fn refuse(&self, operation: &str, times: usize, error: &CloudError) {
        let mut state = self.state.lock();
        let refusals = state.refusals.entry(operation.to_owned()).or_default();
        refusals.extend(std::iter::repeat_n(error.clone(), times));
    }

    /// A group that somebody else made.
    pub(crate) fn put_group(&self, group: PlacementGroup) {
        self.state.lock().groups.insert(group.name.clone(), (Timestamp::MIN, group));
    }

    pub(crate) fn calls(&self, operation: &str) -> usize {
        self.state.lock().calls.iter().filter(|call| call.starts_with(operation)).count()
    }

    fn begin(&self, call: String) -> Result<parking_lot::MutexGuard<'_, CloudState>, CloudError> {
        let mut state = self.state.lock();
        let operation = call.split(' ').next().unwrap_or_default().to_owned();
        state.calls.push(call);
        match state.refusals.get_mut(&operation).and_then(VecDeque::pop_front) {
            Some(error) => Err(error),
            None => Ok(state),
        }
    }

    async fn write<T>(
        &self,
        operation: &str,
        write: impl FnOnce() -> Result<T, CloudError>,
    ) -> Result<T, CloudError> {
        let lost = || Err(CloudError::new(ErrorClass::AnswerLost, operation, "", "no answer"));
        let refused = || Err(forbidden(operation));
        match &self.writes {
            None => write(),
            Some(writes) => writes.around(async { write() }, lost, refused).await,
        }
    }
}

pub(crate) fn forbidden(operation: &str) -> CloudError {
    CloudError {
        missing_permission: Some(format!("ec2:{operation}").into()),
        ..CloudError::new(
            ErrorClass::Credentials,
            operation,
            "UnauthorizedOperation",
            "You are not authorized to perform this operation.",
        )
    }
}

pub(crate) fn throttled(operation: &str) -> CloudError {
    CloudError::new(
        ErrorClass::Throttled,
        operation,
        "RequestLimitExceeded",
        "Request limit exceeded.",
    )
}

/// An instance in a group.
pub(crate) fn member(id: &str, group: &str, zone: &str, state: InstanceState) -> Instance {
    Instance {
        id: id.to_owned(),
        provider_id: format!("aws:///{zone}/{id}"),
        state,
        state_reason: None,
        region: REGION.to_owned(),
        zone: zone.to_owned(),
        instance_type: "m5.large".to_owned(),
        interruptible: false,
        addresses: Vec::new(),
        launched_at: None,
        token: None,
        launch_index: None,
        group: Some(group.to_owned()),
        partition: None,
        volumes: Vec::new(),
        tags: BTreeMap::new(),
    }
}

impl Connector for FakeCloud {
    fn connect(&self, _: Account) -> Result<Arc<dyn Cloud>, CloudError> {
        Ok(Arc::new(self.clone()))
    }
}

fn unused<T: Send + 'static>(operation: &'static str) -> PortFuture<'static, T> {
    async move { Err(CloudError::configuration(operation, "not part of this test")) }.boxed()
}

impl Cloud for FakeCloud {
    fn resolve(&self, _: ResolveRequest) -> PortFuture<'_, Launch> {
        unused("resolve")
    }
    fn launch(&self, _: LaunchOrder) -> PortFuture<'_, Vec<Instance>> {
        unused("launch")
    }
    fn inventory<'a>(&'a self, _: &'a str) -> PortFuture<'a, Vec<Instance>> {
        unused("inventory")
    }
    fn instances(&self, _: BTreeSet<String>) -> PortFuture<'_, Vec<Instance>> {
        unused("instances")
    }
    fn tagged<'a>(&'a self, _: &'a str, _: &'a str) -> PortFuture<'a, Vec<Instance>> {
        unused("tagged")
    }
    fn tag<'a>(&'a self, _: &'a [String], _: &'a [Tag]) -> PortFuture<'a, ()> {
        unused("tag")
    }
    fn retire<'a>(&'a self, _: &'a [String]) -> PortFuture<'a, ()> {
        unused("retire")
    }
    fn register<'a>(&'a self, _: &'a Value, _: &'a Instance) -> PortFuture<'a, ()> {
        unused("register")
    }
    fn deregister<'a>(&'a self, _: &'a Value, _: &'a Instance) -> PortFuture<'a, ()> {
        unused("deregister")
    }
    fn instance_type<'a>(&'a self, name: &'a str) -> PortFuture<'a, Option<InstanceType>> {
        async move {
            let state = self.begin(format!("DescribeInstanceTypes {name}"))?;
            Ok(state.types.get(name).cloned())
        }
        .boxed()
    }
    fn placement_groups(&self) -> Option<&dyn PlacementGroups> {
        Some(self)
    }
}

impl PlacementGroups for FakeCloud {
    fn describe(&self, names: BTreeSet<String>) -> PortFuture<'_, Vec<PlacementGroup>> {
        async move {
            let asked: Vec<&str> = names.iter().map(String::as_str).collect();
            let state = self.begin(format!("DescribePlacementGroups {}", asked.join(",")))?;
            let now = self.clock.now();
            let visible = state.groups.values().filter(|(made, group)| {
                names.contains(&group.name) && (*made == Timestamp::MIN || *made + state.lag <= now)
            });
            Ok(visible.map(|(_, group)| group.clone()).collect())
        }
        .boxed()
    }

    fn create(&self, order: GroupOrder) -> PortFuture<'_, PlacementGroup> {
        async move {
            self.write("CreatePlacementGroup", || {
                let mut state = self.begin(format!("CreatePlacementGroup {}", order.name))?;
                if state.groups.contains_key(&order.name) {
                    return Err(CloudError::new(
                        ErrorClass::AlreadyExists,
                        "CreatePlacementGroup",
                        "InvalidPlacementGroup.Duplicate",
                        "The placement group already exists.",
                    ));
                }
                let partitions = order.partitions.or(match order.strategy {
                    fleetwright_cloud::Strategy::Partition => Some(2),
                    _ => None,
                });
                let group = PlacementGroup {
                    name: order.name.clone(),
                    id: format!("pg-{}", order.name),
                    strategy: order.strategy,
                    partitions,
                    state: GroupState::Available,
                    tags: order.tags.into_iter().map(|tag| (tag.key, tag.value)).collect(),
                };
                state.groups.insert(order.name.clone(), (self.clock.now(), group.clone()));
                state.history.push(format!("made {}", order.name));
                Ok(group)
            })
            .await
        }
        .boxed()
    }

    fn delete<'a>(&'a self, name: &'a str) -> PortFuture<'a, ()> {
        async move {
            self.write("DeletePlacementGroup", || {
                let mut state = self.begin(format!("DeletePlacementGroup {name}"))?;
                let used = state.instances.iter().any(|instance| {
                    instance.group.as_deref() == Some(name)
                        && !matches!(
                            instance.state,
                            InstanceState::Terminated | InstanceState::Stopped
                        )
                });
                if used {
                    return Err(CloudError::new(
                        ErrorClass::InUse,
                        "DeletePlacementGroup",
                        "InvalidPlacementGroup.InUse",
                        "The placement group is in use.",
                    ));
                }
                if state.groups.remove(name).is_some() {
                    state.history.push(format!("removed {name}"));
                }
                Ok(())
            })
            .await
        }
        .boxed()
    }

    fn members(&self, names: BTreeSet<String>) -> PortFuture<'_, Vec<Instance>> {
        async move {
            let state = self.begin("DescribeInstances".to_owned())?;
            let members = state.instances.iter().filter(|instance| {
                instance.state.exists()
                    && instance.group.as_ref().is_some_and(|group| names.contains(group))
            });
            Ok(members.cloned().collect())
        }
        .boxed()
    }
}
