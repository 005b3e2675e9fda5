//! `fleetwright run` as a process of its own.

use std::{path::Path, process::Command, time::Duration};

use anyhow::{Context, Result};
use fleetwright_referees::{Access, process::Supervised};
use serde_json::json;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::{audit::Audit, traffic::Counts};
use crate::procfs;

/// As whom it acts, so that its requests can be told from ours.
pub(crate) const USER: &str = "root";
/// How often a starting process is looked at.
const SAMPLE: Duration = Duration::from_millis(250);
/// More processor time in a sample means that it is still at work.
const BUSY: Duration = Duration::from_millis(25);
/// A process that has been neither heard nor busy for so long has settled.
const SETTLED: Duration = Duration::from_secs(5);

/// The process. It ends with the value.
pub(crate) struct Program {
    process: Supervised,
    begin: Instant,
    _folder: TempDir,
}

/// What a start took.
pub(crate) struct Start {
    pub(crate) settled: Duration,
    pub(crate) cpu: Duration,
    pub(crate) requests: Counts,
}

impl Program {
    /// Starts it on a cluster and a cloud. Each setting is a value for `--set`.
    pub(crate) fn start(
        fleetwright: &Path,
        access: &Access,
        cloud: &str,
        settings: &[&str],
    ) -> Result<Self> {
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let token = access.tokens.get(USER).context("nobody has a token")?;
        let authority = folder.path().join("ca.pem");
        std::fs::write(&authority, &access.authority).context("cannot write the authority")?;
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "bench",
            "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": USER}}],
            "clusters": [{"name": "bench", "cluster": {
                "server": access.url, "certificate-authority": authority}}],
            "users": [{"name": USER, "user": {"token": token}}],
        });
        std::fs::write(folder.path().join("kubeconfig"), kubeconfig.to_string())
            .context("cannot write the kubeconfig")?;
        let mut command = Command::new(fleetwright);
        command
            .args(["run", "--kubeconfig", "kubeconfig", "--crds", "check"])
            .args(["--set", "metrics.address=0", "--set", "health.address=0"])
            .env("AWS_ENDPOINT_URL", cloud)
            .current_dir(folder.path());
        for setting in settings {
            command.args(["--set", setting]);
        }
        let begin = Instant::now();
        let process = Supervised::spawn("fleetwright", &mut command, folder.path())?;
        Ok(Self { process, begin, _folder: folder })
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn cpu(&self) -> Result<Duration> {
        procfs::processor_time(self.id())
            .with_context(|| format!("fleetwright run ended:\n{}", self.process.log_tail()))
    }

    /// Waits until it neither asks nor computes.
    pub(crate) async fn settle(&self, audit: &mut Audit) -> Result<Start> {
        let mut requests = Counts::new();
        let (mut cpu, mut last) = (Duration::ZERO, Instant::now());
        let mut busy_until = (Duration::ZERO, Duration::ZERO);
        loop {
            sleep(SAMPLE).await;
            let news = audit.news()?;
            let asked = news.keys().any(|what| !what.ends_with(" leases"));
            for (what, count) in news {
                *requests.entry(what).or_default() += count;
            }
            let now = self.cpu()?;
            if asked || now.saturating_sub(cpu) > BUSY {
                last = Instant::now();
                busy_until = (self.begin.elapsed(), now);
            }
            cpu = now;
            if last.elapsed() > SETTLED {
                return Ok(Start { settled: busy_until.0, cpu: busy_until.1, requests });
            }
        }
    }
}
