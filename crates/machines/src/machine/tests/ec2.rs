//! A cloud that launches: tokens, capacity, instances that show late, start and end in their time.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use fleetwright_clock::Clock;
use fleetwright_cloud::{
    Account, Address, AddressKind, Cloud, CloudError, Connector, ErrorClass, Instance,
    InstanceState, InstanceType, Launch, LaunchOrder, MACHINE_UID_TAG, PortFuture, ResolveRequest,
    Shape, Strategy, Tag,
};
use futures::FutureExt as _;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::group::testbed::{REGION, Writes};

/// Clones are the same cloud.
#[derive(Clone)]
pub(super) struct Ec2 {
    state: Arc<Mutex<State>>,
    writes: Option<Arc<Writes>>,
    clock: Clock,
}

pub(super) struct State {
    pub(super) instances: BTreeMap<String, Entry>,
    tokens: BTreeMap<(String, String), (String, Vec<String>)>,
    /// How many more there are in a zone; none is without end.
    pub(super) capacity: BTreeMap<String, u32>,
    /// More at once are too many.
    pub(super) max_batch: u32,
    /// The next answers of an operation, before it works again.
    pub(super) refusals: BTreeMap<&'static str, VecDeque<CloudError>>,
    /// How long new instances do not show.
    pub(super) lag: Duration,
    /// How long they start.
    pub(super) boot: Duration,
    /// How long they end.
    pub(super) end: Duration,
    /// Launches that were let through: token, fewest, most.
    pub(super) launches: Vec<(String, u32, u32)>,
    pub(super) calls: Vec<String>,
    pub(super) volume_tags: BTreeMap<String, BTreeMap<String, String>>,
    pub(super) balanced: BTreeSet<String>,
    /// UIDs of the Machines for which there is a host.
    pub(super) hosts: BTreeSet<String>,
    /// What each instance was given to boot with.
    pub(super) user_data: BTreeMap<String, Value>,
}

pub(super) struct Entry {
    pub(super) instance: Instance,
    made: Timestamp,
    retired: Option<Timestamp>,
}

impl Ec2 {
    pub(super) fn new(clock: Clock) -> Self {
        let state = State {
            instances: BTreeMap::new(),
            tokens: BTreeMap::new(),
            capacity: BTreeMap::new(),
            max_batch: 1000,
            refusals: BTreeMap::new(),
            lag: Duration::from_secs(3),
            boot: Duration::from_secs(20),
            end: Duration::from_secs(20),
            launches: Vec::new(),
            calls: Vec::new(),
            volume_tags: BTreeMap::new(),
            balanced: BTreeSet::new(),
            hosts: BTreeSet::new(),
            user_data: BTreeMap::new(),
        };
        Self { state: Arc::new(Mutex::new(state)), writes: None, clock }
    }

    /// Everything that was made is forgotten.
    pub(super) fn reset(&self) {
        let mut state = self.state.lock();
        state.instances.clear();
        state.tokens.clear();
    }

    pub(super) fn harmed_by(&self, writes: Arc<Writes>) -> Self {
        Self { writes: Some(writes), ..self.clone() }
    }

    pub(super) fn state(&self) -> parking_lot::MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(super) fn refuse(&self, operation: &'static str, times: usize, error: &CloudError) {
        let mut state = self.state.lock();
        let refusals = state.refusals.entry(operation).or_default();
        refusals.extend(std::iter::repeat_n(error.clone(), times));
    }

    /// Every instance as it is, whether it shows or not.
    pub(super) fn all(&self) -> Vec<Instance> {
        let (state, now) = (self.state.lock(), self.clock.now());
        state.instances.values().map(|entry| state.now(entry, now)).collect()
    }

    pub(super) fn alive(&self) -> Vec<Instance> {
        self.all().into_iter().filter(|instance| instance.state.exists()).collect()
    }

    pub(super) fn calls(&self, operation: &str) -> usize {
        self.state.lock().calls.iter().filter(|call| *call == operation).count()
    }

    /// Somebody else ends an instance.
    pub(super) fn kill(&self, id: &str) {
        let now = self.clock.now();
        if let Some(entry) = self.state.lock().instances.get_mut(id) {
            entry.retired = Some(now);
        }
    }

    /// The cloud forgets an instance.
    pub(super) fn vanish(&self, id: &str) {
        self.state.lock().instances.remove(id);
    }

    fn shown(&self, mut wanted: impl FnMut(&Instance) -> bool) -> Vec<Instance> {
        let (state, now) = (self.state.lock(), self.clock.now());
        let visible = state.instances.values().filter(|entry| entry.made + state.lag <= now);
        visible.map(|entry| state.now(entry, now)).filter(|instance| wanted(instance)).collect()
    }

    fn begin(&self, operation: &'static str) -> Result<(), CloudError> {
        let mut state = self.state.lock();
        state.calls.push(operation.to_owned());
        match state.refusals.get_mut(operation).and_then(VecDeque::pop_front) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    async fn write<T>(
        &self,
        operation: &'static str,
        write: impl FnOnce() -> Result<T, CloudError>,
    ) -> Result<T, CloudError> {
        let lost = || Err(CloudError::new(ErrorClass::AnswerLost, operation, "", "no answer"));
        let refused = || {
            Err(CloudError::new(ErrorClass::Throttled, operation, "RequestLimitExceeded", "slow"))
        };
        let write = async {
            self.begin(operation)?;
            write()
        };
        match &self.writes {
            None => write.await,
            Some(writes) => writes.around(write, lost, refused).await,
        }
    }

    fn run(&self, order: &LaunchOrder) -> Result<Vec<Instance>, CloudError> {
        let now = self.clock.now();
        let mut state = self.state.lock();
        let shape = &order.launch.shape;
        let fingerprint = format!("{} {:?} {:?}", order.launch.hash, order.count, order.tags);
        let token = (shape.zone.clone(), order.token.clone());
        if let Some((known, ids)) = state.tokens.get(&token) {
            if *known != fingerprint {
                return Err(error(ErrorClass::TokenMismatch, "IdempotentParameterMismatch"));
            }
            let made: Vec<_> = ids
                .iter()
                .filter_map(|id| state.instances.get(id))
                .map(|entry| state.now(entry, now))
                .collect();
            let gone = |instance: &Instance| !instance.state.exists();
            if made.len() < ids.len() || made.iter().all(gone) {
                return Err(error(ErrorClass::TokenSpent, "IdempotentInstanceTerminated"));
            }
            return Ok(made);
        }
        if order.count.max > state.max_batch {
            return Err(error(ErrorClass::BatchTooBig, "ResourceCountExceeded"));
        }
        if shape.tenancy.as_deref() == Some("host") {
            // The host is there, whatever becomes of the launch.
            let owner = order.tags.iter().find(|tag| tag.key == MACHINE_UID_TAG);
            state.hosts.extend(owner.map(|tag| tag.value.clone()));
        }
        let room = state.capacity.get(&shape.zone).copied().unwrap_or(u32::MAX);
        let count = order.count.max.min(room);
        if count < order.count.min {
            return Err(error(ErrorClass::Capacity, "InsufficientInstanceCapacity"));
        }
        if let Some(room) = state.capacity.get_mut(&shape.zone) {
            *room -= count;
        }
        state.launches.push((order.token.clone(), order.count.min, order.count.max));
        let made: Vec<Instance> =
            (0..count).map(|index| instance(order, index, state.launches.len(), now)).collect();
        for instance in &made {
            let entry = Entry { instance: instance.clone(), made: now, retired: None };
            state.instances.insert(instance.id.clone(), entry);
            let user_data = order.launch.request["userData"].clone();
            state.user_data.insert(instance.id.clone(), user_data);
        }
        let ids = made.iter().map(|instance| instance.id.clone()).collect();
        state.tokens.insert(token, (fingerprint, ids));
        Ok(made)
    }
}

impl State {
    fn now(&self, entry: &Entry, now: Timestamp) -> Instance {
        let state = match entry.retired {
            Some(at) if at + self.end <= now => InstanceState::Terminated,
            Some(_) => InstanceState::ShuttingDown,
            None if entry.made + self.boot <= now => InstanceState::Running,
            None => InstanceState::Pending,
        };
        Instance { state, ..entry.instance.clone() }
    }
}

pub(super) fn error(class: ErrorClass, code: &str) -> CloudError {
    CloudError::new(class, "RunInstances", code, "as the cloud says")
}

fn instance(order: &LaunchOrder, index: u32, known: usize, now: Timestamp) -> Instance {
    let shape = &order.launch.shape;
    let number = known * 1000 + usize::try_from(index).unwrap();
    let id = format!("i-{number:017x}");
    let common = order.launch.request["tags"].as_object().cloned().unwrap_or_default();
    let common = common.into_iter().map(|(key, value)| (key, value.as_str().unwrap().to_owned()));
    let tags = order.tags.iter().map(|tag| (tag.key.clone(), tag.value.clone()));
    Instance {
        provider_id: format!("aws:///{}/{id}", shape.zone),
        state: InstanceState::Pending,
        state_reason: None,
        region: shape.region.clone(),
        zone: shape.zone.clone(),
        instance_type: shape.instance_type.clone(),
        interruptible: shape.interruptible,
        addresses: vec![Address {
            kind: AddressKind::InternalIp,
            address: format!("10.0.{}.{}", number / 250, number % 250),
        }],
        launched_at: Some(now),
        token: Some(order.token.clone()),
        launch_index: Some(index),
        group: shape.group.clone(),
        partition: shape.group.as_ref().map(|_| shape.partition.unwrap_or(index % 3 + 1)),
        volumes: vec![format!("vol-{number:x}")],
        tags: common.chain(tags).collect(),
        id,
    }
}

impl Connector for Ec2 {
    fn connect(&self, _: Account) -> Result<Arc<dyn Cloud>, CloudError> {
        Ok(Arc::new(self.clone()))
    }
}

impl Cloud for Ec2 {
    fn resolve(&self, request: ResolveRequest) -> PortFuture<'_, Launch> {
        async move {
            self.begin("resolve")?;
            let spec = &request.provider_spec;
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let group = [&spec["placement"]["group"]["name"], &spec["placementGroupName"]];
            let shape = Shape {
                region: REGION.to_owned(),
                zone: text(&spec["placement"]["availabilityZone"]),
                instance_type: text(&spec["instanceType"]),
                group: group.into_iter().find_map(|name| name.as_str().map(str::to_owned)),
                partition: spec["placementGroupPartition"]
                    .as_u64()
                    .map(|n| u32::try_from(n).unwrap()),
                interruptible: spec["spotMarketOptions"].is_object(),
                tenancy: spec["placement"]["tenancy"].as_str().map(str::to_owned),
            };
            let tags = self.wanted_tags(spec, &request.cluster, &request.cluster_tags);
            let tags: BTreeMap<String, String> =
                tags.into_iter().map(|tag| (tag.key, tag.value)).collect();
            let request = json!({"spec": spec, "tags": tags,
                "userData": request.user_data.map(|data| data.to_vec())});
            let hash = Sha256::digest(request.to_string());
            let hash =
                hash.iter().take(8).fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
            Ok(Launch { request, hash, shape })
        }
        .boxed()
    }

    fn launch(&self, order: LaunchOrder) -> PortFuture<'_, Vec<Instance>> {
        async move { self.write("launch", || self.run(&order)).await }.boxed()
    }

    fn inventory<'a>(&'a self, cluster: &'a str) -> PortFuture<'a, Vec<Instance>> {
        async move {
            self.begin("inventory")?;
            let owned = format!("kubernetes.io/cluster/{cluster}");
            Ok(self.shown(|instance| instance.tags.contains_key(&owned)))
        }
        .boxed()
    }

    fn instances(&self, ids: BTreeSet<String>) -> PortFuture<'_, Vec<Instance>> {
        async move {
            self.begin("instances")?;
            Ok(self.shown(|instance| ids.contains(&instance.id)))
        }
        .boxed()
    }

    fn tagged<'a>(&'a self, key: &'a str, value: &'a str) -> PortFuture<'a, Vec<Instance>> {
        async move {
            self.begin("tagged")?;
            Ok(self.shown(|instance| instance.tags.get(key).is_some_and(|found| found == value)))
        }
        .boxed()
    }

    fn tag<'a>(&'a self, ids: &'a [String], tags: &'a [Tag]) -> PortFuture<'a, ()> {
        async move {
            self.write("tag", || {
                let mut state = self.state.lock();
                for id in ids {
                    let tags = tags.iter().map(|tag| (tag.key.clone(), tag.value.clone()));
                    match state.instances.get_mut(id) {
                        Some(entry) => entry.instance.tags.extend(tags),
                        None => state.volume_tags.entry(id.clone()).or_default().extend(tags),
                    }
                }
                Ok(())
            })
            .await
        }
        .boxed()
    }

    fn retire<'a>(&'a self, ids: &'a [String]) -> PortFuture<'a, ()> {
        async move {
            self.write("retire", || {
                let now = self.clock.now();
                let mut state = self.state.lock();
                for id in ids {
                    if let Some(entry) = state.instances.get_mut(id) {
                        entry.retired.get_or_insert(now);
                    }
                }
                Ok(())
            })
            .await
        }
        .boxed()
    }

    fn register<'a>(&'a self, _: &'a Value, instance: &'a Instance) -> PortFuture<'a, ()> {
        async move {
            self.write("register", || {
                self.state.lock().balanced.insert(instance.id.clone());
                Ok(())
            })
            .await
        }
        .boxed()
    }

    fn deregister<'a>(&'a self, _: &'a Value, instance: &'a Instance) -> PortFuture<'a, ()> {
        async move {
            self.write("deregister", || {
                self.state.lock().balanced.remove(&instance.id);
                Ok(())
            })
            .await
        }
        .boxed()
    }

    fn release<'a>(&'a self, _: &'a Value, machine_uid: &'a str) -> PortFuture<'a, ()> {
        async move {
            self.write("release", || {
                let occupied = self.all().into_iter().any(|instance| {
                    instance.machine_uid() == Some(machine_uid)
                        && instance.state != InstanceState::Terminated
                });
                if occupied {
                    return Err(error(ErrorClass::InUse, "InvalidHost.Occupied"));
                }
                self.state.lock().hosts.remove(machine_uid);
                Ok(())
            })
            .await
        }
        .boxed()
    }

    fn wanted_tags(&self, spec: &Value, cluster: &str, cluster_tags: &[Tag]) -> Vec<Tag> {
        let own = spec["tags"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let own: Vec<Tag> =
            own.iter().map(|tag| Tag::new(text(&tag["name"]), text(&tag["value"]))).collect();
        fleetwright_cloud::tags::resource_tags(&own, cluster_tags, cluster)
    }

    fn instance_type<'a>(&'a self, name: &'a str) -> PortFuture<'a, Option<InstanceType>> {
        async move {
            Ok(Some(InstanceType {
                name: name.to_owned(),
                vcpus: 2,
                memory_mib: 8192,
                gpus: 0,
                gpu_resource: None,
                architecture: "amd64".to_owned(),
                strategies: BTreeSet::from([
                    Strategy::Cluster,
                    Strategy::Spread,
                    Strategy::Partition,
                ]),
            }))
        }
        .boxed()
    }
}
