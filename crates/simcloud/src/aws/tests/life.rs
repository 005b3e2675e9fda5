//! States, tags, volumes, pages, load balancers, hosts.

use std::sync::Arc;

use super::*;
use crate::aws::model::{Change, capacity::Limit, instance::InstanceState, lifecycle::Strike};

#[tokio::test(start_paused = true)]
async fn an_instance_lives_by_the_clock() {
    let cloud = Cloud::new();
    let made = cloud.run(1, "").await;
    let state = || async { cloud.states().await.first().map(|(_, state)| state.clone()) };
    assert_eq!(state().await.as_deref(), Some("pending"));
    cloud.pass(5).await;
    assert_eq!(state().await.as_deref(), Some("running"));
    let id = ids(&made);
    let body = cloud.call(&format!("Action=StopInstances{id}")).await.unwrap();
    assert_eq!(texts(&body, "name"), ["stopping", "running"]);
    cloud.pass(10).await;
    assert_eq!(state().await.as_deref(), Some("stopped"));
    cloud.call(&format!("Action=StartInstances{id}")).await.unwrap();
    cloud.pass(5).await;
    assert_eq!(state().await.as_deref(), Some("running"));
    let body = cloud.call(&format!("Action=TerminateInstances{id}")).await.unwrap();
    assert_eq!(texts(&body, "name"), ["shutting-down", "running"]);
    assert_eq!(
        code(cloud.call(&format!("Action=StartInstances{id}")).await),
        "IncorrectInstanceState"
    );
    cloud.pass(10).await;
    let body = cloud.describe("").await;
    assert!(
        body.contains("<name>terminated</name>")
            && body.contains("<privateDnsName></privateDnsName>")
    );
    assert!(!body.contains("<subnetId>") && body.contains("User initiated (1970-01-01"));
    let again = cloud.call(&format!("Action=TerminateInstances{id}")).await.unwrap();
    assert_eq!(texts(&again, "name"), ["terminated", "terminated"]);
    cloud.pass(3600).await;
    assert_eq!(state().await, None);
    let gone = cloud.call(&format!("Action=DescribeInstances{id}")).await;
    assert_eq!(code(gone), "InvalidInstanceID.NotFound");
}

#[tokio::test(start_paused = true)]
async fn a_stopped_instance_is_terminated_at_once_and_gives_nothing_back() {
    let cloud = Cloud::new();
    let two = Limit { zone: None, instance_type: None, group: None, spot: None, limit: 2 };
    cloud.aws.with(|region, now| region.limit_capacity(now, &two));
    let made = cloud.run(2, "").await;
    cloud.pass(6).await;
    cloud.call(&format!("Action=StopInstances{}", ids(&made[..1]))).await.unwrap();
    cloud.pass(11).await;
    cloud.run(1, "").await;
    let end = format!("Action=TerminateInstances{}", ids(&made[..1]));
    let body = cloud.call(&end).await.unwrap();
    assert_eq!(texts(&body, "name"), ["terminated", "stopped"]);
    assert_eq!(code(cloud.call(&cloud.launch(1, "")).await), "InsufficientInstanceCapacity");
}

#[tokio::test(start_paused = true)]
async fn terminate_is_all_or_nothing() {
    let cloud = Cloud::new();
    let mut made = cloud.run(1, "").await;
    made.push("i-00000000000000000".to_owned());
    let answer = cloud.call(&format!("Action=TerminateInstances{}", ids(&made))).await;
    assert_eq!(code(answer), "InvalidInstanceID.NotFound");
    assert_eq!(cloud.states().await[0].1, "pending");
    let bad = cloud.call("Action=TerminateInstances&InstanceId.1=banana").await;
    assert_eq!(code(bad), "InvalidInstanceID.Malformed");
    let protected = cloud.run(1, "&DisableApiTermination=true").await;
    let answer = cloud.call(&format!("Action=TerminateInstances{}", ids(&protected))).await;
    assert_eq!(code(answer), "OperationNotPermitted");
}

#[tokio::test(start_paused = true)]
async fn things_happen_by_themselves_and_observers_are_told() {
    let cloud = Cloud::new();
    let mut events = cloud.aws.subscribe();
    let seen = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    cloud.aws.observe(move |event| log.lock().push(event.sequence));
    let mut tasks = tokio::task::JoinSet::new();
    let aws = cloud.aws.clone();
    tasks.spawn(async move { aws.run().await });
    let more = "&UserData=aGVsbG8%3D&TagSpecification.1.ResourceType=instance\
                &TagSpecification.1.Tag.1.Key=Name&TagSpecification.1.Tag.1.Value=w1";
    let made = cloud.run(1, more).await;
    // Time moves by itself when everybody waits.
    let running = loop {
        let event = events.recv().await.unwrap();
        if let Change::InstanceState { instance, from } = &event.change {
            assert_eq!(*from, InstanceState::Pending);
            assert_eq!(event.at, Timestamp::from_second(5).unwrap());
            break Arc::clone(instance);
        }
    };
    assert_eq!((running.id.as_str(), running.state), (made[0].as_str(), InstanceState::Running));
    assert_eq!(running.private_dns(), "ip-10-0-0-4.ec2.internal");
    assert_eq!(running.with.user_data.as_deref(), Some(&b"hello"[..]));
    assert_eq!(running.tags["Name"], "w1");
    let sequences = seen.lock().clone();
    assert_eq!(sequences, (1..=sequences.len() as u64).collect::<Vec<_>>());
    tasks.abort_all();
}

#[tokio::test(start_paused = true)]
async fn volumes_go_with_their_instance_or_stay() {
    let cloud = Cloud::new();
    let keep = "&BlockDeviceMapping.1.DeviceName=%2Fdev%2Fsdb&BlockDeviceMapping.1.Ebs.VolumeSize=10\
                &BlockDeviceMapping.1.Ebs.DeleteOnTermination=false\
                &TagSpecification.1.ResourceType=volume&TagSpecification.1.Tag.1.Key=Name\
                &TagSpecification.1.Tag.1.Value=v";
    let made = cloud.run(1, keep).await;
    let by_tag = format!("Action=DescribeVolumes{}", filter("tag:Name", "v"));
    let body = cloud.call(&by_tag).await.unwrap();
    assert_eq!(texts(&body, "size"), ["16", "10"]);
    let kept = cloud.aws.with(|r, _| r.instances().next().unwrap().volumes[1].volume.clone());
    let delete = format!("Action=DeleteVolume&VolumeId={kept}");
    assert_eq!(code(cloud.call(&delete).await), "VolumeInUse");
    cloud.call(&format!("Action=TerminateInstances{}", ids(&made))).await.unwrap();
    cloud.pass(11).await;
    let body = cloud.call(&by_tag).await.unwrap();
    assert_eq!(
        (texts(&body, "size"), text(&body, "status")),
        (vec!["10".into()], "available".into())
    );
    cloud.call(&delete).await.unwrap();
    assert_eq!(code(cloud.call(&delete).await), "InvalidVolume.NotFound");
}

#[tokio::test(start_paused = true)]
async fn tags_and_filters() {
    let cloud = Cloud::new();
    let made = cloud.run(2, "").await;
    let create =
        format!("Action=CreateTags&ResourceId.1={}&Tag.1.Key=Name&Tag.1.Value=one", made[0]);
    cloud.call(&create).await.unwrap();
    for (name, value, expected) in [
        ("tag:Name", "o*", 1),
        ("tag-key", "Name", 1),
        ("tag:Name", "two", 0),
        ("instance-state-name", "pending", 2),
        ("availability-zone", "us-east-1?", 2),
        ("placement-group-name", "x", 0),
        ("client-token", "x", 0),
        ("vpc-id", cloud.installed.vpc.as_str(), 2),
        ("instance-id", made[1].as_str(), 1),
    ] {
        let found = texts(&cloud.describe(&filter(name, value)).await, "instanceId");
        assert_eq!(found.len(), expected, "{name}={value}");
    }
    let unknown = cloud.call(&format!("Action=DescribeInstances{}", filter("colour", "red"))).await;
    assert_eq!(code(unknown), "InvalidParameterValue");
    let body = cloud.call(&format!("Action=DescribeTags{}", filter("resource-id", &made[0]))).await;
    assert_eq!(text(&body.unwrap(), "resourceType"), "instance");
    let remove = format!("Action=DeleteTags&ResourceId.1={}&Tag.1.Key=Name", made[0]);
    cloud.call(&remove).await.unwrap();
    assert!(!cloud.describe("").await.contains("<tagSet>"));
    let missing =
        cloud.call("Action=CreateTags&ResourceId.1=i-00000000000000000&Tag.1.Key=a").await;
    assert_eq!(code(missing), "InvalidInstanceID.NotFound");
    let odd = cloud.call("Action=CreateTags&ResourceId.1=banana&Tag.1.Key=a").await;
    assert_eq!(code(odd), "InvalidID");
    let reserved = format!("Action=CreateTags&ResourceId.1={}&Tag.1.Key=aws%3Ax", made[0]);
    assert_eq!(code(cloud.call(&reserved).await), "InvalidParameterValue");
}

#[tokio::test(start_paused = true)]
async fn listings_come_in_pages() {
    let cloud = Cloud::new();
    for _ in 0..4 {
        cloud.run(3, "").await;
    }
    let (mut seen, mut next) = (Vec::new(), String::new());
    loop {
        let body = cloud.describe(&format!("&MaxResults=5{next}")).await;
        seen.extend(texts(&body, "instanceId"));
        match text(&body, "nextToken") {
            token if token.is_empty() => break,
            token => next = format!("&NextToken={token}"),
        }
    }
    let all: Vec<String> = cloud.states().await.into_iter().map(|(id, _)| id).collect();
    assert_eq!((seen.len(), &seen), (12, &all));
    let few = cloud.call("Action=DescribeInstances&MaxResults=4").await;
    assert_eq!(code(few), "InvalidParameterValue");
    let both = format!("Action=DescribeInstances&MaxResults=5{}", ids(&seen[..1]));
    assert_eq!(code(cloud.call(&both).await), "InvalidParameterCombination");
    cloud.run(1000, "").await;
    let body = cloud.describe("").await;
    assert_eq!(texts(&body, "instanceId").len(), 1000);
    assert!(!text(&body, "nextToken").is_empty());
}

#[tokio::test(start_paused = true)]
async fn spot_instances_have_requests_prices_and_interruptions() {
    let cloud = Cloud::new();
    let spot = "&InstanceMarketOptions.MarketType=spot";
    let price = "&InstanceMarketOptions.SpotOptions.MaxPrice=0.01";
    let cheap = cloud.call(&cloud.launch(1, &format!("{spot}{price}"))).await;
    assert_eq!(code(cheap), "SpotMaxPriceTooLow");
    let stop = "&InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior=stop";
    let odd = cloud.call(&cloud.launch(1, &format!("{spot}{stop}"))).await;
    assert_eq!(code(odd), "InvalidParameterCombination");
    let made = cloud.run(1, spot).await;
    assert!(cloud.describe("").await.contains("<instanceLifecycle>spot<"));
    let requests = || cloud.call("Action=DescribeSpotInstanceRequests");
    let body = requests().await.unwrap();
    assert_eq!(
        (text(&body, "state"), text(&body, "instanceId")),
        ("active".into(), made[0].clone())
    );
    cloud.pass(10).await;
    assert_eq!(
        code(cloud.call(&format!("Action=StopInstances{}", ids(&made))).await),
        "UnsupportedOperation"
    );

    let mut events = cloud.aws.subscribe();
    cloud.aws.with(|region, now| region.strike(now, &made[0], Strike::Interrupt)).unwrap();
    let notice = events.recv().await.unwrap();
    assert!(
        matches!(&notice.change, Change::SpotNotice { action: "terminate", at, .. }
        if *at == Timestamp::from_second(130).unwrap()),
        "{notice:?}"
    );
    cloud.pass(119).await;
    assert_eq!(cloud.states().await[0].1, "running");
    cloud.pass(1).await;
    assert_eq!(cloud.states().await[0].1, "shutting-down");
    assert!(cloud.describe("").await.contains("Server.SpotInstanceTermination"));
    assert!(requests().await.unwrap().contains("instance-terminated-no-capacity"));
}

#[tokio::test(start_paused = true)]
async fn load_balancers_and_their_targets() {
    let cloud = Cloud::new();
    let v2 = |parameters: String| async move { parameters };
    let elb = |parameters: String| {
        let cloud = &cloud;
        async move { cloud.call_version("2015-12-01", &v2(parameters).await).await }
    };
    let body = elb("Action=DescribeLoadBalancers&Names.member.1=demo-int".into()).await.unwrap();
    let arn = text(&body, "LoadBalancerArn");
    assert_eq!(text(&body, "Type"), "network");
    let body = elb(format!("Action=DescribeTargetGroups&LoadBalancerArn={arn}")).await.unwrap();
    let groups = texts(&body, "TargetGroupArn");
    assert_eq!((groups.len(), text(&body, "TargetType")), (2, "ip".into()));
    let target = format!("&TargetGroupArn={}&Targets.member.1.Id=10.0.0.9", groups[0]);
    elb(format!("Action=RegisterTargets{target}")).await.unwrap();
    let state = || async {
        let health = elb(format!("Action=DescribeTargetHealth&TargetGroupArn={}", groups[0])).await;
        text(&health.unwrap(), "State")
    };
    assert_eq!(state().await, "initial");
    cloud.pass(10).await;
    assert_eq!(state().await, "healthy");
    elb(format!("Action=DeregisterTargets{target}")).await.unwrap();
    elb(format!("Action=DeregisterTargets{target}")).await.unwrap();
    assert_eq!(state().await, "draining");
    cloud.pass(10).await;
    assert_eq!(state().await, "");
    let missing = elb("Action=DescribeLoadBalancers&Names.member.1=none".into()).await;
    assert_eq!(code(missing), "LoadBalancerNotFound");
    let wrong = target.replace("10.0.0.9", "i-00000000000000000");
    assert_eq!(code(elb(format!("Action=RegisterTargets{wrong}")).await), "ValidationError");
}

#[tokio::test(start_paused = true)]
async fn dedicated_hosts() {
    let cloud = Cloud::new();
    let allocate =
        "Action=AllocateHosts&AvailabilityZone=us-east-1a&InstanceType=m5.large&Quantity=1";
    let body = cloud.call(allocate).await.unwrap();
    let host = text(&text(&body, "hostIdSet"), "item");
    let on = format!("&Placement.Tenancy=host&Placement.HostId={host}");
    let made = cloud.run(1, &on).await;
    let body = cloud.call("Action=DescribeHosts").await.unwrap();
    assert_eq!(
        (text(&body, "availableVCpus"), text(&body, "instanceId")),
        ("94".into(), made[0].clone())
    );
    let release = format!("Action=ReleaseHosts&HostId.1={host}");
    assert_eq!(text(&cloud.call(&release).await.unwrap(), "code"), "Client.InvalidHost.Occupied");
    assert_eq!(code(cloud.call(&cloud.launch(48, &on)).await), "InsufficientCapacityOnHost");
    let any = "&Placement.Tenancy=host";
    assert_eq!(code(cloud.call(&cloud.launch(1, any)).await), "InsufficientHostCapacity");
    cloud.call(&format!("Action=TerminateInstances{}", ids(&made))).await.unwrap();
    cloud.pass(11).await;
    assert!(cloud.call(&release).await.unwrap().contains(&host));
}
