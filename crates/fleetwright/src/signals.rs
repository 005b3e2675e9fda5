//! When to stop.

use std::time::Duration;

use anyhow::{Context, anyhow};
use fleetwright_runtime::{TaskFailure, Tasks};
use tokio_util::sync::CancellationToken;

/// Ends when the user or the system wants the process to stop.
pub(crate) async fn stop_signal() -> anyhow::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    tokio::select! {
        result = tokio::signal::ctrl_c() => result.context("cannot wait for Ctrl-C"),
        _ = terminate.recv() => Ok(()),
    }
}

/// Runs tasks until one ends by itself, or until the process is to stop: then `stop` ends them, within
/// the limit.
pub(crate) async fn run_until_signal(
    tasks: Tasks,
    stop: &CancellationToken,
    limit: Duration,
) -> anyhow::Result<()> {
    let work = tasks.run(limit);
    tokio::pin!(work);
    let ended = tokio::select! {
        ended = &mut work => ended,
        signal = stop_signal() => {
            signal?;
            stop.cancel();
            work.await
        }
    };
    ended.map_err(|failures| told(&failures))
}

/// All failures in one line.
pub(crate) fn told(failures: &[TaskFailure]) -> anyhow::Error {
    let failures: Vec<String> = failures.iter().map(ToString::to_string).collect();
    anyhow!(failures.join("; "))
}
