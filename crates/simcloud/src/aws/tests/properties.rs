//! Whatever is called in whatever order, the rules hold.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::aws::model::{
    Region,
    capacity::Limit,
    instance::InstanceState,
    lifecycle::Strike,
    settings::{Delays, Lag},
};

/// Something that a client or the world does.
#[derive(Clone, Debug)]
enum Step {
    Run { zone: usize, group: usize, token: Option<u8>, min: u32, more: u32, spot: bool },
    Terminate(usize),
    Stop(usize),
    Start(usize),
    Interrupt(usize),
    Limit { zone: usize, limit: u32 },
    DeleteGroup(usize),
    Wait(u64),
}

const ZONES: [&str; 2] = ["us-east-1a", "us-east-1b"];
const GROUPS: [&str; 4] = ["", "cluster", "spread", "partition"];

fn step() -> impl Strategy<Value = Step> {
    let run = (0..2usize, 0..4usize, proptest::option::of(0..3u8), 1..5u32, 0..4u32, any::<bool>());
    prop_oneof![
        4 => run.prop_map(|(zone, group, token, min, more, spot)| {
            Step::Run { zone, group, token, min, more, spot }
        }),
        2 => (0..40usize).prop_map(Step::Terminate),
        1 => (0..40usize).prop_map(Step::Stop),
        1 => (0..40usize).prop_map(Step::Start),
        1 => (0..40usize).prop_map(Step::Interrupt),
        1 => (0..2usize, 0..12u32).prop_map(|(zone, limit)| Step::Limit { zone, limit }),
        1 => (1..4usize).prop_map(Step::DeleteGroup),
        3 => (0..200u64).prop_map(Step::Wait),
    ]
}

async fn take(cloud: &Cloud, step: &Step, limits: &mut BTreeMap<usize, u32>) {
    let nth = |n: usize| cloud.aws.with(|r, _| r.instances().nth(n).map(|i| i.id.clone()));
    let on = |action: &str, n: usize| nth(n).map(|id| format!("Action={action}&InstanceId.1={id}"));
    let call = match step {
        Step::Run { zone, group, token, min, more, spot } => {
            let subnet = &cloud.installed.subnets[ZONES[*zone]];
            let group = if *group > 0 {
                format!("&Placement.GroupName={}", GROUPS[*group])
            } else {
                String::new()
            };
            let token = token.map(|token| format!("&ClientToken={token}")).unwrap_or_default();
            let spot = if *spot { "&InstanceMarketOptions.MarketType=spot" } else { "" };
            let plain = cloud.launch(*min, &format!("{group}{token}{spot}"));
            let plain = plain.replace(&cloud.installed.subnets[ZONE], subnet);
            Some(plain.replace(&format!("MaxCount={min}"), &format!("MaxCount={}", min + more)))
        }
        Step::Terminate(n) => on("TerminateInstances", *n),
        Step::Stop(n) => on("StopInstances", *n),
        Step::Start(n) => on("StartInstances", *n),
        Step::Interrupt(n) => {
            if let Some(id) = nth(*n) {
                cloud.aws.with(|region, now| region.strike(now, &id, Strike::Interrupt));
            }
            None
        }
        Step::Limit { zone, limit } => {
            let limit_ = Limit {
                zone: Some(ZONES[*zone].into()),
                instance_type: None,
                group: None,
                spot: None,
                limit: *limit,
            };
            let used = cloud.aws.with(|region, now| {
                region.limit_capacity(now, &limit_);
                region.capacity.in_use(&limit_)
            });
            // What runs already may stay.
            limits.insert(*zone, used.max(*limit));
            None
        }
        Step::DeleteGroup(n) => {
            Some(format!("Action=DeletePlacementGroup&GroupName={}", GROUPS[*n]))
        }
        Step::Wait(seconds) => {
            cloud.pass(*seconds).await;
            None
        }
    };
    if let Some(call) = call {
        let before = cloud.aws.with(|region, _| region.instances().count());
        if cloud.call(&call).await.is_err() {
            let after = cloud.aws.with(|region, _| region.instances().count());
            assert!(after <= before, "a refused call made something: {call}");
        }
    }
}

fn check(region: &Region, limits: &BTreeMap<usize, u32>) {
    let live: Vec<_> =
        region.instances().filter(|i| i.state != InstanceState::Terminated).collect();
    let addresses: BTreeSet<_> = live.iter().filter_map(|i| i.private_ip()).collect();
    assert_eq!(addresses.len(), live.len(), "every live instance has an address of its own");
    let volumes: BTreeSet<_> = live.iter().flat_map(|i| &i.volumes).map(|v| &v.volume).collect();
    let known: BTreeSet<_> = region.volumes().map(|v| &v.id).collect();
    assert_eq!(volumes, known, "volumes live and die with their instances");

    let up: Vec<_> = live.iter().filter(|i| i.state.occupies()).collect();
    for (zone, most) in limits {
        let there = up.iter().filter(|i| i.zone == ZONES[*zone]).count();
        assert!(there <= *most as usize, "{there} in {zone}, and at most {most} fit");
    }
    let group = |i: &&&&crate::aws::model::instance::Instance, name: &str| {
        i.group.as_ref().is_some_and(|(_, n)| n == name)
    };
    for zone in ZONES {
        let spread = up.iter().filter(|i| group(i, "spread") && i.zone == zone).count();
        assert!(spread <= 7, "{spread} of a spread group in {zone}");
    }
    let cluster: BTreeSet<_> =
        up.iter().filter(|i| group(i, "cluster")).map(|i| i.zone.as_str()).collect();
    assert!(cluster.len() <= 1, "a cluster group is in one zone");
    for member in up.iter().filter(|i| group(i, "partition")) {
        assert!((1..=3).contains(&member.partition.unwrap()));
    }
    // A token has made one launch in a zone, and no more.
    let mut launches: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for instance in region.instances() {
        if let Some(token) = &instance.with.reservation.token {
            let made = launches.entry((token, &instance.zone)).or_default();
            made.insert(&instance.with.reservation.id);
        }
    }
    assert!(launches.values().all(|made| made.len() == 1), "{launches:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn the_rules_hold(steps in proptest::collection::vec(step(), 1..40), lag in 0..3u64) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let cloud = Cloud::with(|settings| {
                settings.lag = Lag::of_all(Duration::from_secs(lag));
                settings.delays = Delays { spot_notice: Duration::from_secs(20), ..Delays::default() };
            });
            for (name, more) in
                [("cluster", ""), ("spread", ""), ("partition", "&PartitionCount=3")]
            {
                let create = format!(
                    "Action=CreatePlacementGroup&GroupName={name}&Strategy={name}{more}"
                );
                cloud.call(&create).await.unwrap();
            }
            let mut limits = BTreeMap::new();
            for step in &steps {
                take(&cloud, step, &mut limits).await;
                cloud.aws.with(|region, _| check(region, &limits));
            }
        });
    }
}
