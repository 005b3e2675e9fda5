//! Runs a session against one server.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output as ProcessOutput, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use super::normalise::Printed;
use super::{Output, Session, Step};
use crate::cluster::{Access, Cluster, delete_namespace, make_namespace};
use crate::http_client::Client;

/// A command that takes longer hangs.
const COMMAND_LIMIT: Duration = Duration::from_secs(30);
/// How long `until` and `stop` wait for what they expect.
const WAIT_LIMIT: Duration = Duration::from_secs(90);

/// Runs all commands in a fresh namespace and returns what they printed.
pub async fn run(session: &Session, cluster: &dyn Cluster, binaries: &Path) -> Result<Vec<Output>> {
    let client = Client::new(cluster.access())?;
    let namespace = format!("s-{}", session.name);
    make_namespace(&client, &namespace).await?;
    let shell = Shell::new(cluster.access(), &namespace, binaries)?;
    let result = run_steps(session, &shell).await;
    delete_namespace(&client, &namespace).await?;
    result
}

async fn run_steps(session: &Session, shell: &Shell) -> Result<Vec<Output>> {
    let mut printed = Printed::default();
    let mut outputs = Vec::new();
    let mut followed: BTreeMap<&str, Followed> = BTreeMap::new();
    for step in &session.steps {
        let (command, text) = match step {
            Step::File { name, text } => {
                let path = shell.folder.path().join(name);
                fs::write(&path, text)
                    .with_context(|| format!("cannot write {}", path.display()))?;
                continue;
            }
            Step::Command(command) => (format!("$ {command}"), shell.printed(command).await?.1),
            Step::Until(command) => (format!("until $ {command}"), shell.until(command).await?),
            Step::Follow { name, command } => {
                followed.insert(name, Followed::start(shell, name, command)?);
                continue;
            }
            Step::Seen { name, lines } => {
                let follower = followed.get(name.as_str());
                follower
                    .with_context(|| format!("nothing named {name} is followed"))?
                    .wait(*lines)
                    .await?;
                continue;
            }
            Step::Stop { name, lines } => {
                let follower = followed
                    .remove(name.as_str())
                    .with_context(|| format!("nothing named {name} is followed"))?;
                (format!("stop {name}"), follower.stop(*lines).await?)
            }
        };
        outputs.push(Output { command, text: printed.normalise(&text) });
    }
    Ok(outputs)
}

/// What a command printed, and its exit code unless that is 0.
pub fn describe(output: &ProcessOutput) -> String {
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    if !errors.is_empty() {
        text.push_str("--- errors\n");
        text.push_str(&errors);
    }
    match output.status.code() {
        Some(0) => text,
        Some(code) => format!("{text}--- exit code {code}\n"),
        None => format!("{text}--- killed\n"),
    }
}

/// Where the commands of a session run.
#[derive(Debug)]
pub struct Shell {
    folder: TempDir,
    path: String,
    environment: Vec<(String, PathBuf)>,
    namespace: String,
}

impl Shell {
    fn new(access: &Access, namespace: &str, binaries: &Path) -> Result<Self> {
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let own = folder.path().join("kubeconfig");
        fs::write(&own, kubeconfig(access, namespace, None)?).context("cannot write kubeconfig")?;
        fs::write(folder.path().join("crds.json"), crds()?).context("cannot write crds.json")?;
        let mut environment =
            vec![("KUBECONFIG".to_owned(), own), ("HOME".to_owned(), folder.path().to_owned())];
        for (user, token) in &access.tokens {
            let path = folder.path().join(format!("kubeconfig-{user}"));
            fs::write(&path, kubeconfig(access, namespace, Some(token))?)
                .context("cannot write kubeconfig")?;
            environment.push((user.to_uppercase(), path));
        }
        Ok(Self {
            folder,
            path: path_with(&[binaries]),
            environment,
            namespace: namespace.to_owned(),
        })
    }

    /// A shell that knows no cluster: an empty home folder, some programs, and this environment.
    pub fn bare(
        folder: TempDir,
        binaries: &[&Path],
        mut environment: Vec<(String, PathBuf)>,
    ) -> Self {
        environment.push(("HOME".to_owned(), folder.path().to_owned()));
        Self { folder, path: path_with(binaries), environment, namespace: "default".to_owned() }
    }

    /// Home and working folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A command line, ready to be started.
    pub fn command(&self, command: &str) -> Command {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", command])
            .current_dir(self.folder.path())
            .env("PATH", &self.path)
            .env("NS", &self.namespace)
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .env("TMPDIR", "/tmp")
            .envs(self.environment.iter().map(|(name, path)| (name, path)))
            .stdin(Stdio::null())
            .kill_on_drop(true);
        shell
    }

    /// Runs a command line to its end.
    pub async fn output(&self, command: &str) -> Result<ProcessOutput> {
        match timeout(COMMAND_LIMIT, self.command(command).output()).await {
            Ok(output) => output.with_context(|| format!("cannot run {command}")),
            Err(_) => bail!("this command hangs: {command}"),
        }
    }

    /// Runs a command: whether it succeeded, and what it printed.
    async fn printed(&self, command: &str) -> Result<(bool, String)> {
        match timeout(COMMAND_LIMIT, self.command(command).output()).await {
            Ok(output) => {
                let output = output.with_context(|| format!("cannot run {command}"))?;
                Ok((output.status.success(), describe(&output)))
            }
            Err(_) => Ok((false, "(it hangs)\n".to_owned())),
        }
    }

    /// Runs a command line again and again until it succeeds.
    pub async fn until(&self, command: &str) -> Result<String> {
        let deadline = Instant::now() + WAIT_LIMIT;
        loop {
            let (success, printed) = self.printed(command).await?;
            if success {
                return Ok("(reached)\n".to_owned());
            }
            if Instant::now() > deadline {
                return Ok(format!("(never reached)\n{printed}"));
            }
            sleep(Duration::from_millis(100)).await;
        }
    }
}

fn path_with(binaries: &[&Path]) -> String {
    let inherited = std::env::var("PATH").unwrap_or_default();
    let own = binaries.iter().map(|folder| folder.display().to_string());
    own.chain([inherited]).collect::<Vec<_>>().join(":")
}

/// Our own definitions, as a list for kubectl.
fn crds() -> Result<String> {
    let items = serde_json::to_value(fleetwright_api::crds())?;
    Ok(json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string())
}

/// A kubeconfig with embedded data for the administrator or for the owner of a token.
fn kubeconfig(access: &Access, namespace: &str, token: Option<&str>) -> Result<String> {
    let text = fs::read_to_string(&access.kubeconfig).context("cannot read the kubeconfig")?;
    let mut config: Value = serde_saphyr::from_str(&text).context("the kubeconfig is not YAML")?;
    let current = config["current-context"].clone();
    for context in config["contexts"].as_array_mut().into_iter().flatten() {
        if context["name"] == current {
            context["context"]["namespace"] = json!(namespace);
        }
    }
    if let Some(token) = token {
        for user in config["users"].as_array_mut().into_iter().flatten() {
            user["user"] = json!({"token": token});
        }
    }
    Ok(config.to_string())
}

/// A command that runs in the background, its output in a file.
struct Followed {
    child: Child,
    output: PathBuf,
}

impl Followed {
    fn start(shell: &Shell, name: &str, command: &str) -> Result<Self> {
        let output = shell.folder.path().join(format!("{name}.followed"));
        let file = fs::File::create(&output).context("cannot make an output file")?;
        let errors = file.try_clone().context("cannot share an output file")?;
        // `exec`, so that the process we end is the command and not its shell.
        let child = shell
            .command(&format!("exec {command}"))
            .stdout(file)
            .stderr(errors)
            .spawn()
            .with_context(|| format!("cannot start {command}"))?;
        Ok(Self { child, output })
    }

    /// Waits until so many lines are printed, but not forever.
    async fn wait(&self, lines: usize) -> Result<()> {
        let deadline = Instant::now() + WAIT_LIMIT;
        while self.printed()?.lines().count() < lines && Instant::now() < deadline {
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    async fn stop(mut self, lines: usize) -> Result<String> {
        self.wait(lines).await?;
        // One line more would be a fault; give it the time to appear.
        sleep(Duration::from_millis(200)).await;
        self.child.kill().await.context("cannot stop a command")?;
        self.printed()
    }

    fn printed(&self) -> Result<String> {
        fs::read_to_string(&self.output).context("cannot read an output file")
    }
}
