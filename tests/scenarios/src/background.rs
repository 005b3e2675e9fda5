//! Commands that run in the background.

use std::fs;
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use fleetwright_referees::process::Supervised;
use fleetwright_referees::session::Shell;
use tokio::time::{Instant, sleep};

/// What takes longer hangs.
const LIMIT: Duration = Duration::from_secs(40);
/// A line too many is a fault; this is the time it has to appear.
const AFTERTHOUGHT: Duration = Duration::from_millis(200);
const PAUSE: Duration = Duration::from_millis(20);

/// A running command, its output in a file.
pub(crate) struct Background {
    process: Supervised,
    shown: usize,
}

impl Background {
    pub(crate) fn start(shell: &Shell, name: &str, command: &str) -> Result<Self> {
        // `exec`, so that the process that gets the signals is the command and not its shell.
        let mut command = shell.command(&format!("exec {command}")).into_std();
        let process = Supervised::spawn(name, &mut command, shell.folder())?;
        Ok(Self { process, shown: 0 })
    }

    /// Waits for so many lines since the start.
    pub(crate) async fn wait(&mut self, lines: usize) -> Result<()> {
        let deadline = Instant::now() + LIMIT;
        while self.printed()?.lines().count() < lines {
            if self.process.ended()?.is_some() {
                bail!("it ended before it printed {lines} lines:\n{}", self.printed()?);
            }
            ensure!(
                Instant::now() < deadline,
                "it did not print {lines} lines in time:\n{}",
                self.printed()?
            );
            sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Waits for so many lines since the start and returns what is new.
    pub(crate) async fn show(&mut self, lines: usize) -> Result<String> {
        self.wait(lines).await?;
        sleep(AFTERTHOUGHT).await;
        self.news()
    }

    /// Sends a signal, if any, and waits for the end; returns what is new, and how it ended.
    pub(crate) async fn end(mut self, shell: &Shell, signal: Option<&str>) -> Result<String> {
        if let Some(signal) = signal
            && self.process.ended()?.is_none()
        {
            shell.output(&format!("kill -{signal} {}", self.process.id())).await?;
        }
        let deadline = Instant::now() + LIMIT;
        let status = loop {
            if let Some(status) = self.process.ended()? {
                break status;
            }
            ensure!(Instant::now() < deadline, "it does not end:\n{}", self.printed()?);
            sleep(PAUSE).await;
        };
        Ok(format!("{}{}\n", self.news()?, ending(status)))
    }

    fn news(&mut self) -> Result<String> {
        let printed = self.printed()?;
        let news = printed.get(self.shown..).unwrap_or_default().to_owned();
        self.shown = printed.len();
        Ok(news)
    }

    fn printed(&self) -> Result<String> {
        fs::read_to_string(self.process.log()).context("cannot read an output file")
    }
}

fn ending(status: ExitStatus) -> String {
    status.code().map_or("--- killed".to_owned(), |code| format!("--- exit code {code}"))
}
