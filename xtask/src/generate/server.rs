//! Runs a referee for a moment and asks it for its OpenAPI documents.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};

use super::GROUP_VERSIONS;

const TOKEN: &str = "generate";

/// How often and how long to ask a starting server whether it is ready.
const READY_ATTEMPTS: u32 = 240;
const READY_PAUSE: Duration = Duration::from_millis(500);

/// The folder of the referees: the argument, `KUBEBUILDER_ASSETS`, or the cached build.
pub(super) fn binaries(argument: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    if let Some(folder) =
        argument.or_else(|| std::env::var_os("KUBEBUILDER_ASSETS").map(Into::into))
    {
        return Ok(folder);
    }
    let home = std::env::var_os("HOME").context("HOME is not set")?;
    let cache = Path::new(&home).join(".cache/fleetwright/referees");
    let mut built: Vec<PathBuf> = fs::read_dir(&cache)
        .map(|entries| entries.filter_map(|e| Some(e.ok()?.path())).collect())
        .unwrap_or_default();
    built.retain(|folder| folder.join("kube-apiserver").exists() && folder.join("etcd").exists());
    match built.as_slice() {
        [folder] => Ok(folder.clone()),
        [] => bail!("no referees in {}: run `cargo xtask referees`", cache.display()),
        _ => bail!("several referees in {}: choose with --referees", cache.display()),
    }
}

/// The documents by their path under `/openapi/v3/`, byte for byte.
pub(super) fn openapi_documents(binaries: &Path) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let server = Server::start(binaries)?;
    let mut paths = vec!["api".to_owned(), "apis".to_owned(), "version".to_owned()];
    for group_version in GROUP_VERSIONS {
        match group_version.split_once('/') {
            Some((group, _)) => {
                paths.push(format!("apis/{group}"));
                paths.push(format!("apis/{group_version}"));
            }
            None => paths.push(format!("api/{group_version}")),
        }
    }
    paths
        .into_iter()
        .map(|path| {
            let document = server.get(&format!("/openapi/v3/{path}"))?;
            Ok((path, document))
        })
        .collect()
}

/// etcd and kube-apiserver in a folder of their own, stopped when dropped.
struct Server {
    processes: Vec<Child>,
    kubectl: PathBuf,
    url: String,
    folder: PathBuf,
}

impl Server {
    fn start(binaries: &Path) -> anyhow::Result<Self> {
        let folder =
            std::env::temp_dir().join(format!("fleetwright-generate-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let pair = rcgen::KeyPair::generate()?;
        let (key, public) =
            (folder.join("service-account.key"), folder.join("service-account.pub"));
        fs::write(&key, pair.serialize_pem())?;
        fs::write(&public, pair.public_key_pem())?;
        let tokens = folder.join("tokens.csv");
        fs::write(&tokens, format!("{TOKEN},admin,1,\"system:masters\"\n"))?;
        let (client, peer, secure) = (free_port()?, free_port()?, free_port()?);
        let mut server = Server {
            processes: Vec::new(),
            kubectl: binaries.join("kubectl"),
            url: format!("https://127.0.0.1:{secure}"),
            folder,
        };
        let etcd_url = format!("http://127.0.0.1:{client}");
        let peer_url = format!("http://127.0.0.1:{peer}");
        server.spawn(
            Command::new(binaries.join("etcd"))
                .arg(format!("--data-dir={}", server.folder.join("etcd").display()))
                .arg(format!("--listen-client-urls={etcd_url}"))
                .arg(format!("--advertise-client-urls={etcd_url}"))
                .arg(format!("--listen-peer-urls={peer_url}"))
                .arg(format!("--initial-advertise-peer-urls={peer_url}"))
                .arg(format!("--initial-cluster=default={peer_url}"))
                .arg("--unsafe-no-fsync"),
        )?;
        server.spawn(
            Command::new(binaries.join("kube-apiserver"))
                .arg(format!("--etcd-servers={etcd_url}"))
                .args(["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1"])
                .arg(format!("--secure-port={secure}"))
                .arg(format!("--cert-dir={}", server.folder.join("certs").display()))
                .arg(format!("--token-auth-file={}", tokens.display()))
                .args(["--authorization-mode=RBAC", "--service-account-issuer=https://localhost"])
                .arg(format!("--service-account-key-file={}", public.display()))
                .arg(format!("--service-account-signing-key-file={}", key.display()))
                .args([
                    "--service-cluster-ip-range=10.0.0.0/24",
                    "--endpoint-reconciler-type=none",
                ]),
        )?;
        server.wait_until_ready()?;
        Ok(server)
    }

    fn spawn(&mut self, command: &mut Command) -> anyhow::Result<()> {
        let log = fs::File::create(log_file(&self.folder, self.processes.len()))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("starting {}", command.get_program().display()))?;
        self.processes.push(child);
        Ok(())
    }

    fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let mut last = None;
        for _ in 0..READY_ATTEMPTS {
            for (index, process) in self.processes.iter_mut().enumerate() {
                if let Some(status) = process.try_wait()? {
                    let log = fs::read_to_string(log_file(&self.folder, index))?;
                    let end: Vec<&str> = log.lines().rev().take(5).collect();
                    bail!("a referee ended early ({status}): {end:#?}");
                }
            }
            match self.get("/readyz").and_then(|_| self.get("/openapi/v3/apis/apps/v1")) {
                Ok(_) => return Ok(()),
                Err(error) => last = Some(error),
            }
            #[expect(clippy::disallowed_methods, reason = "a chore waits for a real process")]
            std::thread::sleep(READY_PAUSE);
        }
        Err(last.unwrap_or_else(|| anyhow::anyhow!("never asked")))
            .context("the referee is not ready")
    }

    fn get(&self, path: &str) -> anyhow::Result<Vec<u8>> {
        let output = Command::new(&self.kubectl)
            .arg(format!("--server={}", self.url))
            .arg(format!("--token={TOKEN}"))
            .args(["--insecure-skip-tls-verify", "--kubeconfig=/dev/null", "get", "--raw", path])
            .output()
            .context("running kubectl")?;
        if !output.status.success() {
            bail!("GET {path}: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(output.stdout)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The last started first: kube-apiserver must not see etcd vanish.
        for mut process in std::mem::take(&mut self.processes).into_iter().rev() {
            let _ = process.kill();
            let _ = process.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn log_file(folder: &Path, process: usize) -> PathBuf {
    folder.join(format!("{process}.log"))
}

fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
