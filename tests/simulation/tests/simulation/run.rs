//! One run of a world, from its first moment to the last.

use std::time::Duration;

use tokio::{runtime::RngSeed, time::sleep};

use crate::{
    check::Checker,
    entropy,
    schedule::{Count, Schedule},
    world::World,
};

/// After the last trouble everything must be well within this time.
const SETTLE: Duration = Duration::from_mins(20);
/// How long a world at rest is watched.
const REST: Duration = Duration::from_mins(5);
/// A world at rest writes nothing but the observation of groups, and asks for this much at most in that time: the inventory once
/// a minute, the state of groups, watches that end.
const REST_REQUESTS: u64 = 40;
/// Each group says how long what it says holds, and says it again before that ends.
const REST_GROUP_WRITES: usize = 15;
/// Writes to API and cloud for each instance that was ever launched, and for the rest of the world.
const WRITES_EACH: u64 = 40;

/// Calls to the cloud in a minute in which somebody waits for something.
const CALLS_EACH_MINUTE: u64 = 30;

/// What came of it.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// What must not have been.
    pub(crate) violations: Vec<String>,
    /// What happened.
    pub(crate) trace: Vec<String>,
    /// The writes, and whether each was to the cloud.
    pub(crate) writes: Vec<(String, bool)>,
    /// Instances that were launched.
    pub(crate) launches: usize,
}

impl Outcome {
    /// Where another run of the same world went another way.
    pub(crate) fn parting(&self, other: &Self) -> Option<String> {
        let longest = self.trace.len().max(other.trace.len());
        let line = (0..longest).find(|line| self.trace.get(*line) != other.trace.get(*line))?;
        let around = |trace: &[String]| {
            let end = trace.len().min(line + 3);
            trace[line.saturating_sub(3).min(end)..end].join("\n    ")
        };
        let (one, two) = (around(&self.trace), around(&other.trace));
        Some(format!("two runs part at line {line}:\n    {one}\n  and\n    {two}"))
    }
}

/// Runs a world on a thread of its own.
pub(crate) fn run(seed: u64, schedule: &Schedule) -> Outcome {
    on_thread(seed, |schedule| live(seed, schedule), schedule)
}

/// Runs something on a thread of its own, on virtual time, with randomness from a seed.
pub(crate) fn on_thread<F: Future<Output = Outcome>>(
    seed: u64,
    life: impl FnOnce(Schedule) -> F + Send,
    schedule: &Schedule,
) -> Outcome {
    let schedule = schedule.clone();
    let joined = std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().stack_size(8 << 20).spawn_scoped(scope, move || {
                entropy::seed(seed);
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_time()
                    .start_paused(true)
                    .rng_seed(RngSeed::from_bytes(&seed.to_le_bytes()))
                    .build()
                    .unwrap();
                runtime.block_on(life(schedule))
            });
        thread.unwrap().join()
    });
    joined.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Outcome {
            violations: vec![format!("panic: {}", text.unwrap_or_default())],
            trace: Vec::new(),
            writes: Vec::new(),
            launches: 0,
        }
    })
}

async fn live(seed: u64, schedule: Schedule) -> Outcome {
    let mut world = World::start(seed, &schedule).await;
    world.run_pods(schedule.pods).await;
    world.act(&schedule.incidents).await;
    // The last trouble takes its time, too.
    sleep(Duration::from_secs(30)).await;
    world.calm_down().await;
    // L1: everything becomes as users want it.
    if let Err(what) = world.wait(SETTLE, Checker::unsettled).await {
        world.traffic.checker.lock().violated(&format!("L1 not settled: {what}"));
    } else if schedule.rest {
        rest(&world).await;
    }
    world.say_goodbye(&schedule.farewell).await;
    // L2: nothing is left.
    if let Err(what) = world.wait(SETTLE, Checker::left).await {
        world.traffic.checker.lock().violated(&format!("L2 not gone: {what}"));
    }
    finish(&world, &schedule)
}

/// S9: nothing happens while nothing changes.
async fn rest(world: &World) {
    // What was just done may be looked at once more.
    sleep(Duration::from_mins(2)).await;
    let before = (world.traffic.writes().len(), world.traffic.steady());
    sleep(REST).await;
    let written = world.traffic.writes().split_off(before.0);
    let (groups, others): (Vec<_>, Vec<_>) =
        written.into_iter().partition(|(text, _)| text.starts_with("placementgroup PATCH"));
    let requests = world.traffic.steady() - before.1;
    if !others.is_empty() || groups.len() > REST_GROUP_WRITES || requests > REST_REQUESTS {
        let groups = groups.len();
        let what = format!("S9 at rest: {requests} requests, {groups} of groups, {others:?}");
        world.traffic.checker.lock().violated(&what);
    }
}

pub(crate) fn finish(world: &World, schedule: &Schedule) -> Outcome {
    let mut checker = world.traffic.checker.lock();
    checker.look();
    let launches = checker.launches();
    // S10: every object has its budget; each fault may cost something, too.
    let writes = world.traffic.count(Count::Writes);
    let troubles = (schedule.harms.len() + schedule.incidents.len()) as u64;
    let budget = WRITES_EACH * (launches as u64 + 5) + 20 * troubles;
    if writes > budget {
        checker.violated(&format!("S10 {writes} writes for {launches} instances, not {budget}"));
    }
    let minutes = world.start.elapsed().as_secs() / 60 + 1;
    let (calls, budget) = (world.calls(), budget + CALLS_EACH_MINUTE * minutes);
    if calls > budget {
        checker.violated(&format!("S10 {calls} calls for {launches} instances, not {budget}"));
    }
    let violations = checker.violations().to_vec();
    drop(checker);
    Outcome { violations, trace: world.traffic.trace(), writes: world.traffic.writes(), launches }
}
