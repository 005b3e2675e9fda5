//! A world: an API in memory, a simulated cloud and its nodes, and processes of controllers that
//! can be killed; one thread, virtual time, no I/O.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use fleetwright_api::{
    machine::{Machine, MachineHealthCheck, MachineSet},
    names::annotation,
    placement::AWSPlacementGroup,
};
use fleetwright_apiserver::{
    Server,
    embedded::{Embedded, Running},
    user::{AUTHENTICATED, MASTERS, UserInfo},
};
use fleetwright_clock::{Clock, Random};
use fleetwright_cloud_aws::{AwsConnector, AwsOptions};
use fleetwright_machines::admit::Settings as AdmitSettings;
use fleetwright_runtime::{LeaderElection, Metrics, Stage, Tasks, config::Config};
use fleetwright_simcloud::aws::model::{
    capacity::Limit,
    lifecycle::Strike,
    settings::{Lag, Settings as AwsSettings},
};
use fleetwright_world::{
    client::in_process,
    fleet::Fleet,
    handlers::node_clients,
    seed,
    simulation::{Pace, Simulation},
    webhooks,
};
use k8s_openapi::api::{apps::v1::Deployment, policy::v1::PodDisruptionBudget};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::{
    check::Checker,
    door,
    host::Host,
    scenario::{CHECK, NAMESPACE, SETS, budget, deployment, health_check},
    schedule::{Farewell, Incident, Schedule},
    traffic::Traffic,
};

/// How long a process may take to stop in good order.
const STOP: Duration = Duration::from_secs(30);

/// A world.
pub(crate) struct World {
    pub(crate) traffic: Arc<Traffic>,
    pub(crate) user: Client,
    pub(crate) start: Instant,
    shared: Arc<Shared>,
    later: JoinSet<()>,
    _replicas: JoinSet<()>,
    _cloud: Tasks,
    _api: Running,
}

/// What starts processes.
struct Shared {
    server: Server,
    simulation: Simulation,
    traffic: Arc<Traffic>,
    clock: Clock,
    random: Random,
    hosts: Mutex<Vec<Arc<Host>>>,
    competing: bool,
    /// The limit of the users' check, where it is the only one.
    max_unhealthy: Option<u32>,
}

impl World {
    /// A new world, in which nobody has done anything yet.
    pub(crate) async fn start(seed: u64, schedule: &Schedule) -> Self {
        let clock = Clock::simulated("2026-11-15T12:00:00Z".parse().unwrap());
        let random = Random::seeded(seed);
        let [of_api, of_cloud, of_nodes, of_fleet, of_traffic] = [(); 5].map(|()| random.fork());
        let api = Embedded::in_memory(&clock, of_api, |_| true).await.unwrap();
        let server = api.server().clone();
        let client = |name: &str| {
            in_process(&server, UserInfo::new(name, &[MASTERS, AUTHENTICATED]), NAMESPACE)
        };
        let user = client("user");
        let lag = Lag::of_all(Duration::from_millis(schedule.lag));
        let aws = AwsSettings { lag, ..AwsSettings::default() };
        let simulation = Simulation::with(aws, of_cloud, clock.clone(), Pace::Times(1.0))
            .with_handlers(node_clients(&server));
        seed::definitions(&user).await.unwrap();
        seed::installation(&user, &simulation.installation).await.unwrap();
        let checker = Checker::new(&server);
        let harms = schedule.harms.clone();
        let traffic = Traffic::new(checker, harms, schedule.latency, of_traffic);
        let observing = traffic.clone();
        simulation.aws.observe(move |event| observing.checker.lock().changed(event));
        let mut cloud = Tasks::new(CancellationToken::new());
        let rules = (client("webhooks"), (clock.clone(), &of_nodes));
        let settings = AdmitSettings::of(&Config::default().webhooks, NAMESPACE);
        webhooks::register(&api, &user, rules.0, settings, rules.1, &mut cloud).await.unwrap();
        simulation.start(client("nodes"), clock.clone(), &of_nodes, |_| true, &mut cloud);
        let shared = Arc::new(Shared {
            simulation,
            traffic: traffic.clone(),
            clock,
            random: of_fleet,
            hosts: (0..schedule.replicas)
                .map(|replica| Host::new(replica, 0))
                .collect::<Vec<_>>()
                .into(),
            competing: schedule.replicas > 1,
            max_unhealthy: schedule.max_unhealthy,
            server,
        });
        let mut replicas = JoinSet::new();
        for replica in 0..schedule.replicas {
            replicas.spawn(shared.clone().keep(replica));
        }
        Self {
            traffic,
            user,
            start: Instant::now(),
            shared,
            later: JoinSet::new(),
            _replicas: replicas,
            _cloud: cloud,
            _api: api,
        }
    }

    /// Runs pods that do not matter, but must be moved; several with a budget.
    pub(crate) async fn run_pods(&self, count: u32) {
        if count > 0 {
            let api: Api<Deployment> = Api::namespaced(self.user.clone(), "default");
            create(&api, deployment(count)).await;
        }
        if count > 1 {
            create(&self.budgets(), budget(count)).await;
        }
        create(&self.checks(), health_check(self.shared.max_unhealthy)).await;
    }

    fn checks(&self) -> Api<MachineHealthCheck> {
        Api::namespaced(self.user.clone(), NAMESPACE)
    }

    fn budgets(&self) -> Api<PodDisruptionBudget> {
        Api::namespaced(self.user.clone(), "default")
    }

    /// Does what a schedule says, when it says it.
    pub(crate) async fn act(&mut self, incidents: &[(u64, Incident)]) {
        for (at, incident) in incidents {
            sleep_until(self.start + Duration::from_millis(*at)).await;
            self.traffic.note(&format!("-- {incident:?}"));
            self.befall(incident).await;
        }
    }

    fn host(&self, replica: usize) -> Arc<Host> {
        self.shared.hosts.lock()[replica].clone()
    }

    fn after(&mut self, seconds: u64, undo: impl FnOnce() + Send + 'static) {
        self.later.spawn(async move {
            sleep(Duration::from_secs(seconds)).await;
            undo();
        });
    }

    async fn befall(&mut self, incident: &Incident) {
        match *incident {
            Incident::Crash { replica } => self.host(replica).kill(),
            Incident::Stale { replica, seconds } => {
                let host = self.host(replica);
                host.streams.send_modify(|streams| streams.held = true);
                self.after(seconds, move || {
                    host.streams.send_modify(|streams| streams.held = false);
                });
            }
            Incident::DropWatches { replica } => self.host(replica).break_streams(),
            Incident::Relist { replica } => {
                let host = self.host(replica);
                host.expired.store(6, Ordering::Relaxed);
                host.break_streams();
            }
            Incident::CutOff { replica, seconds } => {
                let host = self.host(replica);
                host.cut_off.store(true, Ordering::Relaxed);
                host.break_streams();
                self.after(seconds, move || host.cut_off.store(false, Ordering::Relaxed));
            }
            Incident::CutLease { replica, seconds } => {
                let host = self.host(replica);
                host.lease_cut_off.store(true, Ordering::Relaxed);
                self.after(seconds, move || host.lease_cut_off.store(false, Ordering::Relaxed));
            }
            Incident::Throttle { seconds } => {
                let traffic = self.traffic.clone();
                traffic.throttled.store(true, Ordering::Relaxed);
                self.after(seconds, move || traffic.throttled.store(false, Ordering::Relaxed));
            }
            Incident::NoCapacity { seconds } => {
                let aws = self.shared.simulation.aws.clone();
                aws.with(|region, _| region.capacity.limit(nothing()));
                self.after(seconds, move || {
                    aws.with(|region, _| region.capacity.unlimit(Some(&nothing())));
                });
            }
            Incident::Strike { which } => {
                let running = self.traffic.checker.lock().running();
                if let Some(id) = chosen(&running, which) {
                    self.traffic.checker.lock().strike(id);
                    self.shared.simulation.aws.with(|region, now| {
                        region.strike(now, id, Strike::Terminate);
                    });
                }
            }
            Incident::Interrupt { one_in } => {
                let mut checker = self.traffic.checker.lock();
                let spot = checker.interruptible();
                let every = usize::try_from(one_in).unwrap_or(1).max(1);
                let taken: Vec<String> = spot.into_iter().step_by(every).collect();
                for id in &taken {
                    checker.strike(id);
                }
                drop(checker);
                for id in &taken {
                    self.shared.simulation.aws.with(|region, now| {
                        region.strike(now, id, Strike::Interrupt);
                    });
                }
            }
            Incident::Autoscale { set, seconds } => self.autoscale(set, seconds).await,
            Incident::Create { set, group_first } => {
                let group_first = group_first && SETS[set].is_grouped();
                if group_first {
                    self.create_group(set).await;
                }
                let api: Api<MachineSet> = Api::namespaced(self.user.clone(), NAMESPACE);
                create(&api, SETS[set].machine_set()).await;
                if !group_first && SETS[set].is_grouped() {
                    self.create_group(set).await;
                }
            }
            Incident::Scale { set, replicas } => {
                let api: Api<MachineSet> = Api::namespaced(self.user.clone(), NAMESPACE);
                let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
                api.patch(SETS[set].name, &PatchParams::default(), &patch).await.unwrap();
            }
            Incident::DeleteMachine { which } => {
                let names: Vec<String> = {
                    let mut checker = self.traffic.checker.lock();
                    checker.look();
                    checker.mirror.machines.values().map(|machine| machine.name.clone()).collect()
                };
                if let Some(name) = chosen(&names, which) {
                    let api: Api<Machine> = Api::namespaced(self.user.clone(), NAMESPACE);
                    api.delete(name, &DeleteParams::default()).await.unwrap();
                }
            }
        }
    }

    /// What an autoscaler does to a set that has more than it needs.
    async fn autoscale(&mut self, set: usize, seconds: u64) {
        let sets: Api<MachineSet> = Api::namespaced(self.user.clone(), NAMESPACE);
        let name = SETS[set].name;
        let Some(found) = sets.get_opt(name).await.unwrap() else { return };
        let replicas = found.spec.replicas.unwrap_or_default();
        let victim = {
            let mut checker = self.traffic.checker.lock();
            checker.look();
            checker.mirror.staying(name).next().map(|machine| machine.name.clone())
        };
        let (Some(victim), true) = (victim, replicas > 0) else { return };
        let machines: Api<Machine> = Api::namespaced(self.user.clone(), NAMESPACE);
        let mark = json!({"metadata": {"annotations": {annotation::DELETE_MACHINE: "now"}}});
        let params = PatchParams::default();
        machines.patch(&victim, &params, &Patch::Merge(mark)).await.unwrap();
        let scale = |replicas: i32| Patch::Merge(json!({"spec": {"replicas": replicas}}));
        sets.patch(name, &params, &scale(replicas - 1)).await.unwrap();
        self.later.spawn(async move {
            sleep(Duration::from_secs(seconds)).await;
            // A user may have deleted it in the meantime.
            let _ = sets.patch(name, &PatchParams::default(), &scale(replicas)).await;
        });
    }

    async fn create_group(&self, set: usize) {
        let api: Api<AWSPlacementGroup> = Api::namespaced(self.user.clone(), NAMESPACE);
        create(&api, SETS[set].group()).await;
    }

    /// Nothing goes wrong from now on.
    pub(crate) async fn calm_down(&mut self) {
        self.later.shutdown().await;
        // Where nobody has room for a pod, its budget would hold it for ever.
        if self.budgets().get_opt("work").await.unwrap().is_some() {
            self.budgets().delete("work", &DeleteParams::default()).await.unwrap();
        }
        // Whoever keeps too many from being repaired looks into it, and lets it go on.
        if self.shared.max_unhealthy.is_some() {
            let patch = Patch::Merge(json!({"spec": {"maxUnhealthy": "100%"}}));
            self.checks().patch(CHECK, &PatchParams::default(), &patch).await.unwrap();
        }
        self.traffic.calm_down();
        self.shared.simulation.aws.with(|region, _| region.capacity.unlimit(Some(&nothing())));
        for host in self.shared.hosts.lock().iter() {
            host.cut_off.store(false, Ordering::Relaxed);
            host.lease_cut_off.store(false, Ordering::Relaxed);
            host.expired.store(0, Ordering::Relaxed);
            host.streams.send_modify(|streams| streams.held = false);
        }
        self.traffic.note("-- calm");
    }

    /// Waits until `missing` finds nothing, three times in a row; what it found last when that
    /// takes too long.
    pub(crate) async fn wait(
        &self,
        limit: Duration,
        missing: fn(&mut Checker) -> Option<String>,
    ) -> Result<(), String> {
        let end = Instant::now() + limit;
        let mut good = 0;
        loop {
            match missing(&mut self.traffic.checker.lock()) {
                None => good += 1,
                Some(what) if Instant::now() > end => return Err(what),
                Some(_) => good = 0,
            }
            if good == 3 {
                return Ok(());
            }
            sleep(Duration::from_secs(1)).await;
        }
    }

    /// Deletes everything.
    pub(crate) async fn say_goodbye(&self, farewell: &[(Farewell, u64)]) {
        let sets: Api<MachineSet> = Api::namespaced(self.user.clone(), NAMESPACE);
        let groups: Api<AWSPlacementGroup> = Api::namespaced(self.user.clone(), NAMESPACE);
        let params = DeleteParams::default();
        for (what, pause) in farewell {
            self.traffic.note(&format!("-- delete {what:?}"));
            match what {
                Farewell::Set(set) => drop(sets.delete(SETS[*set].name, &params).await.unwrap()),
                Farewell::Group(set) => {
                    drop(groups.delete(SETS[*set].name, &params).await.unwrap());
                }
            }
            sleep(Duration::from_millis(*pause)).await;
        }
    }

    /// How many calls the cloud was sent.
    pub(crate) fn calls(&self) -> u64 {
        self.shared.simulation.aws.counts().values().sum()
    }
}

impl Shared {
    /// Keeps a replica running: after every end comes a new start.
    async fn keep(self: Arc<Self>, replica: usize) {
        for life in 0.. {
            let host = Host::new(replica, life);
            self.hosts.lock()[replica] = host.clone();
            let mut tasks = Tasks::new(CancellationToken::new());
            self.fleet(&host, &mut tasks);
            tokio::select! {
                biased;
                () = host.killed() => self.traffic.note(&format!("{replica}.{life} crashed")),
                ended = tasks.run(STOP) => {
                    let lost = self.competing && format!("{ended:?}").contains("lost the leadership");
                    self.traffic.note(&format!("{replica}.{life} ended"));
                    if !lost {
                        self.traffic.checker.lock().violated(&format!("the process ended: {ended:?}"));
                    }
                    host.kill();
                }
            }
            sleep(Duration::from_millis(500 + self.random.below(2000))).await;
        }
    }

    fn fleet(&self, host: &Arc<Host>, tasks: &mut Tasks) {
        let (server, traffic) = (self.server.clone(), self.traffic.clone());
        let of = host.clone();
        let client = move |name: &str| door::client(&server, &of, &traffic, name);
        let mut config = Config::default();
        config.repair.termination_check = self.max_unhealthy.is_none();
        let metrics = Metrics::new();
        let random = self.random.fork();
        let leadership = self.competing.then(|| {
            let identity = format!("{}.{}", host.replica, host.life);
            let settings = config.leader_election.settings(&identity);
            let clock = self.clock.clone();
            let election =
                LeaderElection::new(client("leader"), settings, clock, random.fork(), &metrics)
                    .unwrap();
            let leadership = election.leadership();
            tasks.start(Stage::Leadership, "leader election", |stop| async move {
                election.run(stop).await.into_result()
            });
            leadership
        });
        let transport = door::transport(&self.simulation.transport(), host, &self.traffic);
        let options = AwsOptions::new(transport, self.clock.clone(), random.fork());
        let connector = Arc::new(AwsConnector::new(options));
        let fleet = Fleet {
            host: format!("replica-{}", host.replica),
            metrics,
            leadership,
            ..Fleet::new(&config, client, connector, self.clock.clone(), random)
        };
        fleet.start(tasks);
    }
}

/// No capacity anywhere.
fn nothing() -> Limit {
    serde_json::from_value(json!({"limit": 0})).unwrap()
}

fn chosen(names: &[String], which: u64) -> Option<&String> {
    let count = u64::try_from(names.len()).ok().filter(|count| *count > 0)?;
    names.get(usize::try_from(which % count).ok()?)
}

async fn create<K>(api: &Api<K>, object: Value)
where
    K: kube::Resource + Clone + serde::Serialize + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let object: K = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}
