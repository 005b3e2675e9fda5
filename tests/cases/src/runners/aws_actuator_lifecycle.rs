//! What is asked of AWS in the life of a Machine, run against the simulated cloud.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use fleetwright_clock::{Clock, Random};
use fleetwright_cloud::{
    Account, Cloud, CloudError, Connector, Count, Credentials, ErrorClass, Instance, Launch,
    LaunchOrder, ResolveRequest, Tag,
    transport::{Transport, TransportError},
};
use fleetwright_cloud_aws::{AwsConnector, AwsOptions, instance_type, model::ec2::responses};
use fleetwright_machines::set::capacity::annotations;
use fleetwright_simcloud::{
    NoAnswer,
    aws::{
        Aws, Effect, Fault,
        seed::{Installed, Installer},
    },
};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::row::Row;
use crate::runners::{Outcome, Runner, Use};

/// The runner.
pub(super) const RUNNER: Runner = Runner {
    file: "aws-actuator-lifecycle.json",
    tables: &[
        ("create_cases", Use::Rows(create)),
        ("delete_cases", Use::Rows(delete)),
        ("scale_from_zero_annotation_cases", Use::Rows(scale_from_zero)),
        ("exists_cases", Use::NotApplicable(OF_CONTROLLER)),
        ("update_cases", Use::NotApplicable(OF_CONTROLLER)),
        ("event_cases", Use::NotApplicable(OF_CONTROLLER)),
        ("end_to_end_eventual_consistency", Use::NotApplicable(OF_CONTROLLER)),
        ("lookup_cases", Use::NotApplicable(NO_LOOKUPS)),
    ],
};

const OF_CONTROLLER: &str = "the Machine controller has scenarios of its own for this";
const NO_LOOKUPS: &str =
    "instances are found in an inventory that is read in pages, not one by one";

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
fn on_virtual_time<T>(work: impl Future<Output = Result<T, CloudError>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(work).map_err(|error| error.to_string())
}

/// Rows in which the cloud, or what the spec says of it, stops a launch.
fn create(row: &Row<'_>) -> Outcome {
    let expect = row.get("expect");
    let text = |key: &str| expect[key].as_str().unwrap_or_default();
    let wanted = format!("{}{}", text("error"), text("error_contains"));
    let found = on_virtual_time(async {
        let world = World::new()?;
        let mut spec = world.spec();
        if let Some(message) = row.get("aws_error").as_str() {
            spec["blockDevices"] = json!([{"ebs": {"volumeSize": 16}}]);
            let effect = Effect::error("InvalidAMIID.NotFound", 400, message);
            world.aws.fault(Fault::next("DescribeImages", effect));
        } else if wanted.contains("subnet") {
            spec["subnet"] = json!({"filters": [{"name": "tag:Name", "values": ["nothing"]}]});
        } else {
            return Ok(None);
        }
        Ok(Some(world.resolve(spec).await))
    });
    match found {
        Err(error) => Outcome::Failed(error),
        Ok(None) => Outcome::NotApplicable(OF_CONTROLLER),
        Ok(Some(Ok(_))) => Outcome::Failed("the launch was not refused".to_owned()),
        Ok(Some(Err(error))) if error.class != ErrorClass::Configuration => {
            Outcome::Failed(format!("{:?}: {error}", error.class))
        }
        // The controller puts what it attempted before it.
        Ok(Some(Err(error))) if wanted.ends_with(&error.message) => Outcome::Passed,
        Ok(Some(Err(error))) => Outcome::Failed(format!("wanted {wanted:?}, found {error}")),
    }
}

/// The calls that take an instance away.
fn delete(row: &Row<'_>) -> Outcome {
    let Some(shown) = row.get("describe").as_array().and_then(|shown| shown.first()) else {
        return Outcome::NotApplicable(OF_CONTROLLER);
    };
    if shown["state"] == "terminated" {
        return Outcome::NotApplicable(OF_CONTROLLER);
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
        if let Some(instance) = instance {
            world.cloud.deregister(&spec, &instance).await?;
            world.cloud.retire(&[instance.id]).await?;
        }
        Ok(world.aws.calls().into_iter().map(|call| call.action).collect::<Vec<_>>())
    });
    let calls = match calls {
        Ok(calls) => calls,
        Err(error) => return Outcome::Failed(error),
    };
    let expect = row.get("expect");
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
            gpus: vec![responses::GpuDeviceInfo { count: number("gpus") }],
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
