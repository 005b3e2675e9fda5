//! When to stop.

use anyhow::Context;

/// Ends when the user or the system wants the process to stop.
pub(crate) async fn stop_signal() -> anyhow::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    tokio::select! {
        result = tokio::signal::ctrl_c() => result.context("cannot wait for Ctrl-C"),
        _ = terminate.recv() => Ok(()),
    }
}
