//! Every request that can be sent is one that the services describe.

use std::collections::{BTreeMap, BTreeSet};

use fleetwright_clock::Random;
use fleetwright_cloud::{Account, Connector as _, Credentials, Platform, Strategy};
use fleetwright_cloud_aws::{AwsConnector, AwsOptions};
use fleetwright_referees::python::check_requests;
use serde_json::{Value, json};

use crate::aws::{LATER, World, ZONE, connect, transport};

fn put(mut spec: Value, fields: &Value) -> Value {
    if let (Some(spec), Some(fields)) = (spec.as_object_mut(), fields.as_object()) {
        spec.extend(fields.clone());
    }
    spec
}

/// Provider specs that fill every field which a launch knows.
fn specs(world: &World) -> Vec<Value> {
    let infra = &world.installed.infra;
    let placed = |more: Value| put(json!({"region": "us-east-1"}), &more);
    let fields = [
        json!({
            "ami": {"filters": [{"name": "architecture", "values": ["x86_64"]}]},
            "subnet": {"filters": [{"name": "vpc-id", "values": [world.installed.vpc]}]},
            "securityGroups": [
                {"filters": [{"name": "group-id", "values": [world.installed.worker_group]}]}],
            "placement": placed(json!({"availabilityZone": ZONE})),
            "publicIp": true,
            "tags": [{"name": "team", "value": "a=b&c d/é"}],
        }),
        json!({"blockDevices": [
            {"ebs": {"volumeSize": 120, "volumeType": "gp3", "iops": 4000, "throughputMib": 300,
                "encrypted": true, "kmsKey": {"arn": "arn:aws:kms:us-east-1:1:key/k"}}},
            {"deviceName": "/dev/sdf", "ebs": {"volumeSize": 10, "volumeType": "io2", "iops": 500}},
        ]}),
        json!({"instanceType": "c6gn.16xlarge", "networkInterfaceType": "EFA", "deviceIndex": 0}),
        json!({"networkInterfaceType": "ENA", "publicIp": false}),
        json!({"iamInstanceProfile": {"arn": "arn:aws:iam::1:instance-profile/p"}}),
        json!({"metadataServiceOptions": {"authentication": "Required"}}),
        json!({"metadataServiceOptions": {"authentication": "Optional"}}),
        json!({"instanceType": "m6a.large",
            "cpuOptions": {"confidentialCompute": "AMDEncryptedVirtualizationNestedPaging"}}),
        json!({"cpuOptions": {"confidentialCompute": "Disabled"}}),
        json!({"placement": placed(json!({"tenancy": "dedicated"}))}),
        json!({"placement": placed(json!({"tenancy": "host", "host": {
            "affinity": "DedicatedHost", "dedicatedHost": {"allocationStrategy": "Dynamic",
                "dynamicHostAllocation": {"tags": [{"name": "a", "value": "b"}]}}}}))}),
        json!({"placement": placed(json!({"tenancy": "host", "host": {"affinity": "AnyAvailable"}}))}),
        json!({"placement": placed(json!({"tenancy": "host", "host": {
            "affinity": "DedicatedHost", "dedicatedHost": {"id": "h-0123456789abcdef0"}}}))}),
        json!({"placement": placed(json!({"group": {"name": "partition"}, "partitionNumber": 2}))}),
        json!({"placementGroupName": "cluster"}),
        json!({"capacityReservationId": "cr-0123456789abcdef0"}),
        json!({"capacityReservationId": "cr-0123456789abcdef0", "marketType": "CapacityBlock"}),
        json!({"spotMarketOptions": {"maxPrice": "0.5"}}),
        json!({"marketType": "Spot"}),
        json!({"marketType": "OnDemand"}),
        json!({"loadBalancers": [{"name": format!("{infra}-int"), "type": "network"},
            {"name": format!("{infra}-classic"), "type": "classic"}]}),
    ];
    fields.iter().map(|fields| put(world.spec(), fields)).collect()
}

/// What was sent in launches, by the names of the protocol.
const SENT: [&str; 40] = [
    "BlockDeviceMapping.1.DeviceName",
    "BlockDeviceMapping.1.Ebs.DeleteOnTermination",
    "BlockDeviceMapping.1.Ebs.Encrypted",
    "BlockDeviceMapping.1.Ebs.Iops",
    "BlockDeviceMapping.1.Ebs.KmsKeyId",
    "BlockDeviceMapping.1.Ebs.Throughput",
    "BlockDeviceMapping.1.Ebs.VolumeSize",
    "BlockDeviceMapping.1.Ebs.VolumeType",
    "CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId",
    "ClientToken",
    "CpuOptions.AmdSevSnp",
    "IamInstanceProfile.Arn",
    "IamInstanceProfile.Name",
    "ImageId",
    "InstanceMarketOptions.MarketType",
    "InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior",
    "InstanceMarketOptions.SpotOptions.MaxPrice",
    "InstanceMarketOptions.SpotOptions.SpotInstanceType",
    "InstanceType",
    "KeyName",
    "MaxCount",
    "MetadataOptions.HttpProtocolIpv6",
    "MetadataOptions.HttpTokens",
    "MinCount",
    "NetworkInterface.1.AssociatePublicIpAddress",
    "NetworkInterface.1.DeviceIndex",
    "NetworkInterface.1.InterfaceType",
    "NetworkInterface.1.SecurityGroupId.1",
    "NetworkInterface.1.SubnetId",
    "Placement.Affinity",
    "Placement.AvailabilityZone",
    "Placement.GroupName",
    "Placement.HostId",
    "Placement.PartitionNumber",
    "Placement.Tenancy",
    "PrivateDnsNameOptions.EnableResourceNameDnsAAAARecord",
    "PrivateDnsNameOptions.EnableResourceNameDnsARecord",
    "PrivateDnsNameOptions.HostnameType",
    "TagSpecification.3.ResourceType",
    "UserData",
];

#[tokio::test(start_paused = true)]
async fn every_request_is_as_the_services_describe_it() {
    let mut world = World::new();
    world.cloud = dual_stack(&world);
    let infra = world.installed.infra.clone();
    let partition = world.group(Strategy::Partition, Some(3)).await;
    world.group(Strategy::Cluster, None).await;
    tokio::time::advance(LATER).await;
    let groups = world.cloud.placement_groups().unwrap();
    for (number, spec) in specs(&world).into_iter().enumerate() {
        let order = world.order(spec.clone(), &format!("m-{number}"), 1).await;
        // Some of it does not exist here; what counts is how it was asked for.
        let Ok(launched) = world.cloud.launch(order).await else { continue };
        tokio::time::advance(LATER).await;
        world.cloud.register(&spec, &launched[0]).await.unwrap();
        let running = world.cloud.instances([launched[0].id.clone()].into()).await.unwrap();
        world.cloud.deregister(&spec, &running[0]).await.unwrap();
        world
            .cloud
            .tag(&running[0].volumes, &[fleetwright_cloud::Tag::new("k", "v")])
            .await
            .unwrap();
        world.cloud.retire(&[launched[0].id.clone()]).await.unwrap();
        tokio::time::advance(LATER).await;
        world.cloud.release(&spec, &format!("m-{number}")).await.unwrap();
    }
    world.cloud.instance_type("m5.large").await.unwrap();
    world.cloud.tagged("Name", "m-0").await.unwrap();
    groups.describe([partition.clone()].into()).await.unwrap();
    groups.members([partition.clone()].into()).await.unwrap();
    groups.owned(&infra).await.unwrap();
    groups.delete(&partition).await.unwrap();
    world.cloud.inventory(&infra).await.unwrap();
    world.cloud.leftovers(&infra).await.unwrap();
    world.cloud.others(&infra).await.unwrap();
    for kind in [fleetwright_cloud::LeftoverKind::Volume, fleetwright_cloud::LeftoverKind::Host] {
        let leftover = fleetwright_cloud::Leftover {
            kind,
            id: "vol-0123456789abcdef0".replace(
                "vol",
                if kind == fleetwright_cloud::LeftoverKind::Host { "h" } else { "vol" },
            ),
            in_use: false,
            users: Vec::new(),
            tags: BTreeMap::new(),
        };
        world.cloud.remove(&leftover).await.unwrap();
    }
    roles(&world).await;

    let calls = world.aws.calls();
    let sent: BTreeSet<String> =
        calls.iter().map(|call| format!("{}:{}", call.service, call.action)).collect();
    assert_eq!(sent, fleetwright_cloud_aws::permissions(), "every call that can be made was made");
    let launches = calls.iter().filter(|call| call.action == "RunInstances");
    let names: BTreeSet<&str> =
        launches.flat_map(|call| call.parameters.keys().map(String::as_str)).collect();
    let missing: Vec<&&str> = SENT.iter().filter(|name| !names.contains(**name)).collect();
    assert!(missing.is_empty(), "never sent: {missing:?}; sent: {names:?}");
    let said = check_requests(&json!(calls)).unwrap();
    assert!(said.contains("requests are as the services describe them"), "{said}");
}

/// A client of a cluster whose Infrastructure names both families of addresses.
fn dual_stack(world: &World) -> std::sync::Arc<dyn fleetwright_cloud::Cloud> {
    let keys = [
        ("aws_access_key_id", &world.installed.access_key),
        ("aws_secret_access_key", &world.installed.secret_key),
    ];
    let keys = keys.map(|(name, value)| (name.to_owned(), value.clone().into()));
    let platform = Platform {
        ip_family: Some("DualStackIPv6Primary".to_owned()),
        endpoints: BTreeMap::from([
            ("ec2".to_owned(), "https://ec2.example.com".to_owned()),
            ("elasticloadbalancing".to_owned(), "https://lb.example.com".to_owned()),
        ]),
    };
    let account =
        Account { platform, ..Account::new("us-east-1", Credentials::Secret(keys.into())) };
    let options = AwsOptions::new(transport(&world.aws), world.clock.clone(), Random::seeded(2));
    AwsConnector::new(options).connect(account).unwrap()
}

/// Credentials that take roles.
async fn roles(world: &World) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "a.web.identity").unwrap();
    let role = "role_arn = arn:aws:iam::123456789012:role/machines";
    let web = format!("[default]\n{role}\nweb_identity_token_file = {}\n", file.path().display());
    let chain = format!(
        "[base]\naws_access_key_id = {}\naws_secret_access_key = {}\n\
         [default]\n{role}\nsource_profile = base\nexternal_id = e\n",
        world.installed.access_key, world.installed.secret_key,
    );
    for profile in [web, chain] {
        let options =
            AwsOptions::new(transport(&world.aws), world.clock.clone(), Random::seeded(2));
        let cloud = connect(options, &[("credentials", &profile)]);
        cloud.inventory("demo").await.unwrap();
    }
}
