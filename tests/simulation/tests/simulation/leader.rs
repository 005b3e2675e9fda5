//! L3: of two processes one acts; when it is cut off, the other takes over in time, and the two
//! never act at once (which every run checks).

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::{
    check::Checker,
    run::{Outcome, on_thread},
    schedule::{Incident, Schedule},
    world::World,
};

/// The lease, the time to renew it, and the longest pause between two tries.
const HANDOVER: Duration = Duration::from_secs(15 + 10 + 5);

async fn hand_over(schedule: Schedule, cut: fn(usize) -> Incident) -> Outcome {
    let mut world = World::start(3, &schedule).await;
    world.act(&schedule.incidents).await;
    sleep(Duration::from_secs(5)).await;
    let leader = world.traffic.checker.lock().leader().unwrap();
    let began = Instant::now();
    let changes = world.traffic.checker.lock().changes_of_leader().len();
    let at = u64::try_from((began - world.start).as_millis()).unwrap();
    world.act(&[(at, cut(leader))]).await;
    sleep(HANDOVER).await;
    {
        let mut checker = world.traffic.checker.lock();
        checker.look();
        if checker.changes_of_leader().len() == changes || checker.leader() == Some(leader) {
            checker.violated(&format!("L3 replica {leader} leads still"));
        }
    }
    world.calm_down().await;
    if let Err(what) = world.wait(Duration::from_mins(10), Checker::unsettled).await {
        world.traffic.checker.lock().violated(&format!("L1 not settled: {what}"));
    }
    crate::run::finish(&world, &schedule)
}

fn changes_leader(cut: fn(usize) -> Incident) {
    let schedule = Schedule { replicas: 2, ..Schedule::calm() };
    let schedule = Schedule {
        incidents: schedule.incidents.into_iter().filter(|(at, _)| *at == 0).collect(),
        ..schedule
    };
    let outcome = on_thread(3, |schedule| hand_over(schedule, cut), &schedule);
    assert_eq!(outcome.violations, Vec::<String>::new(), "{}", outcome.trace.join("\n"));
    assert!(outcome.launches >= 7, "{}", outcome.launches);
}

#[test]
fn another_takes_over_from_a_leader_that_is_cut_off() {
    changes_leader(|replica| Incident::CutOff { replica, seconds: 600 });
}

#[test]
fn another_takes_over_from_a_leader_that_cannot_renew_and_nobody_acts_besides_it() {
    changes_leader(|replica| Incident::CutLease { replica, seconds: 600 });
}
