//! A closed loop: so many callers, each sending its next request when the last is answered.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::procfs;
use crate::results::{Cpu, Operation, percentile};
use crate::servers::Running;

/// Makes the `n`th request of a caller.
pub(crate) type Make = Arc<dyn Fn(usize, usize) -> Request<Full<Bytes>> + Send + Sync>;

/// How an operation is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) concurrency: usize,
    /// How long requests are sent before anything is counted.
    pub(crate) warm_up: Duration,
    /// How long they are counted.
    pub(crate) window: Duration,
}

/// Measures an operation.
pub(crate) async fn measure(
    running: &Running,
    name: &str,
    load: Load,
    make: &Make,
) -> Result<Operation> {
    let begin = Instant::now() + load.warm_up;
    let end = begin + load.window;
    let mut callers = JoinSet::new();
    for number in 0..load.concurrency {
        let mut caller = running.target.caller(number);
        let make = Arc::clone(make);
        callers.spawn(async move {
            let mut times = Vec::with_capacity(4096);
            for n in 0.. {
                let request = make(number, n);
                let sent = Instant::now();
                caller.send(request).await?.expect_success().await?;
                let answered = Instant::now();
                if answered > end {
                    break;
                }
                if answered >= begin {
                    times.push(answered - sent);
                }
            }
            anyhow::Ok(times)
        });
    }
    let cpu = async {
        sleep_until(begin).await;
        let before = cpu(running)?;
        sleep_until(end).await;
        anyhow::Ok(spent(before, cpu(running)?))
    };
    let answers = async {
        let mut times = Vec::new();
        while let Some(outcome) = callers.join_next().await {
            times.append(&mut outcome??);
        }
        anyhow::Ok(times)
    };
    let (cpu, mut times) = tokio::try_join!(cpu, answers)?;
    times.sort_unstable();
    Ok(Operation {
        name: name.to_owned(),
        concurrency: load.concurrency,
        requests: times.len(),
        window: load.window,
        p50: percentile(&times, 50),
        p99: percentile(&times, 99),
        cpu,
    })
}

/// Sends a fixed number of requests, as fast as they are answered.
pub(crate) async fn send_all(
    running: &Running,
    concurrency: usize,
    count: usize,
    make: &Make,
) -> Result<()> {
    let mut callers = JoinSet::new();
    for number in 0..concurrency {
        let mut caller = running.target.caller(number);
        let make = Arc::clone(make);
        callers.spawn(async move {
            for n in (number..count).step_by(concurrency) {
                caller.send(make(number, n)).await?.expect_success().await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(outcome) = callers.join_next().await {
        outcome??;
    }
    Ok(())
}

/// Processor time so far.
pub(crate) fn cpu(running: &Running) -> Result<Cpu> {
    let own = std::process::id();
    let mut server = Duration::ZERO;
    for process in &running.processes {
        server += procfs::processor_time(*process)?;
    }
    // In process, what the client takes cannot be told apart.
    let client = if running.processes.contains(&own) {
        Duration::ZERO
    } else {
        procfs::processor_time(own)?
    };
    Ok(Cpu { server, client, machine: procfs::machine_time()? })
}

/// Processor time between two moments.
pub(crate) fn spent(before: Cpu, after: Cpu) -> Cpu {
    Cpu {
        server: after.server.saturating_sub(before.server),
        client: after.client.saturating_sub(before.client),
        machine: after.machine.saturating_sub(before.machine),
    }
}
