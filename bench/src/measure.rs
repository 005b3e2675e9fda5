//! The measurements of one subject, from its first start to its memory.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use http::{Method, StatusCode};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::fan_out;
use crate::load::{self, Load};
use crate::objects::{self, FIXED_NAMESPACE, NAMESPACE, WATCHED_NAMESPACE};
use crate::operations::{self, FIXED_OBJECTS};
use crate::procfs;
use crate::results::{Figures, Memory};
use crate::servers::{self, Running, Subject};

/// How many requests are under way at a time.
pub(crate) const CONCURRENCIES: [usize; 3] = [1, 16, 64];
/// How many callers fill a server.
const FILLERS: usize = 16;

/// How much is measured.
#[derive(Debug, Clone)]
pub(crate) struct Scale {
    /// How long each operation is measured.
    pub(crate) window: Duration,
    /// How often a subject is started.
    pub(crate) starts: usize,
    /// Objects in the measurement of memory.
    pub(crate) objects: usize,
    /// How long a server rests before its memory is read.
    pub(crate) rest: Duration,
    /// Writes at full speed that are watched.
    pub(crate) watched_writes: usize,
    /// Writes at an even pace that are watched.
    pub(crate) paced_writes: usize,
}

impl Scale {
    /// For figures, or (quick) to see that everything works.
    pub(crate) fn new(quick: bool) -> Self {
        if quick {
            return Self {
                window: Duration::from_millis(300),
                starts: 1,
                objects: 1000,
                rest: Duration::from_millis(500),
                watched_writes: 50,
                paced_writes: 10,
            };
        }
        Self {
            window: Duration::from_secs(4),
            starts: 5,
            objects: 10_000,
            rest: Duration::from_secs(10),
            watched_writes: 1000,
            paced_writes: 200,
        }
    }
}

/// Measures a subject.
pub(crate) async fn subject(
    subject: Subject,
    fleetwright: &Path,
    scale: &Scale,
    only: Option<&str>,
) -> Result<Figures> {
    let mut figures = Figures {
        subject,
        ready: Vec::new(),
        operations: Vec::new(),
        fan_out: None,
        memory: None,
        machine_bytes: (0, objects::machine().named("m-00000").len()),
    };
    let starts = if only.is_some() { 1 } else { scale.starts };
    for _ in 1..starts {
        figures.ready.push(servers::start(subject, fleetwright).await?.ready);
    }
    // The memory of a process that has done nothing else, and before its own client has.
    if only.is_none() {
        tell(subject, "memory");
        let running = servers::start(subject, fleetwright).await?;
        figures.memory = Some(memory(&running, scale).await?);
    }
    let running = servers::start(subject, fleetwright).await?;
    figures.ready.push(running.ready);
    prepare(&running).await?;
    load::send_all(
        &running,
        FILLERS,
        FIXED_OBJECTS,
        &operations::numbered(&running.target, FIXED_NAMESPACE)?,
    )
    .await
    .context("the objects to be read cannot be created")?;
    figures.machine_bytes.0 = stored_size(&running).await?;

    for (run, concurrency) in CONCURRENCIES.into_iter().enumerate() {
        for name in operations::NAMES {
            if only.is_some_and(|only| !name.contains(only)) {
                continue;
            }
            tell(subject, &format!("{name}, {concurrency} at a time"));
            let make = operations::make(name, &running.target, run + 1)?;
            let load = Load { concurrency, warm_up: scale.window / 4, window: scale.window };
            let operation = load::measure(&running, name, load, &make)
                .await
                .with_context(|| format!("{name}, {concurrency} at a time, failed"))?;
            figures.operations.push(operation);
        }
    }
    if only.is_none_or(|only| "watch".contains(only)) {
        tell(subject, "watch");
        figures.fan_out = Some(fan_out::measure(&running, scale).await?);
    }
    Ok(figures)
}

/// Namespaces and the definition of Machines.
async fn prepare(running: &Running) -> Result<()> {
    let target = &running.target;
    for namespace in [NAMESPACE, FIXED_NAMESPACE, WATCHED_NAMESPACE] {
        let body = json!({"metadata": {"name": namespace}});
        target.must(Method::POST, "/api/v1/namespaces", Some(&body)).await?;
    }
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    target.must(Method::POST, definitions, Some(&objects::machine_definition())).await?;
    // A new kind takes a moment, in which the answers are 404 and 429.
    let deadline = Instant::now() + Duration::from_secs(30);
    let probe: serde_json::Value = serde_json::from_slice(&objects::machine().named("probe"))?;
    let machines = objects::machines(NAMESPACE);
    loop {
        let (status, answer) = target.ask(Method::POST, &machines, Some(&probe)).await?;
        if status == StatusCode::CREATED {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("Machines are not served in time: {answer}");
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// How large a Machine is in an answer.
async fn stored_size(running: &Running) -> Result<usize> {
    let path = format!("{}/m-00000", objects::machines(FIXED_NAMESPACE));
    Ok(running.target.must(Method::GET, &path, None).await?.to_string().len())
}

async fn memory(running: &Running, scale: &Scale) -> Result<Memory> {
    let resident = || running.processes.iter().map(|process| procfs::resident(*process)).sum();
    sleep(scale.rest / 5).await;
    let empty: Result<u64> = resident();
    prepare(running).await?;
    let make = operations::numbered(&running.target, NAMESPACE)?;
    load::send_all(running, FILLERS, scale.objects, &make).await?;
    sleep(scale.rest).await;
    Ok(Memory { objects: scale.objects, empty: empty?, full: resident()? })
}

fn tell(subject: Subject, what: &str) {
    eprintln!("bench: {}: {what}", subject.argument());
}
