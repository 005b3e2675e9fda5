//! The whole service on virtual time, called as a client calls it.

mod faults;
mod groups;
mod journal;
mod launch;
mod life;
mod metadata;
mod properties;

use std::time::Duration;

use bytes::Bytes;
use fleetwright_clock::{Clock, Random};
use http::Request;
use jiff::Timestamp;
use tower::ServiceExt as _;

use super::{
    Aws,
    model::settings::{Settings, Throttling},
    seed::{Installed, Installer},
    wire::form,
};
use crate::NoAnswer;

/// A cloud to call.
struct Cloud {
    aws: Aws,
    installed: Installed,
}

/// What a call gave: the body, or the status and code of the error.
type Answer = Result<String, (u16, String)>;

const ZONE: &str = "us-east-1a";

impl Cloud {
    fn new() -> Self {
        Self::with(|_| {})
    }

    /// Without signatures and throttling, unless `change` wants them.
    fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings =
            Settings { signatures: false, throttling: Throttling::off(), ..Settings::default() };
        change(&mut settings);
        let installer = Installer::new("demo", Random::seeded(1)).settings(settings);
        let (aws, installed) = installer.install(Clock::simulated(Timestamp::UNIX_EPOCH));
        Self { aws, installed }
    }

    async fn send(&self, version: &str, parameters: &str) -> Result<(u16, String), NoAnswer> {
        let body = format!("Version={version}&{parameters}");
        let request =
            Request::post("https://ec2.us-east-1.amazonaws.com/").body(Bytes::from(body)).unwrap();
        let answer = self.aws.clone().oneshot(request).await?;
        let status = answer.status().as_u16();
        Ok((status, String::from_utf8(answer.into_body().to_vec()).unwrap()))
    }

    /// Calls EC2.
    async fn call(&self, parameters: &str) -> Answer {
        self.call_version("2016-11-15", parameters).await
    }

    async fn call_version(&self, version: &str, parameters: &str) -> Answer {
        let (status, body) = self.send(version, parameters).await.unwrap();
        if status == 200 { Ok(body) } else { Err((status, text(&body, "Code"))) }
    }

    /// The parameters of a plain launch, and `more`.
    fn launch(&self, count: u32, more: &str) -> String {
        let Installed { images, subnets, worker_group, .. } = &self.installed;
        format!(
            "Action=RunInstances&ImageId={}&InstanceType=m5.large&MinCount={count}&MaxCount={count}\
             &SubnetId={}&SecurityGroupId.1={worker_group}{more}",
            images["x86_64"], subnets[ZONE]
        )
    }

    /// Launches: the instances' identifiers.
    async fn run(&self, count: u32, more: &str) -> Vec<String> {
        texts(&self.call(&self.launch(count, more)).await.unwrap(), "instanceId")
    }

    async fn describe(&self, more: &str) -> String {
        self.call(&format!("Action=DescribeInstances{more}")).await.unwrap()
    }

    /// (identifier, state) of every instance listed.
    async fn states(&self) -> Vec<(String, String)> {
        let body = self.describe("").await;
        let names = body.split("<instanceState>").skip(1).map(|part| text(part, "name"));
        texts(&body, "instanceId").into_iter().zip(names).collect()
    }

    /// Lets time pass.
    async fn pass(&self, seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }
}

/// `&InstanceId.1=…`.
fn ids(ids: &[String]) -> String {
    let numbered = (1..).zip(ids).map(|(number, id)| format!("&InstanceId.{number}={id}"));
    numbered.collect::<Vec<_>>().concat()
}

/// `&Filter.1.Name=…&Filter.1.Value.1=…`.
fn filter(name: &str, value: &str) -> String {
    format!("&Filter.1.Name={}&Filter.1.Value.1={}", form::encode(name), form::encode(value))
}

/// The text of every element of this name.
fn texts(body: &str, name: &str) -> Vec<String> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let parts = body.split(&open).skip(1);
    parts.filter_map(|part| part.split(&close).next()).map(str::to_owned).collect()
}

fn text(body: &str, name: &str) -> String {
    texts(body, name).into_iter().next().unwrap_or_default()
}

fn code(answer: Answer) -> String {
    answer.unwrap_err().1
}

/// Parameters that mean something somewhere, with values that mean something or nothing.
fn any_call() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    let actions: Vec<(&str, &str)> = super::wire::served().collect();
    let names = [
        "InstanceId.1",
        "MinCount",
        "MaxCount",
        "MaxResults",
        "NextToken",
        "SubnetId",
        "ImageId",
        "Filter.1.Name",
        "Filter.1.Value.1",
        "Placement.GroupName",
        "Placement.Tenancy",
        "Placement.PartitionNumber",
        "GroupName",
        "GroupName.1",
        "Strategy",
        "PartitionCount",
        "ResourceId.1",
        "Tag.1.Key",
        "Tag.1.Value",
        "VolumeId",
        "HostId.1",
        "Quantity",
        "AvailabilityZone",
        "InstanceType",
        "TargetGroupArn",
        "Targets.member.1.Id",
        "Targets.member.1.Port",
        "PageSize",
        "Names.member.1",
        "LoadBalancerName",
        "Instances.member.1.InstanceId",
        "BlockDeviceMapping.1.DeviceName",
        "BlockDeviceMapping.1.Ebs.VolumeSize",
        "BlockDeviceMapping.1.Ebs.VolumeType",
        "InstanceMarketOptions.MarketType",
        "InstanceMarketOptions.SpotOptions.MaxPrice",
        "NetworkInterface.1.DeviceIndex",
        "NetworkInterface.1.PrivateIpAddress",
        "UserData",
        "CpuOptions.CoreCount",
        "DurationSeconds",
        "RoleArn",
        "RoleSessionName",
        "DryRun",
    ];
    let values = prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        "[0-9a-f*?.-]{0,8}",
        Just("true".to_owned()),
        Just("i-00000000000000000".to_owned()),
        Just("m5.large".to_owned()),
        Just("spot".to_owned()),
        ".{0,6}",
    ];
    let names = proptest::sample::select(names.to_vec());
    let parameters = proptest::collection::btree_map(names, values, 0..8);
    (proptest::sample::select(actions), parameters).prop_map(|((version, action), parameters)| {
        let sent =
            parameters.iter().map(|(name, value)| format!("&{name}={}", form::encode(value)));
        format!("Version={version}&Action={action}{}", sent.collect::<Vec<_>>().concat())
    })
}

proptest::proptest! {
    #[test]
    fn any_call_is_answered(calls in proptest::collection::vec(any_call(), 1..8)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let cloud = Cloud::new();
            for call in calls {
                let request = Request::post("http://localhost/").body(Bytes::from(call)).unwrap();
                let answer = cloud.aws.clone().oneshot(request).await.unwrap();
                assert!(matches!(answer.status().as_u16(), 200 | 400 | 403 | 412 | 500));
                cloud.pass(7).await;
            }
        });
    }
}
