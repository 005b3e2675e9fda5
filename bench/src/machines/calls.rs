//! EC2 calls to bring up a fleet and keep it for an hour of virtual time.

use std::{fmt::Write, time::Duration};

use anyhow::{Context, Result, ensure};
use fleetwright_clock::{Clock, Random};
use fleetwright_cloud::limiter::LimitPolicy;
use fleetwright_simcloud::aws::{
    Aws,
    model::{Change, instance::InstanceState, settings::Settings},
};
use fleetwright_world::simulation::{Pace, Simulation};
use kube::Client;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use super::{
    Scale,
    embedded::World,
    ground::{self, in_phase},
    objects,
    traffic::{Counts, Traffic, in_words},
};

/// The aim: one part of so many of the calls of a controller that describes each Machine.
const WANTED: f64 = 50.0;
/// How long the fleet is kept.
const KEPT: Duration = Duration::from_hours(1);
/// A kubelet registers this long after its instance runs.
const JOIN: Duration = Duration::from_secs(30);
/// Longer than it takes.
const PATIENCE: Duration = Duration::from_hours(2);

/// A controller that describes each Machine by itself, as Machine API's provider for AWS does.
mod model {
    /// To launch one: whether it exists, its image, subnet and security groups, and the launch.
    pub(super) const LAUNCH: [(&str, u64); 5] = [
        ("DescribeInstances", 1),
        ("DescribeImages", 1),
        ("DescribeSubnets", 1),
        ("DescribeSecurityGroups", 1),
        ("RunInstances", 1),
    ];
    /// Each pass over a Machine asks twice: whether its instance exists, and how it is.
    pub(super) const PER_PASS: u64 = 2;
    /// Passes until it runs, at the least: launched, running, linked.
    pub(super) const PASSES_UP: u64 = 3;
    /// Passes in an hour, at the least: everything is looked at every ten minutes.
    pub(super) const PASSES_PER_HOUR: u64 = 6;
}

/// Measures, and says what came out. To be called on paused time.
pub(crate) async fn measure(scale: &Scale) -> Result<String> {
    let machines = scale.set;
    let clock = Clock::simulated("2026-11-15T12:00:00Z".parse().context("not a time")?);
    let random = Random::seeded(7);
    // As AWS: throttled, and with delays.
    let simulation =
        Simulation::with(Settings::default(), random.fork(), clock.clone(), Pace::Times(1.0));
    let world = World::start(simulation, clock, random).await?;
    let mut around = JoinSet::new();
    let aws = world.simulation.aws.clone();
    around.spawn({
        let aws = aws.clone();
        async move { aws.run().await }
    });
    around.spawn(kubelets(aws.clone(), world.user.clone()));
    let controllers = world.controllers(&Traffic::default(), LimitPolicy::default());
    let begin = Instant::now();
    world.ask_for(machines).await?;
    while world.ready().await? < machines {
        ensure!(begin.elapsed() < PATIENCE, "the Machines do not come up");
        sleep(Duration::from_secs(1)).await;
    }
    let (up, took) = (aws.counts(), begin.elapsed());
    sleep(KEPT).await;
    let all = aws.counts();
    let running = in_phase(&world.user, "Running").await?;
    ensure!(running == machines, "{running} of {machines} Machines are Running after an hour");
    let throttled = aws.errors();
    controllers.stop().await?;
    report(machines, took, &up, &all, &throttled)
}

fn report(
    machines: usize,
    took: Duration,
    up: &Counts,
    all: &Counts,
    errors: &Counts,
) -> Result<String> {
    let kept: Counts = all
        .iter()
        .map(|(what, count)| (what.clone(), count - up.get(what).copied().unwrap_or_default()))
        .filter(|(_, count)| *count > 0)
        .collect();
    let reads = |counts: &Counts| sum(counts, |what| what.contains("Describe"));
    let writes = |counts: &Counts| sum(counts, |what| !what.contains("Describe"));
    let total = |counts: &Counts| sum(counts, |_| true);
    let each = machines as u64;
    let launch: u64 = model::LAUNCH.iter().map(|(_, count)| count).sum();
    let launch_writes = each;
    let model_up = each * (launch + model::PASSES_UP * model::PER_PASS);
    let model_kept = each * model::PASSES_PER_HOUR * model::PER_PASS;
    let model = model_up + model_kept;
    let launch: Vec<String> =
        model::LAUNCH.iter().map(|(what, count)| format!("{count} {what}")).collect();
    let mut text = String::new();
    writeln!(
        text,
        "## EC2 calls for {machines} Machines, brought up and kept for an hour

On virtual time, with simulated EC2 that throttles as EC2 documents it, counted by the simulator. The
reference is computed: a controller that describes each Machine needs {} to launch one; each pass over a
Machine costs {} DescribeInstances (does it exist, how is it); at the least {} passes until it is linked
(launched, running, Node) and one every ten minutes. Its passes on every other event are left out.

| | calls | describe per Machine (reference) | ratio |
|---|---|---|---|",
        launch.join(", "),
        model::PER_PASS,
        model::PASSES_UP,
    )?;
    let minutes = KEPT.as_secs_f64() / 60.0;
    let up_in = format!("brought up, in {:.0} s", took.as_secs_f64());
    for (what, ours, theirs) in [
        (up_in, total(up), model_up),
        (format!("kept for {minutes:.0} minutes"), total(&kept), model_kept),
        ("together".to_owned(), total(all), model),
        ("of them reads".to_owned(), reads(all), model - launch_writes),
        ("of them writes".to_owned(), writes(all), launch_writes),
    ] {
        let ratio = theirs as f64 / ours.max(1) as f64;
        writeln!(text, "| {what} | {ours} | {theirs} | 1/{ratio:.1} |")?;
    }
    writeln!(
        text,
        "\nAim: one fiftieth: {}. Brought up with: {}. Kept with: {}. Refused calls: {}.",
        super::verdict(model as f64 >= WANTED * total(all) as f64),
        in_words(up),
        in_words(&kept),
        in_words(errors),
    )?;
    Ok(text)
}

fn sum(counts: &Counts, wanted: impl Fn(&str) -> bool) -> u64 {
    counts.iter().filter(|(what, _)| wanted(what)).map(|(_, count)| count).sum()
}

/// Registers a Node for each instance that runs.
async fn kubelets(aws: Aws, client: Client) {
    let mut events = aws.subscribe();
    let mut joining = JoinSet::new();
    while let Some(event) = events.recv().await {
        if let Change::InstanceState { instance, .. } = &event.change
            && instance.state == InstanceState::Running
        {
            let (node, client) = (objects::node(instance), client.clone());
            joining.spawn(async move {
                sleep(JOIN).await;
                if let Err(error) = ground::register(&client, vec![node]).await {
                    eprintln!("bench: {error:#}");
                }
            });
        }
    }
}
