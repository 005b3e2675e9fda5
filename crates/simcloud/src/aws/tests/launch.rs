//! RunInstances and its client tokens.

use std::time::Duration;

use super::*;
use crate::aws::model::{capacity::Limit, settings::Lag};

#[tokio::test(start_paused = true)]
async fn a_launch_gives_what_was_asked_for() {
    let cloud = Cloud::new();
    let more = "&ClientToken=t&KeyName=demo-key&IamInstanceProfile.Name=demo-worker-profile\
                &UserData=aGVsbG8%3D&TagSpecification.1.ResourceType=instance\
                &TagSpecification.1.Tag.1.Key=Name&TagSpecification.1.Tag.1.Value=w%3C1\
                &BlockDeviceMapping.1.DeviceName=%2Fdev%2Fxvda&BlockDeviceMapping.1.Ebs.VolumeSize=120\
                &BlockDeviceMapping.1.Ebs.VolumeType=gp3&MetadataOptions.HttpTokens=required";
    let body = cloud.call(&cloud.launch(3, more)).await.unwrap();
    assert_eq!(texts(&body, "amiLaunchIndex"), ["0", "1", "2"]);
    assert_eq!(texts(&body, "reservationId").len(), 1);
    assert_eq!(text(&body, "privateDnsName"), "ip-10-0-0-4.ec2.internal");
    assert_eq!(text(&body, "clientToken"), "t");
    assert_eq!(text(&body, "httpTokens"), "required");
    assert!(body.contains("<key>Name</key><value>w&lt;1</value>"), "{body}");
    assert!(body.contains("instance-profile/demo-worker-profile"));
    cloud.aws.with(|region, _| {
        let first = region.instances().next().unwrap();
        assert_eq!(first.with.user_data.as_deref(), Some(&b"hello"[..]));
        assert_eq!(region.volumes().next().unwrap().size_gib, 120);
    });
}

#[tokio::test(start_paused = true)]
async fn what_is_refused() {
    let cloud = Cloud::new();
    let plain = cloud.launch(1, "");
    let image = format!("ImageId={}", cloud.installed.images["x86_64"]);
    let subnet = format!("SubnetId={}", cloud.installed.subnets[ZONE]);
    for (request, expected) in [
        (plain.replace("MinCount=1", "MinCount=0"), "InvalidParameterValue"),
        (plain.replace("MinCount=1", "MinCount=2"), "InvalidParameterValue"),
        (plain.replace("MinCount=1&", ""), "MissingParameter"),
        (plain.replace("MaxCount=1", "MaxCount=x"), "InvalidParameterValue"),
        (plain.replace("MaxCount=1", "MaxCount=1001"), "ResourceCountExceeded"),
        (plain.replace(&image, "X=1"), "UnknownParameter"),
        (plain.replace(&format!("&{image}"), ""), "MissingParameter"),
        (plain.replace(&image, "ImageId=ami-00000000000000000"), "InvalidAMIID.NotFound"),
        (plain.replace(&image, "ImageId=nonsense"), "InvalidAMIID.Malformed"),
        (plain.replace(&subnet, "SubnetId=subnet-0000000"), "InvalidSubnetID.NotFound"),
        (plain.replace(&format!("&{subnet}"), ""), "VPCIdNotSpecified"),
        (plain.replace("m5.large", "m5.huge"), "InvalidParameterValue"),
        (plain.replace("m5.large", "m6g.large"), "InvalidParameterValue"),
        (format!("{plain}&KeyName=none"), "InvalidKeyPair.NotFound"),
        (format!("{plain}&SecurityGroupId.2=sg-00000000000000000"), "InvalidGroup.NotFound"),
        (format!("{plain}&SecurityGroupId.2=x"), "InvalidGroupId.Malformed"),
        (format!("{plain}&IamInstanceProfile.Name=none"), "InvalidParameterValue"),
        (format!("{plain}&Placement.AvailabilityZone=us-east-1b"), "InvalidParameterValue"),
        (format!("{plain}&Placement.GroupName=none"), "InvalidPlacementGroup.Unknown"),
        (format!("{plain}&Placement.PartitionNumber=1"), "InvalidParameterCombination"),
        (format!("{plain}&UserData=%21"), "InvalidParameterValue"),
        (format!("{plain}&ClientToken={}", "x".repeat(65)), "InvalidParameterValue"),
        (format!("{plain}&NetworkInterface.1.DeviceIndex=0"), "InvalidParameterCombination"),
        (
            format!("{plain}&InstanceMarketOptions.MarketType=capacity-block"),
            "InvalidParameterCombination",
        ),
        (format!("{plain}&TagSpecification.1.ResourceType=vpc"), "InvalidParameterValue"),
        (format!("{plain}&DryRun=true"), "DryRunOperation"),
        (plain.replace("RunInstances", "RunInstance"), "InvalidAction"),
    ] {
        assert_eq!(code(cloud.call(&request).await), expected, "{request}");
    }
    assert!(cloud.states().await.is_empty());
    assert_eq!(cloud.aws.with(|region, _| region.volumes().count()), 0);
}

#[tokio::test(start_paused = true)]
async fn network_interfaces_and_efa() {
    let cloud = Cloud::new();
    let subnet = &cloud.installed.subnets[ZONE];
    let plain = cloud.launch(1, "").replace(&format!("&SubnetId={subnet}"), "").replace(
        &format!("&SecurityGroupId.1={}", cloud.installed.worker_group),
        &format!(
            "&NetworkInterface.1.DeviceIndex=0&NetworkInterface.1.SubnetId={subnet}\
             &NetworkInterface.1.SecurityGroupId.1={}&NetworkInterface.1.AssociatePublicIpAddress=true",
            cloud.installed.worker_group
        ),
    );
    let body = cloud.call(&plain).await.unwrap();
    assert!(text(&body, "ipAddress").starts_with("54."), "{body}");
    assert!(text(&body, "dnsName").ends_with(".compute-1.amazonaws.com"));
    let efa = format!("{plain}&NetworkInterface.1.InterfaceType=efa");
    assert_eq!(code(cloud.call(&efa).await), "InvalidParameterCombination");
    let body = cloud.call(&efa.replace("m5.large", "c5n.18xlarge")).await.unwrap();
    assert_eq!(text(&body, "interfaceType"), "efa");
}

#[tokio::test(start_paused = true)]
async fn zones_at_the_edge_have_carrier_addresses() {
    let settings =
        Settings { signatures: false, throttling: Throttling::off(), ..Settings::default() };
    let zone = "us-east-1-wl1-bos-wlz-1";
    let installer = Installer::new("demo", Random::seeded(1)).settings(settings);
    let installer = installer.edge_zone(zone, "wavelength-zone");
    let (aws, installed) = installer.install(Clock::simulated(Timestamp::UNIX_EPOCH));
    let cloud = Cloud { aws, installed };
    let launch = |kind: &str, zone: &str| {
        format!(
            "Action=RunInstances&ImageId={}&InstanceType=t3.medium&MinCount=1&MaxCount=1\
             &NetworkInterface.1.DeviceIndex=0&NetworkInterface.1.SubnetId={}\
             &NetworkInterface.1.Associate{kind}IpAddress=true",
            cloud.installed.images["x86_64"], cloud.installed.subnets[zone]
        )
    };
    let body = cloud.call(&launch("Carrier", zone)).await.unwrap();
    assert!(text(&body, "carrierIp").starts_with("54.") && text(&body, "ipAddress").is_empty());
    for (kind, zone) in [("Carrier", ZONE), ("Public", zone)] {
        let refused = cloud.call(&launch(kind, zone)).await;
        assert_eq!(code(refused), "InvalidParameterCombination", "{kind} {zone}");
    }
    let body = cloud
        .call(&format!("Action=DescribeAvailabilityZones{}", filter("zone-name", zone)))
        .await
        .unwrap();
    assert_eq!(text(&body, "zoneType"), "wavelength-zone");
}

#[tokio::test(start_paused = true)]
async fn the_same_token_gives_the_same_instances_in_their_current_state() {
    let cloud = Cloud::new();
    let first = cloud.run(2, "&ClientToken=t").await;
    cloud.pass(6).await;
    let body = cloud.call(&cloud.launch(2, "&ClientToken=t")).await.unwrap();
    assert_eq!(texts(&body, "instanceId"), first);
    assert!(body.contains("<name>running</name>") && !body.contains("<name>pending</name>"));
    assert_eq!(cloud.states().await.len(), 2);

    let other = cloud.call(&cloud.launch(1, "&ClientToken=t")).await;
    assert_eq!(code(other), "IdempotentParameterMismatch");
    // Tokens are a zone's own.
    let elsewhere = cloud
        .launch(2, "&ClientToken=t")
        .replace(&cloud.installed.subnets[ZONE], &cloud.installed.subnets["us-east-1b"]);
    let body = cloud.call(&elsewhere).await.unwrap();
    assert_ne!(texts(&body, "instanceId"), first);
    assert_eq!(text(&body, "availabilityZone"), "us-east-1b");
}

#[tokio::test(start_paused = true)]
async fn a_token_outlives_its_instances() {
    let cloud = Cloud::new();
    let made = cloud.run(2, "&ClientToken=t").await;
    cloud.call(&format!("Action=TerminateInstances{}", ids(&made[..1]))).await.unwrap();
    cloud.pass(11).await;
    let again = cloud.run(2, "&ClientToken=t").await;
    assert_eq!(again, made, "one of them still lives");
    cloud.call(&format!("Action=TerminateInstances{}", ids(&made[1..]))).await.unwrap();
    cloud.pass(11).await;
    let launch = cloud.launch(2, "&ClientToken=t");
    let replay = || cloud.call(&launch);
    // Listed for an hour, remembered for a day.
    for wait in [0, 3700, 80_000] {
        cloud.pass(wait).await;
        assert_eq!(replay().await.unwrap_err().1, "IdempotentInstanceTerminated", "{wait}");
    }
    cloud.pass(86_400).await;
    assert_ne!(texts(&replay().await.unwrap(), "instanceId"), made);
}

#[tokio::test(start_paused = true)]
async fn a_refused_launch_leaves_no_token() {
    let cloud = Cloud::new();
    let none = Limit {
        zone: None,
        instance_type: Some("m5.large".into()),
        group: None,
        spot: None,
        limit: 0,
    };
    cloud.aws.with(|region, now| region.limit_capacity(now, &none));
    let refused = cloud.call(&cloud.launch(1, "&ClientToken=t")).await;
    assert_eq!(refused, Err((500, "InsufficientInstanceCapacity".to_owned())));
    cloud.aws.with(|region, _| region.capacity.unlimit(None));
    assert_eq!(cloud.run(1, "&ClientToken=t").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn capacity_is_all_or_nothing_up_to_the_minimum() {
    let cloud = Cloud::new();
    let three = Limit {
        zone: Some(ZONE.into()),
        instance_type: Some("m5.large".into()),
        group: None,
        spot: None,
        limit: 3,
    };
    cloud.aws.with(|region, now| region.limit_capacity(now, &three));
    assert_eq!(code(cloud.call(&cloud.launch(4, "")).await), "InsufficientInstanceCapacity");
    assert!(cloud.states().await.is_empty());
    let best_effort = cloud.launch(4, "").replace("MinCount=4", "MinCount=1");
    let body = cloud.call(&best_effort).await.unwrap();
    let made = texts(&body, "instanceId");
    assert_eq!(made.len(), 3);
    assert_eq!(code(cloud.call(&cloud.launch(1, "")).await), "InsufficientInstanceCapacity");
    // Capacity comes back when an instance is terminated, not before.
    cloud.call(&format!("Action=TerminateInstances{}", ids(&made[..1]))).await.unwrap();
    assert!(cloud.call(&cloud.launch(1, "")).await.is_err());
    cloud.pass(11).await;
    assert_eq!(cloud.run(1, "").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn quotas() {
    let cloud = Cloud::with(|settings| {
        settings.quotas.on_demand_vcpus.insert("standard".into(), 4);
        settings.quotas.spot_vcpus.insert("standard".into(), 2);
    });
    cloud.run(2, "").await;
    assert_eq!(cloud.call(&cloud.launch(1, "")).await, Err((400, "VcpuLimitExceeded".into())));
    let spot = "&InstanceMarketOptions.MarketType=spot";
    cloud.run(1, spot).await;
    assert_eq!(code(cloud.call(&cloud.launch(1, spot)).await), "MaxSpotInstanceCountExceeded");
}

#[tokio::test(start_paused = true)]
async fn readers_lag_behind_writers() {
    let cloud = Cloud::with(|settings| {
        settings.lag = Lag::of_all(Duration::from_secs(3));
        settings.lag.actions.insert("CreateTags".into(), Duration::from_secs(1));
    });
    let made = cloud.run(1, "&ClientToken=t").await;
    assert!(cloud.states().await.is_empty());
    for action in ["DescribeInstances", "TerminateInstances"] {
        let answer = cloud.call(&format!("Action={action}{}", ids(&made))).await;
        assert_eq!(code(answer), "InvalidInstanceID.NotFound", "{action}");
    }
    // The token knows it at once.
    assert_eq!(cloud.run(1, "&ClientToken=t").await, made);
    cloud.pass(3).await;
    assert_eq!(cloud.states().await.len(), 1);
    let tag = format!("Action=CreateTags&ResourceId.1={}&Tag.1.Key=a&Tag.1.Value=b", made[0]);
    cloud.call(&tag).await.unwrap();
    assert!(!cloud.describe("").await.contains("<key>a</key>"));
    cloud.pass(1).await;
    assert!(cloud.describe("").await.contains("<key>a</key>"));
    // Everything that waits will be seen in the end.
    cloud.call(&format!("Action=TerminateInstances{}", ids(&made))).await.unwrap();
    assert_eq!(cloud.states().await[0].1, "pending");
    cloud.pass(30).await;
    assert_eq!(cloud.states().await[0].1, "terminated");
}

#[tokio::test(start_paused = true)]
async fn subnets_run_out_of_addresses() {
    let cloud = Cloud::new();
    let public = cloud.aws.with(|region, _| {
        let found = region.subnets.values().find(|s| s.public && s.zone == ZONE);
        found.unwrap().id.clone()
    });
    let launch = cloud.launch(1000, "").replace(&cloud.installed.subnets[ZONE], &public);
    cloud.call(&launch).await.unwrap();
    assert_eq!(code(cloud.call(&launch).await), "InsufficientFreeAddressesInSubnet");
}
