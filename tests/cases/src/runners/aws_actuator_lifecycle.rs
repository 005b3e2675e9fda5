//! What is asked of AWS in the life of a Machine: decisions by the functions that the controller
//! asks, calls against the simulated cloud, and whole lives by the controller itself.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use fleetwright_api::machine::Machine;
use fleetwright_clock::{Clock, Random};
use fleetwright_cloud::{
    Account, Cloud, CloudError, Connector, Count, Credentials, ErrorClass, Instance, InstanceState,
    Inventory, InventoryOptions, Launch, LaunchOrder, ResolveRequest, Tag,
    transport::{Transport, TransportError},
};
use fleetwright_cloud_aws::{AwsConnector, AwsOptions, instance_type, model::ec2::responses};
use fleetwright_lifecycle::phase::{Facts, Failure, FailureKind};
use fleetwright_machines::{
    machine::{
        ending::{Leaving, leaving},
        find::{Identity, find, find_all},
        instance_id,
        look::{self, Youth},
        observe::{Draft, observe, record_state},
        wish::{Obstacle, user_data_in},
    },
    set::capacity::annotations,
};
use fleetwright_runtime::ObjectKey;
use fleetwright_simcloud::{
    NoAnswer,
    aws::{
        Aws, Effect, Fault,
        seed::{Installed, Installer},
    },
};
use k8s_openapi::api::core::v1::{NodeAddress, Secret};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::{
    machine_pass,
    small_world::{Broken, SmallWorld},
};
use crate::row::Row;
use crate::runners::{Outcome, Runner, Use};

/// The runner.
pub(super) const RUNNER: Runner = Runner {
    file: "aws-actuator-lifecycle.json",
    tables: &[
        ("create_cases", Use::Rows(create)),
        ("delete_cases", Use::Rows(delete)),
        ("scale_from_zero_annotation_cases", Use::Rows(scale_from_zero)),
        ("exists_cases", Use::Rows(exists)),
        ("update_cases", Use::Rows(update)),
        ("event_cases", Use::Rows(event)),
        ("end_to_end_eventual_consistency", Use::Rows(end_to_end)),
        ("lookup_cases", Use::Rows(lookup)),
    ],
};

/// A Machine is only brought up to date with an instance that was found in the same pass.
const NEVER_CLEARED: &str = "a Machine whose instance vanished is Failed and keeps its identifier: \
    it never gets a second instance";

/// A simulated cloud and a client of it.
struct World {
    aws: Aws,
    installed: Installed,
    cloud: Arc<dyn Cloud>,
}

impl World {
    fn new() -> Result<Self, CloudError> {
        let clock = Clock::simulated(jiff::Timestamp::UNIX_EPOCH);
        let (aws, installed) = Installer::new("demo", Random::seeded(1)).install(clock.clone());
        let transport = Transport::new(aws.clone().map_err(|error: NoAnswer| match error {
            NoAnswer::NotSent => TransportError::NotSent(error.to_string()),
            NoAnswer::Lost => TransportError::AnswerLost(error.to_string()),
        }));
        let keys = [
            ("aws_access_key_id".to_owned(), installed.access_key.clone().into()),
            ("aws_secret_access_key".to_owned(), installed.secret_key.clone().into()),
        ];
        let credentials = Credentials::Secret(BTreeMap::from(keys));
        let connector = AwsConnector::new(AwsOptions::new(transport, clock, Random::seeded(2)));
        let cloud = connector.connect(Account::new("us-east-1", credentials))?;
        Ok(Self { aws, installed, cloud })
    }

    fn spec(&self) -> Value {
        json!({
            "ami": {"id": self.installed.images["x86_64"]},
            "instanceType": "m5.large",
            "subnet": {"id": self.installed.subnets["us-east-1a"]},
            "securityGroups": [{"id": self.installed.worker_group}],
        })
    }

    async fn resolve(&self, provider_spec: Value) -> Result<Launch, CloudError> {
        let cluster = self.installed.infra.clone();
        let request =
            ResolveRequest { provider_spec, cluster, cluster_tags: Vec::new(), user_data: None };
        self.cloud.resolve(request).await
    }

    async fn running(&self) -> Result<Option<Instance>, CloudError> {
        let launch = self.resolve(self.spec()).await?;
        let count = Count { min: 1, max: 1 };
        let tags = vec![Tag::name("machine")];
        let order = LaunchOrder { token: "token".to_owned(), launch, count, tags };
        self.cloud.launch(order).await?;
        tokio::time::advance(Duration::from_mins(1)).await;
        Ok(self.cloud.inventory(&self.installed.infra).await?.into_iter().next())
    }
}

/// Runs on virtual time.
fn on_virtual_time<T>(work: impl Future<Output = Result<T, Broken>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(work).map_err(|error| error.to_string())
}

fn ended(found: Result<Outcome, String>) -> Outcome {
    found.unwrap_or_else(Outcome::Failed)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// The name of the Machine of the rows.
const NAME: &str = "machine";
/// Its UID.
const UID: &str = "c8b1a3a0-0000-4000-8000-000000000001";

/// The instances that a row describes; what it does not say is as the product would have it.
fn instances(described: &Value, id: &str) -> Vec<Instance> {
    let states = [
        InstanceState::Pending,
        InstanceState::Running,
        InstanceState::Stopping,
        InstanceState::Stopped,
        InstanceState::ShuttingDown,
        InstanceState::Terminated,
    ];
    let rows = described.as_array().into_iter().flatten();
    rows.filter_map(|row| {
        let state = states.into_iter().find(|state| state.as_str() == text(row, "state"))?;
        Some(instance(id, NAME, state))
    })
    .collect()
}

/// Whether the instance of a Machine exists that is no longer young.
pub(super) fn exists_as(found: Option<&Instance>) -> bool {
    let now = jiff::Timestamp::UNIX_EPOCH + Duration::from_hours(1);
    let youth = Youth {
        has_addresses: true,
        updated: None,
        launched: None,
        settle_time: Duration::ZERO,
        now,
    };
    look::exists(None, found, &youth) == Ok(true)
}

pub(super) fn instance(id: &str, name: &str, state: InstanceState) -> Instance {
    Instance {
        id: id.to_owned(),
        provider_id: format!("aws:///us-east-1a/{id}"),
        state,
        state_reason: None,
        region: "us-east-1".to_owned(),
        zone: "us-east-1a".to_owned(),
        instance_type: "m5.large".to_owned(),
        interruptible: false,
        addresses: Vec::new(),
        launched_at: None,
        token: None,
        launch_index: None,
        group: None,
        partition: None,
        volumes: Vec::new(),
        tags: BTreeMap::from([("Name".to_owned(), name.to_owned())]),
    }
}

/// The Machine of a row: with the instance that its status names, or without one.
fn identity<'a>(row: &Row<'a>) -> Identity<'a> {
    let instance = row.get("provider_status")["instanceId"].as_str();
    Identity { instance, uid: UID, name: NAME, intent: None }
}

/// Looks for the instance of a row's Machine as a pass does: by identifier or by tags among what is
/// there, and then what that means.
fn look(row: &Row<'_>, described: &Value) -> Result<(Option<Arc<Instance>>, Existence), String> {
    on_virtual_time(async {
        let world = World::new()?;
        let inventory = Inventory::new(world.cloud, "demo", InventoryOptions::default());
        let machine = identity(row);
        inventory.seen(&instances(described, machine.instance.unwrap_or("test-id")));
        let found = find(machine, &inventory);
        let now = jiff::Timestamp::UNIX_EPOCH + Duration::from_hours(1);
        let age = row.get("last_updated_age_s").as_u64().unwrap_or(0);
        let youth = Youth {
            has_addresses: false,
            updated: Some(now - Duration::from_secs(age)),
            launched: None,
            settle_time: Duration::ZERO,
            now,
        };
        let exists = look::exists(machine.instance, found.as_deref(), &youth);
        Ok((found, exists))
    })
}

type Existence = Result<bool, Failure>;

/// Whether the Machine goes on with what it found, and how: the calls of the pass, by name.
fn pass(row: &Row<'_>, exists: Existence) -> machine_pass::Pass {
    let machine = Facts {
        phase: "Provisioning".to_owned(),
        finalizer: true,
        provider_id: identity(row).instance.is_some(),
        ..Facts::default()
    };
    let cloud = machine_pass::Cloud { exists, create: Ok(()), update: Ok(()), delete: Ok(()) };
    machine_pass::run(&machine, &cloud)
}

fn create(row: &Row<'_>) -> Outcome {
    let expect = row.get("expect");
    if !row.get("existing").is_null() {
        return create_again(row);
    }
    let wanted = format!("{}{}", text(expect, "error"), text(expect, "error_contains"));
    if wanted.is_empty() {
        return create_first();
    }
    if let Some(named) = wanted.strip_prefix("failed to get user data: secret ") {
        let (namespace, name) =
            named.split(' ').next().and_then(|key| key.split_once('/')).unwrap_or_default();
        let key = ObjectKey::new(namespace, name);
        let found = user_data_in(&key, Some(&Secret::default()));
        return Outcome::equal(&Err(Obstacle::Missing(wanted)), &found);
    }
    refused(row, &wanted)
}

/// There is an instance already, or there was one: nothing is launched, and nothing is final.
fn create_again(row: &Row<'_>) -> Outcome {
    let expect = row.get("expect");
    if expect["class"] != "transient" {
        return Outcome::Failed(format!("what is {}?", expect["class"]));
    }
    if !instances(row.get("existing"), "i-1").is_empty() {
        return create_beside(row);
    }
    let (found, exists) = match look(row, row.get("existing")) {
        Ok(found) => found,
        Err(error) => return Outcome::Failed(error),
    };
    match &exists {
        Err(Failure { kind: FailureKind::Later(_) | FailureKind::Retry, message, .. })
            if message.contains(text(expect, "error_contains")) => {}
        other => return Outcome::Failed(format!("found {found:?}, {other:?}")),
    }
    let launched = !pass(row, exists).calls.made()["create"].is_null();
    Outcome::equal(&expect["run_instances_called"], &launched.into())
}

/// A Machine that is made beside an instance with its tags. Upstream tells of a discrepancy and looks
/// again, until the instance is the Machine's; here it is at once: it is written down, nothing is
/// launched, and no look calls it an error.
fn create_beside(row: &Row<'_>) -> Outcome {
    let expect = row.get("expect");
    ended(on_virtual_time(async {
        let world = SmallWorld::start(Duration::ZERO).await?;
        let id = world.launch_beside(NAME).await?;
        let launches = || world.simulation.aws.count("ec2:RunInstances");
        let before = launches();
        world.create(NAME, &json!({})).await?;
        let machine = world.until(NAME, |machine| !addresses(machine).is_empty()).await?;
        tokio::time::sleep(Duration::from_mins(5)).await;
        let history = world.history();
        let errors: Vec<_> = history
            .iter()
            .filter_map(|machine| machine.status.as_ref()?.error_message.clone())
            .chain(history.iter().filter_map(phase).filter(|phase| phase == "Failed"))
            .chain(world.told().await?.into_iter().filter(|told| told.starts_with("Warning")))
            .collect();
        Ok(Outcome::equal(
            &json!([expect["run_instances_called"], id, true, []]),
            &json!([
                launches() > before,
                instance_id(&machine),
                machine.spec.provider_id.is_some_and(|known| known.ends_with(&format!("/{id}"))),
                errors,
            ]),
        ))
    }))
}

/// The identifier is saved at once and alone; the rest follows when the instance was seen.
fn create_first() -> Outcome {
    ended(on_virtual_time(async {
        let world = SmallWorld::start(Duration::from_secs(1)).await?;
        world.create(NAME, &json!({})).await?;
        world.until(NAME, |machine| !addresses(machine).is_empty()).await?;
        let first = world.history().into_iter().find(|machine| instance_id(machine).is_some());
        Ok(match first {
            Some(first) if addresses(&first).is_empty() && first.spec.provider_id.is_none() => {
                Outcome::Passed
            }
            first => Outcome::Failed(format!("at first {first:?}")),
        })
    }))
}

fn addresses(machine: &Machine) -> &[NodeAddress] {
    machine.status.as_ref().map_or(&[], |status| &status.addresses)
}

/// The cloud, or what the spec says of it, stops the launch.
fn refused(row: &Row<'_>, wanted: &str) -> Outcome {
    let found = on_virtual_time(async {
        let world = World::new()?;
        let mut spec = world.spec();
        if let Some(message) = row.get("aws_error").as_str() {
            spec["blockDevices"] = json!([{"ebs": {"volumeSize": 16}}]);
            let effect = Effect::error("InvalidAMIID.NotFound", 400, message);
            world.aws.fault(Fault::next("DescribeImages", effect));
        } else {
            spec["subnet"] = json!({"filters": [{"name": "tag:Name", "values": ["nothing"]}]});
        }
        Ok(world.resolve(spec).await)
    });
    match found {
        Err(error) => Outcome::Failed(error),
        Ok(Ok(_)) => Outcome::Failed("the launch was not refused".to_owned()),
        Ok(Err(error)) if error.class != ErrorClass::Configuration => {
            Outcome::Failed(format!("{:?}: {error}", error.class))
        }
        // The controller puts what it attempted before it.
        Ok(Err(error)) if wanted.ends_with(&error.message) => Outcome::Passed,
        Ok(Err(error)) => Outcome::Failed(format!("wanted {wanted:?}, found {error}")),
    }
}

fn later(exists: &Existence) -> Option<u64> {
    match exists.as_ref().err()?.kind {
        FailureKind::Later(after) => Some(after.as_secs()),
        FailureKind::Final | FailureKind::Retry => None,
    }
}

fn exists(row: &Row<'_>) -> Outcome {
    let (_, exists) = match look(row, row.get("describe")) {
        Ok(found) => found,
        Err(error) => return Outcome::Failed(error),
    };
    let mut found = json!({"exists": exists == Ok(true)});
    if let Some(seconds) = later(&exists) {
        found["requeue_after_s"] = seconds.into();
    }
    Outcome::equal(row.get("expect"), &found)
}

/// An update is what follows when the instance was found.
fn update(row: &Row<'_>) -> Outcome {
    let (instance, exists) = match look(row, row.get("describe")) {
        Ok(found) => found,
        Err(error) => return Outcome::Failed(error),
    };
    let wanted = row.get("expect")["requeue_after_s"].as_u64();
    let Some(instance) = instance else {
        return match later(&exists) {
            Some(seconds) => Outcome::equal(&wanted, &Some(seconds)),
            None => Outcome::NotApplicable(NEVER_CLEARED),
        };
    };
    let machine: Machine = match serde_json::from_value(json!({"metadata": {"name": NAME}})) {
        Ok(machine) => machine,
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    let mut draft = Draft::of(&machine);
    observe(&mut draft, &instance, jiff::Timestamp::UNIX_EPOCH);
    if draft.spec.provider_id.as_ref() != Some(&instance.provider_id)
        || draft.status.provider_status.is_none()
        || exists != Ok(true)
    {
        return Outcome::Failed(format!("{exists:?}, and {draft:?} is written"));
    }
    Outcome::equal(&wanted, &look::again(&instance).map(|after| after.as_secs()))
}

/// Events, as users see them.
fn event(row: &Row<'_>) -> Outcome {
    let well = row.get("ok") == true;
    let operation = text(row.value(), "op");
    let wanted = row.get("event").as_str().or(row.get("event_prefix").as_str());
    let wanted = wanted.map(|told| told.replace("aws-actuator-testing-machine", NAME));
    ended(on_virtual_time(async {
        let world = SmallWorld::start(Duration::ZERO).await?;
        let refuse = |action: &str| {
            let effect = Effect::error("UnauthorizedOperation", 403, "no");
            world.simulation.aws.fault(Fault::next(action, effect).times(100));
        };
        let mut spec = json!({});
        match (operation, well) {
            ("create", false) => refuse("RunInstances"),
            ("update", false) => {
                let name = format!("{}-ext", world.simulation.installation.cluster);
                spec = json!({"loadBalancers": [{"name": name, "type": "network"}]});
                refuse("RegisterTargets");
            }
            ("delete", false) => refuse("TerminateInstances"),
            _ => {}
        }
        world.create(NAME, &spec).await?;
        if operation == "delete" {
            world.until(NAME, |machine| instance_id(machine).is_some()).await?;
            world.delete(NAME).await?;
        }
        let Some(wanted) = wanted else {
            world.until(NAME, |machine| !addresses(machine).is_empty()).await?;
            tokio::time::sleep(Duration::from_mins(10)).await;
            let told = world.told().await?;
            let updates = told.iter().filter(|told| told.contains("Update"));
            return Ok(Outcome::equal(&0, &updates.count()));
        };
        let told = world.event(&wanted).await?;
        let exact = row.get("event").is_null() || told == wanted;
        Ok(if exact { Outcome::Passed } else { Outcome::Failed(format!("told {told:?}")) })
    }))
}

/// The cloud shows an instance late: it is launched once, and the Machine is patient.
fn end_to_end(row: &Row<'_>) -> Outcome {
    let expect = row.get("expect");
    ended(on_virtual_time(async {
        let world = SmallWorld::start(Duration::from_secs(15)).await?;
        // With an address of its own outside, as the instance of the row.
        world.create(NAME, &json!({"publicIp": true})).await?;
        let done = |machine: &Machine| !addresses(machine).is_empty();
        let machine = world.until(NAME, done).await?;
        tokio::time::sleep(Duration::from_mins(5)).await;
        let history = world.history();
        let mut phases: Vec<String> = history.iter().filter_map(phase).collect();
        phases.dedup();
        let first = history.iter().find(|machine| instance_id(machine).is_some());
        let id = instance_id(&machine).unwrap_or_default();
        let shown = expect["after_update"]["addresses_len"].as_u64();
        // Each kind once; the instance of the row has no network interface, and so no address inside.
        let mut kinds: Vec<&str> =
            addresses(&machine).iter().map(|address| address.type_.as_str()).collect();
        kinds.sort_unstable();
        let all = ["ExternalDNS", "ExternalIP", "Hostname", "InternalDNS", "InternalIP"];
        if kinds != all {
            return Ok(Outcome::Failed(format!("the addresses are {kinds:?}")));
        }
        let found = json!({
            "run_instances_calls": world.simulation.aws.count("ec2:RunInstances"),
            "phases": phases,
            "after_create": {
                "providerID": first.and_then(|machine| machine.spec.provider_id.clone()),
                "addresses": first.map(|machine| addresses(machine).len()).map(|n| vec![0; n]),
            },
            "after_update": {
                "providerID_contains":
                    machine.spec.provider_id.as_ref().is_some_and(|known| known.contains(&id)),
                "addresses_len": without_interface(),
            },
        });
        // The identifier is another each time.
        let mut wanted = expect.clone();
        wanted["after_update"] = json!({"providerID_contains": true, "addresses_len": shown});
        Ok(Outcome::equal(&wanted, &found))
    }))
}

/// How many addresses a Machine has whose instance shows no network interface.
fn without_interface() -> Option<usize> {
    let name = |place: &str| Some(format!("{place}.example.com"));
    let shown = responses::Instance {
        instance_id: Some("i-1".to_owned()),
        state: Some(responses::InstanceState { name: Some("running".to_owned()) }),
        public_ip_address: Some("203.0.113.1".to_owned()),
        public_dns_name: name("outside"),
        private_dns_name: name("inside"),
        ..responses::Instance::default()
    };
    let instance = fleetwright_cloud_aws::instance(&shown, "us-east-1", &[])?;
    let machine = serde_json::from_value(json!({"metadata": {"name": NAME}})).ok()?;
    let mut draft = Draft::of(&machine);
    observe(&mut draft, &instance, jiff::Timestamp::UNIX_EPOCH);
    Some(draft.status.addresses.len())
}

fn phase(machine: &Machine) -> Option<String> {
    Some(machine.status.as_ref()?.phase.as_ref()?.to_string())
}

/// How the instance of a Machine is found: by identifier, or by tags among those of the cluster.
fn lookup(row: &Row<'_>) -> Outcome {
    let machine = identity(row);
    let wanted = row.get("expect_describe");
    let by_tags = !wanted["Filters"].is_null() || row.get("expect_describe_then") == "tags";
    ended(on_virtual_time(async {
        let world = World::new()?;
        let cluster = &world.installed.infra;
        let named = instance("i-named", NAME, InstanceState::Running);
        let other = instance("i-other", "other", InstanceState::Running);
        let known = machine.instance.map(|id| instance(id, "renamed", InstanceState::Running));
        let known = known.filter(|_| row.get("by_id") != "error");
        let inventory =
            Inventory::new(world.cloud.clone(), cluster.as_str(), InventoryOptions::default());
        inventory.since(tokio::time::Instant::now()).await?;
        // What is there is asked for by the tag of the cluster.
        let asked = world.aws.calls().pop().map(|call| call.parameters).unwrap_or_default();
        let filter = format!("tag:kubernetes.io/cluster/{cluster}");
        let value = asked.get("Filter.1.Value.1").map(String::as_str);
        if asked.get("Filter.1.Name") != Some(&filter) || value != Some("owned") {
            return Ok(Outcome::Failed(format!("asked {asked:?}")));
        }
        inventory.seen(&[vec![named, other], known.into_iter().collect()].concat());
        let living = find(machine, &inventory).map(|instance| instance.id.clone());
        let mut going: Vec<String> =
            find_all(machine, &inventory).iter().map(|instance| instance.id.clone()).collect();
        going.sort();
        // By its identifier, by its tags, or first by the one and then by the other. A Machine that
        // lives never takes a second instance: one whose own is gone has none, and is Failed. One
        // that goes takes along all that is tagged as its own.
        let lost = row.get("by_id") == "error";
        let expected = if by_tags { "i-named" } else { machine.instance.unwrap_or_default() };
        let tagged = [Some("i-named"), machine.instance.filter(|_| !lost)];
        let mut all: Vec<&str> = tagged.into_iter().flatten().collect();
        all.sort_unstable();
        Ok(Outcome::equal(&json!([(!lost).then_some(expected), all]), &json!([living, going])))
    }))
}

/// The calls that take an instance away.
fn delete(row: &Row<'_>) -> Outcome {
    let described: Vec<_> =
        instances(row.get("describe"), "test-id").into_iter().map(Arc::new).collect();
    let Leaving { retire, state } = leaving(&described);
    let expect = row.get("expect");
    if let Some(wanted) = expect["annotation"].as_object() {
        let mut draft = match serde_json::from_value(json!({"metadata": {"name": NAME}})) {
            Ok(machine) => Draft::of(&machine),
            Err(error) => return Outcome::Failed(error.to_string()),
        };
        if let Some(state) = state {
            record_state(&mut draft, state);
        }
        if json!(draft.annotations) != json!(wanted) {
            return Outcome::equal(&json!(wanted), &json!(draft.annotations));
        }
    }
    let by_address = row.get("nlb_ip_target_groups") == true;
    let calls = on_virtual_time(async {
        let world = World::new()?;
        let mut spec = world.spec();
        if by_address {
            // The installer's own: one group of targets, by address.
            let name = format!("{}-ext", world.installed.infra);
            spec["loadBalancers"] = json!([{"name": name, "type": "network"}]);
        }
        let instance = world.running().await?;
        world.aws.clear_calls();
        if let Some(instance) = instance.filter(|_| !retire.is_empty()) {
            world.cloud.deregister(&spec, &instance).await?;
            world.cloud.retire(&[instance.id]).await?;
        }
        Ok(world.aws.calls().into_iter().map(|call| call.action).collect::<Vec<_>>())
    });
    let calls = match calls {
        Ok(calls) => calls,
        Err(error) => return Outcome::Failed(error),
    };
    match expect["calls"].as_array() {
        Some(wanted) => {
            // What is there was read before; arguments stand in brackets.
            let names = wanted.iter().filter_map(|call| call.as_str()?.split('(').next());
            let wanted: Vec<&str> = names.filter(|name| *name != "DescribeInstances").collect();
            Outcome::equal(&wanted, &calls.iter().map(String::as_str).collect())
        }
        None => Outcome::equal(
            &expect["terminate_called"],
            &Value::from(calls.iter().any(|call| call == "TerminateInstances")),
        ),
    }
}

fn scale_from_zero(row: &Row<'_>) -> Outcome {
    let info = row.get("type_info");
    let number = |key: &str| info[key].as_i64();
    let list = |key: &str| info[key].as_array().cloned().unwrap_or_default();
    let shown = responses::InstanceTypeInfo {
        instance_type: row.get("instanceType").as_str().map(str::to_owned),
        v_cpu_info: Some(responses::VCpuInfo { default_v_cpus: number("vcpu") }),
        memory_info: Some(responses::MemoryInfo { size_in_mi_b: number("memoryMiB") }),
        gpu_info: Some(responses::GpuInfo {
            gpus: vec![responses::GpuDeviceInfo { count: number("gpus"), manufacturer: None }],
        }),
        processor_info: Some(responses::ProcessorInfo {
            supported_architectures: list("arch")
                .iter()
                .filter_map(|word| word.as_str().map(str::to_owned))
                .collect(),
        }),
        placement_group_info: None,
    };
    // A type that the cloud does not know says nothing, and what stands there stays.
    let known = instance_type(&shown);
    let mut found: BTreeMap<String, Value> = BTreeMap::new();
    for (key, value) in row.get("existing").as_object().into_iter().flatten() {
        found.insert(key.clone(), value.clone());
    }
    if let Some(known) = &known {
        found.extend(
            annotations(known, false, "")
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value.into())),
        );
    }
    match row.get("expect_arch").as_str() {
        Some(wanted) => {
            Outcome::equal(&Some(wanted), &known.as_ref().map(|it| it.architecture.as_str()))
        }
        None => Outcome::equal(row.get("expect_annotations"), &json!(found)),
    }
}
