//! EC2 and load balancing: one process, virtual time, no socket.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bytes::Bytes;
use fleetwright_clock::{Clock, Random};
use fleetwright_cloud::{
    Account, AddressKind, Cloud, CloudError, Connector, Count, Credentials, ErrorClass, GroupOrder,
    GroupState, HttpOptions, Instance, InstanceState, Inventory, InventoryOptions, Launch,
    LaunchOrder, ResolveRequest, Strategy, Tag,
    transport::{Transport, TransportError},
};
use fleetwright_cloud_aws::{AwsConnector, AwsOptions, Endpoints};
use fleetwright_simcloud::{
    NoAnswer,
    aws::{
        Aws, Effect, Fault,
        model::settings::{Settings, Throttling},
        seed::{Installed, Installer},
    },
};
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::ServiceExt as _;

pub(crate) const ZONE: &str = "us-east-1a";

/// A cloud and a client of it.
pub(crate) struct World {
    pub(crate) aws: Aws,
    pub(crate) installed: Installed,
    pub(crate) cloud: Arc<dyn Cloud>,
    pub(crate) clock: Clock,
}

pub(crate) fn transport(aws: &Aws) -> Transport {
    Transport::new(aws.clone().map_err(|error| match error {
        NoAnswer::NotSent => TransportError::NotSent(error.to_string()),
        NoAnswer::Lost => TransportError::AnswerLost(error.to_string()),
    }))
}

/// A client with the data of a Secret.
pub(crate) fn connect(options: AwsOptions, secret: &[(&str, &str)]) -> Arc<dyn Cloud> {
    let data =
        secret.iter().map(|(name, value)| ((*name).to_owned(), Bytes::from((*value).to_owned())));
    let credentials = Credentials::Secret(data.collect());
    let account = Account::new("us-east-1", credentials);
    AwsConnector::new(options).connect(account).unwrap()
}

fn client(installed: &Installed, clock: Clock, transport: Transport) -> Arc<dyn Cloud> {
    let keys = [
        ("aws_access_key_id", installed.access_key.as_str()),
        ("aws_secret_access_key", installed.secret_key.as_str()),
    ];
    connect(AwsOptions::new(transport, clock, Random::seeded(2)), &keys)
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// Signatures are checked; nothing is throttled unless `change` wants it.
    pub(crate) fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings { throttling: Throttling::off(), ..Settings::default() };
        change(&mut settings);
        let clock = Clock::simulated("2026-11-15T12:00:00Z".parse().unwrap());
        let installer = Installer::new("demo", Random::seeded(1)).settings(settings);
        let (aws, installed) = installer.install(clock.clone());
        let cloud = client(&installed, clock.clone(), transport(&aws));
        Self { aws, installed, cloud, clock }
    }

    /// Another client, through something of its own.
    pub(crate) fn through(&self, transport: Transport) -> Arc<dyn Cloud> {
        client(&self.installed, self.clock.clone(), transport)
    }

    pub(crate) fn spec(&self) -> Value {
        json!({
            "ami": {"id": self.installed.images["x86_64"]},
            "instanceType": "m5.large",
            "subnet": {"id": self.installed.subnets[ZONE]},
            "securityGroups": [{"id": self.installed.worker_group}],
            "iamInstanceProfile": {"id": self.installed.worker_profile},
            "keyName": self.installed.key_name,
            "placement": {"region": "us-east-1"},
        })
    }

    pub(crate) async fn resolve(&self, provider_spec: Value) -> Result<Launch, CloudError> {
        let cluster = self.installed.infra.clone();
        let user_data = Some(Bytes::from_static(b"{\"ignition\": {}}"));
        let cluster_tags = vec![Tag::new("cost", "1")];
        self.cloud.resolve(ResolveRequest { provider_spec, cluster, cluster_tags, user_data }).await
    }

    pub(crate) async fn order(&self, spec: Value, token: &str, count: u32) -> LaunchOrder {
        let launch = self.resolve(spec).await.unwrap();
        let tags = vec![Tag::name(token), Tag::new(fleetwright_cloud::MACHINE_UID_TAG, token)];
        let count = Count { min: count, max: count };
        LaunchOrder { token: token.to_owned(), launch, count, tags }
    }

    pub(crate) async fn launch(&self, spec: Value, token: &str) -> Instance {
        self.cloud.launch(self.order(spec, token, 1).await).await.unwrap().remove(0)
    }

    pub(crate) async fn inventory(&self) -> Vec<Instance> {
        self.cloud.inventory(&self.installed.infra).await.unwrap()
    }

    pub(crate) fn grouped(&self, group: &str) -> Value {
        let mut spec = self.spec();
        spec["placement"]["group"] = json!({"name": group});
        spec
    }

    pub(crate) async fn group(&self, strategy: Strategy, partitions: Option<u32>) -> String {
        let name = strategy.as_str().to_owned();
        let tags = vec![Tag::owned_by(&self.installed.infra), Tag::name(&name)];
        let order = GroupOrder { name: name.clone(), strategy, partitions, tags };
        self.cloud.placement_groups().unwrap().create(order).await.unwrap();
        name
    }
}

/// Time for everything to settle.
pub(crate) const LATER: Duration = Duration::from_mins(10);

#[tokio::test(start_paused = true)]
async fn an_instance_from_the_cradle_to_the_grave() {
    let world = World::new();
    let launched = world.launch(world.spec(), "m-0").await;
    assert_eq!(launched.state, InstanceState::Pending);
    assert_eq!((launched.zone.as_str(), launched.region.as_str()), (ZONE, "us-east-1"));
    assert_eq!(launched.machine_uid(), Some("m-0"));
    assert_eq!(launched.tags["Name"], "m-0");
    assert_eq!(launched.tags["cost"], "1");
    tokio::time::advance(LATER).await;
    let running = world.inventory().await.remove(0);
    assert_eq!(running.state, InstanceState::Running);
    assert_eq!(running.provider_id, format!("aws:///{ZONE}/{}", launched.id));
    let kinds: BTreeSet<AddressKind> = running.addresses.iter().map(|it| it.kind).collect();
    assert!(kinds.contains(&AddressKind::InternalIp) && kinds.contains(&AddressKind::InternalDns));
    assert_eq!(running.volumes.len(), 1);
    assert_eq!(running.token.as_deref(), Some("m-0"));
    assert!(running.launched_at.is_some());
    let ids = [running.id.clone(), "i-0123456789abcdef0".to_owned()];
    world.cloud.retire(&ids).await.unwrap();
    tokio::time::advance(Duration::from_mins(5)).await;
    let gone = world.cloud.instances(ids.clone().into()).await.unwrap();
    assert!(gone.iter().all(|it| it.state == InstanceState::Terminated), "{gone:?}");
    world.cloud.retire(&ids).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_token_gives_the_same_instances_whatever_happens_to_the_answer() {
    let world = World::new();
    let order = world.order(world.spec(), "gang", 3).await;
    world.aws.fault(Fault::next("RunInstances", Effect::Lost { after: true }));
    let first = world.cloud.launch(order.clone()).await.unwrap();
    let indices: Vec<Option<u32>> = first.iter().map(|it| it.launch_index).collect();
    assert_eq!(indices, [Some(0), Some(1), Some(2)]);
    let again = world.cloud.launch(order.clone()).await.unwrap();
    let ids = |them: &[Instance]| them.iter().map(|it| it.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&first), ids(&again));
    assert_eq!(world.aws.with(|region, _| region.instances().count()), 3);
    let mut other = order.clone();
    other.tags.push(Tag::new("another", "tag"));
    let error = world.cloud.launch(other).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::TokenMismatch, "{error}");
    world.cloud.retire(&ids(&first)).await.unwrap();
    tokio::time::advance(LATER).await;
    let error = world.cloud.launch(order).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::TokenSpent, "{error}");
}

#[tokio::test(start_paused = true)]
async fn spread_partition_and_cluster() {
    let world = World::new();
    let groups = world.cloud.placement_groups().unwrap();
    let spread = world.group(Strategy::Spread, None).await;
    let partition = world.group(Strategy::Partition, Some(3)).await;
    tokio::time::advance(LATER).await;
    let names = BTreeSet::from([spread.clone(), partition.clone(), "absent".to_owned()]);
    let shown = groups.describe(names.clone()).await.unwrap();
    assert_eq!(shown.len(), 2);
    assert!(shown.iter().all(|it| it.state == GroupState::Available));
    assert_eq!(shown.iter().find(|it| it.name == partition).unwrap().partitions, Some(3));
    assert_eq!(groups.owned(&world.installed.infra).await.unwrap().len(), 2);
    let duplicate = GroupOrder {
        name: spread.clone(),
        strategy: Strategy::Cluster,
        partitions: None,
        tags: Vec::new(),
    };
    let error = groups.create(duplicate).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::AlreadyExists, "{error}");

    for number in 0..7 {
        world.launch(world.grouped(&spread), &format!("s-{number}")).await;
    }
    let eighth = world.order(world.grouped(&spread), "s-7", 1).await;
    let error = world.cloud.launch(eighth).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::SpreadLimit, "{error}");

    let mut spec = world.grouped(&partition);
    spec["placement"]["partitionNumber"] = json!(2);
    let placed = world.launch(spec.clone(), "p-0").await;
    spec["placement"]["partitionNumber"] = json!(5);
    let error = world.cloud.launch(world.order(spec, "p-1", 1).await).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Configuration, "{error}");

    tokio::time::advance(LATER).await;
    let members = groups.members(names.clone()).await.unwrap();
    assert_eq!(members.len(), 8);
    let found = members.iter().find(|it| it.id == placed.id).unwrap();
    assert_eq!((found.group.as_deref(), found.partition), (Some("partition"), Some(2)));

    let error = groups.delete(&spread).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::InUse, "{error}");
    let ids: Vec<String> = members.iter().map(|it| it.id.clone()).collect();
    world.cloud.retire(&ids).await.unwrap();
    tokio::time::advance(LATER).await;
    assert!(groups.members(names).await.unwrap().is_empty());
    for group in [&spread, &partition] {
        groups.delete(group).await.unwrap();
        tokio::time::advance(LATER).await;
        groups.delete(group).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_group_that_does_not_exist_and_a_type_that_does_not_fit() {
    let world = World::new();
    let order = world.order(world.grouped("absent"), "m-0", 1).await;
    let error = world.cloud.launch(order).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::NotFound, "{error}");
    let cluster = world.group(Strategy::Cluster, None).await;
    tokio::time::advance(LATER).await;
    let mut spec = world.grouped(&cluster);
    spec["instanceType"] = json!("t3.large");
    let error = world.cloud.launch(world.order(spec, "m-1", 1).await).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Configuration, "{error}");
    let t3 = world.cloud.instance_type("t3.large").await.unwrap().unwrap();
    assert!(!t3.strategies.contains(&Strategy::Cluster));
    assert!(t3.vcpus > 0 && t3.memory_mib > 0);
    assert_eq!(t3.architecture, "amd64");
    assert_eq!(world.cloud.instance_type("z9.nano").await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn every_field_of_a_provider_spec_is_taken() {
    let world = World::new();
    let mut spec = world.spec();
    spec["subnet"] = json!({"filters": [{"name": "vpc-id", "values": [world.installed.vpc]}]});
    spec["placement"]["availabilityZone"] = json!(ZONE);
    spec["securityGroups"] =
        json!([{"filters": [{"name": "group-id", "values": [world.installed.worker_group]}]}]);
    spec["publicIp"] = json!(true);
    spec["deviceIndex"] = json!(0);
    spec["blockDevices"] = json!([
        {"ebs": {"volumeSize": 120, "volumeType": "gp3", "iops": 4000, "throughputMib": 300,
                 "encrypted": true}},
        {"deviceName": "/dev/sdf", "ebs": {"volumeSize": 10, "volumeType": "io2", "iops": 500}},
    ]);
    spec["metadataServiceOptions"] = json!({"authentication": "Required"});
    spec["spotMarketOptions"] = json!({});
    spec["tags"] = json!([{"name": "team", "value": "blue"}]);
    let launched = world.launch(spec, "m-0").await;
    assert!(launched.interruptible);
    tokio::time::advance(LATER).await;
    let running = world.inventory().await.remove(0);
    assert_eq!(running.volumes.len(), 2);
    assert_eq!(running.tags["team"], "blue");
    assert!(running.addresses.iter().any(|it| it.kind == AddressKind::ExternalIp));
    assert!(running.interruptible);
}

#[tokio::test(start_paused = true)]
async fn what_the_user_names_and_does_not_exist() {
    let world = World::new();
    for (field, value) in [
        ("ami", json!({"id": "ami-0123456789abcdef0"})),
        ("keyName", json!("nobody")),
        ("securityGroups", json!([{"id": "sg-0123456789abcdef0"}])),
        ("instanceType", json!("z9.nano")),
    ] {
        let mut spec = world.spec();
        spec[field] = value;
        let order = world.order(spec, field, 1).await;
        let error = world.cloud.launch(order).await.unwrap_err();
        assert_eq!(error.class, ErrorClass::Configuration, "{field}: {error}");
    }
    let mut spec = world.spec();
    spec["subnet"] = json!({"id": "subnet-0123456789abcdef0"});
    let error = world.resolve(spec).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Configuration, "{error}");
    let mut spec = world.spec();
    spec["subnet"] = json!({"filters": [{"name": "tag:Name", "values": ["nothing"]}]});
    let error = world.resolve(spec).await.unwrap_err();
    assert_eq!(error.message, "error getting subnet IDs: no subnet IDs were found");
}

#[tokio::test(start_paused = true)]
async fn faults_are_told_by_their_code() {
    let world = World::new();
    let order = world.order(world.spec(), "m-0", 1).await;
    for (effect, class, calls) in [
        (Effect::error("InsufficientInstanceCapacity", 500, "none"), ErrorClass::Capacity, 1),
        (Effect::error("VcpuLimitExceeded", 400, "more than 5"), ErrorClass::Quota, 1),
        (Effect::error("UnauthorizedOperation", 403, "no"), ErrorClass::Credentials, 1),
        (Effect::error("InternalError", 500, "oops"), ErrorClass::Transient, 4),
        (Effect::Throttle, ErrorClass::Throttled, 4),
        (Effect::Lost { after: false }, ErrorClass::Transient, 4),
    ] {
        world.aws.clear_calls();
        world.aws.clear_faults();
        world.aws.fault(Fault::next("RunInstances", effect.clone()).times(4));
        let error = world.cloud.launch(order.clone()).await.unwrap_err();
        assert_eq!(error.class, class, "{effect:?}: {error}");
        assert_eq!(world.aws.count("ec2:RunInstances"), calls, "{effect:?}");
        if class == ErrorClass::Credentials {
            assert_eq!(error.missing_permission.as_deref(), Some("ec2:RunInstances"));
        }
    }
    assert_eq!(world.aws.with(|region, _| region.instances().count()), 0);
}

#[tokio::test(start_paused = true)]
async fn wrong_keys_are_told() {
    let world = World::new();
    let clock = Clock::simulated("2026-11-15T12:00:00Z".parse().unwrap());
    let options = AwsOptions::new(transport(&world.aws), clock, Random::seeded(2));
    let key = world.installed.access_key.as_str();
    let cloud = connect(options, &[("aws_access_key_id", key), ("aws_secret_access_key", "wrong")]);
    let error = cloud.inventory("demo").await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Credentials, "{error}");
    assert!(!error.to_string().contains("wrong"), "{error}");
}

/// The real limits of the service: the client slows down and gets through.
#[tokio::test(start_paused = true)]
async fn a_throttled_fleet_gets_through() {
    let world = World::with(|settings| settings.throttling = Throttling::default());
    let aws = world.aws.clone();
    let work = async {
        for round in 0..10 {
            world.launch(world.spec(), &format!("m-{round}")).await;
            for _ in 0..20 {
                world.inventory().await;
            }
        }
    };
    tokio::select! {
        () = aws.run() => {}
        () = work => {}
    }
    assert_eq!(world.aws.with(|region, _| region.instances().count()), 10);
}

#[tokio::test(start_paused = true)]
async fn an_inventory_survives_a_cloud_that_shows_things_late() {
    let world = World::new();
    let inventory = Inventory::new(
        Arc::clone(&world.cloud),
        world.installed.infra.clone(),
        InventoryOptions::default(),
    );
    let mut changes = inventory.changes();
    let order = world.order(world.spec(), "u-0", 1).await;
    let launched = world.cloud.launch(order).await.unwrap();
    inventory.seen(&launched);
    inventory.since(Instant::now()).await.unwrap();
    assert_eq!(inventory.by_machine_uid("u-0").len(), 1);
    tokio::time::advance(LATER).await;
    inventory.since(Instant::now()).await.unwrap();
    let found = inventory.by_machine_uid("u-0");
    assert_eq!(found[0].state, InstanceState::Running);
    assert_eq!(inventory.by_name("u-0").len(), 1);
    let mut states = Vec::new();
    while let Ok(change) = changes.try_recv() {
        states.extend(change.after.map(|it| it.state));
    }
    assert_eq!(states.first(), Some(&InstanceState::Pending));
    assert_eq!(states.last(), Some(&InstanceState::Running));
}

#[tokio::test(start_paused = true)]
async fn eleven_hundred_instances_are_two_pages() {
    let world = World::new();
    for batch in 0..11 {
        let order = world.order(world.spec(), &format!("b-{batch}"), 100).await;
        assert_eq!(world.cloud.launch(order).await.unwrap().len(), 100);
    }
    tokio::time::advance(LATER).await;
    world.aws.clear_calls();
    assert_eq!(world.inventory().await.len(), 1100);
    assert_eq!(world.aws.count("ec2:DescribeInstances"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_dedicated_host_comes_and_goes() {
    let world = World::new();
    let mut spec = world.spec();
    spec["placement"] = json!({"region": "us-east-1", "tenancy": "host", "host": {
        "affinity": "DedicatedHost", "dedicatedHost": {"allocationStrategy": "Dynamic"}}});
    let launched = world.launch(spec.clone(), "m-0").await;
    tokio::time::advance(LATER).await;
    let hosts = |found: Vec<fleetwright_cloud::Leftover>| {
        found.into_iter().filter(|it| it.kind == fleetwright_cloud::LeftoverKind::Host).count()
    };
    assert_eq!(hosts(world.cloud.leftovers(&world.installed.infra).await.unwrap()), 1);
    world.cloud.retire(std::slice::from_ref(&launched.id)).await.unwrap();
    tokio::time::advance(LATER).await;
    world.cloud.release(&spec, "m-0").await.unwrap();
    assert_eq!(hosts(world.cloud.leftovers(&world.installed.infra).await.unwrap()), 0);
}

#[tokio::test(start_paused = true)]
async fn load_balancers() {
    let world = World::new();
    let infra = world.installed.infra.clone();
    let mut spec = world.spec();
    spec["loadBalancers"] = json!([
        {"name": format!("{infra}-int"), "type": "network"},
        {"name": format!("{infra}-classic"), "type": "classic"},
    ]);
    world.launch(spec.clone(), "m-0").await;
    tokio::time::advance(LATER).await;
    let instance = world.inventory().await.remove(0);
    let targets = || {
        let groups = |region: &mut fleetwright_simcloud::aws::model::Region| {
            region.target_groups().map(|group| group.targets.len()).sum::<usize>()
        };
        world.aws.with(|region, _| groups(region))
    };
    for _ in 0..2 {
        world.cloud.register(&spec, &instance).await.unwrap();
        assert_eq!(targets(), 2);
    }
    for _ in 0..2 {
        world.cloud.deregister(&spec, &instance).await.unwrap();
        tokio::time::advance(LATER).await;
    }
    assert_eq!(targets(), 0);
    spec["loadBalancers"] = json!([{"name": "absent", "type": "network"}]);
    let error = world.cloud.register(&spec, &instance).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::NotFound, "{error}");
    world.cloud.deregister(&spec, &instance).await.unwrap();
}

/// The keys of a role, for a token in a file.
#[tokio::test(start_paused = true)]
async fn a_web_identity() {
    let world = World::new();
    let clock = Clock::simulated("2026-11-15T12:00:00Z".parse().unwrap());
    let options = AwsOptions::new(transport(&world.aws), clock, Random::seeded(2));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "a.web.identity").unwrap();
    let profile = format!(
        "[default]\nrole_arn = arn:aws:iam::123456789012:role/machines\n\
         web_identity_token_file = {}\n",
        file.path().display()
    );
    let cloud = connect(options, &[("credentials", &profile)]);
    assert!(cloud.inventory("demo").await.unwrap().is_empty());
    cloud.inventory("demo").await.unwrap();
    assert_eq!(world.aws.count("sts:AssumeRoleWithWebIdentity"), 1);
    assert_eq!(world.aws.count("ec2:DescribeInstances"), 2);
}

/// The same over a socket: signatures cover the host, and a connection that breaks is told apart
/// from one that never was.
#[tokio::test]
async fn on_a_socket() {
    let clock = Clock::system();
    let settings = Settings { throttling: Throttling::off(), ..Settings::default() };
    let installer = Installer::new("demo", Random::seeded(1)).settings(settings);
    let (aws, installed) = installer.install(clock.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri: http::Uri = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    let client = fleetwright_cloud::http_client(&HttpOptions::default()).unwrap();
    let mut options = AwsOptions::new(client, clock.clone(), Random::seeded(2));
    options.endpoints = Endpoints::all(&uri);
    let keys = [
        ("aws_access_key_id", installed.access_key.as_str()),
        ("aws_secret_access_key", installed.secret_key.as_str()),
    ];
    let cloud = connect(options, &keys);
    let world = World { aws: aws.clone(), installed: installed.clone(), cloud, clock };
    let work = async {
        let order = world.order(world.spec(), "m-0", 2).await;
        aws.fault(Fault::next("RunInstances", Effect::Lost { after: true }));
        assert_eq!(world.cloud.launch(order).await.unwrap().len(), 2);
        assert_eq!(aws.count("ec2:RunInstances"), 2);
        assert_eq!(aws.with(|region, _| region.instances().count()), 2);
        assert_eq!(world.inventory().await.len(), 2);
    };
    tokio::select! {
        ended = fleetwright_simcloud::serve(listener, aws.clone()) => panic!("{ended:?}"),
        () = work => {}
    }
    let error = world.cloud.inventory("demo").await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Transient, "{error}");
}
