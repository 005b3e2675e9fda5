//! A MachineSet from nothing to many Machines and back, beside plain clients.

use std::{fmt::Write, time::Duration};

use anyhow::{Context, Result, ensure};
use fleetwright_api::{
    machine::{Machine, MachineSet},
    names::MACHINE_NAMESPACE,
};
use fleetwright_machines::set::{self, decide};
use futures::{StreamExt, TryStreamExt, stream};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    Scale,
    ground::{Ground, IN_FLIGHT, machines},
    load::Load,
    objects,
    traffic::Traffic,
};

/// The aim: this share of the rate of a plain concurrent client.
const WANTED: f64 = 0.9;
/// How often progress is looked at; the moment itself is taken when the answer comes.
const POLL: Duration = Duration::from_millis(5);
/// Objects before anything is measured, so that the server is warm.
const WARM_UP: usize = 100;

/// How long it took to make all Machines, and to delete them.
#[derive(Clone, Copy, Debug)]
struct Times {
    up: Duration,
    down: Duration,
}

/// Who makes Machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Concurrent,
    Controller,
    Serial,
}

const SUBJECTS: [Subject; 3] = [Subject::Concurrent, Subject::Controller, Subject::Serial];

/// Measures, and says what came out.
pub(crate) async fn measure(scale: &Scale) -> Result<String> {
    let (count, rounds) = (scale.set, scale.rounds);
    let ground = Ground::start(Vec::new()).await?;
    plain(&ground, WARM_UP.min(count), IN_FLIGHT).await?;
    let load = Load::begin(&ground.processes())?;
    let mut times: Vec<(Subject, Times)> = Vec::new();
    for round in 0..rounds {
        // Each takes its turn in each place.
        for place in 0..SUBJECTS.len() {
            let subject = SUBJECTS[(place + round) % SUBJECTS.len()];
            let taken = match subject {
                Subject::Concurrent => plain(&ground, count, IN_FLIGHT).await?,
                Subject::Serial => plain(&ground, count, 1).await?,
                Subject::Controller => controller(&ground, count).await?,
            };
            eprintln!("bench: {subject:?}: {taken:?}");
            times.push((subject, taken));
        }
    }
    report(count, rounds, &times, &load.end()?)
}

fn report(count: usize, rounds: usize, times: &[(Subject, Times)], load: &str) -> Result<String> {
    let median = |subject: Subject, of: fn(&Times) -> Duration| {
        let all = times.iter().filter(|(who, _)| *who == subject).map(|(_, times)| of(times));
        super::median(all.collect()).as_secs_f64()
    };
    let mut text = String::new();
    writeln!(
        text,
        "## MachineSet: 0 to {count} Machines and back

On kube-apiserver with etcd, with the MachineSet controller alone. The plain clients make the same
Machines and delete them, {IN_FLIGHT} at a time or one after the other, with the same HTTP client.
From the change of `spec.replicas` (a client: from its first request) to the last answer; the median
of {rounds} rounds that take turns. {load}

| | Machines created per second | | Machines deleted per second | |
|---|---|---|---|---|"
    )?;
    let (mut ratios, rate) = (Vec::new(), |seconds: f64| count as f64 / seconds);
    for subject in SUBJECTS {
        let name = match subject {
            Subject::Concurrent => "plain client, concurrent (reference)",
            Subject::Controller => "MachineSet controller",
            Subject::Serial => "plain client, serial",
        };
        let mut line = format!("| {name} |");
        for of in [|times: &Times| times.up, |times: &Times| times.down] {
            let (ours, theirs) = (median(subject, of), median(Subject::Concurrent, of));
            write!(line, " {:.0} | {:.0} % |", rate(ours), 100.0 * theirs / ours)?;
            if subject == Subject::Controller {
                ratios.push(theirs / ours);
            }
        }
        writeln!(text, "{line}")?;
    }
    let met = ratios.iter().all(|ratio| *ratio >= WANTED);
    writeln!(
        text,
        "\nAim: {:.0} % of the concurrent client's rate: {}.",
        WANTED * 100.0,
        super::verdict(met)
    )?;
    Ok(text)
}

/// A plain client.
async fn plain(ground: &Ground, count: usize, in_flight: usize) -> Result<Times> {
    let client = ground.client(&Traffic::default()).await?;
    let api: Api<Machine> = Api::namespaced(client, MACHINE_NAMESPACE);
    // What the controller would make of the same set.
    let mut set: MachineSet =
        serde_json::from_value(objects::machine_set("plain", "us-east-1a", count))?;
    set.metadata.uid = Some("b3b0c9a0-0000-4000-8000-000000000000".to_owned());
    let machines: Vec<Machine> =
        (0..count).map(|number| decide::machine(&set, &format!("{number:05}"))).collect();
    let params =
        PostParams { field_manager: Some(set::FIELD_MANAGER.to_owned()), ..PostParams::default() };
    let begin = Instant::now();
    let made: Vec<Machine> = stream::iter(&machines)
        .map(|machine| api.create(&params, machine))
        .buffer_unordered(in_flight)
        .try_collect()
        .await
        .context("the plain client cannot create a Machine")?;
    let up = begin.elapsed();
    let begin = Instant::now();
    stream::iter(&made)
        .map(|machine| {
            let api = api.clone();
            async move {
                let preconditions =
                    Some(Preconditions { uid: machine.uid(), resource_version: None });
                let params = DeleteParams { preconditions, ..DeleteParams::background() };
                api.delete(&machine.name_any(), &params).await.map(drop)
            }
        })
        .buffer_unordered(in_flight)
        .try_collect::<()>()
        .await
        .context("the plain client cannot delete a Machine")?;
    Ok(Times { up, down: begin.elapsed() })
}

/// The MachineSet controller.
async fn controller(ground: &Ground, count: usize) -> Result<Times> {
    let name = "workers";
    let traffic = Traffic::default();
    let sets: Api<MachineSet> = Api::namespaced(ground.user.clone(), MACHINE_NAMESPACE);
    let set = serde_json::from_value(objects::machine_set(name, "us-east-1a", 0))?;
    sets.create(&PostParams::default(), &set).await.context("cannot create the MachineSet")?;
    let controllers = ground.controllers(set::CONTROLLER, &traffic).await?;
    // It works when it has said so of the empty set.
    reached(&traffic, "patch machinesets/status", 1).await;
    let up = scale(&sets, name, &traffic, count, ("create machines", count)).await?;
    let there = machines(&ground.user).await?;
    ensure!(there == count, "the controller made {there} Machines of {count}");
    let down = scale(&sets, name, &traffic, 0, ("delete machines", count)).await?;
    let there = machines(&ground.user).await?;
    ensure!(there == 0, "the controller left {there} Machines");
    controllers.stop().await?;
    sets.delete(name, &DeleteParams::default()).await.context("cannot delete the MachineSet")?;
    Ok(Times { up, down })
}

/// From the change of the number of replicas to the last answer that it takes.
async fn scale(
    sets: &Api<MachineSet>,
    name: &str,
    traffic: &Traffic,
    replicas: usize,
    (what, count): (&str, usize),
) -> Result<Duration> {
    let begin = Instant::now();
    let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
    sets.patch(name, &PatchParams::default(), &patch).await.context("cannot scale")?;
    let end = reached(traffic, what, count).await;
    // The status tells the new number, and nothing is left to do.
    let wanted = i32::try_from(replicas).unwrap_or(i32::MAX);
    loop {
        let set = sets.get(name).await.context("cannot read the MachineSet")?;
        if set.status.is_some_and(|status| status.replicas == wanted) {
            return Ok(end - begin);
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// Waits for so many answers and says when the last of them came.
async fn reached(traffic: &Traffic, what: &str, count: usize) -> Instant {
    loop {
        if usize::try_from(traffic.count(what)).unwrap_or_default() >= count {
            return traffic.last_of(what).unwrap_or_else(Instant::now);
        }
        sleep(POLL).await;
    }
}
