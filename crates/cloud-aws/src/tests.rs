//! The adapter against answers as EC2 writes them.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use fleetwright_clock::{Clock, Random};
use fleetwright_cloud::{
    Account, AddressKind, Cloud, CloudError, Connector, Count, Credentials, ErrorClass, GroupOrder,
    GroupState, Instance, InstanceState, LaunchOrder, ResolveRequest, Strategy, Tag,
    transport::{Transport, TransportError},
};
use http::{Request, Response};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::{AwsConnector, AwsOptions};

/// What was asked: the action and its parameters.
type Asked = (String, BTreeMap<String, String>);
/// What is answered: status and body, or nothing.
type Answer = Result<(u16, String), TransportError>;

/// Answers each action from a list: the last answer stays.
#[derive(Clone, Default)]
struct Double(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    answers: BTreeMap<String, VecDeque<Answer>>,
    asked: Vec<Asked>,
}

impl Double {
    fn answer(&self, action: &str, body: impl Into<String>) -> &Self {
        self.give(action, Ok((200, body.into())))
    }

    fn refuse(&self, action: &str, status: u16, code: &str, message: &str) -> &Self {
        let body = format!(
            "<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error>\
             </Errors><RequestID>r</RequestID></Response>"
        );
        self.give(action, Ok((status, body)))
    }

    fn give(&self, action: &str, answer: Answer) -> &Self {
        let mut inner = self.0.lock().unwrap();
        inner.answers.entry(action.to_owned()).or_default().push_back(answer);
        self
    }

    fn asked(&self, action: &str) -> Vec<BTreeMap<String, String>> {
        let inner = self.0.lock().unwrap();
        inner.asked.iter().filter(|it| it.0 == action).map(|it| it.1.clone()).collect()
    }

    fn actions(&self) -> Vec<String> {
        self.0.lock().unwrap().asked.iter().map(|it| it.0.clone()).collect()
    }

    fn cloud(&self) -> Arc<dyn Cloud> {
        let double = self.clone();
        let transport = Transport::new(tower::service_fn(move |request: Request<Bytes>| {
            let double = double.clone();
            async move { double.serve(&request) }
        }));
        let clock = Clock::simulated("2026-11-15T12:00:00Z".parse().unwrap());
        let connector = AwsConnector::new(AwsOptions::new(transport, clock, Random::seeded(1)));
        let data = [("aws_access_key_id", "AKIA"), ("aws_secret_access_key", "s")];
        let data = data.map(|(key, value)| (key.to_owned(), Bytes::from_static(value.as_bytes())));
        let credentials = Credentials::Secret(BTreeMap::from(data));
        connector.connect(Account::new("us-east-1", credentials)).unwrap()
    }

    fn serve(&self, request: &Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        assert!(request.headers()["authorization"].to_str().unwrap().contains("AKIA/20261115/"));
        let decode = |text: &str| percent_decode_str(text).decode_utf8().unwrap().into_owned();
        let body = std::str::from_utf8(request.body()).unwrap();
        let mut parameters: BTreeMap<String, String> = body
            .split('&')
            .filter_map(|it| it.split_once('='))
            .map(|(k, v)| (decode(k), decode(v)))
            .collect();
        let action = parameters.remove("Action").unwrap();
        let mut inner = self.0.lock().unwrap();
        inner.asked.push((action.clone(), parameters));
        let answers =
            inner.answers.get_mut(&action).unwrap_or_else(|| panic!("{action} is not expected"));
        let answer =
            if answers.len() > 1 { answers.pop_front().unwrap() } else { answers[0].clone() };
        let (status, body) = answer?;
        Ok(Response::builder().status(status).body(Bytes::from(body)).unwrap())
    }
}

fn shown(id: &str, state: &str) -> String {
    format!(
        "<item><instanceId>{id}</instanceId><instanceState><code>16</code><name>{state}</name>\
         </instanceState><privateDnsName>ip-10-0-0-5.ec2.internal</privateDnsName>\
         <dnsName/><amiLaunchIndex>0</amiLaunchIndex><instanceType>m5.large</instanceType>\
         <launchTime>2026-11-15T11:00:00.000Z</launchTime><placement>\
         <availabilityZone>us-east-1a</availabilityZone><groupName>g</groupName>\
         <tenancy>default</tenancy><partitionNumber>2</partitionNumber></placement>\
         <vpcId>vpc-1</vpcId><privateIpAddress>10.0.0.5</privateIpAddress><blockDeviceMapping><item>\
         <deviceName>/dev/xvda</deviceName><ebs><volumeId>vol-1</volumeId></ebs></item>\
         </blockDeviceMapping><clientToken>token</clientToken><tagSet><item>\
         <key>fleetwright-machine-uid</key><value>u</value></item><item><key>empty</key><value/>\
         </item></tagSet><networkInterfaceSet><item><status>in-use</status>\
         <privateIpAddressesSet><item><privateIpAddress>10.0.0.5</privateIpAddress></item>\
         </privateIpAddressesSet></item></networkInterfaceSet></item>"
    )
}

fn page(items: &str, next: &str) -> String {
    format!(
        "<DescribeInstancesResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">\
         <requestId>r</requestId><reservationSet><item><reservationId>r-1</reservationId>\
         <instancesSet>{items}</instancesSet></item></reservationSet>\
         <nextToken>{next}</nextToken></DescribeInstancesResponse>"
    )
}

const NO_VPC: &str = "<DescribeVpcsResponse><vpcSet><item><vpcId>vpc-1</vpcId>\
    <dhcpOptionsId>default</dhcpOptionsId></item></vpcSet></DescribeVpcsResponse>";

fn spec() -> Value {
    json!({
        "ami": {"id": "ami-1"}, "instanceType": "m5.large", "deviceIndex": 0,
        "subnet": {"id": "subnet-1"}, "securityGroups": [{"id": "sg-1"}],
        "placement": {"region": "us-east-1", "group": {"name": "g"}},
        "tags": [{"name": "team", "value": "blue"}],
    })
}

fn request(provider_spec: Value) -> ResolveRequest {
    ResolveRequest {
        provider_spec,
        cluster: "c".to_owned(),
        cluster_tags: vec![Tag::new("team", "red"), Tag::new("cost", "1")],
        user_data: Some(Bytes::from_static(b"#!ignition")),
    }
}

fn with_subnet(double: &Double) -> &Double {
    double.answer(
        "DescribeSubnets",
        "<DescribeSubnetsResponse><subnetSet><item><subnetId>subnet-2</subnetId>\
         <availabilityZone>us-east-1b</availabilityZone></item><item>\
         <subnetId>subnet-1</subnetId><availabilityZone>us-east-1a</availabilityZone></item>\
         </subnetSet></DescribeSubnetsResponse>",
    )
}

async fn refused(double: &Double, spec: Value) -> CloudError {
    double.cloud().resolve(request(spec)).await.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn a_launch_is_sent_as_it_should_be() {
    let double = Double::default();
    with_subnet(&double);
    let instances =
        shown("i-2", "pending").replace("Index>0", "Index>1") + &shown("i-1", "pending");
    double.answer(
        "RunInstances",
        format!(
            "<RunInstancesResponse><instancesSet>{instances}</instancesSet></RunInstancesResponse>"
        ),
    );
    let cloud = double.cloud();
    let launch = cloud.resolve(request(spec())).await.unwrap();
    assert_eq!(launch.shape.zone, "us-east-1a");
    assert_eq!(launch.shape.group.as_deref(), Some("g"));
    assert!(!format!("{launch:?}").contains("IyFpZ25pdGlvbg"), "user data is not shown");
    let again = cloud.resolve(request(spec())).await.unwrap();
    assert_eq!(again.hash, launch.hash);
    assert_eq!(double.asked("DescribeSubnets").len(), 1, "looked up once");
    let order = LaunchOrder {
        token: "token".to_owned(),
        launch,
        count: Count { min: 2, max: 2 },
        tags: vec![Tag::name("worker-0"), Tag::new("fleetwright-machine-uid", "u")],
    };
    let launched = cloud.launch(order).await.unwrap();
    assert_eq!(launched.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), ["i-1", "i-2"]);
    let sent = double.asked("RunInstances").remove(0);
    let expected = [
        ("ClientToken", "token"),
        ("ImageId", "ami-1"),
        ("InstanceType", "m5.large"),
        ("MaxCount", "2"),
        ("MinCount", "2"),
        ("NetworkInterface.1.DeviceIndex", "0"),
        ("NetworkInterface.1.SecurityGroupId.1", "sg-1"),
        ("NetworkInterface.1.SubnetId", "subnet-1"),
        ("Placement.GroupName", "g"),
        ("UserData", "IyFpZ25pdGlvbg=="),
        ("Version", "2016-11-15"),
    ];
    let tags = [
        ("team", "blue"),
        ("cost", "1"),
        ("kubernetes.io/cluster/c", "owned"),
        ("Name", "worker-0"),
        ("fleetwright-machine-uid", "u"),
    ];
    let mut all: BTreeMap<String, String> =
        expected.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    for (specification, resource) in ["instance", "volume"].iter().enumerate() {
        let prefix = format!("TagSpecification.{}", specification + 1);
        all.insert(format!("{prefix}.ResourceType"), (*resource).to_owned());
        for (index, (key, value)) in tags.iter().enumerate() {
            all.insert(format!("{prefix}.Tag.{}.Key", index + 1), (*key).to_owned());
            all.insert(format!("{prefix}.Tag.{}.Value", index + 1), (*value).to_owned());
        }
    }
    assert_eq!(sent, all);
}

#[tokio::test(start_paused = true)]
async fn what_is_looked_up_by_filters() {
    let double = Double::default();
    with_subnet(&double)
        .answer(
            "DescribeImages",
            "<DescribeImagesResponse><imagesSet>\
             <item><imageId>ami-old</imageId><creationDate>2020-01-01T00:00:00.000Z</creationDate>\
             <rootDeviceName>/dev/sda1</rootDeviceName></item>\
             <item><imageId>ami-new</imageId><creationDate>2026-01-01T00:00:00.000Z</creationDate>\
             <rootDeviceName>/dev/sda1</rootDeviceName></item></imagesSet></DescribeImagesResponse>",
        )
        .answer(
            "DescribeSecurityGroups",
            "<DescribeSecurityGroupsResponse><securityGroupInfo><item><groupId>sg-9</groupId></item>\
             <item><groupId>sg-8</groupId></item></securityGroupInfo></DescribeSecurityGroupsResponse>",
        )
        .answer(
            "DescribeAvailabilityZones",
            "<DescribeAvailabilityZonesResponse><availabilityZoneInfo><item>\
             <zoneName>us-east-1a</zoneName><zoneType>wavelength-zone</zoneType></item>\
             </availabilityZoneInfo></DescribeAvailabilityZonesResponse>",
        );
    let mut spec = spec();
    spec["ami"] = json!({"filters": [{"name": "name", "values": ["rhcos-*"]}]});
    spec["securityGroups"] = json!([{"filters": [{"name": "tag:Name", "values": ["a", "b"]}]}]);
    spec["subnet"] = json!({"filters": [{"name": "tag:Name", "values": ["x"]}]});
    spec["placement"]["availabilityZone"] = json!("us-east-1a");
    spec["publicIp"] = json!(true);
    spec["networkInterfaceType"] = json!("EFA");
    spec["blockDevices"] = json!([{"ebs": {"volumeSize": 120, "volumeType": "gp3"}}]);
    spec["iamInstanceProfile"] = json!({"id": "worker"});
    let launch = double.cloud().resolve(request(spec)).await.unwrap();
    let run = &launch.request["run"];
    assert_eq!(run["ImageId"], "ami-new");
    let interface = &run["NetworkInterface"][0];
    assert_eq!(interface["SecurityGroupId"], json!(["sg-8", "sg-9"]));
    assert_eq!(interface["SubnetId"], "subnet-1");
    assert_eq!(interface["AssociateCarrierIpAddress"], true);
    assert_eq!(interface["InterfaceType"], "efa");
    assert_eq!(run["Placement"], json!({"AvailabilityZone": "us-east-1a", "GroupName": "g"}));
    assert_eq!(run["BlockDeviceMapping"][0]["DeviceName"], "/dev/sda1");
    assert_eq!(run["IamInstanceProfile"], json!({"Name": "worker"}));
    let subnets = &double.asked("DescribeSubnets")[0];
    assert_eq!(subnets["Filter.1.Name"], "availabilityZone");
    assert_eq!(subnets["Filter.2.Value.1"], "x");
    assert_eq!(double.asked("DescribeAvailabilityZones").len(), 1, "asked once for two needs");
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_is_told_in_the_words_that_users_know() {
    let empty = Double::default();
    empty.answer(
        "DescribeSubnets",
        "<DescribeSubnetsResponse><subnetSet/></DescribeSubnetsResponse>",
    );
    let error = refused(&empty, spec()).await;
    assert_eq!(error.to_string(), "error getting subnet IDs: no subnet IDs were found");
    assert_eq!(error.class, ErrorClass::Configuration);

    let double = Double::default();
    with_subnet(&double).refuse("DescribeImages", 400, "InvalidAMIID.NotFound", "no such image");
    let mut without_image = spec();
    without_image["blockDevices"] = json!([{"ebs": {}}]);
    let error = refused(&double, without_image).await;
    assert_eq!(error.class, ErrorClass::Configuration);
    assert_eq!(
        error.message,
        "error getting blockDeviceMappings: error describing AMI: no such image"
    );
    for (path, value, message) in [
        ("ami", json!({}), "error getting AMI: AMI ID or AMI filters need to be specified"),
        ("securityGroups", json!([]), "error getting security groups IDs: no security group found"),
        ("networkInterfaceType", json!("X"), "invalid value for networkInterfaceType \"X\""),
        ("capacityReservationId", json!("cr-1"), "Invalid value for capacityReservationId"),
        ("instanceType", json!(7), "providerSpec.value: "),
    ] {
        let mut spec = spec();
        spec[path] = value;
        let error = refused(&double, spec).await;
        assert_eq!(error.class, ErrorClass::Configuration, "{error}");
        assert!(error.message.contains(message), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lookup_that_fails_for_a_while_is_not_the_users_mistake() {
    let double = Double::default();
    double.refuse("DescribeSubnets", 503, "RequestLimitExceeded", "slow down");
    let error = refused(&double, spec()).await;
    assert_eq!(error.class, ErrorClass::Throttled);
    assert!(error.message.starts_with("error getting subnet IDs: error describing subnets"));
    assert_eq!(double.asked("DescribeSubnets").len(), 4);
}

#[tokio::test(start_paused = true)]
async fn the_inventory_is_read_in_pages() {
    let double = Double::default();
    double
        .answer("DescribeInstances", page(&shown("i-1", "running"), "more"))
        .answer("DescribeInstances", page(&shown("i-2", "terminated"), ""))
        .answer("DescribeVpcs", NO_VPC);
    let cloud = double.cloud();
    let found = cloud.inventory("c").await.unwrap();
    assert_eq!(found.len(), 2);
    let asked = double.asked("DescribeInstances");
    assert_eq!(asked[0]["Filter.1.Name"], "tag:kubernetes.io/cluster/c");
    assert_eq!(asked[0]["Filter.1.Value.1"], "owned");
    assert_eq!(asked[0]["MaxResults"], "1000");
    assert_eq!(asked[1]["NextToken"], "more");
    let Instance {
        provider_id, state, zone, token, launch_index, group, partition, volumes, ..
    } = &found[0];
    assert_eq!(provider_id, "aws:///us-east-1a/i-1");
    assert_eq!(*state, InstanceState::Running);
    assert_eq!((zone.as_str(), token.as_deref()), ("us-east-1a", Some("token")));
    assert_eq!((*launch_index, group.as_deref(), *partition), (Some(0), Some("g"), Some(2)));
    assert_eq!(volumes, &["vol-1"]);
    assert_eq!(found[0].machine_uid(), Some("u"));
    assert_eq!(found[0].tags["empty"], "");
    assert_eq!(found[0].launched_at.unwrap().to_string(), "2026-11-15T11:00:00Z");
    cloud.inventory("c").await.unwrap();
    assert_eq!(double.asked("DescribeVpcs").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn names_under_the_networks_own_domains() {
    let double = Double::default();
    double
        .answer("DescribeInstances", page(&shown("i-1", "running"), ""))
        .answer("DescribeVpcs", NO_VPC.replace("default", "dopt-1"))
        .answer(
            "DescribeDhcpOptions",
            "<DescribeDhcpOptionsResponse><dhcpOptionsSet><item><dhcpOptionsId>dopt-1</dhcpOptionsId>\
             <dhcpConfigurationSet><item><key>domain-name</key><valueSet><item>\
             <value>example.com example.org</value></item></valueSet></item></dhcpConfigurationSet>\
             </item></dhcpOptionsSet></DescribeDhcpOptionsResponse>",
        );
    let cloud = double.cloud();
    let found = cloud.instances(BTreeSet::from(["i-1".to_owned()])).await.unwrap();
    let names: Vec<&str> = found[0]
        .addresses
        .iter()
        .filter(|address| address.kind == AddressKind::InternalDns)
        .map(|address| address.address.as_str())
        .collect();
    assert_eq!(
        names,
        ["ip-10-0-0-5.ec2.internal", "ip-10-0-0-5.example.com", "ip-10-0-0-5.example.org"]
    );
    assert_eq!(double.asked("DescribeInstances")[0]["Filter.1.Name"], "instance-id");
    // What was known is shown on when it cannot be read any more.
    double.0.lock().unwrap().answers.remove("DescribeVpcs");
    double.refuse("DescribeVpcs", 403, "UnauthorizedOperation", "no");
    tokio::time::advance(std::time::Duration::from_hours(2)).await;
    let again = cloud.instances(BTreeSet::from(["i-1".to_owned()])).await.unwrap();
    assert_eq!(again[0].addresses, found[0].addresses);
}

#[tokio::test(start_paused = true)]
async fn unknown_instances_do_not_keep_others_alive() {
    let double = Double::default();
    double
        .refuse(
            "TerminateInstances",
            400,
            "InvalidInstanceID.NotFound",
            "The instance IDs 'i-1, i-3' do not exist",
        )
        .answer("TerminateInstances", "<TerminateInstancesResponse/>");
    let ids = ["i-1", "i-2", "i-3"].map(str::to_owned);
    double.cloud().retire(&ids).await.unwrap();
    let last = double.asked("TerminateInstances").pop().unwrap();
    assert_eq!(last.get("InstanceId.1").map(String::as_str), Some("i-2"));
    assert_eq!(last.get("InstanceId.2"), None);
    let double = Double::default();
    double.refuse("TerminateInstances", 400, "InvalidInstanceID.NotFound", "nothing of that kind");
    double.cloud().retire(&ids).await.unwrap();
    assert_eq!(double.asked("TerminateInstances").len(), 4, "one by one");
    let double = Double::default();
    double.cloud().retire(&[]).await.unwrap();
    assert!(double.actions().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_lost_is_asked_for_again_with_the_same_token() {
    let double = Double::default();
    with_subnet(&double);
    double.give("RunInstances", Err(TransportError::AnswerLost("gone".to_owned()))).answer(
        "RunInstances",
        format!(
            "<RunInstancesResponse><instancesSet>{}</instancesSet></RunInstancesResponse>",
            shown("i-1", "pending")
        ),
    );
    let cloud = double.cloud();
    let launch = cloud.resolve(request(spec())).await.unwrap();
    let count = Count { min: 1, max: 1 };
    let order = LaunchOrder { token: "t".to_owned(), launch, count, tags: Vec::new() };
    assert_eq!(cloud.launch(order.clone()).await.unwrap().len(), 1);
    let sent = double.asked("RunInstances");
    assert_eq!(sent[0], sent[1]);
    // A lack of capacity is told at once, although it comes with HTTP 500.
    double.0.lock().unwrap().answers.remove("RunInstances");
    double.refuse("RunInstances", 500, "InsufficientInstanceCapacity", "none");
    let error = cloud.launch(order).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Capacity);
    assert_eq!(double.asked("RunInstances").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn placement_groups() {
    let shown = |state: &str| {
        format!(
            "<item><groupName>g</groupName><groupId>pg-1</groupId><state>{state}</state>\
             <strategy>partition</strategy><partitionCount>3</partitionCount><tagSet><item>\
             <key>Name</key><value>g</value></item></tagSet></item>"
        )
    };
    let double = Double::default();
    double
        .answer(
            "DescribePlacementGroups",
            format!("<R><placementGroupSet>{}</placementGroupSet></R>", shown("available")),
        )
        .give("CreatePlacementGroup", Err(TransportError::AnswerLost("gone".to_owned())))
        .refuse("CreatePlacementGroup", 400, "InvalidPlacementGroup.Duplicate", "it exists")
        .answer(
            "CreatePlacementGroup",
            format!("<R>{}</R>", shown("pending").replace("item>", "placementGroup>")),
        )
        .refuse("DeletePlacementGroup", 400, "InvalidPlacementGroup.InUse", "in use")
        .refuse("DeletePlacementGroup", 400, "InvalidPlacementGroup.Unknown", "unknown");
    let cloud = double.cloud();
    let groups = cloud.placement_groups().unwrap();
    let names = BTreeSet::from(["g".to_owned(), "absent".to_owned()]);
    let found = groups.describe(names).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].strategy, found[0].partitions), (Strategy::Partition, Some(3)));
    assert_eq!(found[0].state, GroupState::Available);
    assert_eq!(double.asked("DescribePlacementGroups")[0]["Filter.1.Value.2"], "g");
    let order = GroupOrder {
        name: "g".to_owned(),
        strategy: Strategy::Partition,
        partitions: Some(3),
        tags: vec![Tag::name("g")],
    };
    let create = || groups.create(order.clone());
    // Made twice is not the same as made once: a lost answer is the controller's to judge.
    assert_eq!(create().await.unwrap_err().class, ErrorClass::AnswerLost);
    assert_eq!(create().await.unwrap_err().class, ErrorClass::AlreadyExists);
    assert_eq!(
        double.asked("CreatePlacementGroup")[0]["TagSpecification.1.ResourceType"],
        "placement-group"
    );
    assert_eq!(double.asked("CreatePlacementGroup")[0]["PartitionCount"], "3");
    assert_eq!(groups.delete("g").await.unwrap_err().class, ErrorClass::InUse);
    groups.delete("g").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn load_balancers_by_instance_and_by_address() {
    let double = Double::default();
    double
        .answer("DescribeInstances", page(&shown("i-1", "running"), ""))
        .answer("DescribeVpcs", NO_VPC)
        .answer(
            "DescribeLoadBalancers",
            "<R><DescribeLoadBalancersResult><LoadBalancers><member><LoadBalancerArn>lb</LoadBalancerArn>\
             </member></LoadBalancers></DescribeLoadBalancersResult></R>",
        )
        .answer(
            "DescribeTargetGroups",
            "<R><DescribeTargetGroupsResult><TargetGroups><member><TargetGroupArn>a</TargetGroupArn>\
             <TargetType>instance</TargetType></member><member><TargetGroupArn>b</TargetGroupArn>\
             <TargetType>ip</TargetType></member></TargetGroups></DescribeTargetGroupsResult></R>",
        )
        .answer("RegisterTargets", "<R/>")
        .answer("DeregisterTargets", "<R/>")
        .answer("RegisterInstancesWithLoadBalancer", "<R/>");
    let cloud = double.cloud();
    let instance = cloud.inventory("c").await.unwrap().remove(0);
    let balancers = json!({"loadBalancers": [
        {"name": "old", "type": "classic"}, {"name": "api", "type": "network"}]});
    cloud.register(&balancers, &instance).await.unwrap();
    let targets: Vec<_> = double
        .asked("RegisterTargets")
        .iter()
        .map(|it| it["Targets.member.1.Id"].clone())
        .collect();
    assert_eq!(targets, ["i-1", "10.0.0.5"]);
    let classic = &double.asked("RegisterInstancesWithLoadBalancer")[0];
    assert_eq!(classic["Instances.member.1.InstanceId"], "i-1");
    cloud.deregister(&balancers, &instance).await.unwrap();
    let removed = double.asked("DeregisterTargets");
    assert_eq!(removed.len(), 1);
    assert_eq!(removed[0]["TargetGroupArn"], "b");
    let before = double.actions().len();
    cloud.register(&json!({}), &instance).await.unwrap();
    cloud.deregister(&json!({}), &instance).await.unwrap();
    assert_eq!(double.actions().len(), before);
}

#[tokio::test(start_paused = true)]
async fn types_are_asked_for_once_a_day() {
    let double = Double::default();
    double
        .answer(
            "DescribeInstanceTypes",
            "<R><instanceTypeSet><item><instanceType>p4d.24xlarge</instanceType><vCpuInfo>\
             <defaultVCpus>96</defaultVCpus></vCpuInfo><memoryInfo><sizeInMiB>1179648</sizeInMiB>\
             </memoryInfo><gpuInfo><gpus><item><count>8</count><manufacturer>NVIDIA</manufacturer></item></gpus></gpuInfo>\
             <processorInfo><supportedArchitectures><item>x86_64</item></supportedArchitectures>\
             </processorInfo><placementGroupInfo><supportedStrategies><item>cluster</item>\
             <item>spread</item></supportedStrategies></placementGroupInfo></item></instanceTypeSet></R>",
        )
        .refuse("DescribeInstanceTypes", 400, "InvalidInstanceType", "no such type");
    let cloud = double.cloud();
    let found = cloud.instance_type("p4d.24xlarge").await.unwrap().unwrap();
    assert_eq!((found.vcpus, found.memory_mib, found.gpus), (96, 1_179_648, 8));
    assert_eq!(found.gpu_resource.as_deref(), Some("nvidia.com/gpu"));
    assert_eq!(found.architecture, "amd64");
    assert_eq!(found.strategies, BTreeSet::from([Strategy::Cluster, Strategy::Spread]));
    assert_eq!(cloud.instance_type("p4d.24xlarge").await.unwrap(), Some(found));
    assert_eq!(cloud.instance_type("x").await.unwrap(), None);
    assert_eq!(double.actions().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_host_of_its_own_comes_and_goes_with_the_instance() {
    let double = Double::default();
    with_subnet(&double)
        .answer("AllocateHosts", "<R><hostIdSet><item>h-1</item></hostIdSet></R>")
        .answer(
            "RunInstances",
            format!("<R><instancesSet>{}</instancesSet></R>", shown("i-1", "pending")),
        )
        .answer("DescribeHosts", "<R><hostSet><item><hostId>h-1</hostId></item></hostSet></R>")
        .answer("ReleaseHosts", "<R><successful><item>h-1</item></successful><unsuccessful/></R>");
    let cloud = double.cloud();
    let mut spec = spec();
    spec["placement"] = json!({"tenancy": "host", "host": {"affinity": "DedicatedHost",
        "dedicatedHost": {"allocationStrategy": "Dynamic",
            "dynamicHostAllocation": {"tags": [{"name": "a", "value": "b"}]}}}});
    let launch = cloud.resolve(request(spec.clone())).await.unwrap();
    let count = Count { min: 1, max: 1 };
    let order = LaunchOrder { token: "t".to_owned(), launch, count, tags: vec![Tag::name("n")] };
    let instance = cloud.launch(order.clone()).await.unwrap().remove(0);
    assert_eq!(double.asked("RunInstances")[0]["Placement.HostId"], "h-1");
    let allocated = &double.asked("AllocateHosts")[0];
    assert_eq!(allocated["AvailabilityZone"], "us-east-1a");
    assert_eq!(allocated["ClientToken"].len(), 64);
    assert_eq!(allocated["TagSpecification.1.Tag.1.Key"], "a");
    assert_eq!(instance.machine_uid(), Some("u"));
    cloud.release(&spec, "u").await.unwrap();
    assert_eq!(double.asked("DescribeHosts")[0]["Filter.1.Value.1"], "u");
    assert_eq!(double.asked("ReleaseHosts")[0]["HostId.1"], "h-1");
    let two = LaunchOrder { count: Count { min: 2, max: 2 }, ..order };
    assert_eq!(cloud.launch(two).await.unwrap_err().class, ErrorClass::BatchTooBig);
    let before = double.actions().len();
    cloud.release(&json!({}), "u").await.unwrap();
    assert_eq!(double.actions().len(), before);
}

#[tokio::test(start_paused = true)]
async fn what_would_outlive_the_cluster() {
    let double = Double::default();
    double
        .answer(
            "DescribeVolumes",
            "<R><volumeSet><item><volumeId>vol-1</volumeId><status>available</status></item><item>\
             <volumeId>vol-2</volumeId><status>in-use</status></item></volumeSet></R>",
        )
        .answer("DescribeHosts", "<R><hostSet/></R>")
        .refuse("DeleteVolume", 400, "InvalidVolume.NotFound", "gone");
    let cloud = double.cloud();
    let found = cloud.leftovers("c").await.unwrap();
    assert_eq!(
        found.iter().map(|it| (it.id.as_str(), it.in_use)).collect::<Vec<_>>(),
        [("vol-1", false), ("vol-2", true)]
    );
    cloud.remove(&found[0]).await.unwrap();
    assert_eq!(double.asked("DeleteVolume")[0]["VolumeId"], "vol-1");
}
