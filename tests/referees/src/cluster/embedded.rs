//! Our own server: the `fleetwright` binary, as a user starts it.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::{Access, Cluster, Pending, binaries, token_file};
use crate::http_client::{Client, Request};
use crate::process::Supervised;

/// It is ready in under a second; a busy machine may take longer.
const START_LIMIT: Duration = Duration::from_secs(30);

/// How much of the past it keeps; see "Limits" in docs/embedded-api.md.
const HISTORY: usize = 64 << 20;
/// What fits into a ConfigMap.
const LARGE: usize = 1_000_000;

/// `fleetwright up` on loopback, in memory. It ends with the value.
#[derive(Debug)]
pub struct EmbeddedCluster {
    process: Supervised,
    access: Access,
    _folder: TempDir,
}

impl EmbeddedCluster {
    /// Starts the server and waits until it answers.
    pub async fn start() -> Result<Self> {
        Self::start_with(&["--in-memory"]).await
    }

    /// Starts the server with other flags for where it keeps its data.
    pub async fn start_with(flags: &[&str]) -> Result<Self> {
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let kubeconfig = folder.path().join("kubeconfig");
        let tokens = folder.path().join("tokens.csv");
        fs::write(&tokens, token_file()).context("cannot write the token file")?;
        let kubeconfig_name = kubeconfig.display().to_string();
        let tokens_name = tokens.display().to_string();
        let mut arguments = vec!["up", "--api-only", "--listen", "127.0.0.1:0"];
        arguments.extend(["--kubeconfig", &kubeconfig_name, "--token-file", &tokens_name]);
        arguments.extend(flags);
        let binary = binaries::fleetwright()?;
        let mut process = Supervised::start("fleetwright", &binary, &arguments, folder.path())?;

        // The kubeconfig appears when the server is ready.
        let deadline = Instant::now() + START_LIMIT;
        while !kubeconfig.is_file() {
            process.check()?;
            if Instant::now() > deadline {
                bail!("fleetwright wrote no kubeconfig in time:\n{}", process.log_tail());
            }
            sleep(Duration::from_millis(20)).await;
        }
        let access = Access::from_kubeconfig(&kubeconfig)?;
        let response = Client::new(&access)?
            .send(&Request::get("/readyz"))
            .await
            .context("fleetwright wrote its kubeconfig but does not answer")?;
        if response.status != 200 {
            bail!("fleetwright says it is not ready: {}", response.text());
        }
        Ok(Self { process, access, _folder: folder })
    }

    /// The process identifier, for measurements.
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }
}

impl Cluster for EmbeddedCluster {
    fn name(&self) -> &'static str {
        "embedded"
    }

    fn access(&self) -> &Access {
        &self.access
    }

    fn forget(&self) -> Pending<'_> {
        Box::pin(fill_history(&self.access))
    }
}

/// The history is bounded by its size: large writes push everything else out of it.
async fn fill_history(access: &Access) -> Result<()> {
    const COLLECTION: &str = "/api/v1/namespaces/default/configmaps";
    const OBJECT: &str = "/api/v1/namespaces/default/configmaps/history";
    let client = Client::new(access)?;
    let body = |number: usize| {
        let data = json!({"filling": "x".repeat(LARGE), "number": number.to_string()});
        json!({"metadata": {"name": "history"}, "data": data}).to_string()
    };
    let made = client.send(&Request::new("POST", COLLECTION).json(&body(0))).await?;
    ensure!(made.status == 201, "cannot fill the history: {}", made.text());
    for number in 1..=HISTORY / LARGE {
        let written = client.send(&Request::new("PUT", OBJECT).json(&body(number))).await?;
        ensure!(written.status == 200, "cannot fill the history: {}", written.text());
    }
    client.send(&Request::new("DELETE", OBJECT)).await?;
    Ok(())
}
