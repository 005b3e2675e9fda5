//! A tenth of a large fleet turns bad on the embedded API; and a check that may not repair.

use std::{fmt::Write, time::Duration};

use anyhow::{Context, Result, ensure};
use fleetwright_clock::{Clock, Random};
use fleetwright_runtime::Tasks;
use kube::Client;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::sick::{self, Deletions, LOOKS_AFTER, Patient, Taken};
use crate::{
    machines::{
        Scale,
        embedded::World,
        exposition,
        ground::{self, Controllers, QUIET, WORKERS, immediate_cloud, unlimited},
        load::Load,
        traffic::{Counts, Traffic, in_words},
        verdict,
    },
    procfs,
};

/// The aim: this share of what a serial client takes.
const WANTED: f64 = 0.2;
/// More processor than at rest than this is more than none, in percent of a core.
const NOISE: f64 = 0.1;
/// Longer than anything takes, on a busy machine.
const PATIENCE: Duration = Duration::from_mins(20);
/// How many Machines checks have judged.
const EVALUATIONS: &str = "mapi_machinehealthcheck_evaluations_total";

/// What a while took in which nothing is repaired.
struct Rest {
    window: Duration,
    cpu: Duration,
    requests: Counts,
    evaluations: f64,
    load: String,
}

impl Rest {
    fn percent(&self) -> f64 {
        100.0 * self.cpu.as_secs_f64() / self.window.as_secs_f64()
    }
}

/// Machines that were judged because of Nodes that were written.
struct Judged {
    nodes: usize,
    turned: f64,
    unchanged: f64,
}

/// Measures, and says what came out.
pub(crate) async fn measure(scale: &Scale) -> Result<String> {
    let (count, bad) = (scale.fleet, scale.fleet / 10);
    let (clock, random) = (Clock::system(), Random::seeded(7));
    let simulation = immediate_cloud(&clock, &random);
    let world = World::start(simulation, clock.clone(), random.clone()).await?;
    // The cloud alone: kubelets would renew their Leases all the time.
    let mut around = Tasks::new(CancellationToken::new());
    world.simulation.start(world.user.clone(), clock.clone(), &random, |_| false, &mut around);
    let user = world.user.clone();

    eprintln!("bench: bringing up {count} Machines");
    let traffic = Traffic::default();
    let controllers = world.controllers(&traffic, unlimited());
    world.ask_for(count).await?;
    bring_up(&world, count, &traffic).await?;
    controllers.stop().await?;

    eprintln!("bench: the serial client");
    let load = Load::begin(&[])?;
    let serial = sick::delete(&user, &sick::choose(&user, bad).await?, 1).await?;

    let controllers = world.controllers(&traffic, unlimited());
    bring_up(&world, count, &traffic).await?;
    let bench = Bench { scale, user, clock, controllers, traffic };
    eprintln!("bench: at rest");
    sick::make(&bench.user, sick::check("repairs", scale.bad_for, "100%")).await?;
    sick::wait_for(&bench.user, "repairs", (count, "True")).await?;
    let quiet = bench.rest().await?;
    eprintln!("bench: {bad} Nodes turn bad");
    let patients = sick::choose(&bench.user, bad).await?;
    let (taken, judged) = bench.strike(&patients).await?;
    let load = load.end()?;
    sick::remove(&bench.user, "repairs").await?;
    bring_up(&world, count, &bench.traffic).await?;

    eprintln!("bench: too many are bad");
    sick::make(&bench.user, sick::check("restricted", scale.bad_for, "1%")).await?;
    let patients = sick::choose(&bench.user, bad).await?;
    sick::turn(&bench.user, &patients, "False", sick::this_second(&bench.clock)).await?;
    sick::wait_for(&bench.user, "restricted", (count, "False")).await?;
    bench.traffic.quiet(QUIET).await;
    let restricted = bench.rest().await?;
    let kept = sick::choose(&bench.user, count).await.context("a Machine was deleted")?;
    ensure!(kept.len() == count, "a check deleted Machines though it may not");
    bench.controllers.stop().await?;

    let mut text = deleted(scale, &serial, &taken, &judged, &load)?;
    short_circuited(&mut text, scale, &quiet, &restricted)?;
    Ok(text)
}

/// Lets kubelets join and waits until all Machines are ready.
async fn bring_up(world: &World, count: usize, traffic: &Traffic) -> Result<()> {
    let begin = Instant::now();
    loop {
        traffic.quiet(QUIET).await;
        world.join().await?;
        traffic.quiet(QUIET).await;
        let (ready, there) = (world.ready().await?, ground::machines(&world.user).await?);
        if (ready, there) == (count, count) {
            return Ok(());
        }
        ensure!(
            begin.elapsed() < PATIENCE,
            "{ready} Machines of {count} are ready, and {there} are there"
        );
    }
}

struct Bench<'a> {
    scale: &'a Scale,
    user: Client,
    clock: Clock,
    controllers: Controllers,
    traffic: Traffic,
}

impl Bench<'_> {
    /// Watches this process for a while in which nothing happens.
    async fn rest(&self) -> Result<Rest> {
        self.traffic.quiet(QUIET).await;
        self.traffic.clear();
        let own = std::process::id();
        let (load, cpu) = (Load::begin(&[])?, procfs::processor_time(own)?);
        let evaluations = self.evaluations()?;
        let begin = Instant::now();
        sleep(self.scale.at_rest).await;
        Ok(Rest {
            window: begin.elapsed(),
            cpu: procfs::processor_time(own)?.saturating_sub(cpu),
            requests: self.traffic.counts(),
            evaluations: self.evaluations()? - evaluations,
            load: load.end()?,
        })
    }

    /// All turn bad, and the check finds out when their time is over.
    async fn strike(&self, patients: &[Patient]) -> Result<(Taken, Judged)> {
        let deletions = Deletions::of(&self.user, patients).await?;
        let before = self.evaluations()?;
        // What says nothing new is written first.
        let long_ago = "2026-11-15T12:00:00Z".parse().context("not a time")?;
        sick::turn(&self.user, patients, "True", long_ago).await?;
        sleep(QUIET / 3).await;
        let unchanged = self.evaluations()? - before;
        let since = sick::this_second(&self.clock);
        sick::turn(&self.user, patients, "False", since).await?;
        let due = since + self.scale.bad_for + LOOKS_AFTER;
        sleep(QUIET / 3).await;
        let turned = self.evaluations()? - before - unchanged;
        ensure!(self.clock.now() < due, "the Nodes could not be written in time");
        let taken = deletions.all(sick::moment(&self.clock, due)).await?;
        Ok((taken, Judged { nodes: patients.len(), turned, unchanged }))
    }

    fn evaluations(&self) -> Result<f64> {
        let text = self.controllers.metrics.text().context("the metrics cannot be written")?;
        Ok(exposition::sum(&text, EVALUATIONS))
    }
}

fn deleted(
    scale: &Scale,
    serial: &Taken,
    taken: &Taken,
    judged: &Judged,
    load: &str,
) -> Result<String> {
    let (count, bad) = (scale.fleet, scale.fleet / 10);
    let ratio = taken.last.as_secs_f64() / serial.last.as_secs_f64();
    let mut text = String::new();
    let per = |evaluations: f64| evaluations / judged.nodes.max(1) as f64;
    writeln!(
        text,
        "## Health check on the embedded API: {bad} of {count} Nodes turn bad at once

Everything in one process: the API in memory, simulated EC2 without delays, all controllers with {WORKERS}
workers, which replace the Machines meanwhile. From the moment at which the check looks (a second after
the timeout of {} s) to the last of {bad} Machines that a watch shows with a `deletionTimestamp`. The plain
client deletes as many, one after the other, while no controller runs. {load}

| | first Machine, ms | last Machine, ms | of the serial client's time |
|---|---|---|---|
| plain client, serial (reference) | {:.1} | {:.0} | 1.00 |
| health check, among all controllers | {:.1} | {:.0} | {ratio:.2} |

Aim: one fifth of the serial client: {}. Machines judged for each Node that turned: {:.2}; for each that
said what it had said before: {:.2}. Aim: one for each change, no scan: {}.
",
        scale.bad_for.as_secs(),
        1e3 * serial.first.as_secs_f64(),
        1e3 * serial.last.as_secs_f64(),
        1e3 * taken.first.as_secs_f64(),
        1e3 * taken.last.as_secs_f64(),
        verdict(ratio <= WANTED),
        per(judged.turned),
        per(judged.unchanged),
        verdict(judged.turned <= judged.nodes as f64 && judged.unchanged == 0.0),
    )?;
    Ok(text)
}

fn short_circuited(
    text: &mut String,
    scale: &Scale,
    quiet: &Rest,
    restricted: &Rest,
) -> Result<()> {
    let (count, bad) = (scale.fleet, scale.fleet / 10);
    let more = restricted.percent() - quiet.percent();
    let none = more <= NOISE && restricted.requests.is_empty() && restricted.evaluations == 0.0;
    writeln!(
        text,
        "## Health check that may not repair, with {count} Machines

The same process for {:.0} seconds with nothing to repair, and for as long while {bad} Nodes are bad and
`maxUnhealthy` is 1 %. {}

| | nothing to repair | too many unhealthy |
|---|---|---|
| processor of the whole process | {:.2} % of a core | {:.2} % of a core |
| requests of all controllers | {} | {} |
| Machines judged | {:.0} | {:.0} |

Aim: none for the check (at most {NOISE} % of a core more than with nothing to repair, no request): {}.",
        quiet.window.as_secs_f64(),
        restricted.load,
        quiet.percent(),
        restricted.percent(),
        in_words(&quiet.requests),
        in_words(&restricted.requests),
        quiet.evaluations,
        restricted.evaluations,
        verdict(none),
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest(cpu: u64, requests: Counts) -> Rest {
        Rest {
            window: Duration::from_mins(1),
            cpu: Duration::from_millis(cpu),
            requests,
            evaluations: 0.0,
            load: String::new(),
        }
    }

    #[test]
    fn a_request_or_processor_time_is_not_none() {
        let said = |cpu, requests| {
            let mut text = String::new();
            let scale = Scale::new(true);
            short_circuited(&mut text, &scale, &rest(300, Counts::new()), &rest(cpu, requests))
                .unwrap();
            text
        };
        assert!(said(330, Counts::new()).contains("no request): met"));
        assert!(said(600, Counts::new()).contains("no request): **not met**"));
        let one = Counts::from([("patch machines".to_owned(), 1)]);
        assert!(said(300, one).contains("no request): **not met**"));
    }
}
