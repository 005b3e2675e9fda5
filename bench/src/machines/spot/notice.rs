//! From EC2's notice to the end of the pods, beside a plain `kubectl drain`.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use fleetwright_api::{
    machine::{Machine, MachineSet, Phase},
    names::MACHINE_NAMESPACE,
};
use fleetwright_referees::cluster::binaries;
use kube::{
    Api, ResourceExt,
    api::{ListParams, PostParams},
};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    pods::{self, Endings},
    up::Up,
    watching::{Sighting, Watching, What, when},
};
use crate::machines::{Scale, load::Load, median, objects, verdict};

/// What instances boot: admission wants to see it.
const IMAGE: &str = "ami-0f1ee70000000001a";
/// How often handlers ask in a simulated world.
const POLL: Duration = Duration::from_secs(2);
/// The aim: drained from this long after the poll on.
const WANTED_AFTER_POLL: Duration = Duration::from_millis(300);
/// When a notice is at its end: Azure's and Google Cloud's, and EC2's.
const DEADLINES: [Duration; 2] = [Duration::from_secs(30), Duration::from_mins(2)];
/// Longer than Machines take to run.
const PATIENCE: Duration = Duration::from_mins(3);

/// What happens in turn.
const HOPS: [&str; 8] = [
    "`Terminating` on the Node",
    "Node cordoned",
    "Machine deleted",
    "drain started: first pod told to end",
    "last pod told to end",
    "last pod ended",
    "Machine gone",
    "replacement Running",
];
/// The place of the start of the drain among them.
const DRAIN: usize = 3;

/// One interruption: each hop from the notice on, and the pods.
#[derive(Debug)]
struct Interrupted {
    hops: [Option<Duration>; HOPS.len()],
    pods: Endings,
}

/// Measures, and says what came out.
pub(crate) async fn measure(scale: &Scale, fleetwright: &Path) -> Result<String> {
    let kubectl = binaries::referees()?.join("kubectl");
    let up = Up::start(fleetwright, &[]).await?;
    let load = Load::begin(&[up.id()])?;
    let mut set = objects::machine_set("spot", "us-east-1a", scale.notices);
    let provider = &mut set["spec"]["template"]["spec"]["providerSpec"]["value"];
    provider["spotMarketOptions"] = json!({});
    provider["ami"] = json!({"id": IMAGE});
    let sets: Api<MachineSet> = Api::namespaced(up.client.clone(), MACHINE_NAMESPACE);
    let set: MachineSet = serde_json::from_value(set)?;
    sets.create(&PostParams::default(), &set).await.context("cannot create the MachineSet")?;
    let bench = Bench { scale, up, kubectl };
    let machines = bench.running(scale.notices).await?;
    let (mut interrupted, mut drained) = (Vec::new(), Vec::new());
    for (round, (machine, node)) in machines.iter().enumerate() {
        let name = format!("web-{round}");
        pods::make(&bench.up.client, pods::deployment(&name, node, scale.pods, scale.grace))
            .await?;
        pods::wait_for(&bench.up.client, &name, scale.pods).await?;
        let plain = bench.drain(node).await?;
        pods::wait_for(&bench.up.client, &name, scale.pods).await?;
        let ours = bench.interrupt(machine, node).await?;
        eprintln!("bench: round {round}: {ours:?}\nbench: kubectl drain: {plain:?}");
        drained.push(plain);
        interrupted.push(ours);
    }
    report(scale, &interrupted, &drained, &load.end()?)
}

struct Bench<'a> {
    scale: &'a Scale,
    up: Up,
    kubectl: PathBuf,
}

impl Bench<'_> {
    fn machines(&self) -> Api<Machine> {
        Api::namespaced(self.up.client.clone(), MACHINE_NAMESPACE)
    }

    /// The Machines and their Nodes, when so many run.
    async fn running(&self, count: usize) -> Result<Vec<(String, String)>> {
        let begin = Instant::now();
        loop {
            let all = self.machines().list(&ListParams::default()).await.context("cannot list")?;
            let running: Vec<(String, String)> = all
                .items
                .iter()
                .filter_map(|machine| {
                    let status = machine.status.as_ref()?;
                    let node = status.node_ref.as_ref()?.name.clone()?;
                    (status.phase == Some(Phase::Running)).then(|| (machine.name_any(), node))
                })
                .collect();
            if running.len() == count {
                return Ok(running);
            }
            ensure!(begin.elapsed() < PATIENCE, "{} of {count} Machines run", running.len());
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// `kubectl drain` of a Node, which may take pods again afterwards.
    async fn drain(&self, node: &str) -> Result<Endings> {
        let mut watching = Watching::begin(&self.up.client).await?;
        let begin = Instant::now();
        let words = ["drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force"];
        self.up.run(&self.kubectl, &words).await?;
        self.pods_end(&mut watching, node, begin).await?;
        let endings = Endings::of(&watching.seen(), node, self.scale.pods, begin);
        self.up.run(&self.kubectl, &["uncordon", node]).await?;
        Ok(endings)
    }

    /// EC2 takes an instance back.
    async fn interrupt(&self, machine: &str, node: &str) -> Result<Interrupted> {
        let known = self.machines().list_metadata(&ListParams::default()).await?;
        let known: Vec<String> = known.items.iter().map(ResourceExt::name_any).collect();
        let mut watching = Watching::begin(&self.up.client).await?;
        let begin = Instant::now();
        self.up.fleetwright(&["sim", "interrupt", &format!("machine/{machine}")]).await?;
        self.pods_end(&mut watching, node, begin).await?;
        let gone = What::Gone { machine: machine.to_owned() };
        watching
            .until(PATIENCE, |seen| {
                when(seen, &gone).is_some() && replacement(seen, &known).is_some()
            })
            .await?;
        let seen = watching.seen();
        let pods = Endings::of(&seen, node, self.scale.pods, begin);
        Ok(Interrupted { hops: hops(&seen, (machine, node), &known, begin), pods })
    }

    /// Waits until all pods of a Node have ended, or their time is over.
    async fn pods_end(&self, watching: &mut Watching, node: &str, begin: Instant) -> Result<()> {
        let pods = self.scale.pods;
        let all = |seen: &[Sighting]| Endings::of(seen, node, pods, begin).ended.len() >= pods;
        watching.until(DEADLINES[1], all).await?;
        Ok(())
    }
}

/// When a Machine ran that was not there before.
fn replacement(seen: &[Sighting], known: &[String]) -> Option<Instant> {
    let new = |what: &What| match what {
        What::Running { machine } => !known.contains(machine),
        _ => false,
    };
    seen.iter().find(|sighting| new(&sighting.what)).map(|sighting| sighting.at)
}

fn hops(
    seen: &[Sighting],
    (machine, node): (&str, &str),
    known: &[String],
    begin: Instant,
) -> [Option<Duration>; HOPS.len()] {
    let (machine, node) = (machine.to_owned(), node.to_owned());
    let told: Vec<Instant> = seen
        .iter()
        .filter(|sighting| matches!(&sighting.what, What::PodTold { node: of, .. } if *of == node))
        .map(|sighting| sighting.at)
        .collect();
    let ended = seen
        .iter()
        .filter(|sighting| matches!(&sighting.what, What::PodEnded { node: of, .. } if *of == node))
        .map(|sighting| sighting.at)
        .max();
    [
        when(seen, &What::Terminating { node: node.clone() }),
        when(seen, &What::Cordoned { node }),
        when(seen, &What::Deleted { machine: machine.clone() }),
        told.iter().min().copied(),
        told.iter().max().copied(),
        ended,
        when(seen, &What::Gone { machine }),
        replacement(seen, known),
    ]
    .map(|at| at.map(|at| at.saturating_duration_since(begin)))
}

fn report(
    scale: &Scale,
    interrupted: &[Interrupted],
    drained: &[Endings],
    load: &str,
) -> Result<String> {
    let mut text = String::new();
    writeln!(
        text,
        "## From EC2's notice to the end of {} pods

`fleetwright up --in-memory` with one spot instance for each of {} rounds; handlers on the nodes ask the
metadata service about every {} s. Each Node has {} pods of {} s grace that take all of it, and no budget.
First `kubectl drain` empties the Node; it is uncordoned, the pods come back, and EC2 takes the instance
back. Moments are those at which a watch of the benchmark shows the change, counted from the start of
`fleetwright sim interrupt`, or of `kubectl drain`. {load}

| from the notice to | median, ms | worst, ms |
|---|---|---|",
        scale.pods,
        interrupted.len(),
        POLL.as_secs(),
        scale.pods,
        scale.grace.as_secs(),
    )?;
    for (place, name) in HOPS.iter().enumerate() {
        let all: Vec<Duration> = interrupted.iter().filter_map(|round| round.hops[place]).collect();
        if all.len() < interrupted.len() {
            writeln!(text, "| {name} | seen in {} rounds | |", all.len())?;
            continue;
        }
        let worst = all.iter().max().copied().unwrap_or_default();
        writeln!(
            text,
            "| {name} | {:.0} | {:.0} |",
            1e3 * median(all).as_secs_f64(),
            1e3 * worst.as_secs_f64()
        )?;
    }
    let started: Vec<Option<Duration>> = interrupted.iter().map(|it| it.hops[DRAIN]).collect();
    let in_time = started.iter().all(|at| at.is_some_and(|at| at <= POLL + WANTED_AFTER_POLL));
    let after: Vec<Duration> = interrupted
        .iter()
        .filter_map(|it| Some(it.hops[DRAIN]?.saturating_sub(it.hops[0]?)))
        .collect();
    let most = after.iter().max().copied().unwrap_or_default();
    writeln!(
        text,
        "\nAim: drain started one poll ({} s) and {} ms after the notice, in every round: {}. From `Terminating` on
the Node to the start of the drain: median {:.0} ms, worst {:.0} ms.

| {} rounds | Fleetwright, from the notice | `kubectl drain`, from the command | ratio |
|---|---|---|---|",
        POLL.as_secs(),
        WANTED_AFTER_POLL.as_millis(),
        verdict(in_time),
        1e3 * median(after).as_secs_f64(),
        1e3 * most.as_secs_f64(),
        interrupted.len(),
    )?;
    let ours: Vec<&Endings> = interrupted.iter().map(|round| &round.pods).collect();
    let theirs: Vec<&Endings> = drained.iter().collect();
    for (name, of) in [
        ("first pod told to end, s", (|it: &Endings| it.told) as fn(&Endings) -> Option<Duration>),
        ("half of the pods ended, s", |it| it.percent(50)),
        ("all pods ended, s", |it| it.percent(100)),
    ] {
        let middle =
            |all: &[&Endings]| median(all.iter().filter_map(|it| of(it)).collect()).as_secs_f64();
        let (ours, theirs) = (middle(&ours), middle(&theirs));
        writeln!(text, "| {name} | {ours:.2} | {theirs:.2} | {:.2} |", ours / theirs)?;
    }
    for within in DEADLINES {
        let share = |all: &[&Endings]| {
            all.iter().map(|it| it.share(within)).sum::<f64>() / all.len().max(1) as f64
        };
        let (ours, theirs) = (share(&ours), share(&theirs));
        writeln!(
            text,
            "| pods ended inside {} s | {:.1} % | {:.1} % | {:.2} |",
            within.as_secs(),
            100.0 * ours,
            100.0 * theirs,
            ours / theirs
        )?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(drain: u64, ended: u64) -> Interrupted {
        let ms = Duration::from_millis;
        let mut hops = [Some(ms(drain + 100)); HOPS.len()];
        hops[0] = Some(ms(drain - 100));
        hops[DRAIN] = Some(ms(drain));
        let pods = Endings { pods: 2, told: Some(ms(drain)), ended: vec![ms(ended), ms(ended)] };
        Interrupted { hops, pods }
    }

    #[test]
    fn one_round_that_is_too_late_is_a_miss() {
        let scale = Scale::new(true);
        let plain = [round(100, 10_000).pods];
        let said = |rounds: &[Interrupted]| report(&scale, rounds, &plain, "").unwrap();
        let text = said(&[round(1000, 12_000), round(2200, 13_000)]);
        assert!(text.contains("in every round: met"), "{text}");
        assert!(text.contains("| pods ended inside 30 s | 100.0 % | 100.0 % | 1.00 |"), "{text}");
        let text = said(&[round(1000, 31_000), round(2400, 12_000)]);
        assert!(text.contains("in every round: **not met**"), "{text}");
        assert!(text.contains("| pods ended inside 30 s | 50.0 % | 100.0 % | 0.50 |"), "{text}");
        assert!(text.contains("median 100 ms, worst 100 ms"), "{text}");
    }

    #[test]
    fn the_replacement_is_a_machine_that_was_not_there() {
        let at = Instant::now();
        let seen =
            |machine: &str| Sighting { at, what: What::Running { machine: machine.to_owned() } };
        let known = ["old".to_owned()];
        assert!(replacement(&[seen("old")], &known).is_none());
        assert!(replacement(&[seen("old"), seen("new")], &known).is_some());
    }
}
