//! A whole story, and who asked for what in it: nobody is refused, and nobody may more than that.

use std::{
    collections::BTreeSet,
    convert::Infallible,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use fleetwright_api::{
    aws::AWSMachineProviderStatus,
    machine::{Machine, MachineHealthCheck, MachineSet, Phase},
    names::MACHINE_NAMESPACE,
    placement::AWSPlacementGroup,
};
use fleetwright_apiserver::{
    embedded::{Embedded, Running},
    user::{AUTHENTICATED, MASTERS, UserInfo},
};
use fleetwright_clock::{Clock, Random};
use fleetwright_cloud::{HttpOptions, http_client};
use fleetwright_machines::admit::name::CONFIGURATION;
use fleetwright_runtime::{
    LeaderElection, Metrics, Stage, Tasks,
    config::{Config, ControllerNames, ServeWebhooks, Span, WebhooksConfig},
    metrics::Health,
};
use http::{Method, Request};
use k8s_openapi::api::{
    admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
    apps::v1::{DaemonSet, StatefulSet},
    core::v1::{Node, Pod, Secret},
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, time::sleep};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::{IDENTITIES, PROCESS, Place, Right, install, user};
use crate::{
    client::in_process,
    embedded::{World, controller},
    seed::SYSTEM_NAMESPACE,
    simulation::Pace,
    webhooks::{self, Served, ServedAt},
};

/// Only what hangs takes as long.
const LIMIT: Duration = Duration::from_mins(2);

/// A request, as far as roles are concerned.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Asked {
    user: String,
    verb: String,
    group: String,
    /// With its subresource.
    resource: String,
    namespace: String,
    name: String,
    allowed: bool,
}

#[derive(Clone, Default)]
struct Record(Arc<Mutex<BTreeSet<Asked>>>);

impl Record {
    fn listen(&self, running: &Running) {
        let record = self.clone();
        let ours = user("");
        let process = user(PROCESS);
        running.server().access().audit(move |request, allowed| {
            let by = &request.user.name;
            if !request.is_resource || !(by.starts_with(&ours) || *by == process) {
                return;
            }
            let resource = match request.subresource {
                "" => request.resource.to_owned(),
                sub => format!("{}/{sub}", request.resource),
            };
            record.0.lock().unwrap().insert(Asked {
                user: by.clone(),
                verb: request.verb.to_owned(),
                group: request.group.to_owned(),
                resource,
                namespace: request.namespace.to_owned(),
                name: request.name.to_owned(),
                allowed,
            });
        });
    }

    fn all(&self) -> BTreeSet<Asked> {
        self.0.lock().unwrap().clone()
    }
}

/// A world, its webhooks on a socket, and a user who may do everything.
struct Story {
    running: Running,
    stop: CancellationToken,
    user: Client,
    clouds: String,
}

impl Story {
    async fn begin(record: &Record) -> (Self, Tasks) {
        let clock = Clock::system();
        let running = Embedded::in_memory(&clock, Random::seeded(1), |_| true).await.unwrap();
        record.listen(&running);
        let stop = CancellationToken::new();
        let mut tasks = Tasks::new(stop.clone());
        let mut config = Config { workers: 8, ..Config::default() };
        config.launch.gang_window = Span(Duration::from_millis(500));
        let world = World {
            clock: clock.clone(),
            random: Random::seeded(2),
            pace: Pace::Immediate,
            controllers: ControllerNames::default(),
            config: config.clone(),
            clouds: TcpListener::bind("127.0.0.1:0").await.unwrap(),
            journal: None,
        };
        let clouds = world.start(&running, &mut tasks).await.unwrap();
        let server = running.server().clone();
        let of = |name: &str| in_process(&server, controller(name), "default");

        let metrics = Metrics::new();
        let (settings, random) = (config.leader_election.settings("story"), Random::seeded(3));
        let election =
            LeaderElection::new(of(PROCESS), settings, clock.clone(), random.fork(), &metrics)
                .unwrap();
        let served = Served {
            config: WebhooksConfig {
                serve: ServeWebhooks::Always,
                address: ":0".parse().unwrap(),
                url: "https://127.0.0.1:0".to_owned(),
                ..WebhooksConfig::default()
            },
            namespace: config.machine_namespace.clone(),
            own: of(PROCESS),
            facts: of(webhooks::IDENTITY),
            clock,
            random,
            metrics,
            health: Health::new(),
            leadership: Some(election.leadership()),
        };
        tasks.start(Stage::Leadership, "leader election", |stop| async move {
            election.run(stop).await.into_result()
        });
        let at = served.start(&mut tasks).await.unwrap();
        assert!(matches!(at, ServedAt::Address(_)), "{at:?}");
        let admin = UserInfo::new("admin", &[MASTERS, AUTHENTICATED]);
        let user = in_process(running.server(), admin, MACHINE_NAMESPACE);
        (Self { running, stop, user, clouds }, tasks)
    }

    fn of<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    {
        Api::namespaced(self.user.clone(), MACHINE_NAMESPACE)
    }

    async fn until(&self, what: &str, mut reached: impl AsyncFnMut() -> bool) {
        let waited = tokio::time::timeout(LIMIT, async {
            while !reached().await {
                sleep(Duration::from_millis(50)).await;
            }
        });
        assert!(waited.await.is_ok(), "never: {what}");
    }

    async fn running_machines(&self) -> usize {
        let machines = self.of::<Machine>().list(&ListParams::default()).await.unwrap();
        let phase = |machine: &Machine| machine.status.as_ref()?.phase.clone();
        machines.iter().filter(|machine| phase(machine) == Some(Phase::Running)).count()
    }

    /// Everything in the folder of the example.
    async fn apply_example(&self) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/placement-groups");
        let mut files: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| path.extension().is_some_and(|ending| ending == "yaml"));
        files.sort();
        for file in files {
            let text = std::fs::read_to_string(file).unwrap();
            let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
            for object in documents {
                install::apply(&self.user, object).await.unwrap();
            }
        }
    }

    /// A DaemonSet, whose pods a drain leaves alone.
    async fn make_daemons(&self) {
        let daemons = json!({
            "metadata": {"name": "daemons", "namespace": "default"},
            "spec": {
                "selector": {"matchLabels": {"app": "daemons"}},
                "template": {
                    "metadata": {"labels": {"app": "daemons"}},
                    "spec": {"containers": [{"name": "c", "image": "example.com/c:1"}]},
                },
            },
        });
        let api: Api<DaemonSet> = Api::namespaced(self.user.clone(), "default");
        let daemons = serde_json::from_value(daemons).unwrap();
        api.create(&PostParams::default(), &daemons).await.unwrap();
        let pods: Api<Pod> = Api::namespaced(self.user.clone(), "default");
        let params = ListParams::default().labels("app=daemons");
        self.until("daemons everywhere", async || {
            pods.list(&params).await.unwrap().iter().filter(|pod| is_running(pod)).count() == 14
        })
        .await;
    }

    /// The instance of a Machine ends behind our back.
    async fn lose_instance(&self, machine: &Machine) {
        let status = machine.status.as_ref().and_then(|status| status.provider_status.as_ref());
        let id = AWSMachineProviderStatus::read(status).instance_id.unwrap();
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("{}/_fleetwright/instances/{id}", self.clouds))
            .body(Bytes::from(json!({"strike": "terminate"}).to_string()))
            .unwrap();
        let answer = http_client(&HttpOptions::default()).unwrap().oneshot(request).await.unwrap();
        assert!(answer.status().is_success());
    }
}

fn is_running(pod: &Pod) -> bool {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
}

/// The configurations of `up` are taken over, and one that is deleted is made again.
async fn configurations_come_back(story: &Story) {
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(story.user.clone());
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(story.user.clone());
    let params = DeleteParams::default();
    let asks_over_tls = |configuration: &Value| {
        configuration["webhooks"][0]["clientConfig"]["caBundle"].is_string()
    };
    for _ in 0..2 {
        story
            .until("the server asks over TLS", async || {
                let (first, second) = tokio::join!(
                    mutating.get_opt(CONFIGURATION),
                    validating.get_opt(CONFIGURATION)
                );
                asks_over_tls(&json!(first.unwrap())) && asks_over_tls(&json!(second.unwrap()))
            })
            .await;
        mutating.delete(CONFIGURATION, &params).await.unwrap();
        validating.delete(CONFIGURATION, &params).await.unwrap();
    }
}

async fn play(story: &Story) {
    let (machines, sets) = (story.of::<Machine>(), story.of::<MachineSet>());
    configurations_come_back(story).await;
    // The Secret is there, and the API server believes what it signs.
    let secrets: Api<Secret> = Api::namespaced(story.user.clone(), SYSTEM_NAMESPACE);
    assert!(secrets.get("fleetwright-webhooks").await.is_ok());
    story.apply_example().await;
    story.until("14 run", async || story.running_machines().await == 14).await;
    let databases: Api<StatefulSet> = Api::namespaced(story.user.clone(), "default");
    story
        .until("the database runs", async || {
            let found = databases.get("database").await.unwrap();
            found.status.and_then(|status| status.ready_replicas) == Some(3)
        })
        .await;
    story.make_daemons().await;

    // One is let go and taken back.
    let spread = machines
        .list(&ListParams::default().labels("machine.openshift.io/cluster-api-machineset=spread"))
        .await
        .unwrap();
    let name = spread.items[0].name_any();
    let orphan = json!({"metadata": {"ownerReferences": null}});
    machines.patch(&name, &PatchParams::default(), &Patch::Merge(orphan)).await.unwrap();
    story
        .until("it is adopted", async || {
            machines
                .get_opt(&name)
                .await
                .unwrap()
                .is_none_or(|machine| !machine.owner_references().is_empty())
        })
        .await;

    // One loses its instance: its pods are removed, and another takes its place.
    let shards = machines
        .list(&ListParams::default().labels("machine.openshift.io/cluster-api-machineset=shards"))
        .await
        .unwrap();
    let lost = &shards.items[0];
    story.lose_instance(lost).await;
    story
        .until("it is Failed", async || {
            let machine = machines.get(&lost.name_any()).await.unwrap();
            machine.status.and_then(|status| status.phase) == Some(Phase::Failed)
        })
        .await;
    // A health check has it replaced.
    let check = json!({
        "metadata": {"name": "shards"},
        "spec": {
            "selector": {"matchLabels": {"machine.openshift.io/cluster-api-machineset": "shards"}},
            "unhealthyConditions": [{"type": "Ready", "status": "False", "timeout": "1h"}],
        },
    });
    let checks = story.of::<MachineHealthCheck>();
    let check = serde_json::from_value(check).unwrap();
    checks.create(&PostParams::default(), &check).await.unwrap();
    story.until("14 run again", async || story.running_machines().await == 14).await;
    story
        .until("the database runs again", async || {
            let found = databases.get("database").await.unwrap();
            found.status.and_then(|status| status.ready_replicas) == Some(3)
        })
        .await;

    // One too many goes.
    let fewer = json!({"spec": {"replicas": 6}});
    sets.patch("spread", &PatchParams::default(), &Patch::Merge(fewer)).await.unwrap();
    story.until("13 run", async || story.running_machines().await == 13).await;

    // Everything goes.
    let groups = story.of::<AWSPlacementGroup>();
    for name in ["cluster", "shards", "spread"] {
        sets.delete(name, &DeleteParams::default()).await.unwrap();
        groups.delete(name, &DeleteParams::default()).await.unwrap();
    }
    let nodes: Api<Node> = Api::all(story.user.clone());
    let everything = ListParams::default();
    story
        .until("nothing is left", async || {
            machines.list(&everything).await.unwrap().items.is_empty()
                && groups.list(&everything).await.unwrap().items.is_empty()
                && nodes.list(&everything).await.unwrap().items.is_empty()
        })
        .await;
}

#[tokio::test]
async fn everybody_may_do_what_they_do_and_no_more() {
    let record = Record::default();
    let (story, tasks) = Story::begin(&record).await;
    let mut working = tokio::task::JoinSet::new();
    working.spawn(async move { Ok::<_, Infallible>(tasks.run(Duration::from_secs(20)).await) });
    play(&story).await;
    story.stop.cancel();
    let ended = working.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!(ended, Ok(()));
    story.running.stop().await;

    let asked = record.all();
    let refused: Vec<&Asked> = asked.iter().filter(|asked| !asked.allowed).collect();
    assert!(refused.is_empty(), "the table lacks rights for {refused:#?}");
    let mut unused = Vec::new();
    for identity in IDENTITIES {
        for right in identity.rights {
            for verb in right.verbs {
                let used = asked.iter().any(|asked| {
                    asked.user == user(identity.name) && asked.verb == *verb && fits(asked, right)
                });
                if !used && right.unseen.is_none() {
                    unused.push(format!(
                        "{} never needs to {verb} {}",
                        identity.name, right.resource
                    ));
                }
            }
        }
    }
    assert!(unused.is_empty(), "the table holds rights that nobody uses: {unused:#?}");
}

fn fits(asked: &Asked, right: &Right) -> bool {
    asked.group == right.group
        && asked.resource == right.resource
        && match right.place {
            Place::Cluster => true,
            Place::Machines => asked.namespace == MACHINE_NAMESPACE,
            Place::System => asked.namespace == SYSTEM_NAMESPACE,
        }
        && (right.names.is_empty() || right.names.contains(&asked.name.as_str()))
}
