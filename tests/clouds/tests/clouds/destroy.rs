//! The end of a cluster: everything of ours goes, and nothing else.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use fleetwright_cloud::{
    Cloud, Count, GANG_TAG, LaunchOrder, MACHINE_UID_TAG, ResolveRequest, Strategy, Tag,
    transport::Transport,
};
use fleetwright_destroy::{DestroyError, Options, Outcome, Refusals, Survey, destroy, plan};
use fleetwright_simcloud::aws::model::instance::InstanceState;
use http::Request;
use serde_json::json;
use tokio::sync::Notify;
use tower::ServiceExt as _;

use crate::aws::{LATER, World, ZONE, transport};

/// A whole cluster: a spread and a partition group, one from the spot market, one on a host of its
/// own, a gang that nobody has tagged yet, a disk that its instance left behind, the instance of an
/// installer; beside it, an instance of another cluster.
async fn cluster() -> World {
    let world = World::with(|settings| settings.signatures = false);
    let spread = world.group(Strategy::Spread, None).await;
    world.group(Strategy::Partition, Some(3)).await;
    tokio::time::advance(LATER).await;
    for number in 0..3 {
        world.launch(world.grouped(&spread), &format!("s-{number}")).await;
    }
    let mut spot = world.spec();
    spot["spotMarketOptions"] = json!({});
    world.launch(spot, "spot").await;
    let mut hosted = world.spec();
    hosted["placement"] = json!({"region": "us-east-1", "tenancy": "host", "host": {
        "affinity": "DedicatedHost", "dedicatedHost": {"allocationStrategy": "Dynamic"}}});
    world.launch(hosted, "hosted").await;
    let mut gang = world.order(world.spec(), "gang", 2).await;
    gang.tags = vec![Tag::new(GANG_TAG, "gang")];
    world.cloud.launch(gang).await.unwrap();
    let mut installed = world.order(world.spec(), "master-0", 1).await;
    installed.tags = vec![Tag::name("master-0")];
    world.cloud.launch(installed).await.unwrap();
    foreign(&world, "").await;
    let left = raw(
        &world,
        "m-9",
        "&BlockDeviceMapping.1.DeviceName=%2Fdev%2Fsdf\
        &BlockDeviceMapping.1.Ebs.VolumeSize=5&BlockDeviceMapping.1.Ebs.DeleteOnTermination=false",
    )
    .await;
    tokio::time::advance(LATER).await;
    world.cloud.retire(&[left]).await.unwrap();
    tokio::time::advance(LATER).await;
    world.aws.clear_calls();
    world
}

/// An instance of another cluster, in a group or none.
async fn foreign(world: &World, group: &str) -> String {
    let mut provider_spec = world.spec();
    if !group.is_empty() {
        provider_spec["placement"]["group"] = json!({"name": group});
    }
    let cluster = "other".to_owned();
    let request =
        ResolveRequest { provider_spec, cluster, cluster_tags: Vec::new(), user_data: None };
    let launch = world.cloud.resolve(request).await.unwrap();
    let tags = vec![Tag::new(MACHINE_UID_TAG, "elsewhere")];
    let token = format!("foreign{group}");
    let order = LaunchOrder { token, launch, count: Count { min: 1, max: 1 }, tags };
    world.cloud.launch(order).await.unwrap().remove(0).id
}

/// An instance of ours with something that we never ask for.
async fn raw(world: &World, name: &str, more: &str) -> String {
    let (infra, zone) = (&world.installed.infra, ZONE);
    let tags = |number: u32, kind: &str| {
        format!(
            "&TagSpecification.{number}.ResourceType={kind}\
             &TagSpecification.{number}.Tag.1.Key=kubernetes.io%2Fcluster%2F{infra}\
             &TagSpecification.{number}.Tag.1.Value=owned\
             &TagSpecification.{number}.Tag.2.Key={MACHINE_UID_TAG}\
             &TagSpecification.{number}.Tag.2.Value={name}"
        )
    };
    let body = format!(
        "Action=RunInstances&Version=2016-11-15&MinCount=1&MaxCount=1&InstanceType=m5.large\
         &ImageId={}&SubnetId={}{}{}{more}",
        world.installed.images["x86_64"],
        world.installed.subnets[zone],
        tags(1, "instance"),
        tags(2, "volume"),
    );
    let request = Request::post("http://ec2.us-east-1.amazonaws.com/")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Bytes::from(body))
        .unwrap();
    let answer = world.aws.clone().oneshot(request).await.unwrap();
    let text = String::from_utf8_lossy(answer.body()).into_owned();
    let id = text.split("<instanceId>").nth(1).and_then(|rest| rest.split('<').next());
    assert!(id.is_some(), "{text}");
    id.unwrap().to_owned()
}

async fn survey(world: &World, cloud: &dyn Cloud) -> Survey {
    Survey::take(cloud, &world.installed.infra).await.unwrap()
}

async fn run(world: &World, lines: &mut Vec<String>) -> Result<Outcome, DestroyError> {
    let cloud = world.cloud.as_ref();
    let tell = |line: &str| lines.push(line.to_owned());
    destroy(cloud, survey(world, cloud).await, Options::default(), tell).await
}

/// Tags of what there is, terminated instances left out.
fn names(world: &World) -> Vec<String> {
    world.aws.with(|region, _| {
        let alive = region.instances().filter(|it| it.state != InstanceState::Terminated);
        let instances = alive.map(|it| {
            let name = it.tags.get("Name").or(it.tags.get(MACHINE_UID_TAG));
            name.or(it.tags.get(GANG_TAG)).cloned().unwrap_or_default()
        });
        let groups = region.placement_groups().map(|it| it.name.clone());
        let mut names: Vec<String> = instances.chain(groups).collect();
        names.sort();
        names
    })
}

/// Nothing is left but what is not ours.
async fn assert_gone(world: &World) {
    assert_eq!(names(world), ["elsewhere", "master-0"]);
    tokio::time::advance(LATER).await;
    let found = survey(world, world.cloud.as_ref()).await;
    assert_eq!(plan(&found, &Refusals::new()).items, []);
    let volumes = world.aws.with(|region, _| region.volumes().count());
    assert_eq!(volumes, 2, "one each");
}

#[tokio::test(start_paused = true)]
async fn everything_of_ours_goes_in_order_and_nothing_else() {
    let world = cluster().await;
    let mut lines = Vec::new();
    let planned = plan(&survey(&world, world.cloud.as_ref()).await, &Refusals::new());
    let text = planned.describe(&world.installed.infra);
    assert!(
        text.starts_with(
            "To be removed: 7 instances, 8 volumes, 1 dedicated host, 2 placement groups"
        ),
        "{text}"
    );
    for listed in ["master-0", &world.installed.vpc, &world.installed.subnets[ZONE]] {
        let (_, alone) = text.split_once("Left alone").unwrap();
        assert!(alone.contains(listed), "{listed} in {text}");
    }
    assert!(!text.contains("spot instances request"), "ends with its instance: {text}");
    let outcome = run(&world, &mut lines).await.unwrap();
    assert_eq!(outcome.removed, "7 instances, 8 volumes, 1 dedicated host, 2 placement groups");
    assert_eq!(outcome.left.items, []);
    assert_gone(&world).await;
    let told = lines.join("\n");
    let order = [
        "terminating 7 instances",
        "all instances have ended",
        "removing dedicated host",
        "removing placement group spread",
    ];
    let places: Vec<Option<usize>> = order.iter().map(|line| told.find(line)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{told}");
    // Again there is nothing to do.
    world.aws.clear_calls();
    assert_eq!(run(&world, &mut lines).await.unwrap().removed, "nothing");
    assert_only_reads(&world);
}

fn assert_only_reads(world: &World) {
    for call in world.aws.calls() {
        assert!(call.action.starts_with("Describe"), "{call:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_plan_touches_nothing() {
    let world = cluster().await;
    let before = names(&world);
    let found = survey(&world, world.cloud.as_ref()).await;
    assert!(plan(&found, &Refusals::new()).going().count() > 0);
    assert_only_reads(&world);
    assert_eq!(names(&world), before);
}

/// Whoever is behind it is killed at a request: before it is answered, or before it is sent.
fn deadly(world: &World, at: usize, sent: bool, killed: &Arc<Notify>) -> Transport {
    let (inner, count) = (transport(&world.aws), Arc::new(AtomicUsize::new(0)));
    let killed = killed.clone();
    Transport::new(tower::service_fn(move |request: Request<Bytes>| {
        let (inner, killed) = (inner.clone(), killed.clone());
        let dies = count.fetch_add(1, Ordering::SeqCst) == at;
        async move {
            if dies {
                if sent {
                    let _ = inner.oneshot(request).await;
                }
                killed.notify_one();
                std::future::pending::<()>().await;
                unreachable!("killed")
            }
            inner.oneshot(request).await
        }
    }))
}

#[tokio::test(start_paused = true)]
async fn a_kill_at_any_request_is_made_good_by_another_run() {
    let mut at = 0;
    loop {
        let mut ended = false;
        for sent in [false, true] {
            let world = cluster().await;
            let killed = Arc::new(Notify::new());
            let cloud = world.through(deadly(&world, at, sent, &killed));
            let whole = async {
                let found = survey(&world, cloud.as_ref()).await;
                destroy(cloud.as_ref(), found, Options::default(), |_| {}).await.unwrap();
            };
            tokio::select! {
                () = whole => ended = true,
                () = killed.notified() => {}
            }
            run(&world, &mut Vec::new()).await.unwrap();
            assert_gone(&world).await;
        }
        if ended {
            break;
        }
        at += 1;
    }
    assert!(at > 20, "{at} requests were harmed");
}

#[tokio::test(start_paused = true)]
async fn what_is_in_the_way_is_named_and_the_rest_goes() {
    let world = cluster().await;
    let stranger = foreign(&world, "spread").await;
    let guarded = raw(&world, "guarded", "&DisableApiTermination=true").await;
    tokio::time::advance(LATER).await;
    let planned = plan(&survey(&world, world.cloud.as_ref()).await, &Refusals::new());
    let blocked = planned.in_the_way();
    assert!(blocked.contains(&stranger) && blocked.contains("spread"), "{blocked}");
    let mut lines = Vec::new();
    let outcome = run(&world, &mut lines).await.unwrap();
    let blocked = outcome.left.in_the_way();
    for part in [
        guarded.as_str(),
        "may not be terminated. Modify its 'disableApiTermination'",
        &format!("used by {stranger}, which Fleetwright did not make for this cluster"),
        &format!("used by {guarded}, which stays"),
    ] {
        assert!(blocked.contains(part), "{part} in {blocked}");
    }
    let left: Vec<String> = names(&world);
    assert_eq!(left, ["elsewhere", "elsewhere", "guarded", "master-0", "spread"]);
    // Once it is out of the way, another run ends it.
    world.cloud.retire(&[stranger]).await.unwrap();
    tokio::time::advance(LATER).await;
    run(&world, &mut lines).await.unwrap();
    assert_eq!(names(&world), ["elsewhere", "guarded", "master-0"]);
}

#[tokio::test(start_paused = true)]
async fn somebody_who_makes_it_again_is_told_of() {
    let world = cluster().await;
    let maker = async {
        for number in 0.. {
            tokio::time::sleep(Duration::from_secs(7)).await;
            world.launch(world.spec(), &format!("again-{number}")).await;
        }
    };
    let mut lines = Vec::new();
    let error = tokio::select! {
        () = maker => unreachable!("it never ends"),
        outcome = run(&world, &mut lines) => outcome.unwrap_err(),
    };
    assert!(matches!(error, DestroyError::KeepsAppearing(_)), "{error}");
    assert!(error.to_string().contains("a Fleetwright still runs"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_missing_permission_is_named() {
    let world = World::new();
    world.launch(world.spec(), "m-0").await;
    tokio::time::advance(LATER).await;
    world.aws.with_keys(|keys| keys.deny(&["ec2:TerminateInstances".to_owned()].into()));
    let error = run(&world, &mut Vec::new()).await.unwrap_err();
    assert!(error.to_string().contains("ec2:TerminateInstances"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_group_that_stays_in_use_is_given_up_with_the_reason() {
    use fleetwright_simcloud::aws::{Effect, Fault};
    let world = World::new();
    world.group(Strategy::Cluster, None).await;
    tokio::time::advance(LATER).await;
    let refused = Effect::error("InvalidPlacementGroup.InUse", 400, "somebody is in it");
    world.aws.fault(Fault::next("DeletePlacementGroup", refused).times(1_000_000));
    let error = run(&world, &mut Vec::new()).await.unwrap_err();
    assert!(matches!(error, DestroyError::NotInTime { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("1 placement group") && text.contains("somebody is in it"), "{text}");
}
