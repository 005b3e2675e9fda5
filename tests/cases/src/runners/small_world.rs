//! The real controllers on an embedded API and a simulated cloud, on virtual time.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use fleetwright_api::machine::Machine;
use fleetwright_apiserver::{
    embedded::{Embedded, Running},
    user::{AUTHENTICATED, MASTERS, UserInfo},
};
use fleetwright_clock::{Clock, Random};
use fleetwright_cloud::{Account, Connector, Count, Credentials, LaunchOrder, ResolveRequest, Tag};
use fleetwright_cloud_aws::{AwsConnector, AwsOptions};
use fleetwright_runtime::{Tasks, config::Config};
use fleetwright_simcloud::aws::model::settings::{Lag, Settings as AwsSettings};
use fleetwright_world::{
    client::in_process,
    fleet::Fleet,
    seed,
    simulation::{Pace, Simulation},
};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Event;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, PostParams, WatchEvent, WatchParams},
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

const NAMESPACE: &str = fleetwright_api::names::MACHINE_NAMESPACE;
/// More than anything in these worlds takes.
const LONG: Duration = Duration::from_mins(30);

/// A world with one Machine in it.
pub(super) struct SmallWorld {
    pub(super) simulation: Simulation,
    machines: Api<Machine>,
    events: Api<Event>,
    /// Every version of every Machine.
    history: Arc<Mutex<Vec<Machine>>>,
    _watch: JoinSet<()>,
    _tasks: Tasks,
    _api: Running,
}

/// Anything that keeps a world from running.
pub(super) type Broken = Box<dyn std::error::Error + Send + Sync>;

impl SmallWorld {
    /// A world in which readers of the cloud lag this far behind. Instances never become Nodes.
    pub(super) async fn start(lag: Duration) -> Result<Self, Broken> {
        let clock = Clock::simulated("2026-01-01T00:00:00Z".parse()?);
        let random = Random::seeded(1);
        let api = Embedded::in_memory(&clock, random.fork(), |_| true).await?;
        let server = api.server().clone();
        let client = move |name: &str| {
            in_process(&server, UserInfo::new(name, &[MASTERS, AUTHENTICATED]), NAMESPACE)
        };
        let user = client("user");
        let aws = AwsSettings { lag: Lag::of_all(lag), ..AwsSettings::default() };
        let simulation = Simulation::with(aws, random.fork(), clock.clone(), Pace::Times(1.0));
        seed::definitions(&user).await?;
        seed::installation(&user, &simulation.installation).await?;
        let mut tasks = Tasks::new(CancellationToken::new());
        simulation.start(client("nodes"), clock.clone(), &random, |_| false, &mut tasks);
        let options = AwsOptions::new(simulation.transport(), clock.clone(), random.fork());
        let config = Config::default();
        let connector = Arc::new(AwsConnector::new(options));
        let fleet = Fleet::new(&config, client, connector, clock, random);
        fleet.start(&mut tasks);
        let history = Arc::default();
        let mut watch = JoinSet::new();
        watch.spawn(record(user.clone(), Arc::clone(&history)));
        Ok(Self {
            simulation,
            machines: Api::namespaced(user.clone(), NAMESPACE),
            events: Api::namespaced(user, NAMESPACE),
            history,
            _watch: watch,
            _tasks: tasks,
            _api: api,
        })
    }

    /// Creates a Machine; `more` is merged into its provider spec.
    pub(super) async fn create(&self, name: &str, more: &Value) -> Result<(), Broken> {
        let provider_spec = Self::provider_spec(more);
        let cluster = self.simulation.installation.cluster.clone();
        let machine = json!({
            "metadata": {
                "name": name,
                "labels": {"machine.openshift.io/cluster-api-cluster": cluster},
            },
            "spec": {"providerSpec": {"value": provider_spec}},
        });
        let machine: Machine = serde_json::from_value(machine)?;
        self.machines.create(&PostParams::default(), &machine).await?;
        Ok(())
    }

    fn provider_spec(more: &Value) -> Value {
        let mut provider_spec = json!({
            "apiVersion": "machine.openshift.io/v1beta1", "kind": "AWSMachineProviderConfig",
            "ami": {"id": "ami-0f1ee70000000001a"},
            "instanceType": "m5.large",
            "placement": {"region": "us-east-1", "availabilityZone": "us-east-1a"},
            "subnet": {"filters": [
                {"name": "tag:Name", "values": ["fleetwright-subnet-private-us-east-1a"]},
            ]},
            "securityGroups": [{"filters": [
                {"name": "tag:Name", "values": ["fleetwright-node"]},
            ]}],
            "userDataSecret": {"name": "worker-user-data"},
            "credentialsSecret": {"name": "aws-cloud-credentials"},
        });
        super::aws_webhook_providerspec_validate::merge_patch(&mut provider_spec, more);
        provider_spec
    }

    /// Launches an instance that no Machine asked for, with the tags of a Machine of this name.
    pub(super) async fn launch_beside(&self, name: &str) -> Result<String, Broken> {
        let installed = &self.simulation.installation;
        let keys = [
            ("aws_access_key_id".to_owned(), installed.access_key.clone().into()),
            ("aws_secret_access_key".to_owned(), installed.secret_key.clone().into()),
        ];
        let clock = Clock::simulated("2026-01-01T00:00:00Z".parse()?);
        let options = AwsOptions::new(self.simulation.transport(), clock, Random::seeded(3));
        let account =
            Account::new(installed.region.as_str(), Credentials::Secret(BTreeMap::from(keys)));
        let cloud = AwsConnector::new(options).connect(account)?;
        let request = ResolveRequest {
            provider_spec: Self::provider_spec(&json!({})),
            cluster: installed.cluster.clone(),
            cluster_tags: Vec::new(),
            user_data: None,
        };
        let order = LaunchOrder {
            token: "beside".to_owned(),
            launch: cloud.resolve(request).await?,
            count: Count { min: 1, max: 1 },
            tags: vec![Tag::name(name)],
        };
        let made = cloud.launch(order).await?;
        sleep(Duration::from_mins(1)).await;
        made.into_iter().next().map(|made| made.id).ok_or_else(|| "nothing was launched".into())
    }

    /// Has a Machine deleted.
    pub(super) async fn delete(&self, name: &str) -> Result<(), Broken> {
        self.machines.delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Waits until a Machine is as wanted.
    pub(super) async fn until(
        &self,
        name: &str,
        wanted: impl Fn(&Machine) -> bool,
    ) -> Result<Machine, Broken> {
        let waiting = async {
            loop {
                let machine = self.machines.get(name).await?;
                if wanted(&machine) {
                    return Ok(machine);
                }
                sleep(Duration::from_millis(100)).await;
            }
        };
        timeout(LONG, waiting).await?
    }

    /// Every version that there was of the Machines.
    pub(super) fn history(&self) -> Vec<Machine> {
        self.history.lock().clone()
    }

    /// Waits for an event of this beginning, as `kubectl` would tell it: type, reason, message.
    pub(super) async fn event(&self, beginning: &str) -> Result<String, Broken> {
        let waiting = async {
            loop {
                let found = self.told().await?;
                if let Some(found) = found.into_iter().find(|told| told.starts_with(beginning)) {
                    return Ok(found);
                }
                sleep(Duration::from_millis(500)).await;
            }
        };
        timeout(LONG, waiting).await?
    }

    /// Every event so far.
    pub(super) async fn told(&self) -> Result<Vec<String>, Broken> {
        let events = self.events.list(&ListParams::default()).await?;
        let text = |event: Event| {
            let [kind, reason, message] =
                [event.type_, event.reason, event.message].map(Option::unwrap_or_default);
            format!("{kind} {reason} {message}")
        };
        Ok(events.items.into_iter().map(text).collect())
    }
}

async fn record(user: Client, history: Arc<Mutex<Vec<Machine>>>) {
    let machines: Api<Machine> = Api::namespaced(user, NAMESPACE);
    let Ok(events) = machines.watch(&WatchParams::default(), "0").await else { return };
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        if let Ok(WatchEvent::Added(machine) | WatchEvent::Modified(machine)) = event {
            history.lock().push(machine);
        }
    }
}
