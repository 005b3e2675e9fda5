//! Placement groups.

use super::*;
use crate::aws::model::capacity::Limit;

impl Cloud {
    async fn group(&self, name: &str, more: &str) -> Answer {
        self.call(&format!("Action=CreatePlacementGroup&GroupName={name}{more}")).await
    }
}

fn into(group: &str) -> String {
    format!("&Placement.GroupName={group}")
}

#[tokio::test(start_paused = true)]
async fn groups_are_made_listed_and_deleted() {
    let cloud = Cloud::with(|settings| {
        settings.delays.group_available = Duration::from_secs(2);
        settings.delays.group_deleted = Duration::from_secs(2);
    });
    let tags = "&TagSpecification.1.ResourceType=placement-group&TagSpecification.1.Tag.1.Key=k\
                &TagSpecification.1.Tag.1.Value=v";
    let body = cloud.group("p", &format!("&Strategy=partition{tags}")).await.unwrap();
    assert_eq!(
        (text(&body, "partitionCount"), text(&body, "state")),
        ("2".into(), "pending".into())
    );
    let describe = || cloud.call("Action=DescribePlacementGroups&GroupName.1=p");
    cloud.pass(2).await;
    let body = describe().await.unwrap();
    assert_eq!(text(&body, "state"), "available");
    assert!(
        body.contains("<key>k</key>") && text(&body, "groupArn").ends_with("placement-group/p")
    );
    let again = cloud.group("p", "&Strategy=partition").await;
    assert_eq!(code(again), "InvalidPlacementGroup.Duplicate");
    cloud.call("Action=DeletePlacementGroup&GroupName=p").await.unwrap();
    assert_eq!(text(&describe().await.unwrap(), "state"), "deleting");
    assert_eq!(code(cloud.group("p", "").await), "InvalidPlacementGroup.Duplicate");
    cloud.pass(2).await;
    assert_eq!(code(describe().await), "InvalidPlacementGroup.Unknown");
    let gone = cloud.call("Action=DeletePlacementGroup&GroupName=p").await;
    assert_eq!(code(gone), "InvalidPlacementGroup.Unknown");
}

#[tokio::test(start_paused = true)]
async fn groups_that_cannot_be() {
    let cloud = Cloud::with(|settings| settings.quotas.placement_groups = 1);
    for (more, expected) in [
        ("&Strategy=partition&PartitionCount=8", "InvalidParameterValue"),
        ("&Strategy=partition&PartitionCount=0", "InvalidParameterValue"),
        ("&Strategy=spread&PartitionCount=2", "InvalidParameterCombination"),
        ("&Strategy=heap", "InvalidParameterValue"),
        ("&Strategy=cluster&SpreadLevel=rack", "InvalidParameterCombination"),
        ("&Strategy=cluster&Colour=red", "UnknownParameter"),
    ] {
        assert_eq!(code(cloud.group("g", more).await), expected, "{more}");
    }
    assert_eq!(code(cloud.group("", "").await), "MissingParameter");
    cloud.group("g", "").await.unwrap();
    assert_eq!(code(cloud.group("h", "").await), "PlacementGroupLimitExceeded");
}

#[tokio::test(start_paused = true)]
async fn a_group_is_in_use_until_its_members_are_gone_or_stopped() {
    let cloud = Cloud::new();
    cloud.group("c", "&Strategy=cluster").await.unwrap();
    let made = cloud.run(2, &into("c")).await;
    let delete = || cloud.call("Action=DeletePlacementGroup&GroupName=c");
    cloud.pass(6).await;
    assert_eq!(code(delete().await), "InvalidPlacementGroup.InUse");
    cloud.call(&format!("Action=TerminateInstances{}", ids(&made[..1]))).await.unwrap();
    cloud.call(&format!("Action=StopInstances{}", ids(&made[1..]))).await.unwrap();
    assert_eq!(code(delete().await), "InvalidPlacementGroup.InUse", "still shutting down");
    cloud.pass(11).await;
    delete().await.unwrap();
    cloud.pass(2).await;
    let start = cloud.call(&format!("Action=StartInstances{}", ids(&made[1..]))).await;
    assert_eq!(code(start), "InvalidPlacementGroup.Unknown");
}

#[tokio::test(start_paused = true)]
async fn a_spread_group_holds_seven_in_a_zone() {
    let cloud = Cloud::new();
    cloud.group("s", "&Strategy=spread").await.unwrap();
    let made = cloud.run(6, &into("s")).await;
    let (status, body) = cloud.send("2016-11-15", &cloud.launch(2, &into("s"))).await.unwrap();
    assert_eq!((status, text(&body, "Code").as_str()), (500, "InsufficientInstanceCapacity"));
    assert!(body.contains("limit of instances in this spread placement group"));
    let some = cloud.launch(3, &into("s")).replace("MinCount=3", "MinCount=1");
    assert_eq!(texts(&cloud.call(&some).await.unwrap(), "instanceId").len(), 1);
    let elsewhere = cloud
        .launch(7, &into("s"))
        .replace(&cloud.installed.subnets[ZONE], &cloud.installed.subnets["us-east-1b"]);
    cloud.call(&elsewhere).await.unwrap();
    cloud.call(&format!("Action=TerminateInstances{}", ids(&made[..1]))).await.unwrap();
    assert!(cloud.call(&cloud.launch(1, &into("s"))).await.is_err());
    cloud.pass(11).await;
    cloud.run(1, &into("s")).await;
}

#[tokio::test(start_paused = true)]
async fn a_stopped_instance_gives_its_place_away() {
    let cloud = Cloud::new();
    cloud.group("s", "&Strategy=spread").await.unwrap();
    let made = cloud.run(7, &into("s")).await;
    cloud.pass(6).await;
    cloud.call(&format!("Action=StopInstances{}", ids(&made[..2]))).await.unwrap();
    cloud.pass(11).await;
    cloud.run(1, &into("s")).await;
    let both = cloud.call(&format!("Action=StartInstances{}", ids(&made[..2]))).await;
    assert_eq!(code(both), "InsufficientInstanceCapacity");
    cloud.call(&format!("Action=StartInstances{}", ids(&made[..1]))).await.unwrap();
    let other = cloud.call(&format!("Action=StartInstances{}", ids(&made[1..2]))).await;
    assert_eq!(code(other), "InsufficientInstanceCapacity");
}

#[tokio::test(start_paused = true)]
async fn partitions_are_filled_in_turn_or_chosen() {
    let cloud = Cloud::new();
    cloud.group("p", "&Strategy=partition&PartitionCount=3").await.unwrap();
    let body = cloud.call(&cloud.launch(4, &into("p"))).await.unwrap();
    assert_eq!(texts(&body, "partitionNumber"), ["1", "2", "3", "1"]);
    let chosen = format!("{}&Placement.PartitionNumber=3", into("p"));
    let body = cloud.call(&cloud.launch(1, &chosen)).await.unwrap();
    assert_eq!(text(&body, "partitionNumber"), "3");
    let body = cloud.call(&cloud.launch(1, &into("p"))).await.unwrap();
    assert_eq!(text(&body, "partitionNumber"), "2");
    let by = |number| filter("placement-partition-number", number);
    assert_eq!(texts(&cloud.describe(&by("3")).await, "instanceId").len(), 2);
    let in_group = filter("placement-group-name", "p");
    assert_eq!(texts(&cloud.describe(&in_group).await, "instanceId").len(), 6);
    let beyond = format!("{}&Placement.PartitionNumber=4", into("p"));
    assert_eq!(code(cloud.call(&cloud.launch(1, &beyond)).await), "InvalidParameterValue");
    cloud.group("c", "").await.unwrap();
    let wrong = format!("{}&Placement.PartitionNumber=1", into("c"));
    assert_eq!(code(cloud.call(&cloud.launch(1, &wrong)).await), "InvalidParameterCombination");
}

#[tokio::test(start_paused = true)]
async fn who_may_not_join() {
    let cloud = Cloud::new();
    cloud.group("c", "&Strategy=cluster").await.unwrap();
    cloud.group("s", "&Strategy=spread").await.unwrap();
    cloud.group("p", "&Strategy=partition&PartitionCount=3").await.unwrap();
    let burstable = cloud.launch(1, &into("c")).replace("m5.large", "t3.xlarge");
    let (status, body) = cloud.send("2016-11-15", &burstable).await.unwrap();
    assert_eq!(status, 400);
    assert!(
        body.contains(
            "Cluster placement groups are not supported by the 't3.xlarge' instance type"
        )
    );
    for (group, tenancy) in [("c", "host"), ("s", "dedicated"), ("p", "dedicated")] {
        let launch = cloud.launch(1, &format!("{}&Placement.Tenancy={tenancy}", into(group)));
        assert_eq!(code(cloud.call(&launch).await), "InvalidParameterCombination", "{group}");
    }
    cloud.run(1, &format!("{}&Placement.Tenancy=dedicated", into("c"))).await;
    let elsewhere = cloud
        .launch(1, &into("c"))
        .replace(&cloud.installed.subnets[ZONE], &cloud.installed.subnets["us-east-1b"]);
    assert_eq!(code(cloud.call(&elsewhere).await), "InsufficientInstanceCapacity");
}

#[tokio::test(start_paused = true)]
async fn a_group_can_be_full() {
    let cloud = Cloud::new();
    cloud.group("c", "&Strategy=cluster").await.unwrap();
    let limit =
        Limit { zone: None, instance_type: None, group: Some("c".into()), spot: None, limit: 2 };
    cloud.aws.with(|region, now| region.limit_capacity(now, &limit));
    assert_eq!(
        code(cloud.call(&cloud.launch(3, &into("c"))).await),
        "InsufficientInstanceCapacity"
    );
    cloud.run(2, &into("c")).await;
    assert!(cloud.call(&cloud.launch(1, &into("c"))).await.is_err());
    cloud.run(1, "").await;
}
