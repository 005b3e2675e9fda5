//! `fleetwright up` as a process of its own, and commands that talk to it.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use fleetwright_referees::process::Supervised;
use kube::Client;
use tempfile::TempDir;
use tokio::{
    process::Command,
    time::{Instant, sleep},
};

use crate::machines::{ground, traffic::Traffic};

/// Longer than any start takes.
const START_LIMIT: Duration = Duration::from_secs(30);

/// The process. It ends with the value.
pub(crate) struct Up {
    pub(crate) client: Client,
    fleetwright: PathBuf,
    process: Supervised,
    folder: TempDir,
}

impl Up {
    /// Starts it in memory and waits until it answers.
    pub(crate) async fn start(fleetwright: &Path, flags: &[&str]) -> Result<Self> {
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let mut arguments = vec!["up", "--in-memory", "--listen", "127.0.0.1:0"];
        arguments.extend(["--kubeconfig", "kubeconfig"]);
        arguments.extend(flags);
        let mut process = Supervised::start("fleetwright", fleetwright, &arguments, folder.path())?;
        let kubeconfig = folder.path().join("kubeconfig");
        let begin = Instant::now();
        // The kubeconfig appears when the server is ready.
        while !kubeconfig.is_file() {
            process.check()?;
            if begin.elapsed() > START_LIMIT {
                bail!("fleetwright wrote no kubeconfig in time:\n{}", process.log_tail());
            }
            sleep(Duration::from_millis(10)).await;
        }
        let client = ground::client(&kubeconfig, &Traffic::default()).await?;
        client.apiserver_version().await.context("fleetwright does not answer")?;
        Ok(Self { client, fleetwright: fleetwright.to_owned(), process, folder })
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// Runs a `fleetwright` command.
    pub(crate) async fn fleetwright(&self, words: &[&str]) -> Result<()> {
        self.run(&self.fleetwright, words).await
    }

    /// Runs a program that finds the cluster as kubectl does.
    pub(crate) async fn run(&self, program: &Path, words: &[&str]) -> Result<()> {
        let output = Command::new(program)
            .args(words)
            .env("KUBECONFIG", self.kubeconfig())
            .stdin(Stdio::null())
            .output()
            .await
            .with_context(|| format!("cannot run {}", program.display()))?;
        ensure!(
            output.status.success(),
            "{} {} failed: {}",
            program.display(),
            words.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(())
    }
}
