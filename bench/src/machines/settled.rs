//! `fleetwright run` on a fleet in which nothing is to be done: its start, and its rest.

use std::{fmt::Write, path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use fleetwright_referees::Cluster;
use fleetwright_simcloud::aws::model::instance::Instance;
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use super::{
    Scale,
    audit::Audit,
    ground::Ground,
    load::Load,
    program::{Program, Start, USER},
    traffic::{Counts, Traffic, in_words, writes},
};
use crate::procfs;

/// The aims.
const WANTED_MEMORY: f64 = 60.0;
const WANTED_PERCENT: f64 = 0.5;
/// Kubelets report a status that has not changed this often.
const STATUS_INTERVAL: Duration = Duration::from_mins(5);

/// Measures, and says what came out.
pub(crate) async fn measure(scale: &Scale, fleetwright: &Path) -> Result<String> {
    let count = scale.fleet;
    let mut audit = Audit::of(USER)?;
    let ground = Ground::start(audit.flags()).await?;
    let traffic = Traffic::default();
    eprintln!("bench: bringing up {count} Machines");
    let controllers = ground.controllers("*", &traffic).await?;
    ground.provision(count, &traffic).await?;
    ground.join(count, &traffic).await?;
    let instances = ground.instances();
    controllers.stop().await?;
    let cloud = ground.serve_cloud().await?;
    ensure!(audit.news()?.is_empty(), "somebody else uses the name {USER}");

    eprintln!("bench: starting fleetwright run");
    let program = Program::start(fleetwright, ground.cluster.access(), &cloud.url, &[])?;
    let mut processes = ground.processes();
    processes.push(program.id());
    let load = Load::begin(&processes)?;
    let calls = ground.simulation.aws.counts();
    let start = program.settle(&mut audit).await?;
    let start_calls = since(&calls, &ground.simulation.aws.counts());
    let start_load = load.end()?;
    let mut text = restart(count, &start, &start_calls, &start_load)?;

    eprintln!("bench: at rest");
    sleep(scale.rest).await;
    let alone = rest(scale, &ground, &program, &mut audit, None).await?;
    eprintln!("bench: at rest, with kubelets that report");
    let reporting = rest(scale, &ground, &program, &mut audit, Some(&instances)).await?;
    at_rest(&mut text, count, &program, &alone, &reporting)?;
    Ok(text)
}

/// What a while at rest took.
struct Rest {
    window: Duration,
    cpu: Duration,
    memory: u64,
    requests: Counts,
    calls: Counts,
    load: String,
}

impl Rest {
    fn percent(&self) -> f64 {
        100.0 * self.cpu.as_secs_f64() / self.window.as_secs_f64()
    }
}

/// What came on top of earlier counts.
fn since(before: &Counts, after: &Counts) -> Counts {
    let more = after.iter().map(|(what, count)| {
        (what.clone(), count.saturating_sub(before.get(what).copied().unwrap_or_default()))
    });
    more.filter(|(_, count)| *count > 0).collect()
}

/// Watches the process for a while. Where there are instances, their kubelets report.
async fn rest(
    scale: &Scale,
    ground: &Ground,
    program: &Program,
    audit: &mut Audit,
    reporting: Option<&[Instance]>,
) -> Result<Rest> {
    audit.news()?;
    let mut processes = ground.processes();
    processes.push(program.id());
    let load = Load::begin(&processes)?;
    let (calls, cpu) = (ground.simulation.aws.counts(), program.cpu()?);
    let begin = Instant::now();
    match reporting {
        Some(instances) => report_for(ground, instances, scale.watched).await?,
        None => sleep(scale.watched).await,
    }
    Ok(Rest {
        window: begin.elapsed(),
        cpu: program.cpu()?.saturating_sub(cpu),
        memory: procfs::resident(program.id())?,
        requests: audit.news()?,
        calls: since(&calls, &ground.simulation.aws.counts()),
        load: load.end()?,
    })
}

/// Each kubelet reports a new heartbeat in its conditions once in a [`STATUS_INTERVAL`].
async fn report_for(ground: &Ground, instances: &[Instance], time: Duration) -> Result<()> {
    let api: Api<Node> = Api::all(ground.user.clone());
    let count = u32::try_from(instances.len()).unwrap_or(u32::MAX).max(1);
    let mut ticks = interval(STATUS_INTERVAL / count);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let begin = Instant::now();
    for instance in instances.iter().cycle() {
        ticks.tick().await;
        if begin.elapsed() >= time {
            break;
        }
        let now = ground.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let patch = json!({"status": {"conditions": [
            {"type": "Ready", "status": "True", "lastHeartbeatTime": now},
        ]}});
        let params = PatchParams::default();
        api.patch_status(instance.private_dns(), &params, &Patch::Strategic(patch))
            .await
            .context("a kubelet cannot report")?;
    }
    Ok(())
}

fn restart(count: usize, start: &Start, calls: &Counts, load: &str) -> Result<String> {
    let mut text = String::new();
    let all: u64 = start.requests.values().sum();
    let leases: u64 = start
        .requests
        .iter()
        .filter(|(what, _)| what.ends_with(" leases"))
        .map(|(_, count)| *count)
        .sum();
    let written = writes(&start.requests);
    let lease_writes = start
        .requests
        .iter()
        .filter(|(what, _)| what.ends_with(" leases") && super::traffic::is_write(what))
        .map(|(_, count)| *count)
        .sum::<u64>();
    let writes = written.saturating_sub(lease_writes);
    writeln!(
        text,
        "## A restart with {count} Machines and Nodes

`fleetwright run --crds check` starts on kube-apiserver with etcd, where {count} Machines are Running with
their Nodes and nothing is to be done. Requests are those of the server's audit log. {load}

| | figure | reference: a controller that reads or writes each Machine once |
|---|---|---|
| requests | {all} (of them {leases} for its Lease) | {count} |
| writes, but for its Lease | {writes} | {count} |
| EC2 calls | {} | {count} |
| time until it neither asks nor computes | {:.1} s | |
| processor time until then | {:.2} s | |

Aim: no writes: {}. Requests: {}. EC2: {}.
",
        calls.values().sum::<u64>(),
        start.settled.as_secs_f64(),
        start.cpu.as_secs_f64(),
        super::verdict(writes == 0),
        in_words(&start.requests),
        in_words(calls),
    )?;
    Ok(text)
}

fn at_rest(
    text: &mut String,
    count: usize,
    program: &Program,
    alone: &Rest,
    reporting: &Rest,
) -> Result<()> {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let most = procfs::most_resident(program.id())?;
    let memory = megabytes(alone.memory);
    writeln!(
        text,
        "## At rest with {count} Machines and Nodes

The same process afterwards, for {:.0} seconds in which nothing happens, and for as long while kubelets
report: each patches the status of its Node every {:.0} minutes. The API server and the simulated cloud
are other processes. {}

| | nothing happens | kubelets report |
|---|---|---|
| resident memory | {memory:.0} MB | {:.0} MB |
| processor | {:.2} % of a core | {:.2} % of a core |
| requests | {} | {} |
| EC2 calls | {} | {} |

The most memory that it ever had, while it started: {:.0} MB. Aims: {WANTED_MEMORY:.0} MB: {}; below {WANTED_PERCENT} % of a core
while nothing happens: {}.",
        alone.window.as_secs_f64(),
        STATUS_INTERVAL.as_secs_f64() / 60.0,
        alone.load,
        megabytes(reporting.memory),
        alone.percent(),
        reporting.percent(),
        in_words(&alone.requests),
        in_words(&reporting.requests),
        in_words(&alone.calls),
        in_words(&reporting.calls),
        megabytes(most),
        super::verdict(memory <= WANTED_MEMORY),
        super::verdict(alone.percent() < WANTED_PERCENT),
    )?;
    Ok(())
}
